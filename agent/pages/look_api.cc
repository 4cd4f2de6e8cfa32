#include "pages/look_api.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "pages/json.h"
#include "pages/query_string.h"
#include "persia/metrics/catalog.h"

namespace persia::agent {
namespace {

namespace catalog = metrics::catalog;
using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr size_t kFewSeries = 1000;
constexpr size_t kMostSeries = 10'000;
// A worker of which nothing changes for so many push intervals, and for so long, hangs.
constexpr int kHungIntervals = 3;
constexpr milliseconds kHungAfter{10'000};
constexpr std::string_view kOfWorkers = "persia_process_";

int64_t UnixMs(system_clock::time_point time) { return duration_cast<milliseconds>(time.time_since_epoch()).count(); }

double Seconds(std::chrono::duration<double> duration) { return duration.count(); }

template <class AnyLabels>
std::string LabelOf(const AnyLabels& labels, std::string_view name) {
  const auto found = std::find_if(labels.begin(), labels.end(), [&](const auto& label) { return label.first == name; });
  return found == labels.end() ? "" : std::string(found->second);
}

// What persia_process_* says of one place.
struct Worker {
  std::map<std::string, double, std::less<>> numbers;  // by the family's name without the prefix
  std::string last_exit;
};

std::map<WorkerPlace, Worker> WorkersIn(const Snapshot& snapshot) {
  std::map<WorkerPlace, Worker> workers;
  for (const FamilyLayout& family : snapshot.layout->families) {
    if (!family.name.starts_with(kOfWorkers) || family.ValuesPerSeries() != 1) {
      continue;
    }
    for (const SeriesLayout& series : family.series) {
      const double value = snapshot.values[series.first_value];
      if (IsAbsent(value)) {
        continue;
      }
      const Labels& identity = snapshot.layout->identities[series.identity].labels;
      const std::string process = LabelOf(series.labels, "process");
      if (process.empty()) {
        continue;  // of no worker
      }
      Worker& worker = workers[{LabelOf(identity, "role"), LabelOf(identity, "instance"), process}];
      const std::string_view name = std::string_view(family.name).substr(kOfWorkers.size());
      if (name == "last_exit_info") {
        worker.last_exit = LabelOf(series.labels, "reason");
      } else {
        worker.numbers.emplace(name, value);
      }
    }
  }
  return workers;
}

Json WorkersJson(const AgentStatus& status, const Snapshot& snapshot, system_clock::time_point now) {
  const double hung_after = Seconds(std::max(kHungAfter, kHungIntervals * status.push_interval));
  const double now_seconds = static_cast<double>(UnixMs(now)) / 1000;
  Json out = Json::array();
  for (const auto& entry : WorkersIn(snapshot)) {
    const WorkerPlace& place = entry.first;
    const Worker& worker = entry.second;
    const auto number = [&](std::string_view name, double scale = 1) -> Json {
      const auto found = worker.numbers.find(name);
      return found == worker.numbers.end() ? Json() : Json(found->second * scale);
    };
    const auto whole = [&](std::string_view name, double scale = 1) -> Json {
      const Json value = number(name, scale);
      return value.is_null() ? value : Json(static_cast<int64_t>(value.get<double>()));
    };
    const auto pid = status.pids.find(place);
    const auto up = worker.numbers.find("up");
    const auto changed = worker.numbers.find("last_change_timestamp_seconds");
    const bool is_up = up != worker.numbers.end() && up->second == 1;
    const Json unchanged = changed == worker.numbers.end() ? Json() : Json(std::max(0.0, now_seconds - changed->second));
    out.push_back({{"role", std::get<0>(place)},
                   {"instance", std::get<1>(place)},
                   {"process", std::get<2>(place)},
                   {"up", is_up},
                   {"pid", pid == status.pids.end() ? Json() : Json(pid->second)},
                   {"restarts", whole("restarts_total")},
                   {"start_time_ms", whole("start_time_seconds", 1000)},
                   {"cpu_seconds", number("cpu_seconds")},
                   {"resident_bytes", whole("resident_memory_bytes")},
                   {"threads", whole("threads")},
                   {"last_change_ms", whole("last_change_timestamp_seconds", 1000)},
                   {"unchanged_seconds", unchanged},
                   {"hung", is_up && unchanged.is_number() && unchanged.get<double>() > hung_after},
                   {"last_exit", worker.last_exit}});
  }
  return out;
}

const std::vector<FamilyLayout>& FamiliesOf(const Snapshot* snapshot) {
  static const auto& none = *new std::vector<FamilyLayout>;
  return snapshot == nullptr ? none : snapshot->layout->families;
}

std::string_view TableOf(std::string_view family) {
  for (const catalog::Entry* entry : catalog::kEntries) {
    const bool last = entry->type == catalog::Type::kTimeCost && family.ends_with("_sec");
    if (entry->name == (last ? family.substr(0, family.size() - 4) : family)) {
      return entry->table == catalog::Table::kAccuracy ? "accuracy" : "efficiency";
    }
  }
  return "";
}

Json LabelsJson(const Identity& identity, const SeriesLayout& series) {
  Json labels = Json::object();
  for (const auto& [name, value] : identity.labels) {
    labels[name] = value;
  }
  for (const auto& [name, value] : series.labels) {
    labels[name] = value;
  }
  return labels;
}

// As if they were one: what is late or wrong with any is.
GatewayStatus AllGateways(const AgentStatus& status) {
  GatewayStatus all;
  bool none_arrived = false;
  for (const GatewayStatus& one : status.gateways) {
    all.address += (all.address.empty() ? "" : ", ") + one.address;
    all.groups += one.groups;
    all.pushes += one.pushes;
    all.pushes_failed += one.pushes_failed;
    all.last_took = std::max(all.last_took, one.last_took);
    if (all.last_error.empty()) {
      all.last_error = one.last_error;
    }
    if (status.gateways.size() > 1 && one.groups == 0) {
      continue;  // nothing is to arrive there
    }
    all.format = all.format.empty() || all.format == one.format ? one.format : "mixed";
    none_arrived = none_arrived || !one.last_success;
    if (!all.last_success || (one.last_success && one.since_success > all.since_success)) {
      all.last_success = one.last_success;
      all.since_success = one.since_success;
    }
  }
  if (none_arrived) {
    all.last_success.reset();
  }
  if (all.address.empty()) {
    all.address = status.pushes ? "unknown" : "off";
  }
  return all;
}

Json GatewayJson(const GatewayStatus& gateway) {
  return {{"address", gateway.address},
          {"groups", gateway.groups},
          {"format", gateway.format},
          {"pushes", gateway.pushes},
          {"failed", gateway.pushes_failed},
          {"last_success_ms", gateway.last_success ? Json(UnixMs(*gateway.last_success)) : Json()},
          {"last_success_age_seconds", gateway.last_success ? Json(Seconds(gateway.since_success)) : Json()},
          {"last_push_seconds", gateway.pushes > 0 ? Json(Seconds(gateway.last_took)) : Json()},
          {"last_error", gateway.last_error}};
}

Json GatewaysJson(const AgentStatus& status) {
  Json gateways = Json::array();
  for (const GatewayStatus& gateway : status.gateways) {
    gateways.push_back(GatewayJson(gateway));
  }
  return gateways;
}

}  // namespace

JsonAnswer AnswerStatus(const AgentStatus& status, const Snapshot* newest, system_clock::time_point now) {
  const History::Stats& history = status.history;
  return AnswerWith(
      {{"version", status.version},
       {"job", status.job},
       {"run_id", status.run_id},
       {"directory", status.directory},
       {"now_ms", UnixMs(now)},
       {"push_interval_seconds", Seconds(status.push_interval)},
       {"gateway", GatewayJson(AllGateways(status))},
       {"gateways", GatewaysJson(status)},
       {"series", status.series},
       {"segments", {{"live", status.workers}, {"ended", status.workers_ended}, {"refused", status.segments_refused}}},
       {"history",
        {{"seconds", Seconds(history.options.span)},
         {"step_seconds", Seconds(std::max(history.step, status.push_interval))},
         {"bytes", history.bytes},
         {"max_bytes", history.options.max_bytes},
         {"collections", history.entries},
         {"oldest_ms", history.oldest_unix_ms ? Json(*history.oldest_unix_ms) : Json()}}},
       {"workers", newest == nullptr ? Json::array() : WorkersJson(status, *newest, now)}});
}

JsonAnswer AnswerMetadata(const Snapshot* newest) {
  Json families = Json::array();
  for (const FamilyLayout& family : FamiliesOf(newest)) {
    std::set<std::string_view> labels;
    for (const SeriesLayout& series : family.series) {
      for (const auto& [name, value] : newest->layout->identities[series.identity].labels) {
        labels.insert(name);
      }
      for (const auto& [name, value] : series.labels) {
        labels.insert(name);
      }
    }
    families.push_back({{"name", family.name},
                        {"type", TypeName(family.type)},
                        {"help", family.help},
                        {"unit", family.unit},
                        {"table", TableOf(family.name)},
                        {"series", family.series.size()},
                        {"labels", labels}});
  }
  return AnswerWith({{"families", std::move(families)}});
}

JsonAnswer AnswerSeries(std::string_view query, const Snapshot* newest) {
  std::string wanted;
  size_t limit = kFewSeries;
  for (const auto& [name, value] : ParseParameters(query)) {
    if (name == "name") {
      wanted = value;
    } else if (name == "limit") {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), limit);
      if (error != std::errc() || end != value.data() + value.size() || limit == 0 || limit > kMostSeries) {
        return RefuseWith(400,
                          "limit: \"" + value.substr(0, 200) + "\" is not a number from 1 to " + std::to_string(kMostSeries));
      }
    } else {
      return RefuseWith(400, "unknown parameter \"" + name.substr(0, 200) + "\" (name, limit)");
    }
  }
  if (wanted.empty()) {
    return RefuseWith(400, "name: of which family? /api/v1/metadata lists them");
  }
  for (const FamilyLayout& family : FamiliesOf(newest)) {
    if (family.name != wanted) {
      continue;
    }
    Json series = Json::array();
    for (size_t i = 0; i < std::min(limit, family.series.size()); ++i) {
      series.push_back(LabelsJson(newest->layout->identities[family.series[i].identity], family.series[i]));
    }
    return AnswerWith(
        {{"name", family.name}, {"left_out", family.series.size() - series.size()}, {"series", std::move(series)}});
  }
  return RefuseWith(404, "name: there is no family \"" + wanted.substr(0, 200) + "\"");
}

}  // namespace persia::agent
