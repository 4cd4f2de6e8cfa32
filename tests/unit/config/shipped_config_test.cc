// The files that we ship.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "config/config.h"

namespace persia::agent {
namespace {

using ::testing::IsEmpty;

std::string Shipped(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(std::string(PERSIA_CONFIG_DIR) + "/" + name).rdbuf();
  return text.str();
}

TEST(ShippedConfig, IsAccepted) {
  const Config config = ParseConfig("f.yaml", Shipped("global_config.yaml"));
  EXPECT_THAT(config.ErrorTexts(), IsEmpty());
  EXPECT_EQ(config.options.job_name, "dlrm_v1.0");
}

}  // namespace
}  // namespace persia::agent
