#include "top/job_status.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace persia::agent {
namespace {

namespace dom = simdjson::dom;

std::string TextOf(const dom::object& object, const char* key) {
  std::string_view text;
  return object[key].get_string().get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

std::optional<double> NumberOf(const dom::object& object, const char* key) {
  double number = 0;
  if (object[key].get_double().get(number) != simdjson::SUCCESS || !std::isfinite(number)) return std::nullopt;
  return number;
}

// Times, counts and pids. Outside the range of exact doubles it is no number that an agent sends.
std::optional<int64_t> WholeOf(const dom::object& object, const char* key) {
  constexpr double kLimit = 9e15;
  const auto number = NumberOf(object, key);
  return number && std::abs(*number) < kLimit ? std::optional(static_cast<int64_t>(*number)) : std::nullopt;
}

bool IsTrue(const dom::object& object, const char* key) {
  bool value = false;
  return object[key].get_bool().get(value) == simdjson::SUCCESS && value;
}

// In the order of the enumerations.
constexpr const char* kRankStates[] = {"died", "hung", "slow", "running", "starting", "idle", "exited"};
constexpr const char* kJobStates[] = {"failed", "hung", "degraded", "running", "waiting", "finished"};

// `otherwise`, if there is no such state.
template <class State, size_t kStates>
State StateOf(const dom::object& object, const char* const (&names)[kStates], State otherwise) {
  const auto* const name = std::find(std::begin(names), std::end(names), TextOf(object, "state"));
  return name == std::end(names) ? otherwise : static_cast<State>(name - names);
}

Rank RankOf(const dom::object& worker) {
  Rank rank{.role = TextOf(worker, "role"), .instance = TextOf(worker, "instance"), .process = TextOf(worker, "process")};
  rank.last_exit = TextOf(worker, "last_exit");
  rank.state = IsTrue(worker, "slow") ? RankState::kSlow : StateOf(worker, kRankStates, rank.state);
  rank.since_ms = WholeOf(worker, "state_since_ms");
  rank.restarts = static_cast<uint64_t>(std::max<int64_t>(0, WholeOf(worker, "restarts").value_or(0)));
  rank.cpu_seconds = NumberOf(worker, "cpu_seconds");
  rank.start_ms = WholeOf(worker, "start_time_ms");
  rank.resident_bytes = NumberOf(worker, "resident_bytes");
  rank.throughput = NumberOf(worker, "throughput");
  rank.is_rank = IsTrue(worker, "is_rank");
  return rank;
}

void ReadHealth(const dom::object& root, JobStatus& status) {
  dom::object health;
  if (root["health"].get_object().get(health) != simdjson::SUCCESS) return;
  status.state = StateOf(health, kJobStates, status.state);
  status.since_ms = WholeOf(health, "since_ms");
  status.title = TextOf(health, "title");
  status.text = TextOf(health, "text");
  status.stands_still = NumberOf(health, "standstill_seconds").has_value();
  dom::array reasons;
  if (health["reasons"].get_array().get(reasons) != simdjson::SUCCESS) return;
  for (const dom::element element : reasons) {
    constexpr size_t kMaxReasons = 20;
    dom::object reason;
    if (status.reasons.size() == kMaxReasons || element.get_object().get(reason) != simdjson::SUCCESS) break;
    status.reasons.push_back(TextOf(reason, "headline"));
  }
}

// What is wrong with the job's metrics is told after what is wrong with the job.
void ReadDelivery(const dom::object& root, JobStatus& status) {
  dom::object delivery;
  if (root["delivery"].get_object().get(delivery) == simdjson::SUCCESS) status.reasons.push_back(TextOf(delivery, "text"));
}

// What the processes count by progress.h, else the counter that stands for it.
void ReadSpeed(const dom::object& root, JobStatus& status) {
  dom::object progress;
  if (root["progress"].get_object().get(progress) == simdjson::SUCCESS) {
    for (const char* counted : {"samples", "tokens", "steps"}) {
      const auto speed = NumberOf(progress, (std::string(counted) + "_per_second").c_str());
      if (!speed) continue;
      status.counted = counted;
      status.per_second = *speed;
      return;
    }
  }
  dom::object throughput;
  if (root["throughput"].get_object().get(throughput) != simdjson::SUCCESS) return;
  status.per_second = NumberOf(throughput, "now").value_or(0);
  status.counted = TextOf(throughput, "name");
}

}  // namespace

std::string Rank::Name() const {
  std::string name = role.empty() ? instance : role + ' ' + instance;
  if (!process.empty() && process != "0") name += '/' + process;
  return name;
}

Result<JobStatus> ParseJobStatus(std::string_view body) {
  dom::parser parser;
  dom::object root;
  if (parser.parse(body.data(), body.size()).get_object().get(root) != simdjson::SUCCESS)
    return Error{"the answer is not a JSON object"};
  dom::array workers;
  const auto now = WholeOf(root, "now_ms");
  if (!now || root["workers"].get_array().get(workers) != simdjson::SUCCESS)
    return Error{"the answer is not the status of an agent"};
  JobStatus status{.job = TextOf(root, "job"), .now_ms = *now};
  status.push_interval = NumberOf(root, "push_interval_seconds").value_or(status.push_interval);
  for (const dom::element element : workers) {
    dom::object worker;
    if (element.get_object().get(worker) != simdjson::SUCCESS) return Error{"the answer has a worker that is not an object"};
    if (status.ranks.size() == kMaxRanks) return Error{"the answer has more than 20,000 workers"};
    status.ranks.push_back(RankOf(worker));
  }
  ReadHealth(root, status);
  ReadDelivery(root, status);
  ReadSpeed(root, status);
  dom::object progress;
  if (root["progress"].get_object().get(progress) == simdjson::SUCCESS) {
    status.step = NumberOf(progress, "step");
    status.planned_steps = NumberOf(progress, "planned_steps");
    status.remaining_seconds = NumberOf(progress, "remaining_seconds");
  }
  return status;
}

const char* ToString(RankState state) { return kRankStates[static_cast<size_t>(state)]; }
const char* ToString(ShownJobState state) { return kJobStates[static_cast<size_t>(state)]; }

}  // namespace persia::agent
