#include "peers/real_gateway.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "peers/socket.h"

namespace persia::agent {

RealGateway::RealGateway(std::vector<std::string> flags) : flags_(std::move(flags)) { Start(); }

RealGateway::~RealGateway() { Kill(); }

void RealGateway::Start() {
  std::vector<std::string> words{"prometheus-pushgateway", "--persistence.file=", "--web.listen-address=" + address()};
  words.insert(words.end(), flags_.begin(), flags_.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves nothing behind
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  for (;;) {
    try {
      Socket::Connect(port_);
      return;
    } catch (const std::system_error&) {
      if (waitpid(pid_, nullptr, WNOHANG) != 0) {
        pid_ = -1;
        throw std::runtime_error("prometheus-pushgateway does not start; is it installed?");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

void RealGateway::Kill() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool RealGateway::NamesOffenders() const {
  const std::string same_twice = "offender 1\noffender 2\n";
  const Socket connection = Socket::Connect(port_);
  connection.Send("PUT /metrics/job/probe HTTP/1.0\r\nContent-Length: " + std::to_string(same_twice.size()) + "\r\n\r\n" +
                  same_twice);
  return connection.ReadToEnd().find("\"offender\"") != std::string::npos;
}

std::string RealGateway::Metrics() const {
  const Socket connection = Socket::Connect(port_);
  connection.Send("GET /metrics HTTP/1.0\r\n\r\n");
  const std::string answer = connection.ReadToEnd();
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

std::vector<std::string> RealGateway::Lines(const std::string& begin) const {
  std::istringstream metrics(Metrics());
  std::vector<std::string> lines;
  for (std::string line; std::getline(metrics, line);) {
    if (line.starts_with(begin)) lines.push_back(line);
  }
  return lines;
}

}  // namespace persia::agent
