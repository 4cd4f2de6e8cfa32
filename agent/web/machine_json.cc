#include "web/machine_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "web/series_values.h"
#include "web/throughput.h"

namespace persia::agent {
namespace {

constexpr std::array<std::string_view, 5> kFamiliesOfMachine = {"persia_cgroup_", "persia_filesystem_", "persia_infiniband_",
                                                                "persia_network_", "persia_pressure_"};
constexpr std::string_view kGpuPrefix = "persia_gpu_";
// Gauges of a GPU that are members of the same name.
constexpr std::array<std::string_view, 6> kGpuGauges = {"utilization_ratio",   "memory_used_bytes", "memory_total_bytes",
                                                        "temperature_celsius", "power_watts",       "power_limit_watts"};

using MaybeNumber = std::optional<double>;

Json NumberOrNull(const MaybeNumber& number) { return number ? Json(*number) : Json(); }

Json WholeOrNull(const MaybeNumber& number) {
  return number && std::isfinite(*number) ? Json(static_cast<int64_t>(*number)) : Json();
}

MaybeNumber PartOf(const MaybeNumber& part, const MaybeNumber& all) {
  if (!part || !all) return std::nullopt;
  return *all > 0 ? std::clamp(*part / *all, 0.0, 1.0) : 0;
}

bool HasFamilies(const Layout& layout, std::string_view prefix) {
  const auto first = std::ranges::lower_bound(layout.families, prefix, {}, &FamilyLayout::name);
  return first != layout.families.end() && first->name.starts_with(prefix);
}

// Looks values up in the newest collection, and rates in the recent ones.
class Reading {
 public:
  Reading(const Snapshot& newest, std::span<const History::Entry> recent) : newest_(newest), recent_(recent) {}

  [[nodiscard]] const Snapshot& newest() const { return newest_; }
  [[nodiscard]] SeriesValues Values(std::string_view family, std::string_view label = "") const {
    return SeriesValuesOf(newest_, family, label);
  }
  [[nodiscard]] MaybeNumber Total(std::string_view family) const { return TotalOf(Values(family)); }
  // Of the series with this value of the label.
  [[nodiscard]] MaybeNumber TotalWith(std::string_view family, std::string_view label, std::string_view value) const {
    return TotalOf(With(Values(family, label), value));
  }

  // Per second, since the first of the recent collections that has the family: the machine is read a moment after the first
  // one. Without series that are newer. A counter that fell was reset.
  [[nodiscard]] SeriesValues Rates(std::string_view family, std::string_view label = "") const {
    const auto has_family = [family](const History::Entry& entry) { return !SeriesValuesOf(*entry.snapshot, family).empty(); };
    const auto begin = std::ranges::find_if(recent_, has_family);
    if (begin == recent_.end() || begin->unix_ms >= recent_.back().unix_ms) return {};
    const double seconds = static_cast<double>(recent_.back().unix_ms - begin->unix_ms) / 1000;
    const SeriesValues before = SeriesValuesOf(*begin->snapshot, family, label);
    SeriesValues rates = SeriesValuesOf(*recent_.back().snapshot, family, label);
    std::erase_if(rates, [&before](const auto& rate) { return !before.contains(rate.first); });
    for (auto& [key, value] : rates) value = std::max(0.0, value - before.at(key)) / seconds;
    return rates;
  }
  [[nodiscard]] MaybeNumber Rate(std::string_view family) const { return TotalOf(Rates(family)); }
  [[nodiscard]] MaybeNumber RateWith(std::string_view family, std::string_view label, std::string_view value) const {
    return TotalOf(With(Rates(family, label), value));
  }

 private:
  static SeriesValues With(SeriesValues values, std::string_view wanted) {
    std::erase_if(values, [wanted](const auto& value) { return value.first.label != wanted; });
    return values;
  }

  const Snapshot& newest_;
  const std::span<const History::Entry> recent_;
};

Json MemoryJson(const Reading& reading) {
  const auto working_set = reading.Total("persia_cgroup_memory_working_set_bytes");
  if (!working_set) return {};
  return {{"working_set_bytes", WholeOrNull(working_set)},
          {"limit_bytes", WholeOrNull(reading.Total("persia_cgroup_memory_limit_bytes"))},
          {"max_usage_bytes", WholeOrNull(reading.Total("persia_cgroup_memory_max_usage_bytes"))},
          {"swap_bytes", WholeOrNull(reading.Total("persia_cgroup_memory_swap_bytes"))},
          {"oom_kills", WholeOrNull(reading.TotalWith("persia_cgroup_memory_events_total", "event", "oom_kill"))}};
}

Json CpuJson(const Reading& reading) {
  if (!reading.Total("persia_cgroup_cpu_usage_seconds_total")) return {};
  const auto throttled = PartOf(reading.Rate("persia_cgroup_cpu_cfs_throttled_periods_total"),
                                reading.Rate("persia_cgroup_cpu_cfs_periods_total"));
  return {{"used_cores", NumberOrNull(reading.Rate("persia_cgroup_cpu_usage_seconds_total"))},
          {"limit_cores", NumberOrNull(reading.Total("persia_cgroup_cpu_limit_cores"))},
          {"throttled_ratio", NumberOrNull(throttled)}};
}

// Of one scope: the shares of time.
Json PressureOf(const Reading& reading, std::string_view scope) {
  Json resources = Json::object();
  for (const char* const resource : {"cpu", "memory", "io"}) {
    const auto ratio = [&](const std::string& what) {
      return PartOf(reading.RateWith("persia_pressure_" + (resource + what), "scope", scope), 1.0);
    };
    const auto waiting = ratio("_waiting_seconds_total");
    if (!waiting) continue;
    resources[resource] = {{"waiting_ratio", *waiting}, {"stalled_ratio", NumberOrNull(ratio("_stalled_seconds_total"))}};
  }
  return resources.empty() ? Json() : resources;
}

Json FilesystemsJson(const Reading& reading) {
  Json filesystems = Json::array();
  for (const auto& each : reading.Values("persia_filesystem_device_error", "use")) {
    const std::string& use = each.first.label;
    const auto value = [&](std::string_view family) { return WholeOrNull(reading.TotalWith(family, "use", use)); };
    filesystems.push_back({{"use", use},
                           {"size_bytes", value("persia_filesystem_size_bytes")},
                           {"avail_bytes", value("persia_filesystem_avail_bytes")},
                           {"files", value("persia_filesystem_files")},
                           {"files_free", value("persia_filesystem_files_free")},
                           {"error", each.second != 0}});
  }
  return filesystems;
}

// Of all interfaces together.
Json NetworkJson(const Reading& reading) {
  if (!HasFamilies(*reading.newest().layout, "persia_network_")) return {};
  const auto both = [&](std::string_view received_family, std::string_view sent_family) {
    const auto received = reading.Rate(received_family);
    const auto sent = reading.Rate(sent_family);
    return received && sent ? Json(*received + *sent) : Json();
  };
  const auto sent = reading.Rate("persia_network_tcp_transmit_segments_total");
  const auto again = reading.Rate("persia_network_tcp_retransmit_segments_total");
  return {{"receive_bytes_per_second", NumberOrNull(reading.Rate("persia_network_receive_bytes_total"))},
          {"transmit_bytes_per_second", NumberOrNull(reading.Rate("persia_network_transmit_bytes_total"))},
          {"errors_per_second", both("persia_network_receive_errs_total", "persia_network_transmit_errs_total")},
          {"drops_per_second", both("persia_network_receive_drop_total", "persia_network_transmit_drop_total")},
          {"tcp_retransmit_ratio", NumberOrNull(PartOf(again, sent && again ? MaybeNumber(*sent + *again) : std::nullopt))}};
}

// Of all ports together.
Json InfinibandJson(const Reading& reading) {
  constexpr double kActive = 4;
  int64_t ports = 0;
  int64_t active = 0;
  for (const FamilyLayout& states : FamiliesNamed(*reading.newest().layout, "persia_infiniband_state_id")) {
    for (const SeriesLayout& series : states.series) {
      const double state = reading.newest().values[series.first_value];
      if (IsAbsent(state)) continue;
      ++ports;
      active += state >= kActive ? 1 : 0;
    }
  }
  if (ports == 0) return {};
  MaybeNumber errors;
  for (const char* const family : {"persia_infiniband_link_downed_total", "persia_infiniband_link_error_recovery_total",
                                   "persia_infiniband_port_receive_errors_total", "persia_infiniband_symbol_error_total"})
    if (const auto rate = reading.Rate(family)) errors = errors.value_or(0) + *rate;
  return {{"ports", ports},
          {"active_ports", active},
          {"receive_bytes_per_second", NumberOrNull(reading.Rate("persia_infiniband_port_data_received_bytes_total"))},
          {"transmit_bytes_per_second", NumberOrNull(reading.Rate("persia_infiniband_port_data_transmitted_bytes_total"))},
          {"errors_per_second", NumberOrNull(errors)}};
}

// Of the processes of a rank: the sums, and of open files those of the process that is nearest to its limit.
struct RankUse {
  MaybeNumber proportional;
  MaybeNumber swapped;
  MaybeNumber open_files;
  MaybeNumber max_open_files;
  MaybeNumber major_faults;
};

using RankUses = std::map<std::pair<std::string, std::string>, RankUse>;

void AddSums(const SeriesValues& values, MaybeNumber RankUse::*member, RankUses& ranks) {
  for (const auto& [key, value] : values) {
    MaybeNumber& sum = ranks[{key.role, key.instance}].*member;
    sum = sum.value_or(0) + value;
  }
}

void AddOpenFiles(const Reading& reading, RankUses& ranks) {
  const SeriesValues limits = reading.Values("persia_process_max_fds", "process");
  for (const auto& [key, open] : reading.Values("persia_process_open_fds", "process")) {
    RankUse& rank = ranks[{key.role, key.instance}];
    const auto limit = limits.find(key);
    const MaybeNumber most = limit == limits.end() ? std::nullopt : MaybeNumber(limit->second);
    const bool is_nearer =
        !rank.open_files || PartOf(open, most).value_or(0) > PartOf(rank.open_files, rank.max_open_files).value_or(0);
    if (!is_nearer) continue;
    rank.open_files = open;
    rank.max_open_files = most;
  }
}

Json RanksJson(const Reading& reading) {
  RankUses ranks;
  AddSums(reading.Values("persia_process_proportional_memory_bytes"), &RankUse::proportional, ranks);
  AddSums(reading.Values("persia_process_swapped_memory_bytes"), &RankUse::swapped, ranks);
  AddSums(reading.Rates("persia_process_major_page_faults_total", "process"), &RankUse::major_faults, ranks);
  AddOpenFiles(reading, ranks);
  Json json = Json::array();
  for (const auto& [rank, use] : ranks) {
    if (rank.first == kLauncherRole) continue;
    json.push_back({{"role", rank.first},
                    {"instance", rank.second},
                    {"proportional_bytes", WholeOrNull(use.proportional)},
                    {"swapped_bytes", WholeOrNull(use.swapped)},
                    {"open_files", WholeOrNull(use.open_files)},
                    {"max_open_files", WholeOrNull(use.max_open_files)},
                    {"major_page_faults_per_second", NumberOrNull(use.major_faults)}});
  }
  return json;
}

// The series of one device on one rank.
struct GpuUse {
  std::string model;
  std::map<std::string, double, std::less<>> gauges;  // by the family's name without the prefix
  Json throttled = Json::array();
  Json xids = Json::object();
  Json ecc = Json::object();
};

void AddToGpu(std::string_view name, const SeriesLayout& series, double value, GpuUse& gpu) {
  if (name == "info") {
    gpu.model = ValueOfLabel(series, "model");
  } else if (name == "throttled") {
    if (value == 1) gpu.throttled.push_back(ValueOfLabel(series, "reason"));
  } else if (name == "xid_errors_total") {
    gpu.xids[ValueOfLabel(series, "xid")] = static_cast<int64_t>(value);
  } else if (name == "ecc_errors_total") {
    gpu.ecc[ValueOfLabel(series, "kind")] = static_cast<int64_t>(value);
  } else if (name == "up" || std::ranges::find(kGpuGauges, name) != kGpuGauges.end()) {
    gpu.gauges.emplace(name, value);
  }
}

Json GpusJson(const Snapshot& newest) {
  std::map<SeriesKey, GpuUse> gpus;
  const auto& families = newest.layout->families;
  auto family = std::ranges::lower_bound(families, kGpuPrefix, {}, &FamilyLayout::name);
  for (; family != families.end() && family->name.starts_with(kGpuPrefix); ++family) {
    if (family->ValuesPerSeries() != 1) continue;
    for (const SeriesLayout& series : family->series) {
      const double value = newest.values[series.first_value];
      if (IsAbsent(value)) continue;
      GpuUse& gpu = gpus[SeriesKeyOf(*newest.layout, series, "gpu")];
      AddToGpu(std::string_view(family->name).substr(kGpuPrefix.size()), series, value, gpu);
    }
  }
  Json json = Json::array();
  for (auto& [key, gpu] : gpus) {
    Json one = {{"gpu", key.label}, {"role", key.role}, {"instance", key.instance}, {"model", gpu.model}};
    const auto up = gpu.gauges.find("up");
    one["up"] = up == gpu.gauges.end() ? Json() : Json(up->second == 1);
    for (const std::string_view name : kGpuGauges) {
      const auto found = gpu.gauges.find(name);
      one[std::string(name)] = found == gpu.gauges.end() ? Json() : Json(found->second);
    }
    one["throttled"] = std::move(gpu.throttled);
    one["xids"] = std::move(gpu.xids);
    one["ecc_errors"] = std::move(gpu.ecc);
    json.push_back(std::move(one));
  }
  return json;
}

}  // namespace

std::vector<History::Entry> RecentEntries(std::span<const History::Entry> history) {
  if (history.empty()) return {};
  // From the newest one that is old enough, else from the oldest one.
  auto begin = std::ranges::upper_bound(history, history.back().unix_ms - Throughput::kNowMs, {}, &History::Entry::unix_ms);
  if (begin != history.begin()) --begin;
  return {begin, history.end()};
}

Json MachineJson(const Snapshot& newest, std::span<const History::Entry> recent) {
  const Layout& layout = *newest.layout;
  const auto is_there = [&layout](std::string_view prefix) { return HasFamilies(layout, prefix); };
  if (!std::ranges::any_of(kFamiliesOfMachine, is_there) && !is_there(kGpuPrefix)) return {};
  const Reading reading(newest, recent);
  return {{"memory", MemoryJson(reading)},
          {"cpu", CpuJson(reading)},
          {"pressure", {{"cgroup", PressureOf(reading, "cgroup")}, {"host", PressureOf(reading, "host")}}},
          {"filesystems", FilesystemsJson(reading)},
          {"network", NetworkJson(reading)},
          {"infiniband", InfinibandJson(reading)},
          {"ranks", RanksJson(reading)},
          {"gpus", GpusJson(newest)}};
}

}  // namespace persia::agent
