#include "gpu/gpu_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

const std::vector<GpuDevice> kTwo = {{.gpu = "0", .uuid = "GPU-aaaa1111"}, {.gpu = "1", .uuid = "GPU-aaaa2222"}};
const std::vector<GpuDevice> kMig = {
    {.gpu = "0", .uuid = "GPU-aaaa1111", .is_divided = true},
    {.gpu = "0:0", .uuid = "MIG-bbbb1111", .parent_uuid = "GPU-aaaa1111", .gpu_instance = 7, .compute_instance = 0},
    {.gpu = "0:1", .uuid = "MIG-bbbb2222", .parent_uuid = "GPU-aaaa1111", .gpu_instance = 8, .compute_instance = 0},
};

// `entries`: separated by spaces.
std::optional<std::vector<size_t>> MaskOf(std::string entries, const std::vector<GpuDevice>& devices = kTwo, bool same = true) {
  for (char& c : entries) c = c == ' ' ? '\0' : c;
  return DevicesOfMask("PATH=/bin" + std::string(1, '\0') + entries, devices, same);
}

TEST(GpuMask, AUuidOrItsUniqueBeginningIsADevice) {
  EXPECT_THAT(MaskOf("CUDA_VISIBLE_DEVICES=GPU-aaaa2222"), Optional(ElementsAre(1)));
  EXPECT_THAT(MaskOf("CUDA_VISIBLE_DEVICES=GPU-aaaa2"), Optional(ElementsAre(1)));
  EXPECT_THAT(MaskOf("CUDA_VISIBLE_DEVICES=GPU-aaaa2222,GPU-aaaa1111"), Optional(ElementsAre(1, 0)));
  EXPECT_EQ(MaskOf("CUDA_VISIBLE_DEVICES=GPU-aaaa"), std::nullopt) << "two devices begin with it";
  EXPECT_EQ(MaskOf("CUDA_VISIBLE_DEVICES=GPU-"), std::nullopt);
  EXPECT_EQ(MaskOf("CUDA_VISIBLE_DEVICES=GPU-cccc"), std::nullopt) << "a device that the agent does not see";
  EXPECT_EQ(MaskOf("CUDA_VISIBLE_DEVICES=GPU-aaaa1111,GPU-aaaa1111"), std::nullopt);
}

TEST(GpuMask, AnIndexIsADeviceOnlyIfCudaCountsAsTheDriver) {
  EXPECT_EQ(MaskOf("CUDA_VISIBLE_DEVICES=1"), std::nullopt) << "CUDA counts the fastest first";
  EXPECT_THAT(MaskOf("CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=PCI_BUS_ID"), Optional(ElementsAre(1)));
  EXPECT_THAT(MaskOf("CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1,0"), Optional(ElementsAre(1, 0)));
  EXPECT_EQ(MaskOf("CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=FASTEST_FIRST"), std::nullopt);
  EXPECT_EQ(MaskOf("CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=PCI_BUS_ID", kTwo, false), std::nullopt) << "other devices";
  EXPECT_EQ(MaskOf("CUDA_VISIBLE_DEVICES=2 CUDA_DEVICE_ORDER=PCI_BUS_ID"), std::nullopt);
  EXPECT_EQ(MaskOf("CUDA_VISIBLE_DEVICES=0 CUDA_DEVICE_ORDER=PCI_BUS_ID", kMig), std::nullopt);
  EXPECT_THAT(MaskOf("CUDA_VISIBLE_DEVICES=0", {{.gpu = "0", .uuid = "GPU-1"}}), Optional(ElementsAre(0))) << "the only one";
}

TEST(GpuMask, AnInvalidEntryEndsTheList) {
  EXPECT_THAT(MaskOf("CUDA_VISIBLE_DEVICES="), Optional(IsEmpty()));
  EXPECT_THAT(MaskOf("CUDA_VISIBLE_DEVICES=-1"), Optional(IsEmpty()));
  EXPECT_THAT(MaskOf("CUDA_VISIBLE_DEVICES=NoDevFiles"), Optional(IsEmpty()));
  EXPECT_THAT(MaskOf("CUDA_VISIBLE_DEVICES=GPU-aaaa1111,-1,GPU-aaaa2222"), Optional(ElementsAre(0)));
}

TEST(GpuMask, AMigDeviceHasTwoNames) {
  EXPECT_THAT(MaskOf("CUDA_VISIBLE_DEVICES=MIG-bbbb2222", kMig), Optional(ElementsAre(2)));
  EXPECT_THAT(MaskOf("CUDA_VISIBLE_DEVICES=MIG-GPU-aaaa1111/7/0", kMig), Optional(ElementsAre(1)));
  EXPECT_EQ(MaskOf("CUDA_VISIBLE_DEVICES=MIG-GPU-aaaa1111/9/0", kMig), std::nullopt);
  EXPECT_EQ(MaskOf("CUDA_VISIBLE_DEVICES=GPU-aaaa1111", kMig), std::nullopt) << "CUDA takes one of its MIG devices";
}

TEST(GpuMask, TheContainersListDecidesOnlyWithoutCudasAndByUuid) {
  EXPECT_THAT(MaskOf("NVIDIA_VISIBLE_DEVICES=GPU-aaaa2222"), Optional(ElementsAre(1)));
  EXPECT_THAT(MaskOf("NVIDIA_VISIBLE_DEVICES=GPU-aaaa2222 CUDA_VISIBLE_DEVICES=GPU-aaaa1111"), Optional(ElementsAre(0)));
  for (const char* list : {"all", "none", "void", "", "1", "0:1"}) {
    EXPECT_EQ(MaskOf("CUDA_DEVICE_ORDER=PCI_BUS_ID NVIDIA_VISIBLE_DEVICES=" + std::string(list)), std::nullopt) << list;
  }
  EXPECT_EQ(MaskOf("HOME=/root"), std::nullopt);
  EXPECT_EQ(MaskOf("XCUDA_VISIBLE_DEVICES=GPU-aaaa2222"), std::nullopt) << "another variable";
}

}  // namespace
}  // namespace persia::agent
