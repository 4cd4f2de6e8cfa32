#include "launcher.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "checkpoint_folder.h"
#include "job_error.h"
#include "report.h"
#include "socket.h"

namespace embedding_job {
namespace {

namespace fs = std::filesystem;

constexpr char kLoopback[] = "127.0.0.1:0";
// The time that the others have to end after a failure. They notice it by their connections; this limits one that hangs.
constexpr timespec kPatience = {.tv_sec = 10, .tv_nsec = 0};

// Removes the folder and its contents.
struct TemporaryFolder {
  fs::path path = MakeTemporaryFolder();
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

struct Child {
  std::string name;
  pid_t pid = -1;
  fs::path part;  // of the report
  bool running = true;
};

class Launcher {
 public:
  Launcher(const Options& options, std::vector<std::string> arguments)
      : options_(options), arguments_(std::move(arguments)), parent_(getpid()) {
    // From here on signals are pending until Watch takes them. A child unblocks them once it can handle them.
    sigemptyset(&signals_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&signals_, number);
    sigprocmask(SIG_BLOCK, &signals_, &signals_before_);
  }
  ~Launcher() {
    Signal(SIGKILL);
    for (Child& child : children_)
      if (child.running) waitpid(child.pid, nullptr, 0);
    sigprocmask(SIG_SETMASK, &signals_before_, nullptr);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  int Run() {
    StartAll();
    Watch();
    if (!failed_ && !options_.report.empty()) {
      std::vector<ReportPart> parts;
      for (const Child& child : children_) parts.push_back(ReadReportPart(child.part));
      WriteReport(options_.report, parts);
    }
    return failed_ ? 1 : 0;
  }

 private:
  // In the order in which a stop should reach them: clients before servers.
  void StartAll() {
    const Listener worker(kLoopback);
    std::vector<std::unique_ptr<Listener>> servers;
    std::string server_list;
    for (uint32_t i = 0; i < options_.server_replicas; ++i) {
      servers.push_back(std::make_unique<Listener>(kLoopback));
      server_list += (server_list.empty() ? "" : ",") + servers.back()->address();
    }
    Start(Role::kDataLoader, 0, -1, {"--worker", worker.address()});
    Start(Role::kTrainer, 0, -1, {"--worker", worker.address()});
    Start(Role::kEmbeddingWorker, 0, worker.fd(), {"--servers", server_list});
    for (uint32_t i = 0; i < options_.server_replicas; ++i) Start(Role::kEmbeddingServer, i, servers[i]->fd(), {});
    // The listeners are closed here, so that a port is open only as long as its child lives.
  }

  // The child inherits `listen_fd`, if it is not -1, and no other socket.
  void Start(Role role, uint32_t replica, int listen_fd, const std::vector<std::string>& addresses) {
    const std::string name(NameOf(role));
    const std::string number = std::to_string(replica);
    Child child{.name = name + " " + number, .part = scratch_.path / (name + "." + number)};
    std::vector<std::string> words = {"embedding_job"};
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    // Last, because the last of duplicate options counts.
    const std::vector<std::string> own = {"--role", name, "--report", child.part.string(), "--report-part"};
    words.insert(words.end(), own.begin(), own.end());
    if (options_.checkpoint_dir.empty())
      words.insert(words.end(), {"--checkpoint-dir", (scratch_.path / "checkpoints").string()});
    if (listen_fd >= 0) words.insert(words.end(), {"--listen", "fd:" + std::to_string(listen_fd)});
    words.insert(words.end(), addresses.begin(), addresses.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    // Set here, because a child must not change its environment after fork. This process exports nothing.
    setenv("PERSIA_ROLE", name.c_str(), 1);
    setenv("REPLICA_INDEX", number.c_str(), 1);
    child.pid = fork();
    if (child.pid == 0) Become(argv.data(), listen_fd);
    if (child.pid < 0) throw JobError("cannot start the " + child.name + ": " + std::strerror(errno));
    children_.push_back(std::move(child));
  }

  // In the child. Only calls that are safe after a fork.
  [[noreturn]] void Become(char* const* argv, int listen_fd) const {
    // The child gets a SIGTERM if this process dies, even before this line.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent_) _exit(1);
    if (listen_fd >= 0) fcntl(listen_fd, F_SETFD, 0);
    execv("/proc/self/exe", argv);
    constexpr char kText[] = "embedding_job: cannot start itself from /proc/self/exe\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof(kText) - 1);
    _exit(127);
  }

  // Returns when all children have ended.
  void Watch() {
    bool impatient = false;
    while (AnyRunning()) {
      const int number = failed_ && !impatient ? sigtimedwait(&signals_, nullptr, &kPatience) : sigwaitinfo(&signals_, nullptr);
      if (number < 0 && errno == EAGAIN) {
        impatient = true;
        Signal(SIGKILL);
      } else if (number == SIGCHLD) {
        Reap();
      } else if (number > 0) {
        Signal(number);
      }
    }
  }

  void Reap() {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto child = std::find_if(children_.begin(), children_.end(), [&](const Child& c) { return c.pid == pid; });
      if (child == children_.end()) continue;
      child->running = false;
      if (status == 0) continue;
      if (!failed_) {
        const std::string how = WIFSIGNALED(status) ? "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
                                                          strsignal(WTERMSIG(status)) + ")"
                                                    : "failed with exit code " + std::to_string(WEXITSTATUS(status));
        std::fprintf(stderr, "embedding_job: the %s %s; ending the job\n", child->name.c_str(), how.c_str());
        failed_ = true;
        Signal(SIGTERM);
      }
    }
  }

  void Signal(int number) {
    for (const Child& child : children_)
      if (child.running) kill(child.pid, number);
  }

  [[nodiscard]] bool AnyRunning() const {
    return std::any_of(
        children_.begin(), children_.end(), [](const Child& child) { return child.running; });
  }

  const Options& options_;
  const std::vector<std::string> arguments_;
  const pid_t parent_;
  const TemporaryFolder scratch_;
  sigset_t signals_;
  sigset_t signals_before_;
  std::vector<Child> children_;
  bool failed_ = false;
};

}  // namespace

int RunAll(const Options& options, const std::vector<std::string>& arguments) { return Launcher(options, arguments).Run(); }

}  // namespace embedding_job
