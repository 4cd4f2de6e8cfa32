#include "app/remote_targets.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "captured_log.h"
#include "push/snapshots.h"
#include "remote/receiver.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RemoteTargetsTest : public ::testing::Test {
 protected:
  RemoteTargetsTest() : fd_(open(temporary_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    targets_ = std::make_unique<RemoteTargets>(StateLocation{fd_, temporary_.path(), "agent", 0600}, "test/1");
  }
  ~RemoteTargetsTest() override {
    targets_.reset();
    close(fd_);
  }

  void Apply(const std::map<std::string, std::string>& url_of, uint32_t max_samples = 10'000) {
    AgentOptions options;
    for (const auto& [name, url] : url_of) {
      options.remote_write.emplace_back();
      options.remote_write.back().name = name;
      options.remote_write.back().url = url;
      options.remote_write.back().max_samples = max_samples;
    }
    targets_->Apply(options);
  }
  void Offer() {
    auto snapshot = std::make_shared<Snapshot>(Snap({{"dlrm", {}}}, {{"m", MetricType::kGauge, 1}}));
    snapshot->collected_at = std::chrono::system_clock::now();
    targets_->Offer(snapshot);
  }
  uint64_t Sent(const std::string& name) { return targets_->stats()[name].samples_sent; }

  const TemporaryDirectory temporary_;
  const int fd_;
  CapturedLog log_;
  std::unique_ptr<RemoteTargets> targets_;
};

TEST_F(RemoteTargetsTest, EachGetsWhatIsOffered) {
  Receiver one;
  Receiver other;
  Apply({{"one", one.url()}, {"other", other.url()}});
  Offer();
  EXPECT_TRUE(one.WaitFor([&] { return one.samples() == 1; }));
  EXPECT_TRUE(other.WaitFor([&] { return other.samples() == 1; }));
}

TEST_F(RemoteTargetsTest, CountsGoOnWhenATargetChanges) {
  Receiver receiver;
  Apply({{"db", receiver.url()}});
  Offer();
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.samples() == 1; }));
  while (Sent("db") == 0) usleep(1000);  // the answer is on its way
  Apply({{"db", receiver.url()}}, 2);
  EXPECT_EQ(Sent("db"), 1U);
  Offer();
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.samples() == 2; }));
  while (Sent("db") != 2) usleep(1000);
}

TEST_F(RemoteTargetsTest, SnapshotsThatWaitWhenATargetChangesAreSent) {
  Receiver receiver;
  Apply({{"db", "http://127.0.0.1:1/api/v1/write"}});
  std::vector<Sample> samples;
  for (int i = 0; i < 20'000; ++i) samples.push_back({"m" + std::to_string(i), MetricType::kGauge, 1});  // takes a while
  const auto now = std::chrono::system_clock::now();
  for (int i = 0; i < 2; ++i) {
    auto snapshot = std::make_shared<Snapshot>(Snap({{"dlrm", {}}}, samples));
    snapshot->collected_at = now + i * std::chrono::minutes(1);
    targets_->Offer(snapshot);
  }
  Apply({{"db", receiver.url()}});
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.samples() == 2 * samples.size(); })) << receiver.samples();
}

TEST_F(RemoteTargetsTest, WhatIsTheSameIsLeftAlone) {
  Receiver receiver;
  Apply({{"db", receiver.url()}});
  const auto logged = log_.Messages();
  Apply({{"db", receiver.url()}});
  EXPECT_EQ(log_.Messages(), logged);
}

TEST_F(RemoteTargetsTest, AQueueWithoutATargetIsReported) {
  Receiver receiver;
  Apply({{"db:1/x", receiver.url()}});
  Apply({});
  EXPECT_THAT(targets_->stats(), IsEmpty());
  EXPECT_THAT(log_.Warnings(), ElementsAre(ContainsRegex("agent.remote.db.*for a target that is missing in the settings")));
}

TEST_F(RemoteTargetsTest, OneThatCannotBeOpenedCostsItselfOnly) {
  Receiver receiver;
  ASSERT_GE(open((temporary_ / "agent.remote.bad.queue").c_str(), O_CREAT | O_CLOEXEC, 0600), 0);  // in the directory's place
  Apply({{"bad", receiver.url()}, {"good", receiver.url()}});
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("remote_write bad: cannot open")));
  Offer();
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.samples() == 1; }));
}

TEST_F(RemoteTargetsTest, OneThatCannotBeOpenedIsSeenAndTriedAgain) {
  Receiver receiver;
  const std::string in_its_place = temporary_ / "agent.remote.db.queue";
  std::ofstream(in_its_place) << "no directory";
  Apply({{"db", receiver.url()}});
  const int64_t before = std::chrono::system_clock::now().time_since_epoch() / std::chrono::milliseconds(1);
  for (int i = 0; i < 3; ++i) Offer();
  EXPECT_THAT(log_.Messages(), ElementsAre(HasSubstr("the agent tries again at each collection")));
  const auto off = targets_->stats();
  ASSERT_THAT(off, SizeIs(1));
  EXPECT_EQ(off.at("db").dropped_samples.at("not_open"), 3U);
  EXPECT_EQ(off.at("db").queue_max_bytes, RemoteWriteTarget{}.queue_max_bytes) << "also of a queue that is not open";
  EXPECT_GE(off.at("db").oldest_pending_ms.value_or(0), before) << "it is seen to be behind";
  EXPECT_LE(*off.at("db").oldest_pending_ms, before + 60'000);
  std::filesystem::remove(in_its_place);
  Offer();
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.samples() == 1; }));
  EXPECT_EQ(targets_->stats()["db"].dropped_samples.at("not_open"), 3U);
  Apply({{"db", receiver.url()}});
  EXPECT_EQ(targets_->stats()["db"].dropped_samples.at("not_open"), 3U);
}

TEST_F(RemoteTargetsTest, OneThatIsOffMayBeInterruptedAndFinished) {
  std::ofstream(temporary_ / "agent.remote.db.queue") << "no directory";
  Apply({{"db", "http://127.0.0.1:1/api/v1/write"}});
  Apply({{"db", "http://127.0.0.1:2/api/v1/write"}});
  Offer();
  targets_->Interrupt();
  targets_->Finish(nullptr, std::chrono::milliseconds(0), std::chrono::milliseconds(0), RemoteWrite::Ending::kEnds);
  EXPECT_EQ(targets_->stats()["db"].dropped_samples.at("not_open"), 1U);
}

// The higher limit would hold up the end of the job for an hour.
TEST_F(RemoteTargetsTest, OneThatIsAwayHasTheLowerLimitAtTheEnd) {
  Receiver well;
  Apply({{"away", "http://127.0.0.1:1/api/v1/write"}, {"well", well.url()}});
  Offer();
  while (targets_->stats()["away"].last_error.empty()) usleep(1000);
  targets_->Finish(nullptr, std::chrono::hours(1), std::chrono::milliseconds(1), RemoteWrite::Ending::kGoesOn);
  EXPECT_EQ(Sent("well"), 1U);
  EXPECT_THAT(log_.Messages(), Contains(ContainsRegex("away: 1 samples wait in .* for the next agent")));
}

// The kernel accepts no further connection while two wait.
TEST_F(RemoteTargetsTest, AConnectionMayTakeAsLongAsTheSettingsSay) {
  const int deaf = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(deaf, generic, size), 0);
  ASSERT_EQ(listen(deaf, 0), 0);
  ASSERT_EQ(getsockname(deaf, generic, &size), 0);
  std::vector<int> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    static_cast<void>(connect(waiting.back(), generic, size));
  }
  const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/api/v1/write";
  for (const auto limit : {std::chrono::milliseconds(100), std::chrono::milliseconds(200)}) {
    AgentOptions options;
    options.remote_write.emplace_back();
    options.remote_write.back().timeout = limit;
    options.remote_write.back().name = "db";
    options.remote_write.back().url = url;
    targets_->Apply(options);
    Offer();
    const auto error = [this] { return targets_->stats()["db"].last_error; };
    while (error().empty()) usleep(1000);
    EXPECT_THAT(error(), HasSubstr(limit.count() == 100 ? "no connection within 0.1 s" : "no connection within 0.2 s"));
  }
  for (const int fd : waiting) close(fd);
  close(deaf);
}

}  // namespace
}  // namespace persia::agent
