// `persia_gpu_*`: the values of each device, on the identity of its rank, with the label `gpu`; its uuid is only on
// persia_gpu_info.
//
//   GpuMetrics metrics(agent_identity);
//   auto snapshot = metrics.Collect({.sample = sample, .owners = owners, .xids = counts, .runs = true});
//
// Thread safety: the collector thread alone.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/gpu_sample.h"
#include "gpu/gpu_xids.h"
#include "model/rows.h"

namespace persia::agent {

// The label `instance` of a device without a rank.
inline constexpr char kNoRank[] = "no_rank";

// The agent's identity with that instance: "no_rank", or "no_rank_3" of the agent rep_3, because several agents of a job on a
// host see the same devices, and each needs a group of its own on a gateway. REQUIRES: the instance is not empty.
[[nodiscard]] Identity WithoutRank(Identity agent);

class GpuMetrics {
 public:
  struct Values {
    const GpuSample* sample = nullptr;  // null: the devices' values are not known now
    std::vector<Identity> owners = {};  // of each device
    const GpuXidCounts::Counts& xids;
    bool has_reader = false;  // GPUs are to be read
    bool runs = false;        // the process that reads them works
    uint64_t restarts = 0;
  };

  explicit GpuMetrics(Identity agent) : agent_(std::move(agent)) {}

  // The same layout object as long as the devices, their owners and their fields are the same.
  std::shared_ptr<const Snapshot> Collect(const Values& values);

 private:
  using Fields = std::bitset<kGpuFields>;
  struct Device {
    Identity owner;
    std::string gpu;
    Labels info;
    Fields fields;  // that it has, or has had
  };

  void UpdateDevices(const Values& values);

  const Identity agent_;
  std::vector<Device> devices_;  // of the last sample
  Rows rows_;
};

}  // namespace persia::agent
