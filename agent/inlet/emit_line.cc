#include "inlet/emit_line.h"

#include <simdjson.h>

#include <array>
#include <limits>

namespace persia::agent {
namespace {

namespace dom = simdjson::dom;

constexpr EmitProblem kNotJson{"json", "is not a JSON object"};
constexpr EmitProblem kEmpty{"empty", "has no values"};
constexpr EmitProblem kBadValue{"value", "has a value that is neither a number nor a list of numbers"};
constexpr EmitProblem kBadLabels{"labels", "has a label that is not a string"};

// JSON has no word for these; Python's json writes them all the same. A text that no program writes by chance.
struct Word {
  std::string_view text;
  std::string_view stand_in;  // as JSON
  std::string_view read;      // as a string of it
  double value;
};
constexpr std::array<Word, 3> kWords{{
    {"-Infinity", R"("\u0001-Infinity")", "\x01-Infinity", -std::numeric_limits<double>::infinity()},
    {"Infinity", R"("\u0001Infinity")", "\x01Infinity", std::numeric_limits<double>::infinity()},
    {"NaN", R"("\u0001NaN")", "\x01NaN", std::numeric_limits<double>::quiet_NaN()},
}};

// The line with strings in place of the words that stand outside strings; empty if there are none.
std::string WithStandIns(std::string_view text) {
  std::string out;
  bool in_string = false;
  bool any = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string && c == '\\' && at + 1 < text.size()) {
      out += c;
      out += text[++at];
      continue;
    } else if (!in_string) {
      const Word* found = nullptr;
      for (const Word& word : kWords) {
        if (found == nullptr && text.substr(at).starts_with(word.text)) {
          found = &word;
        }
      }
      if (found != nullptr) {
        out += found->stand_in;
        at += found->text.size() - 1;
        any = true;
        continue;
      }
    }
    out += c;
  }
  return any ? out : "";
}

bool Number(const dom::element& element, double& value) {
  if (element.get(value) == simdjson::SUCCESS) {
    return true;
  }
  std::string_view text;
  if (element.get(text) == simdjson::SUCCESS) {
    for (const Word& word : kWords) {
      if (text == word.read) {
        value = word.value;
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

bool ReadValue(std::string_view name, const dom::element& element, EmitLine& line) {
  double value = 0;
  if (Number(element, value)) {
    Append(line, name, value);
    return true;
  }
  dom::array list;
  if (element.get(list) != simdjson::SUCCESS) {
    return false;
  }
  bool good = true;
  for (const dom::element& entry : list) {
    if (Number(entry, value)) {
      Append(line, name, value);
    } else {
      good = false;
    }
  }
  return good;
}

bool ReadLabels(const dom::object& object, EmitLine& line) {
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

const size_t EmitLineReader::kPadding = simdjson::SIMDJSON_PADDING;

class EmitLineReader::Parser {
 public:
  // False: not a JSON object.
  bool Parse(std::string_view text, bool padded, dom::object& object) {
    dom::element document;
    return parser_.parse(text.data(), text.size(), !padded).get(document) == simdjson::SUCCESS &&
           document.get(object) == simdjson::SUCCESS;
  }

 private:
  dom::parser parser_;
};

EmitLineReader::EmitLineReader() : parser_(std::make_unique<Parser>()) {}
EmitLineReader::~EmitLineReader() = default;

const EmitProblem* EmitLineReader::Read(std::string_view text, EmitLine& line) {
  line.count = 0;
  line.labels.clear();
  dom::object object;
  if (!parser_->Parse(text, true, object)) {
    const std::string with_stand_ins = WithStandIns(text);
    if (with_stand_ins.empty() || !parser_->Parse(with_stand_ins, false, object)) {
      return &kNotJson;
    }
  }
  const EmitProblem* problem = nullptr;
  dom::object metrics;
  dom::object labels;
  const bool passed_on = object["metrics"].get(metrics) == simdjson::SUCCESS;
  const bool labelled = object["labels"].get(labels) == simdjson::SUCCESS;
  if (labelled && !ReadLabels(labels, line)) {
    problem = &kBadLabels;
  }
  for (const auto& [name, element] : passed_on ? metrics : object) {
    if (!passed_on && labelled && name == "labels") {
      continue;
    }
    if (!ReadValue(name, element, line)) {
      problem = &kBadValue;
    }
  }
  return problem == nullptr && line.count == 0 ? &kEmpty : problem;
}

}  // namespace persia::agent
