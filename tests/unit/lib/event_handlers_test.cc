// The handler that receives an event, and an event as JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "persia/metrics/events.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

using events::Event;
using ::testing::ElementsAre;

class EventKeeper : public events::EventHandler {
 public:
  void Record(const Event& event) override { kept.push_back(event); }
  std::vector<Event> kept;
};

class EventThrower : public events::EventHandler {
 public:
  void Record(const Event& /*event*/) override { throw std::runtime_error("no room"); }
};

class EventHandlersTest : public WorkerTest {};

TEST_F(EventHandlersTest, ATypeHasItsHandlerAndItsEventsCountAllTheSame) {
  const auto segment = SegmentOf([] {
    const auto keeper = std::make_shared<EventKeeper>();
    events::Configure(keeper, "foo");
    events::RecordEvent({.name = "test_event", .type = "foo", .metadata = {{"key", "value"}}, .timestamp = 1234});
    events::Record("foo", "other_event", {{"rank", int64_t{3}}, {"note", std::string_view("x")}});
    events::Record("bar", "exported", {{"a", true}});
    ASSERT_EQ(keeper->kept.size(), 2U);
    EXPECT_EQ(keeper->kept[0], (Event{.name = "test_event", .type = "foo", .metadata = {{"key", "value"}}, .timestamp = 1234}));
    EXPECT_THAT(keeper->kept[1].metadata, ElementsAre(std::pair<std::string, Event::Value>("rank", int64_t{3}),
                                                      std::pair<std::string, Event::Value>("note", "x")));
    EXPECT_GT(keeper->kept[1].timestamp, 1'700'000'000'000);
  });
  EXPECT_EQ(segment.series.at("foo/test_event").whole, 1U);
  EXPECT_EQ(segment.series.at("foo/test_event").last_ms, 1234U);
  EXPECT_EQ(segment.series.at("foo/other_event").whole, 1U);
  ASSERT_EQ(segment.events.size(), 1U);
  EXPECT_EQ(segment.events[0].name, "exported");
}

TEST_F(EventHandlersTest, TheTypeOfTheDefaultAndTheHandlerOfAllOthers) {
  const auto outcome = RunBareWorker([] {
    const auto torchelastic = std::make_shared<EventKeeper>();
    const auto others = std::make_shared<EventKeeper>();
    events::Configure(torchelastic);
    events::Configure(others, "");
    events::Record("a");
    events::RecordEvent({.name = "b"});
    events::Record("console", "c");
    EXPECT_EQ(torchelastic->kept.size(), 2U);
    EXPECT_EQ(others->kept.size(), 1U);
    events::Configure(nullptr);
    events::Record("d");
    EXPECT_EQ(others->kept.size(), 2U);
  });
  EXPECT_EQ(outcome.wait_status, 0);
}

TEST_F(EventHandlersTest, AnExportedEventHasItsOwnTimeAndMetadata) {
  const auto segment = SegmentOf([] {
    events::RecordEvent({.name = "saved",
                         .type = "my_app",
                         .metadata = {{"none", {}}, {"final", true}, {"bytes", int64_t{7}}, {"s", 0.5}, {"path", "/c"}},
                         .timestamp = 1'700'000'000'250});
  });
  ASSERT_EQ(segment.events.size(), 1U);
  EXPECT_EQ(segment.events[0].unix_ms, 1'700'000'000'250U);
  EXPECT_EQ(segment.events[0].metadata, "none=null;final=true;bytes=7;s=0.500000;path='/c';");
}

TEST_F(EventHandlersTest, AHandlerThatThrowsCostsItsEventButNotItsCount) {
  const auto segment = SegmentOf([] {
    events::Configure(std::make_shared<EventThrower>(), "bad");
    events::Record("bad", "a");
    events::RecordEvent({.name = "a", .type = "bad"});
  });
  EXPECT_EQ(segment.series.at("bad/a").whole, 2U);
}

TEST(EventJson, IsOneLineThatKeepsTypesApart) {
  const Event event{.name = "caf\xc3\xa9 \"x\"\\\n\x01",
                    .type = "my_app",
                    .metadata = {{"none", {}},
                                 {"yes", true},
                                 {"no", false},
                                 {"least", std::numeric_limits<int64_t>::min()},
                                 {"tenth", 0.1},
                                 {"text", "{}"}},
                    .timestamp = 1'700'000'000'250};
  EXPECT_EQ(event.Serialize(),
            "{\"name\": \"caf\xc3\xa9 \\\"x\\\"\\\\\\n\\u0001\", \"type\": \"my_app\", \"metadata\": "
            R"({"none": null, "yes": true, "no": false, "least": -9223372036854775808, "tenth": 0.1, "text": "{}"}, )"
            R"("timestamp": 1700000000250})");
}

}  // namespace
}  // namespace persia::metrics::tests
