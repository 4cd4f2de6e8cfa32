// Any bytes as a line of the named pipe: values and labels, or a reason why not.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "job/emit_line.h"

namespace {

using persia::agent::EmitLine;
using persia::agent::EmitLineParser;
using persia::agent::EmitProblem;

void Require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static EmitLineParser& parser = *new EmitLineParser;
  static EmitLine& line = *new EmitLine;
  std::string text(reinterpret_cast<const char*>(data), size);
  text.resize(size + EmitLineParser::kPadding, '}');
  const EmitProblem* problem = parser.Parse(std::string_view(text).substr(0, size), line);
  Require(problem != nullptr || !line.values.empty());
  if (problem != nullptr) {
    Require(!problem->reason.empty() && !problem->text.empty());
  }
  return 0;
}
