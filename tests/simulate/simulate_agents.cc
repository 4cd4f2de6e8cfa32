// Many agents in one process: for a gateway, each is an agent that pushes its groups through agent/push, on its own
// connections.
//
//   simulate_agents --agents 300 --series 500 --gateways 127.0.0.1:9091,127.0.0.1:9092 --interval 10 --seconds 30 --state DIR
//
// An agent has two groups, as a real one beside a worker: the worker's, of `--series`, and its own, of 100. It begins at its
// own moment of the first interval and pushes every interval, in its own thread, to one of the gateways: the first agent to the
// first one, and so on in turn. It skips an interval if it is late, as push/pusher.h does. Once each has pushed twice, or after
// three intervals, the program prints "measuring", and after `seconds` one line of JSON with the results of the pushes that
// ended meanwhile.
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "net/url.h"
#include "push/group_ledger.h"
#include "push/push_gateway.h"

namespace persia::agent {
namespace {

using Time = std::chrono::steady_clock;
using std::chrono::duration;
using std::chrono::milliseconds;

constexpr size_t kOwnSeries = 100;
constexpr size_t kSeriesOfFamily = 10;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "simulate_agents: %s\n", what.c_str());
  std::exit(2);
}

struct Plan {
  size_t agents = 1;
  size_t series = 500;
  double interval = 10;
  double seconds = 30;
  std::string state;
  std::vector<GatewayAddress> gateways;
};

// The outcome of the pushes of all agents, from Begin to Print.
class Tally {
 public:
  void Add(const PushReport& report) {
    const std::lock_guard lock(mutex_);
    all_requests_ += report.requests;
    if (!counting_) return;
    ++pushes_;
    if (report.result != PushResult::kSuccess) ++failed_;
    bytes_ += report.bytes;
    requests_ += report.requests;
    seconds_.push_back(report.duration.count());
  }
  void Begin() {
    const std::lock_guard lock(mutex_);
    counting_ = true;
  }
  void Print(const Plan& plan) {
    const std::lock_guard lock(mutex_);
    counting_ = false;
    std::sort(seconds_.begin(), seconds_.end());
    const auto quantile = [&](double q) {
      return seconds_.empty()
                 ? 0.0
                 : seconds_[std::min(seconds_.size() - 1, static_cast<size_t>(q * static_cast<double>(seconds_.size())))];
    };
    std::printf(
        "{\"expected\": %.0f, \"pushes\": %zu, \"failed\": %zu, \"requests\": %zu, \"all_requests\": %zu, "
        "\"bytes\": %llu, "
        "\"median\": %.6f, \"p99\": %.6f, \"longest\": %.6f}\n",
        static_cast<double>(plan.agents) * plan.seconds / plan.interval, pushes_, failed_, requests_, all_requests_,
        static_cast<unsigned long long>(bytes_), quantile(0.5), quantile(0.99), quantile(1));
    std::fflush(stdout);
  }

 private:
  std::mutex mutex_;
  bool counting_ = false;
  size_t pushes_ = 0;
  size_t failed_ = 0;
  size_t requests_ = 0;
  size_t all_requests_ = 0;  // since the start
  uint64_t bytes_ = 0;
  std::vector<double> seconds_;
};

std::string Padded(size_t number) {
  std::string digits = std::to_string(number);
  return std::string(6 - std::min<size_t>(6, digits.size()), '0') + digits;
}

// Half counters and half gauges, ten of a name, for both identities. Names are long, as users' names are.
std::shared_ptr<const Layout> LayoutOf(size_t agent, size_t series) {
  auto layout = std::make_shared<Layout>();
  const std::string instance = "rep_" + std::to_string(agent);
  const std::string ip =
      "10." + std::to_string(agent >> 16) + "." + std::to_string(agent >> 8 & 255) + "." + std::to_string(agent & 255);
  layout->identities = {{"simulated", {{"instance", instance}, {"ip_addr", ip}, {"role", "trainer"}}},
                        {"simulated", {{"instance", instance}, {"ip_addr", ip}, {"role", "agent"}}}};
  size_t left[] = {series, kOwnSeries};
  for (size_t family = 0; left[0] + left[1] > 0; ++family) {
    const uint32_t identity = left[0] > 0 ? 0 : 1;
    FamilyLayout& made = layout->families.emplace_back();
    made.name = std::string(identity == 0 ? "embedding_worker_" : "of_agents_") + Padded(family) + "_lookups";
    made.type = family % 2 == 0 ? MetricType::kCounter : MetricType::kGauge;
    made.help = "One of the metrics of a job that is simulated, in some unit.";
    for (size_t i = 0; i < kSeriesOfFamily && left[identity] > 0; ++i, --left[identity]) {
      made.series.push_back({.identity = identity,
                             .first_value = layout->value_count++,
                             .labels = Labels{{"feat", "slot_" + std::to_string(i)}}});
    }
  }
  return layout;
}

class SimulatedAgent {
 public:
  SimulatedAgent(const Plan& plan, size_t number, int directory, Time::time_point begin)
      : plan_(plan),
        layout_(LayoutOf(number, plan.series)),
        ledger_({.directory_fd = directory,
                 .directory = plan.state,
                 .name = "groups." + std::to_string(number),
                 .run_id = "simulated"}),
        next_(begin),
        sink_(Options(plan, plan.gateways[number % plan.gateways.size()], ledger_)) {}

  void Run(Tally& tally, std::atomic<size_t>& pushed, const std::atomic<bool>& stop) {
    const auto interval = std::chrono::duration_cast<Time::duration>(duration<double>(plan_.interval));
    Snapshot snapshot{.layout = layout_, .values = {}, .collected_at = {}};
    for (int pushes = 1; !stop; ++pushes) {
      while (!stop && Time::now() < next_)
        std::this_thread::sleep_for(std::min<Time::duration>(next_ - Time::now(), milliseconds(100)));
      if (stop) return;
      snapshot.values.resize(layout_->value_count);
      for (size_t i = 0; i < snapshot.values.size(); ++i) {
        value_ += 1.0 + 0.37 * static_cast<double>(i % 7);
        snapshot.values[i] = i % 20 < 10 ? static_cast<double>(static_cast<uint64_t>(value_)) : value_ / 3;
      }
      static_cast<void>(sink_.Push(snapshot));  // its report tells
      tally.Add(sink_.last_report());
      if (pushes == 2) ++pushed;
      next_ += interval * (1 + std::max<Time::rep>(0, (Time::now() - next_) / interval));
    }
  }
  void Interrupt() { sink_.Interrupt(); }

 private:
  static PushGateway::Options Options(const Plan& plan, const GatewayAddress& gateway, GroupLedger& ledger) {
    PushGateway::Options options;
    options.address = gateway;
    options.format = PushFormat::Choice::kAuto;
    options.ledger = &ledger;
    options.http.total_timeout = options.time_budget = milliseconds(static_cast<int64_t>(std::max(1.0, plan.interval) * 1000));
    return options;
  }

  const Plan& plan_;
  const std::shared_ptr<const Layout> layout_;
  GroupLedger ledger_;
  Time::time_point next_;
  PushGateway sink_;
  double value_ = 0;
};

void Simulate(const Plan& plan) {
  const int directory = open(plan.state.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) Fail("cannot open " + plan.state + ": " + std::strerror(errno));
  std::vector<std::unique_ptr<SimulatedAgent>> agents;
  const auto begin = Time::now();
  const auto interval = std::chrono::duration_cast<Time::duration>(duration<double>(plan.interval));
  for (size_t i = 0; i < plan.agents; ++i) {
    agents.push_back(std::make_unique<SimulatedAgent>(
        plan, i, directory, begin + interval * static_cast<Time::rep>(i) / static_cast<Time::rep>(plan.agents)));
  }
  Tally tally;
  std::atomic<size_t> pushed = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (const auto& agent : agents) threads.emplace_back([&, one = agent.get()] { one->Run(tally, pushed, stop); });
  const auto warm = begin + 3 * interval;
  while (pushed < agents.size() && Time::now() < warm) std::this_thread::sleep_for(milliseconds(10));
  tally.Begin();
  std::puts("measuring");
  std::fflush(stdout);
  std::this_thread::sleep_for(duration<double>(plan.seconds));
  tally.Print(plan);
  stop = true;
  for (const auto& agent : agents) agent->Interrupt();
  for (std::thread& thread : threads) thread.join();
}

template <class T>
T Number(std::string_view flag, std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number > 0)) {
    Fail(std::string(flag) + ": \"" + std::string(text) + "\" is not a number above 0");
  }
  return number;
}

Plan ReadPlan(const std::vector<std::string_view>& arguments) {
  Plan plan;
  for (size_t i = 0; i + 1 < arguments.size(); i += 2) {
    const std::string_view flag = arguments[i];
    const std::string_view value = arguments[i + 1];
    if (flag == "--agents") {
      plan.agents = Number<size_t>(flag, value);
    } else if (flag == "--series") {
      plan.series = Number<size_t>(flag, value);
    } else if (flag == "--interval") {
      plan.interval = Number<double>(flag, value);
    } else if (flag == "--seconds") {
      plan.seconds = Number<double>(flag, value);
    } else if (flag == "--state") {
      plan.state = value;
    } else if (flag == "--gateways") {
      for (std::string_view rest = value; !rest.empty();) {
        auto gateway = GatewayAddress::Parse(rest.substr(0, rest.find(',')));
        if (!gateway.ok()) Fail(gateway.error());
        plan.gateways.push_back(std::move(gateway).value());
        rest.remove_prefix(std::min(rest.find(','), rest.size() - 1) + 1);
      }
    } else {
      Fail("unknown flag \"" + std::string(flag) + "\"");
    }
  }
  if (plan.gateways.empty() || plan.state.empty()) Fail("--gateways and --state are missing");
  return plan;
}

}  // namespace
}  // namespace persia::agent

int main(int count, char** arguments) {
  persia::agent::SetUpLog(persia::agent::LogLevel::kOff, persia::agent::LogFormat::kText);
  persia::agent::Simulate(persia::agent::ReadPlan({arguments + 1, arguments + count}));
  return 0;
}
