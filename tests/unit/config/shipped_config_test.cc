// The files that we ship.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "config/config.h"
#include "config/settings.h"

namespace persia::agent {
namespace {

using ::testing::HasSubstr;
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

TEST(ShippedConfig, TableOfSettingsIsTheAgents) {
  const std::string readme = Shipped("README.md");
  for (const Setting& setting : Settings()) {
    const size_t at = readme.find("`" + std::string(setting.flag.empty() ? setting.key : setting.flag) + "`");
    ASSERT_NE(at, std::string::npos) << setting.flag;
    const size_t begin = readme.rfind('\n', at) + 1;
    const std::string row = readme.substr(begin, readme.find('\n', at) - begin);
    for (const std::string_view word : {setting.key, setting.alias, setting.environment, setting.second_environment}) {
      EXPECT_THAT(row, HasSubstr(word.empty() ? "" : "`" + std::string(word) + "`"));
    }
    EXPECT_THAT(row, HasSubstr(std::string(setting.default_text)));
  }
}

}  // namespace
}  // namespace persia::agent
