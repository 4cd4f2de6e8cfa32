// An error in the settings, and its consequence.
#pragma once

#include <cstdint>
#include <string>

namespace persia::agent {

// An output that an error may switch off. The settings of its receivers, and of access to the pages, have no safe default.
enum class Output : uint8_t { kNone, kGateway, kPages };

struct ConfigError {
  // The place, the text found, what is allowed.
  std::string text;
  // The reaction of an agent that continues: "the default is used: 10".
  std::string consequence{};
  // The output that is off because of it.
  Output off = Output::kNone;
  // In a flag or a variable, so that a reload cannot correct it.
  bool lasting = false;

  // A flag that resembles one that exists: it was meant, and a start without it would be another one.
  bool is_misspelt_flag = false;

  // For the log of an agent that continues.
  [[nodiscard]] std::string Line() const { return text + (text.ends_with('?') ? " " : "; ") + consequence; }
};

}  // namespace persia::agent
