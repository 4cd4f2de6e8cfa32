// Groups that one agent shares between two gateways, on Debian's prometheus-pushgateway.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "peers/real_gateway.h"
#include "push/group_pins.h"
#include "push/ledger_directory.h"
#include "push/push_gateway.h"
#include "push/real_groups.h"
#include "push/snapshots.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two gateways and one agent that shares its groups between them.
class SharedGroupsTest : public RealGroupsTest {
 protected:
  using Sinks = std::vector<std::unique_ptr<PushGateway>>;

  std::unique_ptr<PushGateway> Make(const RealGateway& gateway) {
    return std::make_unique<PushGateway>(PushGateway::Options{
        .address = GatewayAddress::Parse(gateway.address()).value(), .http = {.total_timeout = 30s}, .ledger = &ledger_});
  }
  static void Push(PushGateway& sink, const Snapshot& snapshot) {
    const Status status = sink.Push(snapshot);
    EXPECT_TRUE(status.ok()) << status.error();
  }
  // The ranks of 0 to 9 that belong to this sink, as instances.
  std::vector<std::string> Of(const PushGateway& sink) const {
    std::vector<std::string> instances;
    for (int rank = 0; rank < 10; ++rank) {
      if (pins_->GatewayOf(Rank(rank)) == sink.url()) instances.push_back("rep_" + std::to_string(rank));
    }
    return instances;
  }
  static Snapshot Ten() {
    std::vector<Identity> ranks;
    for (int rank = 0; rank < 10; ++rank) ranks.push_back(Rank(rank));
    return agent::Of(ranks);
  }

  RealGateway other_;
  LedgerDirectory directory_;
  GroupLedger ledger_{directory_.Options()};
  std::unique_ptr<PushGateway> first_ = Make(gateway_);
  std::unique_ptr<PushGateway> second_ = Make(other_);
  std::shared_ptr<const GroupPins> pins_ =
      std::make_shared<const GroupPins>(std::vector<std::string>{first_->url(), second_->url()});
};

TEST_F(SharedGroupsTest, AGroupThatMovesIsDeletedAtItsFormerGateway) {
  Push(*first_, Ten());
  EXPECT_THAT(Lines(gateway_, 10), SizeIs(10));
  first_->SetPins(pins_);
  second_->SetPins(pins_);
  Push(*first_, Ten());
  EXPECT_EQ(first_->last_report().groups_deleted, 0U) << "what has not arrived elsewhere has its last values here";
  EXPECT_THAT(Lines(gateway_, 10), SizeIs(10));
  Push(*second_, Ten());
  EXPECT_EQ(second_->last_report().groups_deleted, Of(*second_).size());
  EXPECT_THAT(Instances(other_, Of(*second_).size()), ElementsAreArray(Of(*second_)));
  EXPECT_THAT(Instances(gateway_, Of(*first_).size()), ElementsAreArray(Of(*first_)));
  Push(*first_, Ten());
  EXPECT_EQ(first_->last_report().groups_deleted, 0U) << "what is on the other gateway is the other's";
  EXPECT_THAT(Lines(other_, Of(*second_).size()), SizeIs(Of(*second_).size()));
}

TEST_F(SharedGroupsTest, AGatewayWithoutGroupsDeletesItsFormerOnes) {
  first_->SetPins(pins_);
  second_->SetPins(pins_);
  Push(*first_, Ten());
  Push(*second_, Ten());
  std::vector<Identity> firsts;
  for (int rank = 0; rank < 10; ++rank) {
    if (pins_->GatewayOf(Rank(rank)) == first_->url()) firsts.push_back(Rank(rank));
  }
  Push(*second_, agent::Of(firsts));
  EXPECT_EQ(second_->last_report().groups, 0U);
  EXPECT_THAT(Lines(other_, 0), IsEmpty());
  EXPECT_THAT(ledger_.groups(), SizeIs(firsts.size()));
}

TEST_F(SharedGroupsTest, AtTheJobsEndEachDeletesItsOwn) {
  first_->SetPins(pins_);
  second_->SetPins(pins_);
  Push(*first_, Ten());
  Push(*second_, Ten());
  EXPECT_TRUE(first_->DeleteGroups("job", 30s).ok());
  EXPECT_THAT(Lines(gateway_, 0), IsEmpty());
  EXPECT_THAT(Lines(other_, Of(*second_).size()), SizeIs(Of(*second_).size()));
  EXPECT_TRUE(second_->DeleteGroups("job", 30s).ok());
  EXPECT_THAT(Lines(other_, 0), IsEmpty());
  EXPECT_THAT(ledger_.groups(), IsEmpty());
}

}  // namespace
}  // namespace persia::agent
