// The own work of a program under test: it computes, prints, and reads its own state. A library must change none of it.
//
// It allocates nothing, so that a limit on memory, or memory that the library took, does not change the program's own result.
#pragma once

#include <cstddef>

namespace faults {

// Prints a line to stdout by one system call.
__attribute__((format(printf, 1, 2))) void Print(const char* format, ...);

// Sorts numbers that follow from `seed`, and gives a checksum of them.
double Compute(unsigned seed);

// Prints the process's open descriptors, signal mask, signal actions, umask and directory, in lines that begin with `who`.
void PrintState(const char* who);

// Ends the program immediately: it cannot do its own work.
[[noreturn]] void Fail(const char* what);

// The program's counts: value by key, in static memory.
//
// A key is "<group>/<name>{<label>=<value>}", followed by ":count", ":sum" or ":last" for a metric with several values.
// Thread safety: none. The program's threads take turns.
class Ledger {
 public:
  void Add(const char* key, double by);
  void Set(const char* key, double value);
  // Forgets all: a forked child counts from 0.
  void Clear() { size_ = 0; }
  // Prints a line "counted <who> <key> <value>" for each key.
  void Print(const char* who) const;

 private:
  struct Entry {
    const char* key;
    double value;
  };
  double& At(const char* key);

  static constexpr size_t kMost = 256;
  Entry entries_[kMost];
  size_t size_ = 0;
};

}  // namespace faults
