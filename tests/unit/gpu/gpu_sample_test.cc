#include "gpu/gpu_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

GpuSample Sample() {
  GpuDevice gpu{.gpu = "0",
                .uuid = "GPU-1",
                .model = "NVIDIA H100",
                .pci_bus_id = "00000000:1B:00.0",
                .is_divided = true,
                .pids = {7, 4711}};
  gpu.values[kGpuPower] = 350.5;
  gpu.values[kGpuTemperature] = -3;
  GpuDevice mig{.gpu = "0:1", .uuid = "MIG-1", .parent_uuid = "GPU-1", .gpu_instance = 7, .compute_instance = 0};
  return {.boot_ns = 42, .driver = "550.54", .devices = {gpu, mig, {.gpu = "1", .is_lost = true}}};
}

std::string ErrorOf(const std::string& bytes) {
  GpuMessages messages;
  messages.Add(bytes);
  GpuMessage message;
  const Result<bool> next = messages.Next(message);
  return next.ok() ? (next.value() ? "a message" : "more bytes") : next.error();
}

std::string ErrorOfDevice(const GpuDevice& device) { return ErrorOf(EncodeGpuMessage(GpuSample{.devices = {device}})); }

TEST(GpuSampleTest, EveryMessageArrivesInAnyPieces) {
  const std::string bytes = EncodeGpuMessage(Sample()) + EncodeGpuMessage(GpuXid{"0", 79, 1234}) +
                            EncodeGpuMessage(GpuProblem{"the NVIDIA driver is not loaded"});
  for (const size_t piece : {size_t{1}, size_t{7}, bytes.size()}) {
    GpuMessages messages;
    std::vector<GpuMessage> all;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      messages.Add(std::string_view(bytes).substr(at, piece));
      for (GpuMessage message; messages.Next(message).value();) all.push_back(message);
    }
    ASSERT_EQ(all.size(), 3);
    const auto& sample = std::get<GpuSample>(all[0]);
    EXPECT_EQ(std::pair(sample.boot_ns, sample.driver), std::pair(uint64_t{42}, std::string("550.54")));
    ASSERT_EQ(sample.devices.size(), 3);
    EXPECT_THAT(sample.devices[0].pids, ElementsAre(7, 4711));
    EXPECT_EQ(sample.devices[0].values[kGpuPower], 350.5);
    EXPECT_EQ(sample.devices[0].values[kGpuTemperature], -3);
    EXPECT_TRUE(IsAbsent(sample.devices[0].values[kGpuEnergy]));
    EXPECT_TRUE(sample.devices[0].is_divided);
    EXPECT_EQ(sample.devices[1].parent_uuid, "GPU-1");
    EXPECT_EQ(sample.devices[1].gpu_instance, 7);
    EXPECT_TRUE(sample.devices[2].is_lost);
    EXPECT_EQ(std::get<GpuXid>(all[1]).xid, 79);
    EXPECT_EQ(std::get<GpuProblem>(all[2]).text, "the NVIDIA driver is not loaded");
  }
}

TEST(GpuSampleTest, WhatIsNoMessageIsRefused) {
  EXPECT_THAT(ErrorOf("NVRM: hello, world"), HasSubstr("no message: \"NVRM: he\""));
  EXPECT_THAT(ErrorOf(std::string("PGPU\xff\xff\xff\xff", 8)), HasSubstr("4294967295 bytes"));
  EXPECT_THAT(ErrorOf(std::string("PGPU\1\0\0\0\x09", 9)), HasSubstr("unknown kind"));
  EXPECT_THAT(ErrorOf(std::string("PGPU\0\0\0\0", 8)), HasSubstr("unknown kind"));
  EXPECT_EQ(ErrorOf("PGP"), "more bytes");
}

TEST(GpuSampleTest, AMessageCutAnywhereOrWithMoreBytesIsRefused) {
  const std::string whole = EncodeGpuMessage(Sample());
  constexpr size_t kHeader = 8;
  const auto with_size = [](std::string bytes) {
    const auto size = static_cast<uint32_t>(bytes.size() - kHeader);
    for (size_t i = 0; i < 4; ++i) bytes[4 + i] = static_cast<char>(size >> (8 * i));
    return bytes;
  };
  for (size_t size = kHeader; size < whole.size(); ++size) {
    EXPECT_NE(ErrorOf(with_size(whole.substr(0, size))), "a message") << size;
  }
  EXPECT_THAT(ErrorOf(with_size(whole + "x")), HasSubstr("after its end"));
}

TEST(GpuSampleTest, ImpossibleContentIsRefused) {
  EXPECT_THAT(ErrorOfDevice({.gpu = ""}), HasSubstr("number of a device"));
  EXPECT_THAT(ErrorOfDevice({.gpu = "0\n"}), HasSubstr("number of a device"));
  EXPECT_THAT(ErrorOfDevice({.gpu = "12345678901234567"}), HasSubstr("number of a device"));
  EXPECT_THAT(ErrorOfDevice({.gpu = "0", .uuid = "a\nb"}), HasSubstr("a uuid"));
  EXPECT_THAT(ErrorOfDevice({.gpu = "0", .model = "\xff"}), HasSubstr("a model"));
  EXPECT_THAT(ErrorOfDevice({.gpu = "0", .model = std::string(300, 'x')}), HasSubstr("a model"));
  EXPECT_THAT(ErrorOfDevice({.gpu = "0", .pids = std::vector<uint32_t>(5000)}), HasSubstr("5000 processes"));
  EXPECT_THAT(ErrorOf(EncodeGpuMessage(GpuSample{.devices = {{.gpu = "0"}, {.gpu = "0"}}})), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf(EncodeGpuMessage(GpuSample{.devices = std::vector<GpuDevice>(300, {.gpu = "0"})})), HasSubstr("devices"));
  EXPECT_THAT(ErrorOf(EncodeGpuMessage(GpuXid{"0", 1'000'000, 0})), HasSubstr("XID"));
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -1.0, 1e300}) {
    GpuDevice device{.gpu = "0"};
    device.values[kGpuPower] = bad;
    EXPECT_THAT(ErrorOfDevice(device), HasSubstr("impossible value of device 0")) << bad;
  }
  GpuDevice device{.gpu = "0"};
  device.values[kGpuUtilization] = 1.01;
  EXPECT_THAT(ErrorOfDevice(device), HasSubstr("impossible value"));
}

}  // namespace
}  // namespace persia::agent
