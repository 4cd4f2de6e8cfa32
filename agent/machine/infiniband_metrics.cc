// /sys/class/infiniband/<device>/ports/<port>/ has `state` ("4: ACTIVE"), `rate` ("100 Gb/sec (4X EDR)") and a file for each of
// its `counters`. The kernel's Documentation/ABI/stable/sysfs-class-infiniband explains them; data is counted in words of 4
// bytes.
#include "machine/infiniband_metrics.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "files/kernel_text.h"

namespace persia::agent {
namespace {

struct Counter {
  const char* file;
  MachineFamily family;
  double scale = 1;
};

constexpr Counter kCounters[] = {
    {"port_rcv_data",
     {"persia_infiniband_port_data_received_bytes_total", MetricType::kCounter, "Bytes that the port received."},
     4},
    {"port_xmit_data",
     {"persia_infiniband_port_data_transmitted_bytes_total", MetricType::kCounter, "Bytes that the port sent."},
     4},
    {"port_rcv_errors",
     {"persia_infiniband_port_receive_errors_total", MetricType::kCounter, "Packets that the port received with errors."}},
    {"port_xmit_discards",
     {"persia_infiniband_port_discards_transmitted_total", MetricType::kCounter,
      "Packets that the port discarded because it was down or congested."}},
    {"symbol_error",
     {"persia_infiniband_symbol_error_total", MetricType::kCounter, "Minor errors of the link: a bad cable, or a bad plug."}},
    {"link_error_recovery",
     {"persia_infiniband_link_error_recovery_total", MetricType::kCounter,
      "How often the port recovered from an error of the link."}},
    {"link_downed", {"persia_infiniband_link_downed_total", MetricType::kCounter, "How often the link went down."}},
};
constexpr MachineFamily kState{"persia_infiniband_state_id", MetricType::kGauge,
                               "State of the port: 1 down, 2 initialized, 3 armed, 4 active, 5 active and recovering."};
constexpr MachineFamily kRate{"persia_infiniband_rate_bytes_per_second", MetricType::kGauge, "Speed of the port's link."};

constexpr size_t kMaxPorts = 32;
constexpr double kBytesOfGigabit = 1e9 / 8;

}  // namespace

void ReadInfiniband(KernelFiles& files, MachineReading& reading) {
  const std::string root = "/sys/class/infiniband";
  size_t ports = 0;
  for (const std::string& device : files.List(root)) {
    for (const std::string& port : files.List(root + "/" + device + "/ports")) {
      if (++ports > kMaxPorts) return;
      const Labels labels{{"device", device}, {"port", port}};
      const std::string directory = root + "/" + device + "/ports/" + port + "/";
      for (const Counter& counter : kCounters) {
        reading.Add(counter.family, labels, files.Number(directory + "counters/" + counter.file), counter.scale);
      }
      reading.Add(kState, labels, files.Number(directory + "state"));
      // "2.5 Gb/sec" has a fraction, in tenths.
      std::string_view rate = files.Read(directory + "rate");
      const auto gigabits = LeadingNumber(rate);
      const size_t dot = rate.substr(0, rate.find(' ')).find('.');
      const auto tenths = dot == std::string_view::npos ? std::optional<uint64_t>(0) : LeadingNumber(rate.substr(dot + 1, 1));
      if (!gigabits) continue;
      const double speed = static_cast<double>(*gigabits) + static_cast<double>(tenths.value_or(0)) / 10;
      reading.Add(kRate, labels, speed * kBytesOfGigabit);
    }
  }
}

}  // namespace persia::agent
