// /proc/<pid>/net/dev has two lines of headings, then for each interface "name:" and 16 numbers: received bytes, packets,
// errors, drops and four more, then the same of what was sent. /proc/<pid>/net/snmp has for each protocol a line of names and a
// line of numbers: "Tcp: RtoAlgorithm ...", "Tcp: 1 ...".
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernel/kernel_text.h"
#include "machine/machine_reading.h"

namespace persia::agent {
namespace {

constexpr MachineFamily kReceived{"persia_network_receive_bytes_total", MetricType::kCounter,
                                  "Bytes that the interface received."};
constexpr MachineFamily kReceiveErrors{"persia_network_receive_errs_total", MetricType::kCounter,
                                       "Packets that the interface received with errors."};
constexpr MachineFamily kReceiveDrops{"persia_network_receive_drop_total", MetricType::kCounter,
                                      "Packets that the interface received and that were dropped."};
constexpr MachineFamily kSent{"persia_network_transmit_bytes_total", MetricType::kCounter, "Bytes that the interface sent."};
constexpr MachineFamily kSendErrors{"persia_network_transmit_errs_total", MetricType::kCounter,
                                    "Packets that the interface could not send because of errors."};
constexpr MachineFamily kSendDrops{"persia_network_transmit_drop_total", MetricType::kCounter,
                                   "Packets that were dropped before the interface sent them."};
constexpr MachineFamily kSegments{"persia_network_tcp_transmit_segments_total", MetricType::kCounter,
                                  "TCP segments sent in the job's network namespace, without retransmissions."};
constexpr MachineFamily kRetransmits{"persia_network_tcp_retransmit_segments_total", MetricType::kCounter,
                                     "TCP segments sent again in the job's network namespace because no acknowledgement came."};

constexpr size_t kMaxInterfaces = 16;
constexpr std::string_view kLeftOut[] = {"br-",   "cali", "cilium",       "cni",  "docker", "dummy", "flannel", "ifb",
                                         "kube-", "lxc",  "nodelocaldns", "ovs-", "podman", "tunl",  "veth",    "virbr"};

// Of the 16 numbers.
struct Column {
  size_t at;
  const MachineFamily& family;
};
constexpr Column kColumns[] = {{0, kReceived}, {2, kReceiveErrors}, {3, kReceiveDrops},
                               {8, kSent},     {10, kSendErrors},   {11, kSendDrops}};
constexpr size_t kNumbers = 16;

bool IsShown(std::string_view name) {
  return name != "lo" && std::ranges::none_of(
                             kLeftOut, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

void ReadInterfaces(std::string_view text, MachineReading& reading) {
  size_t shown = 0;
  while (!text.empty() && shown < kMaxInterfaces) {
    std::string_view line = NextLine(text);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view before = line.substr(0, colon);
    const std::string_view name = NextWord(before);
    line.remove_prefix(colon + 1);
    std::array<std::optional<uint64_t>, kNumbers> numbers;
    for (auto& number : numbers) number = LeadingNumber(NextWord(line));
    if (!IsShown(name) || numbers[0].value_or(0) == 0) continue;
    ++shown;
    for (const Column& column : kColumns) reading.Add(column.family, {{"device", std::string(name)}}, numbers[column.at]);
  }
}

void ReadTcp(std::string_view text, MachineReading& reading) {
  while (!text.empty()) {
    std::string_view names = NextLine(text);
    if (!names.starts_with("Tcp: ")) continue;
    std::string_view numbers = NextLine(text);
    for (std::string_view name = NextWord(names); !name.empty(); name = NextWord(names)) {
      const auto number = LeadingNumber(NextWord(numbers));
      if (name == "OutSegs") reading.Add(kSegments, {}, number);
      if (name == "RetransSegs") reading.Add(kRetransmits, {}, number);
    }
    return;
  }
}

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

void ReadNetwork(KernelFiles& files, const std::string& process, MachineReading& reading) {
  const std::string directory = "/proc/" + process + "/net/";
  ReadInterfaces(files.Read(directory + "dev"), reading);
  ReadTcp(files.Read(directory + "snmp"), reading);
}

// /sys/class/infiniband/<device>/ports/<port>/ has `state` ("4: ACTIVE"), `rate` ("100 Gb/sec (4X EDR)") and a file for each of
// its `counters`. The kernel's Documentation/ABI/stable/sysfs-class-infiniband explains them; data is counted in words of 4
// bytes.
void ReadInfiniband(KernelFiles& files, MachineReading& reading) {
  const std::string root = "/sys/class/infiniband";
  size_t ports = 0;
  for (const std::string& device : files.List(root)) {
    for (const std::string& port : files.List(root + "/" + device + "/ports")) {
      if (++ports > kMaxPorts) return;
      const Labels labels{{"device", device}, {"port", port}};
      const std::string directory = root + "/" + device + "/ports/" + port + "/";
      for (const Counter& counter : kCounters)
        reading.Add(counter.family, labels, files.Number(directory + "counters/" + counter.file), counter.scale);
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
