#include "remote/metadata_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "captured_log.h"
#include "peers/scripted_peer.h"
#include "push/snapshots.h"
#include "remote/receiver.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::shared_ptr<const Layout> Families(const std::vector<std::pair<std::string, MetricType>>& families) {
  auto layout = std::make_shared<Layout>();
  for (const auto& [name, type] : families) {
    layout->families.push_back(
        {.name = name, .type = type, .help = "Of " + name + ".", .unit = "seconds", .bounds = {}, .series = {}});
  }
  return layout;
}

class MetadataSenderTest : public ::testing::Test {
 protected:
  void Start(const std::string& url, milliseconds interval = seconds(3600), milliseconds timeout = seconds(10)) {
    sender_ = std::make_unique<MetadataSender>(
        MetadataSender::Options{.endpoint = {.name = "db", .url = url, .http = {.total_timeout = timeout}},
                                .interval = interval,
                                .max_families = 3,
                                .accepts_samples = [this] { return accepts_.load(); }});
    sender_->Start();
  }
  void Finish(bool sends_last = true) { sender_->Finish(sends_last, steady_clock::now() + seconds(30)); }
  // As collections do. False: there were not so many requests.
  bool OfferUntil(const std::shared_ptr<const Layout>& families, size_t requests) {
    const auto end = steady_clock::now() + seconds(60);
    while (receiver_.bodies().size() < requests && steady_clock::now() < end) {
      sender_->Offer(families);
      std::this_thread::sleep_for(milliseconds(1));
    }
    return receiver_.bodies().size() >= requests;
  }
  std::vector<std::vector<std::string>> Sent() {
    std::vector<std::vector<std::string>> sent;
    for (const std::string& body : receiver_.bodies()) sent.push_back(MetadataOfBody(body));
    return sent;
  }

  std::atomic<bool> accepts_ = true;
  CapturedLog log_;
  std::atomic<int> status_ = 204;
  Receiver receiver_{[this](size_t) { return ServerResponse{.status = status_}; }};
  std::unique_ptr<MetadataSender> sender_;
};

TEST_F(MetadataSenderTest, EachFamilyIsSentOnce) {
  Start(receiver_.url());
  sender_->Offer(Families({{"a", MetricType::kCounter},
                           {"b", MetricType::kGauge},
                           {"c", MetricType::kHistogram},
                           {"c", MetricType::kHistogram},
                           {"d", MetricType::kSummary},
                           {"e", MetricType::kUntyped}}));
  EXPECT_TRUE(receiver_.WaitFor([&] { return receiver_.bodies().size() == 2; }));
  sender_->Offer(Families({{"a", MetricType::kCounter}}));  // the interval has not passed
  sender_->Stop();
  Finish();
  EXPECT_THAT(Sent(),
              ElementsAre(ElementsAre("a COUNTER seconds: Of a.", "b GAUGE seconds: Of b.", "c HISTOGRAM seconds: Of c."),
                          ElementsAre("d SUMMARY seconds: Of d.", "e UNKNOWN seconds: Of e.")));
  EXPECT_EQ(receiver_.last_headers().at("Content-Encoding"), "snappy");
  EXPECT_THAT(log_.Messages(), IsEmpty());
}

TEST_F(MetadataSenderTest, TheyAreSentAgainAtTheInterval) {
  Start(receiver_.url(), milliseconds(1));
  const auto families = Families({{"a", MetricType::kCounter}});
  EXPECT_TRUE(OfferUntil(families, 3));
  EXPECT_GE(sender_->counts().sent, 2U);
}

TEST_F(MetadataSenderTest, ATargetThatAcceptsNoSamplesGetsNone) {
  accepts_ = false;
  Start(receiver_.url());
  sender_->Offer(Families({{"a", MetricType::kCounter}}));
  Finish(false);
  EXPECT_THAT(receiver_.bodies(), IsEmpty());
}

TEST_F(MetadataSenderTest, AtTheEndOnlyWhatChangedIsSent) {
  for (const bool changes : {false, true}) {
    const size_t before = receiver_.bodies().size();
    Start(receiver_.url());
    sender_->Offer(Families({{"a", MetricType::kCounter}}));
    EXPECT_TRUE(receiver_.WaitFor([&] { return receiver_.bodies().size() == before + 1; }));
    while (sender_->counts().sent == 0) std::this_thread::yield();  // the answer is on its way
    sender_->Offer(Families(changes ? std::vector<std::pair<std::string, MetricType>>{{"z", MetricType::kGauge}}
                                    : std::vector<std::pair<std::string, MetricType>>{{"a", MetricType::kCounter}}));
    Finish();
    EXPECT_EQ(receiver_.bodies().size(), before + (changes ? 2 : 1));
  }
}

TEST_F(MetadataSenderTest, ARefusalIsLoggedOnceAndCounted) {
  status_ = 404;
  Start(receiver_.url(), milliseconds(1));
  const auto families = Families({{"a", MetricType::kCounter}, {"b", MetricType::kCounter}});
  EXPECT_TRUE(OfferUntil(families, 3));
  status_ = 204;
  EXPECT_TRUE(OfferUntil(families, receiver_.bodies().size() + 3));
  Finish(false);
  EXPECT_GE(sender_->counts().failed, 4U);
  EXPECT_THAT(log_.Messages(),
              ElementsAre(HasSubstr("db does not accept metadata: status 404"), HasSubstr("db accepts metadata again")));
}

TEST_F(MetadataSenderTest, ASilentTargetHoldsTheEndNoLongerThanTheDeadline) {
  ScriptedPeer silent({Reply::Silence()});
  Start("http://" + silent.address() + "/write", seconds(3600), seconds(600));
  sender_->Offer(Families({{"a", MetricType::kCounter}}));
  silent.WaitForRequests(1);
  const auto begin = steady_clock::now();
  sender_->Finish(true, begin + milliseconds(100));
  EXPECT_LT(steady_clock::now() - begin, seconds(45));
  EXPECT_THAT(log_.Messages(), IsEmpty());
}

}  // namespace
}  // namespace persia::agent
