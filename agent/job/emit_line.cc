#include "job/emit_line.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <system_error>

namespace persia::agent {
namespace {

namespace dom = simdjson::dom;

constexpr EmitProblem kNotJson{"json", "is not a JSON object"};
constexpr EmitProblem kEmpty{"empty", "has no values"};
constexpr EmitProblem kBadValue{"value", "has a value that is neither a number nor a list of numbers"};
constexpr EmitProblem kBadLabels{"labels", "has a label that is not a string"};

// Python's json writes these literals, which JSON does not have. They are replaced by strings that no program writes by chance.
struct NonFinite {
  std::string_view literal;
  std::string_view json;    // the string that replaces it, as JSON
  std::string_view parsed;  // and the string after parsing
  double value;
};
constexpr std::array<NonFinite, 3> kNonFinite{{
    {"-Infinity", R"("\u0001-Infinity")", "\x01-Infinity", -std::numeric_limits<double>::infinity()},
    {"Infinity", R"("\u0001Infinity")", "\x01Infinity", std::numeric_limits<double>::infinity()},
    {"NaN", R"("\u0001NaN")", "\x01NaN", std::numeric_limits<double>::quiet_NaN()},
}};

// The UTF-16 code unit of the escape sequence `\uXXXX` at `at`, if that is a surrogate; else 0.
unsigned SurrogateAt(std::string_view text, size_t at) {
  constexpr size_t kLength = 6;
  if (at + kLength > text.size() || text[at] != '\\' || text[at + 1] != 'u') return 0;
  unsigned unit = 0;
  const char* const end = text.data() + at + kLength;
  if (std::from_chars(text.data() + at + 2, end, unit, 16).ptr != end) return 0;
  return unit >= 0xd800 && unit <= 0xdfff ? unit : 0;
}

bool MayHaveSurrogate(std::string_view text) {
  for (size_t at = 0; (at = text.find("\\u", at)) != std::string_view::npos; ++at)
    if (SurrogateAt(text, at) != 0) return true;
  return false;
}

// Copies the escape sequence at `at` in a string, which two surrogates may form. A lone surrogate is no character, and becomes
// the text of its escape sequence. Returns the sequence's length.
size_t CopyEscape(std::string_view text, size_t at, std::string& out) {
  const unsigned unit = SurrogateAt(text, at);
  const bool is_pair = unit != 0 && unit < 0xdc00 && SurrogateAt(text, at + 6) >= 0xdc00;
  if (unit != 0 && !is_pair) out += '\\';
  const std::string_view sequence = text.substr(at, unit == 0 ? 2 : is_pair ? 12 : 6);
  out += sequence;
  return sequence.size();
}

// Copies the number at `at`. simdjson reads integers of at most 64 bits: a larger one becomes a float. A number that no float
// can hold becomes null, which is not a number. Returns the number's length.
size_t CopyNumber(std::string_view text, size_t at, std::string& out) {
  constexpr size_t kAlwaysFit = 18;  // digits
  const std::string_view number = text.substr(at, text.find_first_not_of("+-.0123456789Ee", at) - at);
  const bool is_float = number.find_first_of(".Ee") != std::string_view::npos;
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  const bool is_whole = end == number.data() + number.size();  // else it is invalid, which simdjson says
  const bool is_tiny = number.find("e-") != std::string_view::npos || number.find("E-") != std::string_view::npos;
  if (is_whole && error == std::errc::result_out_of_range && !is_tiny) {
    out += "null";
  } else {
    out += number;
    if (is_whole && !is_float && number.size() > kAlwaysFit) out += ".0";
  }
  return number.size();
}

// The line with replacements for all that simdjson refuses and Python's json writes.
std::string Replaced(std::string_view text) {
  std::string out;
  bool in_string = false;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (in_string && c == '\\') {
      at += CopyEscape(text, at, out);
      continue;
    }
    if (!in_string) {
      const auto found = std::ranges::find_if(
          kNonFinite, [&](const NonFinite& number) { return text.substr(at).starts_with(number.literal); });
      if (found != kNonFinite.end()) {
        out += found->json;
        at += found->literal.size();
        continue;
      }
      if (c == '-' || (c >= '0' && c <= '9')) {
        at += CopyNumber(text, at, out);
        continue;
      }
    }
    if (c == '"') in_string = !in_string;
    out += c;
    ++at;
  }
  return out;
}

// The literal that was replaced by this string; null: none.
const NonFinite* ReplacedBy(std::string_view parsed) {
  const auto found = std::ranges::find(kNonFinite, parsed, &NonFinite::parsed);
  return found == kNonFinite.end() ? nullptr : &*found;
}

bool ToNumber(const dom::element& element, double& value) {
  if (element.get(value) == simdjson::SUCCESS) return true;
  std::string_view text;
  const NonFinite* const number = element.get(text) == simdjson::SUCCESS ? ReplacedBy(text) : nullptr;
  if (number != nullptr) value = number->value;
  return number != nullptr;
}

bool ParseValue(std::string_view name, const dom::element& element, EmitLine& line) {
  double value = 0;
  if (ToNumber(element, value)) {
    line.values.emplace_back(name, value);
    return true;
  }
  dom::array list;
  if (element.get(list) != simdjson::SUCCESS) return false;
  bool good = true;
  for (const dom::element& entry : list)
    if (ToNumber(entry, value))
      line.values.emplace_back(name, value);
    else
      good = false;
  return good;
}

bool ParseLabels(const dom::object& object, EmitLine& line) {
  bool good = true;
  for (const auto& [name, element] : object) {
    std::string_view value;
    if (element.get(value) == simdjson::SUCCESS && ReplacedBy(value) == nullptr)
      line.labels.emplace_back(name, value);
    else
      good = false;
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
  line.values.clear();
  line.labels.clear();
  dom::object object;
  // Some releases of simdjson accept a lone surrogate, as bytes that are not UTF-8.
  if ((MayHaveSurrogate(text) || !json_->Parse(text, true, object)) && !json_->Parse(Replaced(text), false, object))
    return &kNotJson;
  for (const auto& [name, element] : object)
    if (ReplacedBy(name) != nullptr) return &kNotJson;  // a literal as a name
  const EmitProblem* problem = nullptr;
  dom::object metrics;
  dom::object labels;
  const bool forwarded = object["metrics"].get(metrics) == simdjson::SUCCESS;
  const bool labelled = object["labels"].get(labels) == simdjson::SUCCESS;
  if (labelled && !ParseLabels(labels, line)) problem = &kBadLabels;
  for (const auto& [name, element] : forwarded ? metrics : object) {
    if (!forwarded && labelled && name == "labels") continue;
    if (!ParseValue(name, element, line)) problem = &kBadValue;
  }
  return problem == nullptr && line.values.empty() ? &kEmpty : problem;
}

}  // namespace persia::agent
