#include "base/size.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace persia::agent {
namespace {

TEST(ParseSize, AcceptsBytesAndUnits) {
  const std::pair<std::string_view, uint64_t> cases[] = {{"0", 0},
                                                         {"67108864", 67'108'864},
                                                         {"18446744073709551615", UINT64_MAX},
                                                         {"100B", 100},
                                                         {"10k", 10'000},
                                                         {"10KB", 10'000},
                                                         {"10Ki", 10'240},
                                                         {"64MiB", 67'108'864},
                                                         {"64 MiB", 67'108'864},
                                                         {"1.5gib", 1'610'612'736},
                                                         {"1GB", 1'000'000'000},
                                                         {"0.1k", 100},
                                                         {"1T", 1'000'000'000'000}};
  for (const auto& [text, bytes] : cases) {
    const auto size = ParseSize(text);
    ASSERT_TRUE(size.ok()) << text;
    EXPECT_EQ(size.value(), bytes) << text;
  }
}

TEST(ParseSize, RefusesOtherText) {
  for (const std::string_view text :
       {"", "k", "-1", "-1k", "1e6", "1.5", "1..5k", "1kk", "1kib2", "1i", "1  k", "1P", "9999999T", "nan"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
  EXPECT_EQ(ParseSize("much").error(), "\"much\" is not a size (1048576, 64MiB, 1GB, 10k)");
}

}  // namespace
}  // namespace persia::agent
