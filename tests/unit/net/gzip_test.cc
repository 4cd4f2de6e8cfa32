#include "net/gzip.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "temporary_directory.h"
#include "test_seed.h"

namespace persia::agent {
namespace {

class GzipTest : public ::testing::Test {
 protected:
  // By the system's gzip, which checks the checksum.
  static std::string Unpacked(const std::string& packed) {
    const TemporaryDirectory directory;
    const std::string path = directory / "packed.gz";
    std::ofstream(path, std::ios::binary) << packed;
    FILE* pipe = popen(("gzip -dc < " + path).c_str(), "r");
    std::string text;
    for (int c = getc(pipe); c != EOF; c = getc(pipe)) text += static_cast<char>(c);
    EXPECT_EQ(pclose(pipe), 0);
    return text;
  }
  std::string Packed(const std::string& text) {
    std::string packed = "left from before";
    const Status status = compressor_.Compress(text, packed);
    EXPECT_TRUE(status.ok()) << status.error();
    return packed;
  }

  GzipCompressor compressor_;
};

TEST_F(GzipTest, UnpacksToWhatWasPacked) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += "lookup_rpc_time_cost_bucket{le=\"" + std::to_string(i) + "\"} 12\n";
  const std::string packed = Packed(text);
  EXPECT_LT(packed.size(), text.size() / 4);
  EXPECT_EQ(Unpacked(packed), text);
}

TEST_F(GzipTest, EachTextIsPackedAlone) {
  Packed("the first");
  EXPECT_EQ(Unpacked(Packed("the second")), "the second");
  EXPECT_EQ(Unpacked(Packed("")), "");
}

TEST_F(GzipTest, WhatCannotBePackedFitsToo) {
  std::mt19937_64 random(TestSeed());
  std::string noise(100000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  EXPECT_EQ(Unpacked(Packed(noise)), noise);
}

}  // namespace
}  // namespace persia::agent
