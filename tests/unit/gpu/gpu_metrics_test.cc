#include "gpu/gpu_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace persia::agent {
namespace {

const Identity kAgent{"dlrm", {{"instance", "rep_0"}, {"ip_addr", "10.0.0.7"}, {"role", "agent"}}};
const Identity kRank{"dlrm", {{"instance", "rep_3"}, {"ip_addr", "10.0.0.7"}, {"role", "trainer"}}};

// "name{label=value,...}", with the labels of the identity, and the value.
std::map<std::string, double> Values(const Snapshot& snapshot) {
  std::map<std::string, double> values;
  for (const FamilyLayout& family : snapshot.layout->families) {
    for (const SeriesLayout& series : family.series) {
      const Identity& identity = snapshot.layout->identities[series.identity];
      std::string text = family.name + "{";
      for (const auto& [name, value] : identity.labels) {
        if (name == "instance") text += value;
      }
      for (const auto& [name, value] : series.labels) text += "," + std::string(name) + "=" + std::string(value);
      const double value = snapshot.values.at(series.first_value);
      if (!IsAbsent(value)) values.emplace(text + "}", value);
    }
  }
  return values;
}

class GpuMetricsTest : public ::testing::Test {
 protected:
  GpuMetricsTest() {
    sample_.driver = "550";
    sample_.devices = {{.gpu = "0", .uuid = "GPU-a", .model = "H100", .pci_bus_id = "0000:1B"}, {.gpu = "1", .uuid = "GPU-b"}};
    sample_.devices[0].values[kGpuPower] = 350;
    sample_.devices[0].values[kGpuEccCorrected] = 4;
    sample_.devices[1].values[kGpuPower] = 200;
  }

  std::shared_ptr<const Snapshot> Collect(bool is_known = true) {
    return metrics_.Collect({.sample = is_known ? &sample_ : nullptr,
                             .owners = {kRank, WithoutRank(kAgent)},
                             .xids = xids_,
                             .has_reader = true,
                             .runs = is_known,
                             .restarts = 2});
  }

  GpuSample sample_;
  GpuXidCounts::Counts xids_;
  GpuMetrics metrics_{kAgent};
};

TEST_F(GpuMetricsTest, EachDeviceIsOnItsRankOrOnNone) {
  const std::map<std::string, double> expected{
      {"persia_agent_gpu_reader_restarts_total{rep_0}", 2},
      {"persia_agent_gpu_reader_up{rep_0}", 1},
      {"persia_gpu_ecc_errors_total{rep_3,gpu=0,kind=corrected}", 4},
      {"persia_gpu_info{no_rank,driver_version=550,gpu=1,uuid=GPU-b}", 1},
      {"persia_gpu_info{rep_3,driver_version=550,gpu=0,model=H100,pci_bus_id=0000:1B,uuid=GPU-a}", 1},
      {"persia_gpu_power_watts{no_rank,gpu=1}", 200},
      {"persia_gpu_power_watts{rep_3,gpu=0}", 350},
      {"persia_gpu_up{no_rank,gpu=1}", 1},
      {"persia_gpu_up{rep_3,gpu=0}", 1},
  };
  EXPECT_EQ(Values(*Collect()), expected);
}

TEST(WithoutRankTest, TwoAgentsOfAHostHaveDifferentIdentities) {
  const Identity of_first{"dlrm", {{"instance", "no_rank"}, {"ip_addr", "10.0.0.7"}, {"role", "agent"}}};
  EXPECT_EQ(WithoutRank(kAgent), of_first);
  EXPECT_EQ(WithoutRank({"dlrm", {{"instance", "rep_13"}, {"role", "agent"}}}),
            (Identity{"dlrm", {{"instance", "no_rank_13"}, {"role", "agent"}}}));
  EXPECT_EQ(WithoutRank({"dlrm", {{"instance", "rep_0"}}}), (Identity{"dlrm", {{"instance", "no_rank"}}}));
}

TEST_F(GpuMetricsTest, TheLayoutStaysWhileADeviceIsSilent) {
  const auto before = Collect();
  EXPECT_EQ(Collect()->layout, before->layout);
  sample_.devices[0].values[kGpuPower] = kAbsentValue;
  const auto without = Collect();
  EXPECT_EQ(without->layout, before->layout);
  EXPECT_FALSE(Values(*without).contains("persia_gpu_power_watts{rep_3,gpu=0}"));
  sample_.devices[0] = {.gpu = "0", .is_lost = true};
  const auto lost = Collect();
  EXPECT_EQ(lost->layout, before->layout);
  EXPECT_EQ(Values(*lost).at("persia_gpu_up{rep_3,gpu=0}"), 0);
}

TEST_F(GpuMetricsTest, OldValuesAreNotShown) {
  const auto before = Collect();
  const auto unknown = Collect(/*is_known=*/false);
  EXPECT_EQ(unknown->layout, before->layout);
  const auto values = Values(*unknown);
  EXPECT_EQ(values.at("persia_agent_gpu_reader_up{rep_0}"), 0);
  EXPECT_FALSE(values.contains("persia_gpu_power_watts{no_rank,gpu=1}"));
  EXPECT_FALSE(values.contains("persia_gpu_up{no_rank,gpu=1}"));
}

TEST_F(GpuMetricsTest, ErrorsStayAfterTheDevicesAndTheReader) {
  xids_[{kRank, "0", 79}] = 2;
  EXPECT_EQ(Values(*Collect()).at("persia_gpu_xid_errors_total{rep_3,class=fatal,gpu=0,xid=79}"), 2);
  const auto after = metrics_.Collect({.xids = xids_});
  EXPECT_EQ(Values(*after),
            (std::map<std::string, double>{{"persia_gpu_xid_errors_total{rep_3,class=fatal,gpu=0,xid=79}", 2}}));
}

TEST_F(GpuMetricsTest, EveryFieldIsExposedUnderItsOwnName) {
  for (double& value : sample_.devices[0].values) value = 1;
  const auto snapshot = Collect();
  EXPECT_TRUE(std::ranges::is_sorted(snapshot->layout->families, {}, &FamilyLayout::name));
  std::set<std::string> series;
  for (const GpuFieldAbout& about : kGpuFieldTable) {
    EXPECT_TRUE(about.family.starts_with("persia_gpu_")) << about.family;
    EXPECT_EQ(about.family.ends_with("_total"), about.type == MetricType::kCounter) << about.family;
    EXPECT_FALSE(about.help.empty()) << about.family;
    EXPECT_TRUE(series.insert(std::string(about.family) + std::string(about.label_value)).second) << about.family;
  }
  EXPECT_EQ(series.size(), kGpuFields);
}

}  // namespace
}  // namespace persia::agent
