#include "job/emit_line.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <limits>

namespace persia::agent {
namespace {

namespace dom = simdjson::dom;

constexpr EmitProblem kNotJson{"json", "is not a JSON object"};
constexpr EmitProblem kEmpty{"empty", "has no values"};
constexpr EmitProblem kBadValue{"value", "has a value that is neither a number nor a list of numbers"};
constexpr EmitProblem kBadLabels{"labels", "has a label that is not a string"};

// JSON has no literals for these, but Python's json writes them. They are replaced by strings that no program writes by chance.
struct NonFinite {
  std::string_view literal;
  std::string_view json;    // the string that replaces it, as JSON
  std::string_view parsed;  // and as it is parsed
  double value;
};
constexpr std::array<NonFinite, 3> kNonFinite{{
    {"-Infinity", R"("\u0001-Infinity")", "\x01-Infinity", -std::numeric_limits<double>::infinity()},
    {"Infinity", R"("\u0001Infinity")", "\x01Infinity", std::numeric_limits<double>::infinity()},
    {"NaN", R"("\u0001NaN")", "\x01NaN", std::numeric_limits<double>::quiet_NaN()},
}};

// The line with strings in place of the literals outside strings; empty if there are none.
std::string ReplaceNonFinite(std::string_view text) {
  std::string out;
  bool in_string = false;
  bool replaced = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string && c == '\\' && at + 1 < text.size()) {
      out += c;
      out += text[++at];
      continue;
    } else if (!in_string) {
      const auto found = std::ranges::find_if(
          kNonFinite, [&](const NonFinite& number) { return text.substr(at).starts_with(number.literal); });
      if (found != kNonFinite.end()) {
        out += found->json;
        at += found->literal.size() - 1;
        replaced = true;
        continue;
      }
    }
    out += c;
  }
  return replaced ? out : "";
}

bool ToNumber(const dom::element& element, double& value) {
  if (element.get(value) == simdjson::SUCCESS) return true;
  std::string_view text;
  if (element.get(text) == simdjson::SUCCESS) {
    for (const NonFinite& number : kNonFinite) {
      if (text == number.parsed) {
        value = number.value;
        return true;
      }
    }
  }
  return false;
}

void Append(EmitLine& line, std::string_view name, double value) {
  if (line.count == line.values.size()) {
    line.values.emplace_back();
  }
  line.values[line.count].first.assign(name);
  line.values[line.count].second = value;
  ++line.count;
}

bool ParseValue(std::string_view name, const dom::element& element, EmitLine& line) {
  double value = 0;
  if (ToNumber(element, value)) {
    Append(line, name, value);
    return true;
  }
  dom::array list;
  if (element.get(list) != simdjson::SUCCESS) return false;
  bool good = true;
  for (const dom::element& entry : list) {
    if (ToNumber(entry, value)) {
      Append(line, name, value);
    } else {
      good = false;
    }
  }
  return good;
}

bool ParseLabels(const dom::object& object, EmitLine& line) {
  bool good = true;
  for (const auto& [name, element] : object) {
    std::string_view value;
    if (element.get(value) == simdjson::SUCCESS) {
      line.labels.emplace_back(name, value);
    } else {
      good = false;
    }
  }
  return good;
}

}  // namespace

const size_t EmitLineParser::kPadding = simdjson::SIMDJSON_PADDING;

class EmitLineParser::Json {
 public:
  // False: `text` is not a JSON object.
  bool Parse(std::string_view text, bool padded, dom::object& object) {
    dom::element document;
    return parser_.parse(text.data(), text.size(), !padded).get(document) == simdjson::SUCCESS &&
           document.get(object) == simdjson::SUCCESS;
  }

 private:
  dom::parser parser_;
};

EmitLineParser::EmitLineParser() : json_(std::make_unique<Json>()) {}
EmitLineParser::~EmitLineParser() = default;

const EmitProblem* EmitLineParser::Parse(std::string_view text, EmitLine& line) {
  line.count = 0;
  line.labels.clear();
  dom::object object;
  if (!json_->Parse(text, true, object)) {
    const std::string replaced = ReplaceNonFinite(text);
    if (replaced.empty() || !json_->Parse(replaced, false, object)) return &kNotJson;
  }
  const EmitProblem* problem = nullptr;
  dom::object metrics;
  dom::object labels;
  const bool forwarded = object["metrics"].get(metrics) == simdjson::SUCCESS;
  const bool labelled = object["labels"].get(labels) == simdjson::SUCCESS;
  if (labelled && !ParseLabels(labels, line)) {
    problem = &kBadLabels;
  }
  for (const auto& [name, element] : forwarded ? metrics : object) {
    if (!forwarded && labelled && name == "labels") continue;
    if (!ParseValue(name, element, line)) {
      problem = &kBadValue;
    }
  }
  return problem == nullptr && line.count == 0 ? &kEmpty : problem;
}

}  // namespace persia::agent
