// A line that Benchmark AI's `emit` wrote: a JSON object of names and numbers.
//
//   {"alexnet.latency": 12.5, "losses": [0.5, 0.25], "labels": {"gpu": "a100"}}
//
// A name may have a list of numbers, which are its values one after the other. `labels`, if it is an object of strings, stands
// on all values of the line; so it does in the form in which Benchmark AI's own pusher passes lines on, {"now": ..., "metrics":
// {...}, "labels": {...}}, of which `metrics` has the values. NaN, Infinity and -Infinity are numbers, as Python's json writes
// them. The adapter of simdjson. Not thread-safe: a reader keeps its memory from line to line.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {

struct EmitLine {
  std::vector<std::pair<std::string, double>> values;  // in the order of the line; reused from line to line
  size_t count = 0;                                    // of `values` that are of this line
  std::vector<std::pair<std::string, std::string>> labels;
};

// What is wrong with a line: a word for counting, and a sentence's end.
struct EmitProblem {
  std::string_view reason;  // "json", "value", "labels", "empty"
  std::string_view text;
};

class EmitLineReader {
 public:
  // Behind a line's last byte there must be so many bytes of memory that may be read.
  static const size_t kPadding;

  EmitLineReader();
  ~EmitLineReader();
  EmitLineReader(const EmitLineReader&) = delete;
  EmitLineReader& operator=(const EmitLineReader&) = delete;

  // Reads a line, without its newline. What is good of it is in `line`, whatever comes back: null if all of it is.
  const EmitProblem* Read(std::string_view text, EmitLine& line);

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace persia::agent
