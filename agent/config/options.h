// The settings of the agent, as config.h loads them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "model/snapshot.h"
#include "naming/mapping_rules.h"
#include "net/gateway_access.h"
#include "net/url.h"
#include "push/push_format.h"
#include "remote/relabel.h"

namespace persia::agent {

// Whether the job's groups stay on the gateway when the job ends.
enum class OnJobEnd : uint8_t { kKeep, kDelete };

// Whether a group stays on the gateway after all its processes have ended, while the job runs.
enum class OnInstanceEnd : uint8_t { kDelete, kKeep };

// Whether GPUs are read, if the host has some.
enum class GpuMode : uint8_t { kAuto, kOff };

// A database that receives samples by remote write.
struct RemoteWriteTarget {
  std::string url;
  // In logs, as the label `target`, and in the names of its files. Default: host and port of the URL.
  std::string name;
  std::vector<std::pair<std::string, std::string>> headers{};
  GatewayAccessOptions access{};
  ProxySettings proxy{};
  bool follow_redirects = true;
  std::chrono::milliseconds timeout{30'000};
  // Shortest time between two collections that are sent; 0: each is sent.
  std::chrono::milliseconds send_interval{0};
  // Limits of the disk queue. Age 0: none.
  uint64_t queue_max_bytes = 256 << 20;
  std::chrono::milliseconds sample_age_limit = std::chrono::hours(24);
  // In one request. One request at a time is sent: at 100 ms each, 100,000 series take 1 s.
  uint32_t max_samples = 10'000;
  std::chrono::milliseconds min_backoff{100};
  std::chrono::milliseconds max_backoff{5000};
  // Of the families: type, help and unit.
  bool sends_metadata = true;
  std::chrono::milliseconds metadata_interval{60'000};
  uint32_t max_metadata = 2000;  // families in a request
  std::vector<RelabelConfig> relabel{};
  bool send_native_histograms = false;

  bool operator==(const RemoteWriteTarget&) const = default;
};

struct AgentOptions {
  // The job.
  bool enable_metrics = true;  // false: the job runs, and nothing is collected
  std::string job_name = "default";
  bool has_job_name = false;  // it is set; an unnamed job shares its directory with no other
  std::string run_id;         // of one execution across restarts; empty: the directory's unfinished run, else generated
  std::chrono::milliseconds gauge_ttl{
      300'000};  // how long gauges of ended processes are exposed, and instances without a process
  std::optional<std::chrono::milliseconds> hang_after{};  // none: by the job's rhythm. 0: no process is judged
  GpuMode gpu = GpuMode::kAuto;
  bool machine_metrics = true;  // cgroup, pressure, filesystems, network, and costly values of workers are read

  // PushGateway.
  // host:port, or a URL with scheme and path prefix. "off": nothing is pushed.
  std::string gateway_address = "metrics_gateway:9091";
  bool has_gateway_address = false;  // it is set; else there is a gateway if the default's name has an address
  [[nodiscard]] bool Pushes() const { return gateway_address != "off"; }
  GatewayAccessOptions gateway_access;
  ProxySettings gateway_proxy;
  std::chrono::milliseconds push_interval{10'000};          // of collections, and of pushes
  std::chrono::milliseconds push_timeout{10'000};           // also limits the last push
  std::optional<std::chrono::milliseconds> finish_timeout;  // of the agent after exec's command has ended
  [[nodiscard]] std::chrono::milliseconds FinishTimeout() const {
    return finish_timeout.value_or(push_timeout + std::chrono::seconds(1));
  }
  std::chrono::milliseconds linger{0};  // how long the agent goes on after exec's command has ended
  PushFormat::Choice push_format = PushFormat::Choice::kAuto;
  OnJobEnd on_job_end = OnJobEnd::kKeep;
  OnInstanceEnd on_instance_end = OnInstanceEnd::kDelete;

  // Remote write. No two targets have the same name.
  std::vector<RemoteWriteTarget> remote_write;

  // Files.
  std::string metrics_dir;                  // of the segments; empty: /dev/shm/persia-metrics-<uid>/<job>
  std::string metrics_dir_group;            // its members may share the directory; empty: only this user
  uint64_t max_segment_bytes = 1ULL << 30;  // a larger segment is refused
  std::string state_dir;                    // of the files that outlive the agent; empty: beside the segments
  std::string fifo;                         // the named pipe for Benchmark AI's `emit`, created if it is missing; empty: none
  std::string events_file;                  // event records, one JSON object a line; "-" is stdout; empty: none

  uint64_t stderr_tail = 0;  // last lines of a dead process's stderr that are kept; 0: none

  // Limits for exposed series; series beyond them are left out.
  uint64_t max_series = 200'000;
  uint64_t max_series_per_instance = 50'000;
  uint64_t max_foreign_bytes = 256 << 20;  // of memory, for what others have written

  // Pages.
  std::string listen_address = "127.0.0.1:19091";  // ParseListenAddress; empty: none
  bool listen_address_is_default = true;           // another port may be used if this one is in use
  std::string report_file;        // the page as one file, or the summary (*.json), written at the end; empty: none
  bool enable_lifecycle = false;  // POST /-/reload reloads the settings
  std::chrono::milliseconds history{1'800'000};  // kept for the page's charts; 0: none
  uint64_t history_max_bytes = 64ULL << 20;
  // Names of the agent, in lower case, by which browsers may reach the pages. One that begins with a dot: all names below it.
  std::vector<std::string> web_external_hosts;
  std::string web_config_file;  // users and TLS; empty: no password is needed

  // Labels and names.
  Labels labels;                                // of each series
  int replica = 0;                              // the agent's own label `instance` is rep_<replica>
  std::string ip_addr;                          // the label `ip_addr`; empty: the local address of the route to the gateway
  std::string mapping_file;                     // empty: the bundled rules; "none": no rules
  std::string mapping_text;                     // its content, loaded with the settings
  std::shared_ptr<const MappingRules> mapping;  // null: no rules

  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
};

// An output that an error may switch off. The settings of its receivers, and of access to the pages, have no safe default.
enum class Output : uint8_t { kNone, kGateway, kPages };

// An error in the settings, and its consequence.
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
