#include "net/basic_authorization.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace persia::agent {
namespace {

std::string Parsed(std::string_view value) {
  const auto given = ParseBasicAuthorization(value);
  return given ? given->user + " | " + given->password : "none";
}

TEST(BasicAuthorization, IsUserAndPassword) {
  EXPECT_EQ(Parsed("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), "Aladdin | open sesame");
  EXPECT_EQ(Parsed("basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ"), "Aladdin | open sesame");
  EXPECT_EQ(Parsed("Basic YTpiOmM="), "a | b:c");
  EXPECT_EQ(Parsed("Basic Og=="), " | ");
}

TEST(BasicAuthorization, NothingElseIs) {
  for (const char* value : {"", "Basic", "Basic ", "Bearer YTpi", "Basic YWJj", "Basic YTp!", "Basic Y", "Basic YTpi YTpi",
                            "BasicYTpi", "Basic ===="}) {
    EXPECT_EQ(Parsed(value), "none") << value;
  }
}

}  // namespace
}  // namespace persia::agent
