#include "supervisor/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

namespace persia::supervisor {
namespace {

LogLevel g_level = kInfo;
bool g_json = false;

constexpr const char* kNames[] = {"debug", "info", "warning", "error"};

// Replaces characters that would end the line, or JSON's string.
void Clean(char* text) {
  for (; *text != '\0'; ++text) {
    if (static_cast<unsigned char>(*text) < 0x20) *text = ' ';
    if (g_json && (*text == '"' || *text == '\\')) *text = '\'';
  }
}

}  // namespace

void SetUpLog(LogLevel level, bool json) {
  g_level = level;
  g_json = json;
}

void Log(LogLevel level, const char* event, const char* format, ...) {
  if (level < g_level || level >= kOff) return;
  char message[500];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  Clean(message);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  char time[40];
  const size_t size = strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(time + size, sizeof time - size, ".%03d+00:00", static_cast<int>(now.tv_nsec / 1000000));
  char line[sizeof message + 200];
  const int length =
      g_json ? snprintf(line, sizeof line, "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"%s\",\"message\":\"%s\"}\n", time,
                        kNames[level], event, message)
             : snprintf(line, sizeof line, "%s persia-metrics-agent %s: %s\n", time, kNames[level], message);
  // A reader of stderr that hangs must not hang the supervisor. One write, so that lines of several processes do not mix.
  pollfd out{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&out, 1, 0) != 1 || out.revents != POLLOUT || write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) return;
}

}  // namespace persia::supervisor
