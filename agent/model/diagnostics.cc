#include "model/diagnostics.h"

#include <algorithm>
#include <iterator>

#include "utf8.h"

namespace persia::agent {

void Diagnostics::Report(const std::string& kind, std::string text) {
  Cut(text);
  const TimePoint now = options_.now();
  const auto [found, added] = kinds_.try_emplace(kind);
  Kind& of_kind = found->second;
  if (added) {
    of_kind.tokens = static_cast<double>(options_.burst);
  } else {
    const double refilled = std::chrono::duration<double>(now - of_kind.filled) / options_.refill;
    of_kind.tokens = std::min(of_kind.tokens + refilled, static_cast<double>(options_.burst));
  }
  of_kind.filled = now;
  if (const auto known = of_kind.by_text.find(text); known != of_kind.by_text.end()) {
    of_kind.texts.splice(of_kind.texts.end(), of_kind.texts, known->second);
    return;
  }
  if (of_kind.tokens < 1) {
    if (!of_kind.is_flooded)
      new_.push_back({kind, "there are many more problems of this kind; those that last are logged later"});
    of_kind.is_flooded = true;
    return;
  }
  of_kind.tokens -= 1;
  of_kind.is_flooded = of_kind.is_flooded && 2 * of_kind.tokens < static_cast<double>(options_.burst);
  of_kind.texts.push_back(text);
  of_kind.by_text.emplace(of_kind.texts.back(), std::prev(of_kind.texts.end()));
  if (of_kind.texts.size() > options_.remembered) {
    of_kind.by_text.erase(of_kind.texts.front());
    of_kind.texts.pop_front();
  }
  new_.push_back({kind, std::move(text)});
}

void Diagnostics::Forget(std::string text) {
  Cut(text);
  for (auto& [kind, of_kind] : kinds_) {
    const auto known = of_kind.by_text.find(text);
    if (known == of_kind.by_text.end()) continue;
    const auto at = known->second;
    of_kind.by_text.erase(known);
    of_kind.texts.erase(at);
  }
}

void Diagnostics::Cut(std::string& text) const {
  if (text.size() <= options_.text_bytes) return;
  text.resize(metrics::FirstBytes(text, options_.text_bytes).size());
  text += "...";
}

}  // namespace persia::agent
