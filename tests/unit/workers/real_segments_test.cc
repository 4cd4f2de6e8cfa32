// Segments of the real library: of this version, of released ones, of running and killed processes, and damaged.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "persia/metrics/metrics.h"
#include "segment/sample_job.h"
#include "test_seed.h"
#include "worker.h"
#include "workers/job_directory_test.h"

namespace persia::agent::testing {
namespace {

namespace metrics = persia::metrics;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;

using Flat = std::map<std::string, std::string>;

class RealSegmentsTest : public metrics::tests::WorkerTest {
 protected:
  Flat Collect() { return Flatten(*source_.Collect()); }
  [[nodiscard]] double ValueOf(const std::string& series) { return std::stod(Collect().at(series)); }

  // Without values that depend on the clock.
  static Flat Timeless(Flat flat) {
    std::erase_if(flat, [](const auto& series) { return series.first.starts_with("persia_event_"); });
    return flat;
  }

  static std::string Bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  SegmentSource source_{{.directory = directory(), .job = "golden"}};
};

TEST_F(RealSegmentsTest, ShowsWhatALivingProcessRecorded) {
  Live worker(*this, RecordSample);
  const Flat shown = Collect();
  EXPECT_EQ(Timeless(shown), ExpectedOfSample());
  EXPECT_EQ(source_.stats().live, 1U);
  EXPECT_THAT(source_.TakeDiagnostics(), IsEmpty());
  const double last =
      std::stod(shown.at(R"(persia_event_last_timestamp_seconds{event="checkpoint",type="my_app",zone="eu"}@rep_2/trainer)"));
  EXPECT_THAT(last, AllOf(Le(static_cast<double>(time(nullptr) + 1)), Ge(static_cast<double>(time(nullptr) - 600))));
}

TEST_F(RealSegmentsTest, HelpUnitAndBoundsArriveAsTheProgramGaveThem) {
  Live worker(*this, RecordSample);
  const auto layout = source_.Collect()->layout;
  const auto family = [&](const std::string& name) { return *std::ranges::find(layout->families, name, &FamilyLayout::name); };
  EXPECT_EQ(family("my_app_energy_joules").help, "Energy, in joules.");
  EXPECT_EQ(family("my_app_energy_joules").unit, "joules");
  EXPECT_THAT(family("my_app_sizes").bounds, ::testing::ElementsAre(0.5, 1, 2.5));
  EXPECT_EQ(family("staleness").help, metrics::catalog::kStaleness.help);
}

TEST_F(RealSegmentsTest, AKilledProcessKeepsItsLastValues) {
  Live worker(*this, RecordSample);
  EXPECT_EQ(Timeless(Collect()), ExpectedOfSample());
  worker.Kill();
  EXPECT_EQ(Timeless(Collect()), ExpectedOfSample());
  EXPECT_EQ(source_.stats().live, 0U);
  EXPECT_EQ(source_.stats().dead, 1U);
  // An agent that comes only now sees the same.
  SegmentSource late({.directory = directory(), .job = "golden"});
  EXPECT_EQ(Timeless(Flatten(*late.Collect())), ExpectedOfSample());
}

TEST_F(RealSegmentsTest, TotalsOfABusyProcessNeverFall) {
  static std::atomic<bool> stop = false;
  static std::vector<std::thread>& threads = *new std::vector<std::thread>;
  Live worker(
      *this,
      [] {
        for (int t = 0; t < 2; ++t) {
          threads.emplace_back([t] {
            metrics::Counter counter("busy", "counter");
            metrics::Family<metrics::Counter> family("busy", "family");
            metrics::Histogram histogram("busy", "histogram", metrics::DefaultSecondsBounds());
            for (int i = 0; !stop; ++i) {
              counter.Increment(0.1);
              counter.Increment();
              histogram.Observe(0.001 * (i % 3000));
              if (i % 512 == 0 && i < 512 * 200) {
                family.With({{"i", std::to_string(t) + "." + std::to_string(i)}}).Increment();
              }
            }
          });
        }
      },
      [] {
        stop = true;
        for (std::thread& thread : threads) {
          thread.join();
        }
        metrics::Counter("busy", "at_end").Increment(7);
      });
  // Until all children were seen to come, and a while longer.
  std::map<std::string, double> former;
  for (int more = 20; more > 0; more -= former.size() > 400 ? 1 : 0) {
    for (const auto& [series, value] : Collect()) {
      const double now = std::stod(value);
      ASSERT_GE(now, former[series]) << series;
      former[series] = now;
    }
  }
  EXPECT_GT(former.at("busy_counter"), 0);
  EXPECT_THAT(source_.TakeDiagnostics(), IsEmpty());
  worker.Finish();
  EXPECT_EQ(ValueOf("busy_at_end"), 7);
  EXPECT_EQ(source_.stats().bad, 0U);
}

TEST_F(RealSegmentsTest, ManyProcessesOfOneIdentityAddUp) {
  std::vector<std::unique_ptr<Live>> workers;
  for (int i = 0; i < 4; ++i) {
    workers.push_back(std::make_unique<Live>(*this, RecordSample));
  }
  workers[1]->Kill();
  const Flat shown = Collect();
  EXPECT_EQ(shown.at(R"(my_app_batches{zone="eu"}@rep_2/trainer)"), "172");
  EXPECT_EQ(shown.at(R"(my_app_energy_joules{zone="eu"}@rep_2/trainer)"), "11");
  EXPECT_EQ(shown.at(R"(my_app_sizes{side="left",zone="eu"}@rep_2/trainer)"), "415: 4 4 4 4");
  EXPECT_EQ(shown.at(R"(my_app_world_size{zone="eu"}@rep_2/trainer)"), "12") << "a gauge of the living, where there are some";
  EXPECT_EQ(shown.at(R"(staleness{zone="eu"}@rep_2/trainer)"), "12.5");
  EXPECT_EQ(source_.stats().live, 3U);
}

// The file never changes: a segment of each released library is read for ever.
TEST_F(RealSegmentsTest, ASegmentOfVersion1IsRead) {
  std::filesystem::copy_file(PERSIA_TESTDATA "/segment-1.0.seg", directory() + "/golden.seg");
  Flat expected = ExpectedOfSample();
  expected[R"(persia_event_interval_seconds{event="checkpoint",type="my_app",zone="eu"}@rep_2/trainer)"] =
      "0.001: 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0";
  expected[R"(persia_event_last_timestamp_seconds{event="checkpoint",type="my_app",zone="eu"}@rep_2/trainer)"] =
      "1795993697.636";
  EXPECT_EQ(Collect(), expected);
  EXPECT_EQ(source_.stats().records_skipped, 0U);
  EXPECT_THAT(source_.stats().refused, IsEmpty());
}

// Damages a real segment in every way that chance finds: bits, words, whole ranges, its length; and once more under the reader.
TEST_F(RealSegmentsTest, TenThousandDamagedCopiesAreReadOrRefused) {
  const std::string whole = Bytes(PERSIA_TESTDATA "/segment-1.0.seg");
  std::mt19937_64 random(TestSeed());
  const auto& header = *reinterpret_cast<const segment::Header*>(whole.data());
  // Where a change can matter: the parts that are in use.
  const std::pair<uint64_t, uint64_t> parts[] = {
      {0, sizeof header},
      {header.descriptors_offset, header.descriptors_used.load()},
      {header.directory_offset, header.chunks_used.load() * sizeof(segment::ChunkEntry)},
      {header.chunks_offset, header.chunks_used.load() * segment::kChunkBytes},
  };
  const auto damage = [&](std::string& bytes) {
    for (uint64_t i = 1 + random() % 4; i > 0; --i) {
      const auto& [offset, size] = parts[random() % std::size(parts)];
      const uint64_t at = offset + random() % size;
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
        case 1:
          bytes[at] = static_cast<char>(random());
          break;
        case 2: {
          const uint64_t interesting[] = {0, 1, 7, 8, 0xffff'ffff, 1ULL << 31, ~0ULL, 1ULL << 63, random()};
          const uint64_t word = interesting[random() % std::size(interesting)];
          std::memcpy(bytes.data() + at / 8 * 8, &word, random() % 2 == 0 ? 8 : 4);
          break;
        }
        default:
          std::memset(bytes.data() + at, static_cast<int>(random() % 2 * 255),
                      std::min<uint64_t>(random() % 64, offset + size - at));
      }
    }
  };
  const auto put = [&](int fd, const std::string& bytes) {
    for (const auto& [offset, size] : parts) {
      ASSERT_EQ(pwrite(fd, bytes.data() + offset, size, static_cast<off_t>(offset)), static_cast<ssize_t>(size));
    }
  };
  const PlainNaming naming;
  Diagnostics diagnostics;
  std::string bytes = whole;
  size_t read = 0;
  for (int round = 0; round < 10000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const int fd = memfd_create("segment", MFD_CLOEXEC);
    for (const auto& [offset, size] : parts) {
      bytes.replace(offset, size, whole, offset, size);
    }
    damage(bytes);
    put(fd, bytes);
    if (random() % 10 == 0) {
      ASSERT_EQ(ftruncate(fd, static_cast<off_t>(random() % whole.size())), 0);
    }
    SegmentProblem problem;
    auto reader = SegmentReader::FromDescriptor(dup(fd), {geteuid(), {}, 1 << 30}, problem);
    for (uint64_t tick = 1; reader != nullptr && tick <= 3; ++tick) {
      problem = {};
      if (!reader->Read(tick, {}, problem)) {
        ASSERT_FALSE(problem.text.empty());
      }
      Merger merger({.job = "job"}, naming, diagnostics);
      const Measurements segments[] = {MeasurementsOf(*reader)};
      const auto snapshot = merger.Merge(segments, {}, {});
      ASSERT_EQ(snapshot->values.size(), snapshot->layout->value_count);
      for (const FamilyLayout& family : snapshot->layout->families) {
        ASSERT_LE(family.series.back().first_value + family.ValuesPerSeries(), snapshot->values.size());
      }
      read += problem.text.empty() ? 1 : 0;
      if (tick == 1) {
        damage(bytes);
        put(fd, bytes);
      } else if (random() % 4 == 0) {
        ASSERT_EQ(ftruncate(fd, static_cast<off_t>(random() % whole.size())), 0);
      }
    }
    if (reader == nullptr) {
      ASSERT_FALSE(problem.reason.empty() || problem.text.empty());
    }
    close(fd);
  }
  // Much damage lies in values, where everything is allowed: some copies must have been read, and not all.
  EXPECT_GT(read, 1000U);
  EXPECT_LT(read, 29000U);
}

}  // namespace
}  // namespace persia::agent::testing
