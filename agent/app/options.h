// What the agent is told: one struct, filled by config.h from flags, environment and file.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/mapping_rules.h"
#include "model/snapshot.h"
#include "net/gateway_access.h"
#include "remote/relabel.h"
#include "sink/push_format.h"

namespace persia::agent {

// What becomes of the job's groups on the gateway when the job ends.
enum class OnJobEnd : uint8_t { kKeep, kDelete };

// What becomes of an identity's group when it leaves while the job goes on.
enum class OnInstanceEnd : uint8_t { kDelete, kKeep };

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat : uint8_t { kText, kJson };

// A database that takes remote write.
struct RemoteWriteTarget {
  std::string url;
  // In logs, as the label `target`, and in the names of its files. By default the URL's host and port.
  std::string name;
  std::vector<std::pair<std::string, std::string>> headers{};
  GatewayAccessOptions access{};
  // Until a request has been answered.
  std::chrono::milliseconds timeout{30'000};
  // Collections are sent no oftener than that; 0: each.
  std::chrono::milliseconds send_interval{0};
  // What waits on disk, at most.
  uint64_t queue_max_bytes = 256 << 20;
  std::chrono::milliseconds queue_max_age = std::chrono::hours(24);
  // Requests under way at once, at most, and how large one is.
  uint32_t max_shards = 4;
  uint32_t max_samples = 10'000;
  std::vector<RelabelConfig> relabel{};

  bool operator==(const RemoteWriteTarget&) const = default;
};

struct AgentOptions {
  // False: the job runs, nothing is collected, and its workers keep their numbers to themselves.
  bool enable_metrics = true;
  // The training job, to tell it from others: the gateway's `job` label.
  std::string job_name = "default";
  // How often segments are read and pushed.
  std::chrono::milliseconds push_interval{10'000};
  // The PushGateway: host:port, or a URL with scheme and path prefix. Several, separated by commas: each group has one of them
  // for its own; dns+host:port: one at each address of the host. "off": nothing is pushed.
  std::string gateway_address = "metrics_gateway:9091";
  [[nodiscard]] bool Pushes() const { return gateway_address != "off"; }
  // Until a connection to the gateway stands.
  std::chrono::milliseconds connect_timeout{3'000};
  // Until a push has been answered, and the longest that the last push may hold up the end.
  std::chrono::milliseconds push_timeout{10'000};
  // In which format groups are pushed.
  PushFormat::Choice push_format = PushFormat::Choice::kAuto;
  // Of a group as it is pushed; whole families are left out of a larger one.
  uint64_t max_push_bytes = 64 << 20;
  // Credentials and TLS towards the gateway.
  GatewayAccessOptions gateway_access;
  // Where samples are sent beside that, or instead; each name once.
  std::vector<RemoteWriteTarget> remote_write;
  // Where the workers' segments are. Empty: /dev/shm/persia-metrics-<uid>/<job>.
  std::string metrics_dir;
  // A group whose members may share the directory; empty: this user alone.
  std::string metrics_dir_group;
  // A worker's segment larger than that is refused.
  uint64_t max_segment_bytes = 1ULL << 30;
  // How long the gauges of processes that ended go on showing, and an instance of which no process is left.
  std::chrono::milliseconds gauge_ttl{300'000};
  // How many series are shown, of all and of one instance, and how long a label's value may be; what is beyond is left out.
  uint64_t max_series = 200'000;
  uint64_t max_series_per_instance = 50'000;
  uint64_t max_label_value_bytes = 1024;
  // Where the agent keeps what must outlive it. Empty: beside the segments.
  std::string state_dir;
  // Where /metrics is served, as IPv4:port; empty: nowhere.
  std::string listen_address = "127.0.0.1:19091";
  // True while nobody has asked for that address: only then may another port be taken when it is busy.
  bool listen_address_is_default = true;
  // Whether POST /-/reload reads the settings again.
  bool enable_lifecycle = false;
  // How long, and in how much memory, what was collected is kept for the page's charts. 0: it is not.
  std::chrono::milliseconds history{1'800'000};
  uint64_t history_max_bytes = 64ULL << 20;
  // Who may read the pages, and TLS for them. Empty: everybody, without.
  std::string web_config_file;
  // Where the named pipe for Benchmark AI's `emit` is, made if it is not there; empty: none.
  std::string fifo;
  // Where event records are written, a line of JSON each; "-" is stdout; empty: nowhere.
  std::string events_file;
  // Labels on each series of the job.
  Labels labels;
  // The rules by which metrics are named. Empty: the bundled ones; "none": none.
  std::string mapping_file;
  // What stands in it, read with the settings, as text and as rules. Null: no rules.
  std::string mapping_text;
  std::shared_ptr<const MappingRules> mapping;
  OnJobEnd on_job_end = OnJobEnd::kKeep;
  OnInstanceEnd on_instance_end = OnInstanceEnd::kDelete;
  // The execution of the job, across restarts. Empty: the directory's unfinished run, else made up.
  std::string run_id;
  // Which of its kind this agent is: its own `instance` label is rep_<replica>.
  int replica = 0;
  // The `ip_addr` label. Empty: the address of the route to the gateway.
  std::string ip_addr;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
};

}  // namespace persia::agent
