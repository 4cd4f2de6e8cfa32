// A group as protobuf, read by protobuf's own code, has the values of the group as text.
#include "format/group_renderer.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "format/number.h"
#include "metric_family.pb.h"
#include "test_seed.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

const double kInf = std::numeric_limits<double>::infinity();

std::vector<persia_test::MetricFamily> Parse(const std::string& body) {
  google::protobuf::io::ArrayInputStream stream(body.data(), static_cast<int>(body.size()));
  std::vector<persia_test::MetricFamily> families;
  for (bool at_end = false; !at_end;) {
    persia_test::MetricFamily family;
    if (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&family, &stream, &at_end)) {
      EXPECT_EQ(family.unknown_fields().field_count(), 0);
      families.push_back(std::move(family));
    } else {
      EXPECT_TRUE(at_end) << "not a message";
      return families;
    }
  }
  return families;
}

std::string Number(double value) {
  char text[kMaxNumberSize];
  return {text, PrintNumber(text, value)};
}

// A line as the text format has it.
std::string Line(const std::string& name, const persia_test::Metric& metric, const std::string& value,
                 const std::string& extra_name = "", const std::string& extra_value = "") {
  std::string labels;
  for (const persia_test::LabelPair& label : metric.label()) {
    labels += (labels.empty() ? "" : ",") + label.name() + "=\"" + label.value() + '"';
  }
  if (!extra_name.empty()) labels += (labels.empty() ? "" : ",") + extra_name + "=\"" + extra_value + '"';
  return name + (labels.empty() ? "" : '{' + labels + '}') + ' ' + value + '\n';
}

std::string AsText(const std::vector<persia_test::MetricFamily>& families) {
  static const std::string kTypes[] = {"counter", "gauge", "summary", "untyped", "histogram"};
  std::string text;
  for (const persia_test::MetricFamily& family : families) {
    const std::string& name = family.name();
    if (family.has_help()) text += "# HELP " + name + ' ' + family.help() + '\n';
    text += "# TYPE " + name + ' ' + kTypes[family.type()] + '\n';
    for (const persia_test::Metric& metric : family.metric()) {
      switch (family.type()) {
        case persia_test::COUNTER:
          text += Line(name, metric, Number(metric.counter().value()));
          break;
        case persia_test::GAUGE:
          text += Line(name, metric, Number(metric.gauge().value()));
          break;
        case persia_test::UNTYPED:
          text += Line(name, metric, Number(metric.untyped().value()));
          break;
        case persia_test::HISTOGRAM:
          for (const persia_test::Bucket& bucket : metric.histogram().bucket()) {
            text += Line(name + "_bucket", metric, Number(static_cast<double>(bucket.cumulative_count())), "le",
                         LabelText(bucket.upper_bound()));
          }
          text += Line(name + "_sum", metric, Number(metric.histogram().sample_sum()));
          text += Line(name + "_count", metric, Number(static_cast<double>(metric.histogram().sample_count())));
          break;
        case persia_test::SUMMARY:
          for (const persia_test::Quantile& quantile : metric.summary().quantile()) {
            text += Line(name, metric, Number(quantile.value()), "quantile", LabelText(quantile.quantile()));
          }
          text += Line(name + "_sum", metric, Number(metric.summary().sample_sum()));
          text += Line(name + "_count", metric, Number(static_cast<double>(metric.summary().sample_count())));
          break;
      }
    }
  }
  return text;
}

// A layout of families of any type, labels and sizes, and values for it.
class RandomSnapshot {
 public:
  explicit RandomSnapshot(uint64_t seed) : random_(seed) {
    auto layout = std::make_shared<Layout>();
    for (int i = 0; i < 3; ++i) layout->identities.push_back({"job", {{"instance", "rep_" + std::to_string(i)}}});
    const size_t families = Below(12);
    for (size_t i = 0; i < families; ++i) layout->families.push_back(Family("family_" + std::to_string(i), *layout));
    snapshot_.layout = std::move(layout);
  }

  [[nodiscard]] const Snapshot& operator*() const { return snapshot_; }

 private:
  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }

  FamilyLayout Family(const std::string& name, Layout& layout) {
    FamilyLayout family{
        .name = name, .type = static_cast<MetricType>(Below(5)), .help = "", .unit = "", .bounds = {}, .series = {}};
    family.help = std::string(Below(3) * 100, 'h');
    if (family.type == MetricType::kHistogram || family.type == MetricType::kSummary) {
      double bound = 0;
      for (size_t i = Below(30); i > 0; --i) family.bounds.push_back(bound += 0.125);
    }
    const size_t series = Below(40);
    for (size_t i = 0; i < series; ++i) {
      Labels labels;
      for (size_t label = Below(4); label > 0; --label) {
        labels.insert(labels.begin(), {"label_" + std::to_string(label), std::string(Below(300), 'v') + std::to_string(i)});
      }
      const bool counts = family.type != MetricType::kGauge && family.type != MetricType::kUntyped;
      family.series.push_back({.identity = static_cast<uint32_t>(Below(3)),
                               .first_value = layout.value_count,
                               .labels = std::move(labels),
                               .created_ms = counts && Below(2) == 0 ? static_cast<int64_t>(Below(4'000'000'000'000)) : 0});
      layout.value_count += family.ValuesPerSeries();
      AddValues(family);
    }
    return family;
  }

  void AddValues(const FamilyLayout& family) {
    std::vector<double>& values = snapshot_.values;
    const bool absent = Below(8) == 0;
    values.push_back(absent ? kAbsentValue : AnyNumber());
    for (size_t i = 1; i < family.ValuesPerSeries(); ++i) {
      const bool is_count = family.type == MetricType::kHistogram || i == 1;
      values.push_back(is_count ? std::floor(std::ldexp(1.0, static_cast<int>(Below(40)))) - 1
                                : (Below(4) == 0 ? kAbsentValue : AnyNumber()));
    }
  }

  double AnyNumber() {
    static const double kOdd[] = {0, -0.0, kInf, -kInf, std::nan(""), 5e-324, 1.7976931348623157e308, 9007199254740994};
    if (Below(4) == 0) return kOdd[Below(8)];
    return std::normal_distribution<double>(0, 1e6)(random_);
  }

  std::mt19937_64 random_;
  Snapshot snapshot_;
};

TEST(GroupRendererTest, ProtobufSaysWhatTheTextSays) {
  size_t shown = 0;
  const uint64_t first = TestSeed() * 300;
  for (uint64_t seed = first; seed < first + 300; ++seed) {
    const RandomSnapshot snapshot(seed);
    GroupRenderer as_text(ExpositionFormat::kText);
    GroupRenderer as_protobuf(ExpositionFormat::kProtobuf);
    for (size_t identity = 0; identity < 3; ++identity) {
      const FamilyNames leave_out = seed % 2 == 0 ? FamilyNames{} : FamilyNames{"family_1", "family_4"};
      std::string text;
      std::string body;
      std::vector<FamilySize> text_sizes;
      std::vector<FamilySize> sizes;
      as_text.Render(*snapshot, identity, text, leave_out, &text_sizes);
      as_protobuf.Render(*snapshot, identity, body, leave_out, &sizes);
      ASSERT_EQ(AsText(Parse(body)), text) << "seed " << seed;
      ASSERT_EQ(sizes.size(), text_sizes.size());
      size_t bytes = 0;
      for (size_t i = 0; i < sizes.size(); ++i) {
        bytes += sizes[i].bytes;
        EXPECT_EQ(sizes[i].family, text_sizes[i].family);
        EXPECT_EQ(sizes[i].series, text_sizes[i].series);
      }
      EXPECT_EQ(bytes, body.size());
      shown += sizes.size();
    }
  }
  EXPECT_GT(shown, 2000U);
}

// By series: milliseconds, or -1 without the field.
std::vector<int64_t> CreatedIn(const std::vector<persia_test::MetricFamily>& families) {
  std::vector<int64_t> created;
  for (const persia_test::MetricFamily& family : families) {
    for (const persia_test::Metric& metric : family.metric()) {
      const auto add = [&](const auto& message) {
        const auto& time = message.created_timestamp();
        EXPECT_EQ(time.nanos() % 1'000'000, 0);
        created.push_back(message.has_created_timestamp() ? time.seconds() * 1000 + time.nanos() / 1'000'000 : -1);
      };
      if (metric.has_counter()) add(metric.counter());
      if (metric.has_histogram()) add(metric.histogram());
      if (metric.has_summary()) add(metric.summary());
    }
  }
  return created;
}

TEST(GroupRendererTest, ProtobufSaysWhenCountsBegan) {
  auto layout = std::make_shared<Layout>();
  layout->identities.emplace_back();
  for (const MetricType type : {MetricType::kCounter, MetricType::kHistogram, MetricType::kSummary, MetricType::kGauge}) {
    FamilyLayout family{.name = std::string(TypeName(type)), .type = type, .help = "", .unit = "", .bounds = {}, .series = {}};
    if (family.ValuesPerSeries() > 1) family.bounds = {0.5};
    for (const int64_t created_ms : {1'700'000'000'999L, 0L, 999L, 250'000'000'000'000L}) {
      const int64_t kept = type == MetricType::kGauge ? 0 : created_ms;
      family.series.push_back({.identity = 0,
                               .first_value = layout->value_count,
                               .labels = Labels{{"l", std::to_string(kept)}},
                               .created_ms = kept});
      layout->value_count += family.ValuesPerSeries();
    }
    layout->families.push_back(std::move(family));
  }
  const Snapshot snapshot{layout, std::vector<double>(layout->value_count, 2), {}};
  std::string body;
  GroupRenderer(ExpositionFormat::kProtobuf).Render(snapshot, 0, body);
  const auto created = CreatedIn(Parse(body));
  ASSERT_THAT(created, SizeIs(12));
  for (size_t i = 0; i < created.size(); i += 4) {
    EXPECT_EQ(created[i], 1'700'000'000'999);
    EXPECT_EQ(created[i + 1], -1) << "unknown";
    EXPECT_EQ(created[i + 2], 999);
    EXPECT_EQ(created[i + 3], 250'000'000'000'000) << "a clock that is wrong";
  }
  GroupRenderer(ExpositionFormat::kText).Render(snapshot, 0, body);
  EXPECT_EQ(body.find("created"), std::string::npos) << "a PushGateway would show them as gauges";
}

Snapshot OneHistogram(std::vector<double> values) {
  auto layout = std::make_shared<Layout>();
  layout->identities.emplace_back();
  layout->families.push_back({.name = "h",
                              .type = MetricType::kHistogram,
                              .help = "",
                              .unit = "",
                              .bounds = {1},
                              .series = {{.identity = 0, .first_value = 0, .labels = {}}}});
  layout->value_count = 3;
  return {std::move(layout), std::move(values), {}};
}

std::vector<uint64_t> CountsOf(std::vector<double> values) {
  std::string body;
  GroupRenderer(ExpositionFormat::kProtobuf).Render(OneHistogram(std::move(values)), 0, body);
  const std::vector<persia_test::MetricFamily> families = Parse(body);
  EXPECT_THAT(families, SizeIs(1));
  std::vector<uint64_t> counts;
  for (const persia_test::Bucket& bucket : families.at(0).metric(0).histogram().bucket()) {
    counts.push_back(bucket.cumulative_count());
  }
  counts.push_back(families.at(0).metric(0).histogram().sample_count());
  return counts;
}

// Protobuf has whole counts only.
TEST(GroupRendererTest, ACountThatIsNoneIsCut) {
  EXPECT_THAT(CountsOf({0, 1.5, 1}), ElementsAre(1U, 2U, 2U));
  EXPECT_THAT(CountsOf({0, -1, 0}), ElementsAre(0U, 0U, 0U));
  EXPECT_THAT(CountsOf({0, std::nan(""), 1}), ElementsAre(0U, 0U, 0U));
  EXPECT_THAT(CountsOf({0, 1, 1e30}), ElementsAre(1U, UINT64_MAX, UINT64_MAX));
}

// Text has one header for families of one name; a message without its name would be refused.
TEST(GroupRendererTest, EachMessageHasTheNameOfItsFamily) {
  Layout layout = *OneHistogram({}).layout;
  layout.families.push_back(layout.families.front());
  layout.families.back().series.front().first_value = layout.value_count;
  layout.value_count *= 2;
  std::string body;
  GroupRenderer(ExpositionFormat::kProtobuf).Render({std::make_shared<const Layout>(layout), {0, 1, 1, 0, 2, 2}, {}}, 0, body);
  const std::vector<persia_test::MetricFamily> families = Parse(body);
  ASSERT_THAT(families, SizeIs(2));
  for (const persia_test::MetricFamily& family : families) EXPECT_EQ(family.name(), "h");
}

// The largest size of a series, in a string without spare capacity: AddressSanitizer reports a write past its end.
TEST(GroupRendererTest, ThereIsRoomForTheLongestNumbers) {
  for (const MetricType type : {MetricType::kHistogram, MetricType::kSummary, MetricType::kGauge}) {
    auto layout = std::make_shared<Layout>();
    layout->identities.emplace_back();
    FamilyLayout family{.name = "x", .type = type, .help = "", .unit = "", .bounds = {}, .series = {}};
    if (type != MetricType::kGauge) {
      for (int i = 0; i < 500; ++i) family.bounds.push_back(std::ldexp(-2.2250738585072014, i - 308));
    }
    for (int i = 0; i < 20; ++i) {
      family.series.push_back({.identity = 0, .first_value = layout->value_count, .labels = Labels{{"l", std::to_string(i)}}});
      layout->value_count += family.ValuesPerSeries();
    }
    layout->families.push_back(std::move(family));
    for (const double number : {0x1p70, -2.2250738585072014e-308}) {
      for (const ExpositionFormat format : {ExpositionFormat::kText, ExpositionFormat::kProtobuf}) {
        std::string body;
        GroupRenderer(format).Render({layout, std::vector<double>(layout->value_count, number), {}}, 0, body);
        if (format == ExpositionFormat::kProtobuf) {
          EXPECT_EQ(Parse(body).at(0).metric_size(), 20);
        } else {
          const size_t lines = layout->value_count + (type == MetricType::kHistogram ? 20 : 0);
          EXPECT_EQ(std::count(body.begin(), body.end(), '\n'), lines + 1);
        }
      }
    }
  }
}

// Another NaN may be a marker to Prometheus.
TEST(GroupRendererTest, NotANumberIsTheOrdinaryOne) {
  std::string body;
  GroupRenderer(ExpositionFormat::kProtobuf)
      .Render(OneHistogram({std::bit_cast<double>(uint64_t{0x7ff0000000000002}), 1, 1}), 0, body);
  EXPECT_EQ(std::bit_cast<uint64_t>(Parse(body).at(0).metric(0).histogram().sample_sum()), kNormalNan);
}

TEST(GroupRendererTest, AnotherFormatIsTakenFromTheNextRenderOn) {
  const Snapshot snapshot = OneHistogram({0.5, 1, 1});
  GroupRenderer renderer;
  EXPECT_EQ(renderer.format(), ExpositionFormat::kText);
  std::string text;
  renderer.Render(snapshot, 0, text);
  renderer.set_format(ExpositionFormat::kProtobuf);
  EXPECT_EQ(renderer.format(), ExpositionFormat::kProtobuf);
  std::string body;
  renderer.Render(snapshot, 0, body);
  EXPECT_EQ(AsText(Parse(body)), text);
  renderer.set_format(ExpositionFormat::kText);
  renderer.Render(snapshot, 0, body);
  EXPECT_EQ(body, text);
}

}  // namespace
}  // namespace persia::agent
