// Credentials and TLS towards the gateway, as settings.
#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "supervisor/secret_variables.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> ErrorsOf(const std::string& settings) {
  const TemporaryDirectory directory;
  const std::string file = directory / "access.yaml";
  std::ofstream(file) << "PersiaMetricsConfig:\n" << settings;
  return LoadConfig({.flags = {}, .environment = [](const char*) { return std::nullopt; }, .file = file}).ErrorTexts();
}

TEST(SettingsTable, TheSupervisorKeepsEverySecretFromTheCommand) {
  for (const Setting& setting : Settings()) {
    const std::string name(setting.environment);
    if (name.empty()) continue;
    EXPECT_EQ(supervisor::HoldsSecret((name + "=x").c_str()), setting.secret) << name;
    if (setting.kind != ValueKind::kTargets && !name.ends_with("_ADDR") && !name.ends_with("_URL")) continue;
    for (const char* value :
         {"http://h:1/w?token=hunter2", "http://user:hunter2@h:1", "user:hunter2@h:1", "http://h/w#hunter2"}) {
      EXPECT_TRUE(supervisor::HoldsSecret((name + "=" + value).c_str())) << name << " " << value;
    }
    EXPECT_FALSE(supervisor::HoldsSecret((name + "=http://h:1/w").c_str())) << name;
  }
}

TEST(SettingsTable, WhatIsNoSecretStaysInTheCommandsEnvironment) {
  for (const char* variable :
       {"PERSIA_JOB_NAME=a@b?", "PERSIA_METRICS_DIR=/dev/shm/a@b", "HTTP_PROXY=http://user:word@proxy:1", "MY_TOKEN=x",
        "PERSIA_METRICS_GATEWAY_ADDR=h:1", "PERSIA_METRICS_GATEWAY_PASSWORD_FILE=/f", "PERSIA_"}) {
    EXPECT_FALSE(supervisor::HoldsSecret(variable)) << variable;
  }
}

TEST(TakenEnvironment, HasTheSettingsVariablesAndLeavesNoSecretInTheProcess) {
  ::setenv("PERSIA_METRICS_GATEWAY_ADDR", "gateway:9091", 1);
  ::setenv("PERSIA_GLOBAL_CONFIG", "/job.yaml", 1);
  ::setenv("PERSIA_METRICS_GATEWAY_PASSWORD", "hunter2", 1);
  ::setenv("PERSIA_METRICS_REMOTE_WRITE_URL", "http://h/w?k=hunter3", 1);
  ::unsetenv("PERSIA_METRICS_GATEWAY_USERNAME");
  const std::string_view shown = std::getenv("PERSIA_METRICS_GATEWAY_PASSWORD");  // the memory, which unsetenv leaves as it is
  const Environment taken = TakeEnvironment();
  EXPECT_EQ(shown, "xxxxxxx");
  EXPECT_EQ(std::getenv("PERSIA_METRICS_GATEWAY_PASSWORD"), nullptr);
  EXPECT_EQ(std::getenv("PERSIA_METRICS_REMOTE_WRITE_URL"), nullptr);
  EXPECT_EQ(taken("PERSIA_METRICS_REMOTE_WRITE_URL"), "http://h/w?k=hunter3");
  EXPECT_STREQ(std::getenv("PERSIA_METRICS_GATEWAY_ADDR"), "gateway:9091");
  for (const char* name : {"PERSIA_METRICS_GATEWAY_ADDR", "PERSIA_GLOBAL_CONFIG"}) ::unsetenv(name);
  EXPECT_EQ(taken("PERSIA_METRICS_GATEWAY_ADDR"), "gateway:9091");
  EXPECT_EQ(taken("PERSIA_GLOBAL_CONFIG"), "/job.yaml");
  EXPECT_EQ(taken("PERSIA_METRICS_GATEWAY_PASSWORD"), "hunter2");
  EXPECT_EQ(taken("PERSIA_METRICS_GATEWAY_USERNAME"), std::nullopt);
}

// Files become variables with their line end, for example in a Kubernetes Secret.
TEST(TakenEnvironment, ALineEndBelongsToNoValue) {
  ::setenv("PERSIA_METRICS_GATEWAY_ADDR", "gateway:9091\n", 1);
  ::setenv("PERSIA_METRICS_GATEWAY_PASSWORD", " hunter2 \r\n", 1);
  ::setenv("PERSIA_JOB_NAME", "one\ntwo\n\n", 1);
  ::setenv("PERSIA_RUN_ID", "\n", 1);
  const Environment taken = TakeEnvironment();
  for (const char* name : {"PERSIA_METRICS_GATEWAY_ADDR", "PERSIA_JOB_NAME", "PERSIA_RUN_ID"}) ::unsetenv(name);
  EXPECT_EQ(taken("PERSIA_METRICS_GATEWAY_ADDR"), "gateway:9091");
  EXPECT_EQ(taken("PERSIA_METRICS_GATEWAY_PASSWORD"), " hunter2 ");
  EXPECT_EQ(taken("PERSIA_JOB_NAME"), "one\ntwo");
  EXPECT_EQ(taken("PERSIA_RUN_ID"), std::nullopt);
}

TEST(GatewayAccessSettings, ContradictionsAreRefused) {
  struct {
    const char* settings;
    const char* error;  // empty: accepted
  } const cases[] = {
      {"  gateway_username: u\n  gateway_password: hunter2\n", ""},
      {"  gateway_username: u\n  gateway_password_file: /f\n", ""},
      {"  gateway_bearer_token_file: /f\n", ""},
      {"  gateway_address: https://h\n  gateway_ca_file: /f\n  gateway_cert_file: /f\n  gateway_key_file: /f\n", ""},
      {"  gateway_proxy_url: http://u:hunter2@p:1\n", ""},
      {"  gateway_proxy_from_environment: true\n", ""},
      {"  gateway_proxy_url: http://u:hunter2@p:1\n  gateway_proxy_from_environment: true\n", "leave one out"},
      {"  gateway_username: u\n", "neither gateway_password nor gateway_password_file is"},
      {"  gateway_password: hunter2\n", "gateway_username is not"},
      {"  gateway_username: u\n  gateway_password: hunter2\n  gateway_password_file: /f\n", "both set"},
      {"  gateway_bearer_token: hunter2\n  gateway_bearer_token_file: /f\n", "both set"},
      {"  gateway_bearer_token: hunter2\n  gateway_username: u\n  gateway_password_file: /f\n",
       "both a bearer token and a user"},
      {"  gateway_address: https://h\n  gateway_cert_file: /f\n", "gateway_key_file is not"},
      {"  gateway_address: https://h\n  gateway_key_file: /f\n", "gateway_cert_file is not"},
      {"  gateway_address: h:1\n  gateway_ca_file: /f\n", "\"h:1\" is one without TLS; give https://h:1"},
      {"  gateway_address: http://h\n  gateway_server_name: g\n", "is one without TLS"},
      {"  gateway_address: http://u:hunter2@h:1\n", "give gateway_username and gateway_password_file instead"},
      {"  gateway_username: u:hunter2\n  gateway_password_file: /f\n", "has a colon"},
      {"  gateway_password: [hunter2]\n", "found a list"},
      {"  gateway_password hunter2:\n", "unknown setting \"gateway_password\""},
      {"  gateway_pasword: hunter2\n", "did you mean \"gateway_password\""},
  };
  for (const auto& one : cases) {
    const std::vector<std::string> errors = ErrorsOf(one.settings);
    if (*one.error == '\0') {
      EXPECT_THAT(errors, IsEmpty()) << one.settings;
      continue;
    }
    ASSERT_FALSE(errors.empty()) << one.settings;
    EXPECT_THAT(errors, ::testing::Contains(HasSubstr(one.error))) << one.settings;
    for (const std::string& error : errors) {
      EXPECT_THAT(error, ::testing::Not(HasSubstr("hunter2")));
    }
  }
}

}  // namespace
}  // namespace persia::agent
