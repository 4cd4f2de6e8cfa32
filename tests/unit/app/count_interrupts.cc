// A command that counts how often it is interrupted, each time for itself, and ends with that number when it is terminated. (A
// shell would take two interrupts that come close together for one.)
#include <signal.h>
#include <unistd.h>

namespace {

volatile sig_atomic_t interrupts = 0;

// REQUIRES: `text` is of `size` bytes. Nothing can be done about a failure: whoever waits for it then fails.
void Say(const char* text, size_t size) { [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, text, size); }

void OnInterrupt(int) {
  interrupts = interrupts + 1;
  Say("got it\n", 7);
}

void OnTerminate(int) { _exit(interrupts); }

}  // namespace

int main() {
  // All else waits while an interrupt is counted: of two signals that wait, the later one's handler would begin first.
  struct sigaction action {};
  sigfillset(&action.sa_mask);
  action.sa_handler = OnInterrupt;
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = OnTerminate;
  sigaction(SIGTERM, &action, nullptr);
  Say("are you ready\n", 14);
  for (;;) {
    pause();
  }
}
