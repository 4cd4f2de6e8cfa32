// The values of settings: parsed from text, and printed. The settings of the agent (settings.cc) and those of a remote write
// target (remote_write_settings.cc) share these functions.
//
// A parser is a function or object Status(std::string_view text, T& value). Its error quotes the text, unless it is secret, and
// names the allowed values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/text.h"
#include "config/options.h"

namespace persia::agent {

// The member of `section` that a path of member pointers leads to.
template <auto... kPath, class Section>
auto& Member(Section& section) {
  return (section.*....*kPath);
}

// Parses `text` into that member:
//   Set<ParseFileName, &AgentOptions::gateway_access, &GatewayAccessOptions::ca_file>(text, options)
template <auto kParse, auto... kPath, class Section>
Status Set(std::string_view text, Section& section) {
  return kParse(text, Member<kPath...>(section));
}

// A duration: "10s", "1m30s", or a number of seconds, such as "0.5".
struct Seconds {
  int64_t min_ms;
  int64_t max_ms;
  Status operator()(std::string_view text, std::chrono::milliseconds& value) const;
  Status operator()(std::string_view text, std::optional<std::chrono::milliseconds>& value) const;
};

// A duration in the words of Prometheus: "30s", "1m30s".
struct PrometheusDuration {
  int64_t min_ms;
  int64_t max_ms;
  bool or_zero = false;
  Status operator()(std::string_view text, std::chrono::milliseconds& value) const;
};

// A size: "64MiB", "1GB", or a number of bytes.
struct Bytes {
  uint64_t min;
  uint64_t max;
  Status operator()(std::string_view text, uint64_t& value) const;
};

// A whole number.
struct Count {
  uint64_t min;
  uint64_t max;
  template <class T>
  Status operator()(std::string_view text, T& value) const {
    uint64_t count = 0;
    if (!ParseNumber(text, count) || count < min || count > max)
      return Bad(text, "is not a number from " + std::to_string(min) + " to " + std::to_string(max));
    value = static_cast<T>(count);
    return Done{};
  }
};

// The words of each setting that is an enumeration.
constexpr Choice<LogLevel> kLogLevels[] = {{"debug", LogLevel::kDebug},     {"info", LogLevel::kInfo},
                                           {"warning", LogLevel::kWarning}, {"warn", LogLevel::kWarning},
                                           {"error", LogLevel::kError},     {"off", LogLevel::kOff}};
constexpr Choice<LogFormat> kLogFormats[] = {{"text", LogFormat::kText}, {"json", LogFormat::kJson}};
constexpr Choice<OnJobEnd> kOnJobEnd[] = {{"keep", OnJobEnd::kKeep}, {"delete", OnJobEnd::kDelete}};
constexpr Choice<OnInstanceEnd> kOnInstanceEnd[] = {{"delete", OnInstanceEnd::kDelete}, {"keep", OnInstanceEnd::kKeep}};
constexpr Choice<GpuMode> kGpuModes[] = {{"auto", GpuMode::kAuto}, {"off", GpuMode::kOff}};
constexpr Choice<PushFormat::Choice> kPushFormats[] = {
    {"auto", PushFormat::Choice::kAuto}, {"text", PushFormat::Choice::kText}, {"protobuf", PushFormat::Choice::kProtobuf}};
constexpr Choice<TlsVersion> kTlsVersions[] = {
    {"TLS10", TlsVersion::k10}, {"TLS11", TlsVersion::k11}, {"TLS12", TlsVersion::k12}, {"TLS13", TlsVersion::k13}};
constexpr const auto& ChoicesOf(LogLevel) { return kLogLevels; }
constexpr const auto& ChoicesOf(LogFormat) { return kLogFormats; }
constexpr const auto& ChoicesOf(OnJobEnd) { return kOnJobEnd; }
constexpr const auto& ChoicesOf(OnInstanceEnd) { return kOnInstanceEnd; }
constexpr const auto& ChoicesOf(GpuMode) { return kGpuModes; }
constexpr const auto& ChoicesOf(PushFormat::Choice) { return kPushFormats; }
constexpr const auto& ChoicesOf(TlsVersion) { return kTlsVersions; }

// One of the words of the enumeration T.
template <class T>
Status ParseWord(std::string_view text, T& value) {
  const Result<T> parsed = ParseChoice(text, ChoicesOf(T{}));
  if (!parsed.ok()) return Error{parsed.error()};
  value = parsed.value();
  return Done{};
}

Status ParseBoolean(std::string_view text, bool& value);
Status ParseText(std::string_view text, std::string& value);
Status ParseFileName(std::string_view text, std::string& value);
Status ParseAbsolutePath(std::string_view text, std::string& value);
Status ParseJobName(std::string_view text, std::string& value);
Status ParseGatewayAddress(std::string_view text, std::string& value);
Status ParseEventsFile(std::string_view text, std::string& value);
Status ParseMappingFile(std::string_view text, std::string& value);
Status ParseRunId(std::string_view text, std::string& value);
// Of TLS and credentials.
Status ParseServerName(std::string_view text, std::string& value);
Status ParseUserName(std::string_view text, std::string& value);
Status ParseSecret(std::string_view text, std::string& value);
// A proxy's URL, or an empty text for none. The error does not quote it, since it may have a password.
Status ParseProxy(std::string_view text, std::string& value);

Status ParseListenAddress(std::string_view text, AgentOptions& options);
// Separated by commas; in lower case afterwards.
Status ParseHostNames(std::string_view text, std::vector<std::string>& names);
Status AddLabel(const std::string& name, std::string_view value, Labels& labels);
// Adds a label given as name=value.
Status ParseLabel(std::string_view text, Labels& labels);

inline std::string ToText(bool value) { return value ? "true" : "false"; }
inline std::string ToText(int value) { return std::to_string(value); }
inline std::string ToText(uint64_t value) { return std::to_string(value); }
inline std::string ToText(const std::string& value) { return value; }
std::string ToText(std::chrono::milliseconds value);
inline std::string ToText(std::optional<std::chrono::milliseconds> value) { return value ? ToText(*value) : ""; }
std::string ToText(const Labels& labels);
std::string ToText(const std::vector<std::string>& names);
template <class T>
requires std::is_enum_v<T> std::string ToText(T value) { return std::string(WordOf(value, ChoicesOf(value))); }

}  // namespace persia::agent
