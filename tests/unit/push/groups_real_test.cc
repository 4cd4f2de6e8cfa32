// Groups that end, and agents that claim the same ones, on Debian's prometheus-pushgateway.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "peers/real_gateway.h"
#include "peers/scripted_peer.h"
#include "peers/socket.h"
#include "push/ledger_directory.h"
#include "push/push_gateway.h"
#include "push/real_groups.h"
#include "push/snapshots.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// One agent: its directory, its ledger, its sink.
struct TestAgent {
  explicit TestAgent(std::string gateway, bool delete_absent = true)
      : gateway_(std::move(gateway)), delete_absent_(delete_absent) {
    Start();
  }

  // As after SIGKILL: changes that are not on disk are lost.
  void Start(std::string gateway = "") {
    if (!gateway.empty()) gateway_ = gateway;
    sink.reset();
    ledger = std::make_unique<GroupLedger>(directory.Options());
    sink = std::make_unique<PushGateway>(
        PushGateway::Options{.address = GatewayAddress::Parse(gateway_).value(),
                             .http = {.total_timeout = 30s},
                             .format = PushFormat::Choice::kAuto,
                             .ledger = ledger.get(),
                             .delete_absent_groups = delete_absent_,
                             .now = [this] { return std::chrono::steady_clock::now() + passed; }});
  }
  void Push(const Snapshot& snapshot) {
    const Status status = sink->Push(snapshot);
    EXPECT_TRUE(status.ok()) << status.error();
  }

  LedgerDirectory directory;
  std::chrono::seconds passed{0};
  std::unique_ptr<GroupLedger> ledger;
  std::unique_ptr<PushGateway> sink;

 private:
  std::string gateway_;
  bool delete_absent_;
};

TEST_F(RealGroupsTest, AGroupEndsWhenItsIdentityHasLeft) {
  TestAgent agent(gateway_.address());
  agent.Push(Of({Rank(0), Rank(1)}));
  EXPECT_EQ(agent.sink->last_report().ledger_groups, 2U);
  agent.Push(Of({Rank(0)}));
  EXPECT_THAT(Instances(gateway_, 1), ElementsAre("rep_0"));
  EXPECT_EQ(agent.sink->last_report().groups_deleted, 1U);
  EXPECT_EQ(agent.sink->last_report().ledger_groups, 1U);
  EXPECT_THAT(gateway_.Lines("push_time_seconds{"), SizeIs(1));
}

TEST_F(RealGroupsTest, AnAgentThatWasKilledKnowsItsGroups) {
  TestAgent agent(gateway_.address());
  agent.Push(Of({Rank(0), Rank(1)}));
  agent.Start();
  agent.Push(Of({Rank(0)}));
  EXPECT_THAT(Instances(gateway_, 1), ElementsAre("rep_0"));
}

TEST_F(RealGroupsTest, TheLedgerIsWrittenBeforeTheFirstPut) {
  ScriptedPeer silent({Reply::Close()});
  TestAgent agent(silent.address());
  agent.sink->Interrupt();  // not one request gets out
  EXPECT_FALSE(agent.sink->Push(Of({Rank(0)})).ok());
  EXPECT_THAT(GroupLedger(agent.directory.Options()).groups(), SizeIs(1));
}

TEST_F(RealGroupsTest, AnIdentityThatShowsNothingIsNotEntered) {
  TestAgent agent(gateway_.address());
  agent.Push(Snap({Rank(0), Rank(1)}, {{"x", MetricType::kGauge, 1, 0}}));
  EXPECT_THAT(agent.ledger->groups(), SizeIs(1));
}

TEST_F(RealGroupsTest, OtherAgentsGroupsStay) {
  TestAgent agent(gateway_.address());
  TestAgent other(gateway_.address());
  agent.Push(Of({Rank(0)}));
  other.Push(Of({Rank(1)}));
  agent.Push(Of({Rank(2)}));
  EXPECT_THAT(Instances(gateway_, 2), UnorderedElementsAre("rep_1", "rep_2"));
  EXPECT_TRUE(agent.sink->DeleteGroups("job", 30s).ok());
  EXPECT_THAT(Instances(gateway_, 1), ElementsAre("rep_1"));
}

// A hostile neighbour: its grouping key is the same, against all rules, and it deletes the group once. The owner's next push
// brings all of it back, and the neighbour, which knows the group no more, leaves it alone.
TEST_F(RealGroupsTest, AGroupThatAnotherAgentDeletesIsBackAfterTheNextPush) {
  TestAgent neighbour(gateway_.address());
  neighbour.Push(Of({Rank(0), Rank(1)}));
  TestAgent owner(gateway_.address());
  owner.Push(Of({Rank(1)}, 7));
  neighbour.Push(Of({Rank(0)}));
  EXPECT_EQ(neighbour.sink->last_report().groups_deleted, 1U);
  EXPECT_THAT(Instances(gateway_, 1), ElementsAre("rep_0"));
  owner.Push(Of({Rank(1)}, 7));
  neighbour.Push(Of({Rank(0)}));
  EXPECT_EQ(neighbour.sink->last_report().groups_deleted, 0U);
  EXPECT_THAT(neighbour.ledger->groups(), SizeIs(1));
  EXPECT_THAT(Lines(gateway_, 2), UnorderedElementsAre(HasSubstr("rep_0"), AllOf(HasSubstr("rep_1"), HasSubstr("} 7"))));
  EXPECT_TRUE(neighbour.sink->DeleteGroups("job", 30s).ok());
  EXPECT_THAT(Instances(gateway_, 1), ElementsAre("rep_1")) << "not even at its end";
}

TEST_F(RealGroupsTest, KeepKeepsButNotUnderAnOldAddress) {
  TestAgent agent(gateway_.address(), /*delete_absent=*/false);
  agent.Push(Of({Rank(0), Rank(1)}));
  agent.Push(Of({Rank(0, "10.0.0.2")}));
  EXPECT_THAT(Lines(gateway_, 2), UnorderedElementsAre(AllOf(HasSubstr("rep_0"), HasSubstr("10.0.0.2")), HasSubstr("rep_1")));
}

TEST_F(RealGroupsTest, AJobsFinalValuesStayWhenAnotherJobUsesItsDirectory) {
  TestAgent agent(gateway_.address());
  agent.Push(Of({Rank(0)}));
  agent.Start();
  agent.Push(Of({{"another_job", {{"instance", "rep_9"}}}}));
  EXPECT_THAT(Instances(gateway_, 2), UnorderedElementsAre("rep_0", "rep_9"));
}

TEST_F(RealGroupsTest, GroupsOnAFormerGatewayEnd) {
  RealGateway former;
  TestAgent agent(former.address(), /*delete_absent=*/false);
  agent.Push(Of({Rank(0)}));
  agent.Start(gateway_.address());
  agent.Push(Of({Rank(0)}));
  EXPECT_THAT(Instances(gateway_, 1), ElementsAre("rep_0"));
  EXPECT_THAT(Instances(former, 0), IsEmpty());
}

TEST_F(RealGroupsTest, AFormerAddressOfTheSameGatewayCostsNothingThatIsPushed) {
  TestAgent agent(gateway_.address());
  agent.Push(Of({Rank(0), Rank(1)}));
  std::string other_name = gateway_.address();
  agent.Start(other_name.replace(0, other_name.find(':'), "localhost"));
  agent.Push(Of({Rank(0)}, 2));
  EXPECT_EQ(agent.sink->last_report().groups_deleted, 2U);  // rep_0 is then pushed again, rep_1 has left
  EXPECT_EQ(agent.sink->last_report().ledger_groups, 1U);
  EXPECT_THAT(Lines(gateway_, 1), ElementsAre(AllOf(HasSubstr("rep_0"), HasSubstr("} 2"))));
  agent.Push(Of({Rank(0)}, 3));  // when the gateway answers this, it has done all earlier requests
  EXPECT_THAT(Lines(gateway_, 1), ElementsAre(AllOf(HasSubstr("rep_0"), HasSubstr("} 3"))));
  EXPECT_TRUE(agent.sink->DeleteGroups("job", 30s).ok());
  EXPECT_THAT(Lines(gateway_, 0), IsEmpty());
}

TEST_F(RealGroupsTest, AFormerGatewayThatIsAwayIsAskedAgainAfterGrowingPausesAndFailsNothing) {
  const Socket unreachable = Socket::Reserve();
  const std::string address = "127.0.0.1:" + std::to_string(unreachable.port());
  TestAgent agent(gateway_.address());
  agent.ledger->Add({{"http://" + address, Rank(0)}});
  for (int i = 0; i < 20; ++i) {
    agent.Push(Of({Rank(0)}));
    agent.passed += 1s;
  }
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("cannot delete 1 groups")));
  EXPECT_THAT(agent.ledger->groups(), SizeIs(2));
  agent.passed += 25h;
  agent.Push(Of({Rank(0)}));
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("cannot delete"), HasSubstr("gave up deleting 1 groups")));
  EXPECT_THAT(agent.ledger->groups(), SizeIs(1));
}

TEST_F(RealGroupsTest, NothingEndsAfterAPushThatDidNotArrive) {
  TestAgent agent(gateway_.address());
  agent.Push(Of({Rank(0), Rank(1)}));
  PushGateway other({.address = GatewayAddress::Parse(gateway_.address()).value()});
  gateway_.Kill();
  agent.passed += 1h;
  agent.sink->Interrupt();
  EXPECT_FALSE(agent.sink->Push(Of({Rank(0)})).ok());
  agent.sink->Rearm();
  EXPECT_THAT(agent.ledger->groups(), SizeIs(2));
  EXPECT_EQ(agent.sink->last_report().groups_deleted, 0U);
}

TEST_F(RealGroupsTest, AGroupThatIsRefusedForEverKeepsNoOtherFromEnding) {
  // The gateway takes neither a PUT nor a DELETE with such a label name.
  const Identity refused{"job", {{"a-b", "1"}}};
  TestAgent agent(gateway_.address());
  EXPECT_FALSE(agent.sink->Push(Of({refused, Rank(0), Rank(1)})).ok());
  EXPECT_THAT(agent.ledger->groups(), SizeIs(3));
  EXPECT_FALSE(agent.sink->Push(Of({refused, Rank(0)})).ok());
  EXPECT_EQ(agent.sink->last_report().groups_deleted, 1U);
  EXPECT_THAT(Instances(gateway_, 1), ElementsAre("rep_0"));

  agent.Push(Of({Rank(0), Rank(2)}));
  EXPECT_THAT(log_.Warnings(), ElementsAre(AllOf(HasSubstr("cannot delete 1 groups"), HasSubstr("a-b"))));
  agent.Push(Of({Rank(0)}));  // without the pause of the refused one
  EXPECT_THAT(Instances(gateway_, 1), ElementsAre("rep_0"));
  agent.passed += 1h;
  agent.Push(Of({Rank(0), Rank(3)}));
  agent.passed += 1h;
  agent.Push(Of({Rank(0)}));  // the refused one comes first
  EXPECT_EQ(agent.sink->last_report().groups_deleted, 1U);
  EXPECT_THAT(agent.ledger->groups(), SizeIs(2));
  agent.passed += 25h;
  agent.Push(Of({Rank(0)}));
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("cannot delete"), HasSubstr("gave up deleting 1 groups")));
  EXPECT_THAT(agent.ledger->groups(), SizeIs(1));
}

TEST_F(RealGroupsTest, WhatANewGatewayRefusesStaysOnTheFormerOne) {
  RealGateway former;
  TestAgent agent(former.address());
  agent.Push(Of({Rank(0), Rank(1)}));
  ScriptedPeer refusing({Reply::Status(403)});
  agent.Start(refusing.address());
  EXPECT_FALSE(agent.sink->Push(Of({Rank(0)})).ok());
  EXPECT_THAT(Instances(former, 1), ElementsAre("rep_0"));
}

TEST_F(RealGroupsTest, TheJobsEndReportsGroupsThatAreLeft) {
  TestAgent agent(gateway_.address());
  agent.Push(Of({Rank(0), Rank(1)}));
  gateway_.Kill();
  EXPECT_THAT(agent.sink->DeleteGroups("job", 1s).error(),
              HasSubstr("2 groups of the job were not deleted, and may still be on the gateway: "));
  gateway_.Start();
  EXPECT_TRUE(agent.sink->DeleteGroups("job", 30s).ok());
}

TEST_F(RealGroupsTest, TheGatewaysPageIsNeverRead) {
  ScriptedPeer peer({Reply::Status(200)});
  TestAgent agent(peer.address());
  for (int i = 0; i < 3; ++i) agent.Push(Of({Rank(0), Rank(1)}));
  agent.Push(Of({Rank(0)}));
  EXPECT_EQ(agent.sink->last_report().groups_deleted, 1U);
  EXPECT_TRUE(agent.sink->DeleteGroups("job", 30s).ok());
  size_t deletes = 0;
  for (const std::string& request : peer.requests()) {
    EXPECT_THAT(request, Not(HasSubstr("GET /metrics")));
    if (request.starts_with("DELETE ")) ++deletes;
  }
  EXPECT_EQ(deletes, 2U);
}

TEST_F(RealGroupsTest, AGroupOfWhichAllIsRefusedShowsNoOldValues) {
  PushGateway other({.address = GatewayAddress::Parse(gateway_.address()).value()});
  ASSERT_TRUE(other.Push(Snap({{"another_job", {}}}, {{"y", MetricType::kCounter, 1}})).ok());
  TestAgent agent(gateway_.address());
  agent.Push(Of({Rank(0)}));
  agent.Push(Snap({Rank(0)}, {{"y", MetricType::kGauge, 2, 0}}));
  EXPECT_EQ(agent.sink->last_report().quarantined_series, 1U);
  EXPECT_THAT(Lines(gateway_, 0), IsEmpty());
  EXPECT_THAT(gateway_.Lines("push_time_seconds{instance=\"rep_0\""), SizeIs(1));
}

TEST_F(RealGroupsTest, AnAgentThatAddsTheLabelLeavesTheGroupsWithoutItToTheOther) {
  TestAgent one(gateway_.address());
  TestAgent two(gateway_.address());
  two.Push(Of({Rank(0)}, 20));
  one.Push(Of({Rank(0)}, 10));
  two.ledger->AddAgentLabel();
  EXPECT_THAT(two.ledger->groups(), IsEmpty());
  two.Push(Of({Rank(0), Rank(5)}, 20));
  const std::string label = "agent=\"" + two.ledger->agent_id() + "\"";
  EXPECT_THAT(Lines(gateway_, 3), UnorderedElementsAre(AllOf(HasSubstr("rep_0"), HasSubstr("} 10")),
                                                       AllOf(HasSubstr("rep_0"), HasSubstr(label), HasSubstr("} 20")),
                                                       AllOf(HasSubstr("rep_5"), HasSubstr(label))));
  two.Start();
  EXPECT_TRUE(two.ledger->adds_agent_label());
  two.Push(Of({Rank(0), Rank(5)}, 21));
  EXPECT_THAT(Lines(gateway_, 3), SizeIs(3));
}

}  // namespace
}  // namespace persia::agent
