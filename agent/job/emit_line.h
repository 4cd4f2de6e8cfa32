// A line that Benchmark AI's `emit` wrote: a JSON object of names and numbers.
//
//   {"alexnet.latency": 12.5, "losses": [0.5, 0.25], "labels": {"gpu": "a100"}}
//
// A list of numbers is several values of its name. `labels`, if it is an object of strings, applies to all values of the line.
// Benchmark AI's own pusher forwards lines as {"now": ..., "metrics": {...}, "labels": {...}}, where `metrics` has the values.
// Lines are those of Python's json: NaN, Infinity and -Infinity are numbers. An integer is read as the nearest float; one
// beyond the range of floats is not a number. A lone surrogate in a name or label becomes the text of its escape sequence,
// `\ud83d`. The adapter of simdjson. Thread safety: none; a parser reuses its memory from line to line.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {

struct EmitLine {
  // In the order of the line. The names are valid until the next Parse: a line may have a long one, and many values of it.
  std::vector<std::pair<std::string_view, double>> values;
  std::vector<std::pair<std::string, std::string>> labels;
};

// A problem of a line: a keyword, and the end of a sentence.
struct EmitProblem {
  std::string_view reason;  // "json", "value", "labels", "empty"
  std::string_view text;
};

class EmitLineParser {
 public:
  // How many readable bytes must follow a line's last byte.
  static const size_t kPadding;

  EmitLineParser();
  ~EmitLineParser();
  EmitLineParser(const EmitLineParser&) = delete;
  EmitLineParser& operator=(const EmitLineParser&) = delete;

  // Parses a line without its newline. `line` gets the well-formed part. Null: the whole line is well-formed.
  const EmitProblem* Parse(std::string_view text, EmitLine& line);

 private:
  class Json;
  std::unique_ptr<Json> json_;
};

}  // namespace persia::agent
