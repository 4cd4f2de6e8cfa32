// Tells of the calls on files that the code in this scope is about to make: the C library's that change a file or a lock, or
// read one; and of its waits, which take no time.
//
//   const FileCalls observed([&](const FileCall& call) { ... return true; });
//
// A function that returns false makes the call fail by EIO. It may throw: then the call is not made. The calls of a program
// that links this go through it by the linker's option --wrap. Thread safety: one scope per thread at a time, for this thread
// alone.
#pragma once

#include <functional>
#include <string_view>

namespace persia::agent::model {

struct FileCall {
  enum class Kind { kOther, kRename, kWait } kind = Kind::kOther;
  std::string_view name = {};  // of kRename: the new one
  bool may_throw = true;       // the compiler knows of the others that they do not
};

class FileCalls {
 public:
  explicit FileCalls(std::function<bool(const FileCall& call)> before);
  ~FileCalls();
  FileCalls(const FileCalls&) = delete;
  FileCalls& operator=(const FileCalls&) = delete;

 private:
  const std::function<bool(const FileCall& call)> before_;
};

}  // namespace persia::agent::model
