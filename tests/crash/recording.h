// What an agent did with the files below a directory, and what it told others meanwhile, in one order. recorder.py writes it.
//
// Thread safety: a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace persia::agent::crash {

enum class Do : uint8_t {
  kMkdir,     // `number` becomes the directory `name` in directory `object`
  kLink,      // file `number` becomes `name` in directory `object`
  kUnlink,    // `name` in directory `object`
  kRename,    // `name` in directory `object` becomes `data`
  kWrite,     // `data` into file `object` at byte `number`
  kTruncate,  // file `object` to `number` bytes
  kSync,      // of file or directory `object`: operations before operation `number` are on disk
  kSegment,   // file `number` with the content `data` is `name` in directory `object`, on disk
  kPut,       // the agent begins to PUT the group `name` on a gateway
  kDelete,    // the agent begins to DELETE the group `name`
  kShown,     // a PUT shows `number` as the count of the group `name`
  kSeries,    // a request of remote write has a sample of the series with labels `data`; `number`: a stale marker
  kRunEnded,  // the agent has ended, and so has the run
  kDamaged,   // another program has written `data` into file `object`, on disk: a damaged state
  kLast = kDamaged,
};

// Directory 0 is the one that holds all others. Other files and directories have other numbers.
struct Operation {
  Do what = Do::kMkdir;
  uint32_t object = 0;
  uint64_t number = 0;
  std::string name;
  std::string data;
};

// Ends the program if the file is no recording.
std::vector<Operation> ReadRecording(const std::string& path);

}  // namespace persia::agent::crash
