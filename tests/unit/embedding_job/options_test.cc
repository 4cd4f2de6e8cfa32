#include "options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "job_error.h"

namespace embedding_job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Refusal(const std::vector<std::string>& arguments) {
  try {
    ParseOptions(arguments);
  } catch (const JobError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Options, HaveDefaults) {
  const Options options = ParseOptions({});
  EXPECT_EQ(options.role, Role::kAll);
  EXPECT_EQ(options.duration, 30);
  EXPECT_EQ(options.epochs, 0U);
  EXPECT_EQ(options.server_replicas, 2U);
}

TEST(Options, EpochsReplaceTheDefaultDuration) {
  EXPECT_EQ(ParseOptions({"--epochs", "3"}).duration, 0);
  EXPECT_EQ(ParseOptions({"--epochs", "3", "--duration", "5"}).duration, 5);
}

TEST(Options, AreReadInBothSpellings) {
  EXPECT_EQ(ParseOptions({"--dimension=64"}).dimension, 64U);
  EXPECT_EQ(ParseOptions({"--dimension", "64"}).dimension, 64U);
  EXPECT_EQ(ParseOptions({"--corpus=a=b"}).corpus, "a=b");
}

TEST(Options, CountAsGivenLast) { EXPECT_EQ(ParseOptions({"--seed=1", "--seed=2"}).seed, 2U); }

TEST(Options, OfARoleAlone) {
  const Options options =
      ParseOptions({"--role", "embedding_worker", "--listen", ":7001", "--servers", "server:7002,server_1:7002"});
  EXPECT_EQ(options.role, Role::kEmbeddingWorker);
  EXPECT_EQ(options.listen, ":7001");
  EXPECT_THAT(options.servers, ElementsAre("server:7002", "server_1:7002"));
}

TEST(Options, RefusedOnesAreQuoted) {
  const struct {
    std::vector<std::string> arguments;
    const char* error;
  } cases[] = {
      {{"--durations=3"}, "unknown option \"--durations=3\""},
      {{"--duration"}, "--duration needs a value: --duration SECONDS"},
      {{"--duration=0"}, "--duration \"0\""},
      {{"--duration=nan"}, "--duration \"nan\""},
      {{"--duration=10s"}, "--duration \"10s\": a number from 0.001"},
      {{"--epochs=1.5"}, "--epochs \"1.5\": a whole number"},
      {{"--epochs=99999999999"}, "--epochs \"99999999999\""},
      {{"--batch-size="}, "--batch-size \"\""},
      {{"--dimension=30"}, "--dimension \"30\": a multiple of 4"},
      {{"--inject-nan=1.1"}, "--inject-nan \"1.1\": a number from 0 to 1"},
      {{"--staleness=0"}, "--staleness \"0\": a whole number from 1 to 1024"},
      {{"--role=worker"}, "--role \"worker\": all, data_loader"},
      {{"--servers=a:1,,b:1"}, "--servers \"a:1,,b:1\""},
      {{"--help=yes"}, "--help \"yes\": this option takes no value"},
      {{"--corpus="}, "--corpus \"\""},
      {{"--role=trainer"}, "--role trainer needs --worker ADDRESS"},
      {{"--role=data_loader"}, "--role data_loader needs --worker ADDRESS"},
      {{"--role=embedding_server"}, "--role embedding_server needs --listen ADDRESS"},
      {{"--role=embedding_worker", "--listen=:1"}, "--role embedding_worker needs --servers A,B,..."},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Refusal(c.arguments), HasSubstr(c.error)) << c.arguments[0];
  }
}

TEST(Options, HelpNamesThemAll) {
  EXPECT_TRUE(ParseOptions({"--help", "--role=trainer"}).help);
  for (const char* name :
       {"--role", "--corpus", "--duration", "--epochs", "--inject-nan", "--batch-size", "--dimension", "--staleness", "--seed",
        "--server-capacity", "--checkpoint-dir", "--report", "--listen", "--servers", "--worker"}) {
    EXPECT_THAT(HelpText(), HasSubstr(name));
  }
  EXPECT_EQ(HelpText().find("--report-part"), std::string::npos);
}

}  // namespace
}  // namespace embedding_job
