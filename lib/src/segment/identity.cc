#include "identity.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "descriptor.h"
#include "job_directory.h"
#include "log.h"
#include "rank_variables.h"
#include "trusted_file.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

// An empty variable counts as unset: compose files and shells leave a variable out by setting it to nothing. Line ends after
// the value are left out, as in the agent: a Kubernetes Secret that was made of a file has one.
std::optional<std::string_view> Env(const char* name) {
  const char* const set = std::getenv(name);
  std::string_view value(set == nullptr ? "" : set);
  while (value.ends_with('\n') || value.ends_with('\r')) value.remove_suffix(1);
  return value.empty() ? std::nullopt : std::optional(value);
}

template <class T>
std::optional<T> EnvNumber(const char* name, T minimum) {
  const auto text = Env(name);
  if (!text) return std::nullopt;
  T number{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size() || number < minimum) {
    LogLine(std::string(name) + "=\"" + std::string(*text) + "\" is not a whole number of at least " + std::to_string(minimum) +
            "; it is ignored");
    return std::nullopt;
  }
  return number;
}

bool EnabledByEnv() {
  const auto text = Env("PERSIA_METRICS_ENABLED");
  if (!text || *text == "1" || *text == "true" || *text == "yes" || *text == "on") return true;
  if (*text == "0" || *text == "false" || *text == "no" || *text == "off") return false;
  LogLine("PERSIA_METRICS_ENABLED=\"" + std::string(*text) + "\" is neither 1 nor 0; metrics stay enabled");
  return true;
}

std::string FirstGiven(std::optional<std::string_view> variable, const std::string& option, std::string_view fallback) {
  if (variable) return std::string(*variable);
  return option.empty() ? std::string(fallback) : option;
}

// The role of a rank that torchrun started: its --role, for which "default" is its default.
std::string RoleOfTorchrun() {
  const auto role = Env("TORCHELASTIC_RUN_ID") ? Env("ROLE_NAME") : std::nullopt;
  return std::string(role && *role != "default" ? *role : kDefaultRole);
}

}  // namespace

AgentConf ReadAgentConf(int directory_fd) {
  AgentConf conf;
  std::string distrust;
  const Descriptor fd(OpenTrustedFile(directory_fd, kAgentConfName, O_RDONLY, TrustIn(directory_fd), distrust));
  if (!fd.valid()) return conf;
  char buffer[4096];
  const ssize_t size = read(fd.get(), buffer, sizeof buffer);
  std::string_view rest(buffer, size > 0 ? static_cast<size_t>(size) : 0);
  bool ended = false;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() == rest.size() ? line.size() : line.size() + 1);
    if (line == "enabled=0")
      conf.enabled = false;
    else if (line == "ended=1")
      ended = true;
    else if (line.starts_with("run_id="))
      conf.run_id = line.substr(7);
  }
  if (ended) conf.run_id.clear();
  return conf;
}

Identity ResolveIdentity(const Options& options, const OwnRanks& ranks) {
  Identity identity;
  const auto dir = Env("PERSIA_METRICS_DIR");
  const auto job = Env("PERSIA_JOB_NAME");
  identity.job = FirstGiven(job, options.job_name, kDefaultJobName);
  identity.role = FirstGiven(Env("PERSIA_ROLE"), options.role, RoleOfTorchrun());
  identity.metrics_dir = FirstGiven(dir, options.metrics_dir, DefaultMetricsDir(geteuid(), identity.job));
  identity.metrics_dir_group = EnvNumber<uint32_t>("PERSIA_METRICS_DIR_GROUP", 0);
  identity.opted_in = dir.has_value() || job.has_value();
  identity.labels = options.labels;
  identity.enabled = options.enabled && EnabledByEnv();

  const auto number = [](std::string_view variable) { return EnvNumber<int32_t>(variable.data(), 0); };
  const std::optional<int32_t> replica = RankOf(number, ranks);
  identity.replica = replica.value_or(0);
  identity.gives = {.job = job.has_value() || !options.job_name.empty(),
                    .metrics_dir = dir.has_value() || !options.metrics_dir.empty(),
                    .role = Env("PERSIA_ROLE").has_value() || !options.role.empty(),
                    .replica = replica.has_value()};
  identity.restart_count = EnvNumber<uint32_t>("TORCHELASTIC_RESTART_COUNT", 0).value_or(0);
  identity.segment_bytes = EnvNumber<uint64_t>("PERSIA_METRICS_SEGMENT_BYTES", 1).value_or(0);

  if (const auto run = Env("PERSIA_RUN_ID")) identity.run_id = *run;
  if (const auto torch = Env("TORCHELASTIC_RUN_ID"); torch && *torch != "none") {
    // "none" is torchrun's default for every run.
    identity.torch_run_id = *torch;
  }
  return identity;
}

}  // namespace abi_1
}  // namespace persia::metrics
