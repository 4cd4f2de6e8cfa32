// Real children: what a command sees, gets and leaves behind.
#include "app/exec_command.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "source/proc_reader.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

class ExecCommandTest : public ::testing::Test {
 protected:
  ExecCommandTest() {
    // Under nohup, or behind a shell's `&`, they are ignored, and a command would inherit that.
    for (const int number : {SIGHUP, SIGINT, SIGQUIT}) signal(number, SIG_DFL);
    mkfifo(Path("ready").c_str(), 0600);
  }

  std::string Path(const std::string& name) const { return directory_ / name; }
  std::string Content(const std::string& name) const { return ReadAll(Path(name)); }
  static std::string ReadAll(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  // Runs a command to its end; failures to start count as its exit code, as in the agent.
  static int Run(const std::vector<std::string>& arguments,
                 const std::vector<std::pair<std::string, std::string>>& environment = {}) {
    SignalReader signals;
    auto started = ExecCommand::Start(arguments, environment, signals);
    if (const auto* failure = std::get_if<ExecCommand::Failure>(&started)) {
      return failure->exit_code;
    }
    return std::get<ExecCommand>(started).Wait(signals);
  }
  // Scripts find our directory in $D; one that is ready for a signal writes into the pipe $D/ready.
  int Shell(const std::string& script) { return Run({"/bin/sh", "-c", script}, {{"D", directory_}}); }

  const TemporaryDirectory temporary_;
  const std::filesystem::path directory_ = temporary_.path();
};

TEST_F(ExecCommandTest, ExitCodeIsTakenOver) {
  EXPECT_EQ(Run({"true"}), 0);
  EXPECT_EQ(Run({"false"}), 1);
  EXPECT_EQ(Shell("exit 255"), 255);
}

TEST_F(ExecCommandTest, DeathBySignalIs128PlusItsNumber) {
  EXPECT_EQ(Shell("kill -KILL $$"), 128 + SIGKILL);
  EXPECT_EQ(Shell("kill -SEGV $$"), 128 + SIGSEGV);
}

TEST_F(ExecCommandTest, TellsOfEachChildThatItBuries) {
  std::map<pid_t, EndedChild> ended;
  SignalReader signals;
  // Its child is left to us, and ends before it does.
  const char script[] =
      "(sh -c 'echo $$ > $D/orphan; kill -KILL $$' &); until [ -s $D/orphan ]; do sleep 0.01; done; "
      "while kill -0 $(cat $D/orphan) 2> /dev/null; do sleep 0.01; done; exit 3";
  auto started = ExecCommand::Start({"/bin/sh", "-c", script}, {{"D", directory_}}, signals);
  ExecCommand& command = std::get<ExecCommand>(started);
  const uint64_t start_ticks = ProcReader().Stat(std::to_string(command.pid())).value().start_ticks;
  EXPECT_EQ(command.Wait(signals, [&](const EndedChild& child) { ended[child.pid] = child; }), 3);
  ASSERT_TRUE(ended.contains(command.pid()));
  EXPECT_EQ(ended[command.pid()].wait_status, 3 << 8);
  EXPECT_EQ(ended[command.pid()].start_ticks, start_ticks);
  const pid_t orphan = std::stoi(Content("orphan"));
  ASSERT_TRUE(ended.contains(orphan));
  EXPECT_EQ(ended[orphan].wait_status, SIGKILL);
  EXPECT_GE(ended[orphan].start_ticks, start_ticks);
}

TEST_F(ExecCommandTest, CommandThatIsNotThereIs127) {
  EXPECT_EQ(Run({"no-such-command-at-all"}), 127);
  EXPECT_EQ(Run({"/no/such/command"}), 127);
}

TEST_F(ExecCommandTest, CommandThatCannotBeRunIs126) {
  std::ofstream(Path("text")) << "no program";
  EXPECT_EQ(Run({Path("text")}), 126);
  EXPECT_EQ(Run({directory_}), 126);
}

TEST_F(ExecCommandTest, FailureNamesTheCommandAndTheReason) {
  SignalReader signals;
  auto started = ExecCommand::Start({"/no/such/command"}, {}, signals);
  ASSERT_TRUE(std::holds_alternative<ExecCommand::Failure>(started));
  EXPECT_EQ(std::get<ExecCommand::Failure>(started).message, "cannot run \"/no/such/command\": there is no such command");
}

TEST_F(ExecCommandTest, EnvironmentIsOursWithTheChanges) {
  setenv("PERSIA_TEST_KEPT", "kept", 1);
  setenv("PERSIA_TEST_CHANGED", "before", 1);
  EXPECT_EQ(Run({"/bin/sh", "-c", R"([ "$PERSIA_TEST_KEPT $PERSIA_TEST_CHANGED $PERSIA_TEST_NEW" = "kept after new" ])"},
                {{"PERSIA_TEST_CHANGED", "after"}, {"PERSIA_TEST_NEW", "new"}}),
            0);
}

TEST_F(ExecCommandTest, CommandHasTheSignalMaskAndDispositionsThatWeHad) {
  const auto signals_of = [](const std::string& status) {
    const size_t at = status.find("SigBlk:");
    return status.substr(at, status.find("SigCgt:") - at);
  };
  const std::string ours = signals_of(ReadAll("/proc/self/status"));
  ASSERT_EQ(Run({"cp", "/proc/self/status", Path("status")}), 0);
  EXPECT_EQ(signals_of(Content("status")), ours);
}

TEST_F(ExecCommandTest, CommandHasNoneOfOurDescriptors) { EXPECT_EQ(Shell("! ls -l /proc/self/fd | grep anon_inode"), 0); }

TEST_F(ExecCommandTest, ChildrenIgnoredByOurParentStillHaveExitCodes) {
  const auto former = signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(Shell("exit 5"), 5);
  signal(SIGCHLD, former);
}

class ExecCommandPassesOn : public ExecCommandTest, public ::testing::WithParamInterface<int> {};

TEST_P(ExecCommandPassesOn, Signal) {
  const int number = GetParam();
  int exit_code = -1;
  {
    SignalReader signals;
    auto started = ExecCommand::Start(
        {"/bin/sh", "-c", "trap 'exit 42' " + std::to_string(number) + "; echo > $D/ready; while :; do sleep 0.01; done"},
        {{"D", directory_}}, signals);
    std::thread sender([&] {
      ReadAll(Path("ready"));
      kill(getpid(), number);
    });
    exit_code = std::get<ExecCommand>(started).Wait(signals);
    sender.join();
  }
  EXPECT_EQ(exit_code, 42);
}

INSTANTIATE_TEST_SUITE_P(Each, ExecCommandPassesOn, ::testing::Values(SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2));

TEST_F(ExecCommandTest, SignalThatComesBeforeTheCommandIsNotLost) {
  SignalReader signals;
  kill(getpid(), SIGTERM);
  auto started = ExecCommand::Start({"sleep", "600"}, {}, signals);
  EXPECT_EQ(std::get<ExecCommand>(started).Wait(signals), 128 + SIGTERM);
}

TEST_F(ExecCommandTest, OrphansAreOursAndBuried) {
  // The subshell leaves a process behind, whose parent must become the command's own; then it ends, and stays a zombie in /proc
  // if nobody waits for it.
  EXPECT_EQ(Shell(R"sh(
    (sleep 600 & echo $! > $D/pid)
    orphan=$(cat $D/pid)
    for i in $(seq 300); do [ "$(cut -d ' ' -f 4 /proc/$orphan/stat)" = $PPID ] && break; sleep 0.01; done
    [ "$(cut -d ' ' -f 4 /proc/$orphan/stat)" = $PPID ] || {
    kill $orphan;
    exit 1; }
    kill $orphan
    while [ -e /proc/$orphan ]; do sleep 0.01; done)sh"),
            0);
}

// In a process of its own: what the agent's does there.
int RunOnATerminal() {
  SignalReader signals;
  auto started = ExecCommand::Start({PERSIA_COUNT_INTERRUPTS}, {}, signals);
  return std::get<ExecCommand>(started).Wait(signals);
}

// Reads from a terminal until a text comes.
void Expect(int terminal, const std::string& wanted) {
  std::string seen;
  char c;
  while (seen.find(wanted) == std::string::npos) {
    ASSERT_EQ(read(terminal, &c, 1), 1) << "after: " << seen;
    seen += c;
  }
}

TEST_F(ExecCommandTest, ControlCReachesTheCommandOnce) {
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    _exit(RunOnATerminal());
  }
  Expect(terminal, "are you ready");
  // The agent sees its Ctrl-C only when the command has dealt with the terminal's: passed on at once, the two would count as
  // one.
  int status = 0;
  kill(pid, SIGSTOP);
  ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
  ASSERT_EQ(write(terminal, "\x03", 1), 1);
  Expect(terminal, "got it");
  kill(pid, SIGTERM);  // handled after what came before: the exit code is the number of interrupts
  kill(pid, SIGCONT);
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  close(terminal);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST_F(ExecCommandTest, KilledAgentLeavesTheCommandRunning) {
  const pid_t agent = fork();
  if (agent == 0) {
    SignalReader signals;
    auto started = ExecCommand::Start(
        {"/bin/sh", "-c", "trap 'echo > $D/ready; exit' USR1; echo $$ > $D/ready; while :; do sleep 0.01; done"},
        {{"D", directory_}}, signals);
    _exit(std::get<ExecCommand>(started).Wait(signals));
  }
  const pid_t command = std::atoi(Content("ready").c_str());
  ASSERT_GT(command, 0);
  kill(agent, SIGKILL);
  ASSERT_EQ(waitpid(agent, nullptr, 0), agent);
  ASSERT_EQ(kill(command, SIGUSR1), 0);
  EXPECT_EQ(Content("ready"), "\n");  // it answers
}

}  // namespace
}  // namespace persia::agent
