#include "web/assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace persia::agent {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(Assets, AreThePageAndTheFilesThatItLoads) {
  std::string all;
  for (const Asset& asset : Assets()) {
    EXPECT_THAT(asset.content_type, HasSubstr("; charset=utf-8"));
    all += asset.content;
  }
  for (const Asset& asset : Assets()) {
    if (asset.name != "index.html") {
      const std::string name = "/" + std::string(asset.name);
      EXPECT_THAT(all, AnyOf(HasSubstr(name + "\""), HasSubstr(name + "'"))) << "no file refers to it";
    }
  }
  EXPECT_THAT(all, HasSubstr("<!DOCTYPE html>"));
}

}  // namespace
}  // namespace persia::agent
