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
#include "push/snapshots.h"
#include "remote/receiver.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
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
  void Start(milliseconds interval = seconds(3600)) {
    endpoint_.metadata_interval = interval;
    sender_ = std::make_unique<MetadataSender>(endpoint_);
  }
  // As after a collection.
  void Send(const std::shared_ptr<const Layout>& families) {
    sender_->Offer(families);
    sender_->SendIfDue(client_);
  }
  RemoteWriteCounts Counts() const {
    RemoteWriteCounts counts;
    sender_->AddCountsTo(counts);
    return counts;
  }
  std::vector<std::vector<std::string>> Sent() {
    std::vector<std::vector<std::string>> sent;
    for (const std::string& body : receiver_.bodies()) sent.push_back(MetadataOfBody(body));
    return sent;
  }

  CapturedLog log_;
  std::atomic<int> status_ = 204;
  Receiver receiver_{[this](size_t) { return ServerResponse{.status = status_}; }};
  Endpoint endpoint_{.name = "db", .url = receiver_.url(), .max_metadata = 3};
  HttpClient client_{ClientOptions(endpoint_)};
  std::unique_ptr<MetadataSender> sender_;
};

TEST_F(MetadataSenderTest, EachFamilyIsSentOnce) {
  Start();
  Send(Families({{"a", MetricType::kCounter},
                 {"b", MetricType::kGauge},
                 {"c", MetricType::kHistogram},
                 {"c", MetricType::kHistogram},
                 {"d", MetricType::kSummary},
                 {"e", MetricType::kUntyped}}));
  Send(Families({{"a", MetricType::kCounter}}));  // the interval has not passed
  EXPECT_THAT(Sent(),
              ElementsAre(ElementsAre("a COUNTER seconds: Of a.", "b GAUGE seconds: Of b.", "c HISTOGRAM seconds: Of c."),
                          ElementsAre("d SUMMARY seconds: Of d.", "e UNKNOWN seconds: Of e.")));
  EXPECT_EQ(receiver_.last_headers().at("Content-Encoding"), "snappy");
  EXPECT_EQ(Counts().metadata_sent, 5U);
  EXPECT_THAT(log_.Messages(), IsEmpty());
}

TEST_F(MetadataSenderTest, TheyAreSentAgainAtTheInterval) {
  Start(milliseconds(1));
  for (int i = 0; i < 3; ++i) {
    Send(Families({{"a", MetricType::kCounter}}));
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_THAT(receiver_.bodies(), SizeIs(3));
  EXPECT_EQ(Counts().metadata_sent, 3U);
}

TEST_F(MetadataSenderTest, NoneAreSentWithoutAnInterval) {
  Start(milliseconds(0));
  Send(Families({{"a", MetricType::kCounter}}));
  sender_->SendChanged(client_);
  EXPECT_THAT(receiver_.bodies(), IsEmpty());
}

TEST_F(MetadataSenderTest, TheFirstCollectionsAreSentAtOnce) {
  Start();
  sender_->SendIfDue(client_);
  sender_->SendChanged(client_);
  EXPECT_THAT(receiver_.bodies(), IsEmpty());
  Send(Families({{"a", MetricType::kCounter}}));
  EXPECT_THAT(receiver_.bodies(), SizeIs(1));
}

TEST_F(MetadataSenderTest, AtTheEndOnlyWhatChangedIsSent) {
  Start();
  Send(Families({{"a", MetricType::kCounter}}));
  sender_->Offer(Families({{"a", MetricType::kCounter}}));
  sender_->SendChanged(client_);
  EXPECT_THAT(receiver_.bodies(), SizeIs(1));
  sender_->Offer(Families({{"z", MetricType::kGauge}}));
  sender_->SendChanged(client_);
  EXPECT_THAT(Sent().back(), ElementsAre("z GAUGE seconds: Of z."));
}

TEST_F(MetadataSenderTest, ARefusalIsLoggedOnceAndCounted) {
  status_ = 404;
  Start(milliseconds(1));
  const auto families = Families({{"a", MetricType::kCounter}, {"b", MetricType::kCounter}});
  for (int i = 0; i < 6; ++i) {
    if (i == 3) status_ = 204;
    Send(families);
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_EQ(Counts().metadata_failed, 6U);
  EXPECT_EQ(Counts().metadata_sent, 6U);
  EXPECT_THAT(log_.Messages(),
              ElementsAre(HasSubstr("db does not accept metadata: status 404"), HasSubstr("db accepts metadata again")));
}

TEST_F(MetadataSenderTest, AnInterruptIsNoFailure) {
  Start();
  client_.Interrupt();
  Send(Families({{"a", MetricType::kCounter}}));
  EXPECT_EQ(Counts().metadata_failed, 0U);
  EXPECT_THAT(log_.Messages(), IsEmpty());
}

}  // namespace
}  // namespace persia::agent
