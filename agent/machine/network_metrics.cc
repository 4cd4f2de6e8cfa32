// /proc/<pid>/net/dev has two lines of headings, then for each interface "name:" and 16 numbers: received bytes, packets,
// errors, drops and four more, then the same of what was sent. /proc/<pid>/net/snmp has for each protocol a line of names and a
// line of numbers: "Tcp: RtoAlgorithm ...", "Tcp: 1 ...".
#include "machine/network_metrics.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "files/kernel_text.h"

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
  return name != "lo" && std::ranges::none_of(kLeftOut, [&](std::string_view prefix) { return name.starts_with(prefix); });
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

}  // namespace

void ReadNetwork(KernelFiles& files, const std::string& process, MachineReading& reading) {
  const std::string directory = "/proc/" + process + "/net/";
  ReadInterfaces(files.Read(directory + "dev"), reading);
  ReadTcp(files.Read(directory + "snmp"), reading);
}

}  // namespace persia::agent
