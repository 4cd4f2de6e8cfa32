// Cuts the power after each operation of a recording, and checks that the agent recovers from each state that this may leave.
//
//   crash_states RECORDING [--states N] [--seed S] [--state-elsewhere] [--segments-lost]
//                [--keep DIRECTORY --every N]
//
// At most N states at each operation. It ends at the first wrong state, prints it, and keeps its files. The same seed gives the
// same states. `--keep`: also keeps the files of each N-th state, and what is expected of it in the file `index`.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "disk.h"
#include "judge.h"
#include "recording.h"

namespace {

using namespace persia::agent::crash;

constexpr unsigned kLimit = 20;  // seconds for a state

struct Arguments {
  std::string recording;
  size_t states = 16;
  uint64_t seed = 0;
  std::string keep;
  size_t every = 0;
  Judge::Options judge;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (word == "--states") {
      arguments.states = std::stoull(value());
    } else if (word == "--seed") {
      arguments.seed = std::stoull(value());
    } else if (word == "--keep") {
      arguments.keep = value();
    } else if (word == "--every") {
      arguments.every = std::stoull(value());
    } else if (word == "--state-elsewhere") {
      arguments.judge.state_elsewhere = true;
    } else if (word == "--segments-lost") {
      arguments.judge.keeps_segments = false;
    } else {
      arguments.recording = word;
    }
  }
  arguments.judge.directory = "/dev/shm/persia-crash-" + std::to_string(getpid());
  return arguments;
}

std::string Text(size_t number, const Operation& operation) {
  constexpr const char* kNames[] = {"mkdir",   "link",   "unlink",    "rename", "write",  "truncate",  "sync",
                                    "segment", "PUT of", "DELETE of", "shown",  "sample", "run ended", "damaged"};
  return "operation " + std::to_string(number) + ": " + kNames[static_cast<size_t>(operation.what)] + " " + operation.name +
         " (" + std::to_string(operation.object) + ", " + std::to_string(operation.number) + ", " +
         std::to_string(operation.data.size()) + " bytes)";
}

// In the run of operation `at`, from there on.
uint64_t MostShown(const std::vector<Operation>& operations, size_t at) {
  Told last;
  for (; at < operations.size() && operations[at].what != Do::kRunEnded; ++at) {
    if (operations[at].what == Do::kShown) last.Apply(operations[at]);
  }
  return last.Shown();
}

// The state that is being checked.
std::string current;

void Hung(int /*signal*/) {
  constexpr std::string_view kWhat = "the agent hangs in ";
  if (write(STDOUT_FILENO, kWhat.data(), kWhat.size()) < 0 || write(STDOUT_FILENO, current.data(), current.size()) < 0) abort();
  _exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  const std::vector<Operation> operations = ReadRecording(arguments.recording);
  std::signal(SIGALRM, Hung);
  Random random(arguments.seed);
  Disk disk;
  Told told;
  std::unordered_set<size_t> seen;
  size_t states = 0;
  bool failed = false;
  std::ofstream index;
  if (!arguments.keep.empty()) {
    std::filesystem::create_directories(arguments.keep);
    index.open(arguments.keep + "/index");
  }
  const auto began = std::chrono::steady_clock::now();
  {
    Judge judge(arguments.judge);
    for (size_t i = 0; i < operations.size() && !failed; ++i) {
      disk.Apply(i, operations[i]);
      told.Apply(operations[i]);
      if (i == 0 || operations[i].what == Do::kRunEnded) told.most = MostShown(operations, i + 1);
      // The samples of a request are told together.
      const bool tells_more =
          i + 1 < operations.size() && operations[i].what == Do::kSeries && operations[i + 1].what == Do::kSeries;
      if (tells_more) continue;
      disk.ForEachState(arguments.states, random, [&](const Image& image) {
        const size_t known = told.groups.size() + told.series.size() + told.segments.size() + told.Shown() + told.run_is_over;
        if (failed || !seen.insert(image.Hash() * 31 + known).second) return;
        ++states;
        current = "state " + std::to_string(states) + ", after " + Text(i, operations[i]) + "\n  " + image.choices + '\n';
        alarm(kLimit);
        const std::string wrong = judge.Check(image, told, disk);
        failed = !wrong.empty();
        if (failed) {
          std::printf("%s  %s\n", current.c_str(), wrong.c_str());
        }
        if (!arguments.keep.empty() && (failed || states % arguments.every == 0)) {
          judge.Write(image, arguments.keep + "/" + std::to_string(states));
          index << states << ' ' << told.segments.size() << ' ' << told.Shown() << ' ' << told.run_may_be_over << '\n';
        }
      });
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf("%zu operations, %zu states, %.0f a second: %s\n", operations.size(), states,
              static_cast<double>(states) / seconds, failed ? "FAILED" : "all is right");
  return failed ? 1 : 0;
}
