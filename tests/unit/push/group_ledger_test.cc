#include "push/group_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "captured_log.h"
#include "push/ledger_directory.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

const GroupLedger::Group kA{"http://gw:9091", {"job", {{"instance", "rep_0"}, {"role", "a"}}}};
const GroupLedger::Group kB{"http://gw:9091/prefix", {"job", {}}};

class GroupLedgerTest : public ::testing::Test {
 protected:
  LedgerDirectory directory_;
  CapturedLog log_;
};

TEST_F(GroupLedgerTest, GroupsAreThereForTheNextAgent) {
  std::string id;
  {
    GroupLedger ledger(directory_.Options());
    ledger.Add({kA, kB});
    id = ledger.agent_id();
  }
  EXPECT_THAT(id, MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(id.size(), 16U);
  GroupLedger next(directory_.Options());
  EXPECT_THAT(next.groups(), ElementsAre(kA, kB));
  EXPECT_EQ(next.agent_id(), id);
  next.Remove({kA});
  EXPECT_THAT(GroupLedger(directory_.Options()).groups(), ElementsAre(kB));
  next.Remove({kB});
  EXPECT_THAT(GroupLedger(directory_.Options()).groups(), IsEmpty());
  EXPECT_THAT(log_.Warnings(), IsEmpty());
}

TEST_F(GroupLedgerTest, EachAgentHasAnIdOfItsOwn) {
  LedgerDirectory other;
  EXPECT_NE(GroupLedger(directory_.Options()).agent_id(), GroupLedger(other.Options()).agent_id());
}

TEST_F(GroupLedgerTest, TheAgentLabelHoldsForTheRun) {
  GroupLedger(directory_.Options("run-1")).AddAgentLabel();
  EXPECT_TRUE(GroupLedger(directory_.Options("run-1")).adds_agent_label());
  EXPECT_FALSE(GroupLedger(directory_.Options("run-2")).adds_agent_label());
  EXPECT_FALSE(GroupLedger(directory_.Options("")).adds_agent_label());
}

TEST_F(GroupLedgerTest, ABrokenFileIsSetAsideAndTheAgentGoesOn) {
  const std::string id = GroupLedger(directory_.Options()).agent_id();
  size_t warnings = 0;
  for (const std::string& broken : {std::string("junk"), std::string(), std::string(5000, 'x')}) {
    directory_.WriteRaw("agent.groups", broken);
    GroupLedger ledger(directory_.Options());
    ASSERT_THAT(log_.Warnings(), SizeIs(++warnings));
    EXPECT_THAT(log_.Warnings().back(), HasSubstr("agent.groups.broken-"));
    EXPECT_THAT(ledger.groups(), IsEmpty());
    EXPECT_EQ(ledger.agent_id().size(), 16U);
    ledger.Add({kA});
    EXPECT_THAT(GroupLedger(directory_.Options()).groups(), ElementsAre(kA));
  }
}

TEST_F(GroupLedgerTest, AGoodFileWithAnUnreadablePayloadIsSetAsideToo) {
  GroupLedger(directory_.Options()).Add({kA});
  const std::string good = directory_.ReadRaw("agent.groups");
  directory_.WritePayload("agent.groups", "0123456789abcdef and no more");
  GroupLedger ledger(directory_.Options());
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("not a list of groups")));
  EXPECT_THAT(ledger.groups(), IsEmpty());
  EXPECT_NE(good, "");
}

TEST_F(GroupLedgerTest, AFullDirectoryIsOneWarningAndAnotherTry) {
  GroupLedger ledger(directory_.Options());
  std::filesystem::create_directories(directory_.path() + "/agent.groups.draft/in/the/way");
  ledger.Add({kA});
  ledger.Add({kB});
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("will not delete the groups")));
  std::filesystem::remove_all(directory_.path() + "/agent.groups.draft");
  ledger.Flush();
  EXPECT_THAT(GroupLedger(directory_.Options()).groups(), ElementsAre(kA, kB));
}

TEST_F(GroupLedgerTest, AFileThatWasRemovedIsWrittenAgain) {
  GroupLedger ledger(directory_.Options());
  ledger.Add({kA});
  const std::filesystem::path file = directory_.path() + "/agent.groups";
  ASSERT_TRUE(std::filesystem::remove(file));
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (!std::filesystem::exists(file) && std::chrono::steady_clock::now() < end) ledger.Flush();
  EXPECT_THAT(GroupLedger(directory_.Options()).groups(), ElementsAre(kA));
  EXPECT_THAT(log_.Warnings(), IsEmpty());
}

}  // namespace
}  // namespace persia::agent
