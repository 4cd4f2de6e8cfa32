#include "segment/segment_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <string_view>
#include <utility>

#include "kernel/proc_reader.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Header;
using segment::kCellsPerChunk;
using segment::Kind;

constexpr uint32_t kCommonLane = 0;
constexpr std::string_view kPhaseGroup = "persia_phase";
// The series of a segment are in the sums of the ended processes, in the state, in the layout and in what is pushed, too.
constexpr int64_t kCopies = 8;

SegmentProblem Truncated(const char* missing) {
  return {"corrupt", std::string("the file was truncated and no longer holds ") + missing};
}

// A file's word on who writes it opens that process's status and standard error to all who read the page. It counts if the file
// is of the agent's own user, or of the user whose process that is.
HeaderCopy Believed(const SegmentFile& file) {
  HeaderCopy header = file.header();
  ProcReader proc;
  if (!file.foreign_owner() || header->pid_namespace != proc.PidNamespace("self")) return header;
  struct stat process {};
  const bool is_theirs =
      stat(("/proc/" + std::to_string(header->pid)).c_str(), &process) == 0 && process.st_uid == *file.foreign_owner();
  if (!is_theirs || !proc.StatOf(*header)) header.ForgetProcess();
  return header;
}

std::string PhaseOf(const SegmentSeriesRecord& clock, std::span<const std::byte> records) {
  std::string phase;
  VisitLabels(records, clock, [&](std::string_view name, std::string_view value) {
    if (name == "phase") phase = value;
  });
  return phase;
}

}  // namespace

std::unique_ptr<SegmentReader> SegmentReader::Open(int directory_fd, const char* name, const SegmentAccess& access,
                                                   SegmentProblem& problem) {
  return FromFile(SegmentFile::Open(directory_fd, name, access, problem));
}

std::unique_ptr<SegmentReader> SegmentReader::FromDescriptor(int fd, const SegmentAccess& access, SegmentProblem& problem) {
  return FromFile(SegmentFile::FromDescriptor(fd, access, problem));
}

std::unique_ptr<SegmentReader> SegmentReader::FromFile(std::unique_ptr<SegmentFile> file) {
  return file == nullptr ? nullptr : std::unique_ptr<SegmentReader>(new SegmentReader(std::move(file)));
}

SegmentReader::SegmentReader(std::unique_ptr<SegmentFile> file)
    : header_(Believed(*file)),
      id_(header_.Id()),
      is_foreign_(file->foreign_owner() || !file->WriterLives()),
      file_(std::move(file)),
      memory_(kCopies) {}

bool SegmentReader::Read(uint64_t tick, std::chrono::system_clock::time_point now, SegmentProblem& problem,
                         uint64_t clocks_until) {
  const auto read = [&]() -> Result<bool> { return ReadFile(tick, now, problem, clocks_until); };
  const Result<bool> good = is_foreign_ ? memory_.Charge("it", read) : read();
  if (good.ok()) return good.value();
  permanent_problem_ = problem = {"memory", good.error()};
  return false;
}

bool SegmentReader::ReadFile(uint64_t tick, std::chrono::system_clock::time_point now, SegmentProblem& problem,
                             uint64_t clocks_until) {
  if (file_ == nullptr) return true;
  if (permanent_problem_) {
    problem = *permanent_problem_;
    return false;
  }
  if (!file_->HeaderUnchanged()) {
    problem = {"corrupt", "its header changed, or the file was truncated"};
    return false;
  }
  if (!ReadStructure(problem)) {
    permanent_problem_ = problem;
    return false;
  }
  if (!ReadValues(problem)) return false;
  if (!file_->LoadAcquire(offsetof(Header, exit), exit_mark_)) {
    problem = Truncated("its header");
    return false;
  }
  // From here on nothing fails, or the values would not be those of the series.
  changed_at_.reserve(common_count_);
  later_series_.reserve(later_series_.size() + 1);
  std::swap(values_, next_);
  RecordChanges(tick, now);
  clocks_.Read(*file_, clocks_until, values_);  // after RecordChanges: that time passes is no change
  RecordLaterSeries(now);
  const bool same_identity = identity_ == parsed_identity_;
  if (generation_ == 0 || !same_identity || skipped_ != parsed_skipped_ || removals_ != parsed_removals_ ||
      family_count_ != families_.size() || series_count_ != series_.size()) {
    ++generation_;
    identity_ = parsed_identity_;
    family_count_ = families_.size();
    series_count_ = series_.size();
  }
  writer_ = parsed_writer_;
  skipped_ = parsed_skipped_;
  removals_ = parsed_removals_;
  return true;
}

bool SegmentReader::ReadStructure(SegmentProblem& problem) {
  // Load the count of removals first: a mark that changes after this load is read by this Read or by the next one. Then the
  // descriptors' count: a writer registers a series after its chunk, so that the directory read here has the chunk of every
  // series read here.
  uint64_t removals = 0;
  uint64_t descriptors_used = 0;
  uint64_t chunks_used = 0;
  if (!file_->LoadAcquire(offsetof(Header, removals), removals) ||
      !file_->LoadAcquire(offsetof(Header, descriptors_used), descriptors_used) ||
      !file_->LoadAcquire(offsetof(Header, chunks_used), chunks_used)) {
    problem = Truncated("its header");
    return false;
  }
  RecordBatch batch{.max_series = segment::kMaxSeries - series_.size()};
  if (!ReadRemovals(removals, problem) || !ReadDescriptors(descriptors_used, batch, problem) ||
      !ReadDirectory(chunks_used, problem))
    return false;
  families_.insert(families_.end(), std::make_move_iterator(batch.families.begin()),
                   std::make_move_iterator(batch.families.end()));
  for (const SegmentSeriesRecord& record : batch.series)
    if (!PlaceSeries(record, problem)) return false;
  if (batch.identity) {
    parsed_identity_ = *std::move(batch.identity);
    forked_ = batch.forked;
  }
  if (batch.writer) parsed_writer_ = *std::move(batch.writer);
  parsed_skipped_ += batch.skipped;
  for (std::string& text : batch.over_limit)
    if (over_limit_.size() < RecordBatch::kMaxOverLimit) over_limit_.push_back(std::move(text));
  return true;
}

// Reads the marks of the known series again. A new series' mark is read with its record.
bool SegmentReader::ReadRemovals(uint64_t removals, SegmentProblem& problem) {
  if (removals == parsed_removals_) return true;
  for (SegmentSeries& series : series_) {
    // The last words of the record's fixed part are the number of labels and the mark, and the labels follow.
    static_assert(offsetof(segment::SeriesFixed, removed) == sizeof(segment::SeriesFixed) - sizeof(uint32_t));
    uint64_t word = 0;
    if (!file_->Copy(header_->descriptors_offset + series.record.labels_at - sizeof word, std::span(&word, 1))) {
      problem = Truncated("its descriptors");
      return false;
    }
    series.record.removed = word >> 32 != 0;
  }
  parsed_removals_ = removals;
  return true;
}

bool SegmentReader::ReadDescriptors(uint64_t used, RecordBatch& batch, SegmentProblem& problem) {
  const size_t before = records_.size() * sizeof(uint64_t);
  if (used < before || used > header_->descriptors_capacity || used % sizeof(uint64_t) != 0) {
    problem = {"corrupt", "its header counts " + std::to_string(used) + " bytes of descriptors; " + std::to_string(before) +
                              " were read before, the capacity is " + std::to_string(header_->descriptors_capacity)};
    return false;
  }
  if (used == before) return true;
  if (!file_->HoldsPages(segment::kPageBytes + used)) {
    problem = {"corrupt",
               "its header counts " + std::to_string(used) + " bytes of descriptors, which take more space than the file does"};
    return false;
  }
  // In steps, each parsed before the next one is read: what a header counts beyond good records costs nothing.
  constexpr size_t kStepWords = 1 << 13;
  std::string error;
  for (size_t parsed = before; records_.size() * sizeof(uint64_t) < used;) {
    const size_t at = records_.size();
    const size_t words = std::min(kStepWords, static_cast<size_t>(used / sizeof(uint64_t)) - at);
    records_.resize(at + words);
    if (!file_->Copy(header_->descriptors_offset + at * sizeof(uint64_t), std::span(records_).subspan(at))) {
      problem = Truncated("its descriptors");
      return false;
    }
    if (!ParseRecords(records(), parsed, used, families_, batch, error)) {
      problem = {"corrupt", std::move(error)};
      return false;
    }
  }
  return true;
}

bool SegmentReader::ReadDirectory(uint64_t used, SegmentProblem& problem) {
  const uint64_t before = chunks_.size();
  const uint64_t fit = (header_->max_bytes - header_->chunks_offset) / segment::kChunkBytes;
  if (used < before || used > header_->directory_capacity || used > fit) {
    problem = {"corrupt", "its header counts " + std::to_string(used) + " chunks; " + std::to_string(before) +
                              " were read before, the capacity is " +
                              std::to_string(std::min(fit, header_->directory_capacity))};
    return false;
  }
  if (used != before && !file_->HoldsPages(segment::kPageBytes + used * segment::kChunkBytes)) {
    problem = {"corrupt", "its header counts " + std::to_string(used) + " chunks, which take more space than the file does"};
    return false;
  }
  for (uint64_t i = before; i < used; ++i) {
    uint64_t word = 0;
    if (!file_->Copy(header_->directory_offset + i * sizeof(segment::ChunkEntry), std::span(&word, 1))) {
      problem = Truncated("its directory");
      return false;
    }
    const auto entry = std::bit_cast<segment::ChunkEntry>(word);
    if (entry.range == 0 || !chunk_keys_.insert(word).second) {
      problem = {"corrupt", "entry " + std::to_string(i) + " of its directory, lane " + std::to_string(entry.lane) +
                                ", range " + std::to_string(entry.range) +
                                (entry.range == 0 ? ", is invalid: range 0 is reserved" : ", occurs twice")};
      return false;
    }
    if (entry.lane == kCommonLane) common_chunks_.emplace(entry.range, static_cast<uint32_t>(chunks_.size()));
    chunks_.push_back({entry.lane, entry.range});
  }
  return true;
}

bool SegmentReader::PlaceSeries(const SegmentSeriesRecord& record, SegmentProblem& problem) {
  const uint32_t number = record.slot / kCellsPerChunk;
  const uint32_t cell = record.slot % kCellsPerChunk;
  const auto at_slot = [&] { return "a series record names slot " + std::to_string(record.slot) + ", "; };
  const auto common = common_chunks_.find(number);
  if (common == common_chunks_.end()) {
    problem = {"corrupt", at_slot() + "which has no chunk in the common lane"};
    return false;
  }
  const auto [found, added] = range_indexes_.try_emplace(number, static_cast<uint32_t>(ranges_.size()));
  if (added) ranges_.emplace_back().used.resize(kCellsPerChunk);
  Range& range = ranges_[found->second];
  const auto begin = range.used.begin() + cell;
  if (std::find(begin, begin + record.cells, true) != begin + record.cells) {
    problem = {"corrupt", at_slot() + "which another series uses"};
    return false;
  }
  std::fill(begin, begin + record.cells, true);

  const uint32_t base = found->second * kCellsPerChunk + cell;
  SegmentSeries series;
  series.record = record;
  const auto place_real = [&](uint32_t offset) {
    range.reals.push_back({cell + offset, real_count_});
    series.real = real_count_++;
  };
  const auto place_common = [&](uint32_t offset) {
    range.commons.push_back({cell + offset, common_count_});
    series.common = common_count_++;
  };
  if (families_[record.family].clock) {
    series.record.cells = segment::CellsOf(Kind::kCounter, 0);
    series.whole = base + 1;  // the cell that is 0
    series.real = real_count_++;
    const uint64_t at = header_->chunks_offset + common->second * segment::kChunkBytes + cell * sizeof(uint64_t);
    clocks_.Add(at, series.real, PhaseOf(record, records()));
    series_.push_back(series);
    return true;
  }
  switch (families_[record.family].kind) {
    case Kind::kCounter:
      series.whole = base;
      place_real(1);
      break;
    case Kind::kGauge:
      place_common(0);
      if (families_[record.family].group == kPhaseGroup) {
        if (families_[record.family].name == "step") step_ = series.common;
        if (families_[record.family].name == "first_step") first_step_ = series.common;
      }
      break;
    case Kind::kHistogram:
    case Kind::kNativeHistogram:
      place_real(0);
      series.whole = base;
      break;
    case Kind::kEvent:
      place_common(0);
      series.whole = base;
      place_real(2);
      break;
    case Kind::kClock:
      break;
    case Kind::kStream:
      place_common(0);
      place_real(segment::kStreamPositiveSum);
      place_real(segment::kStreamNegativeSum);
      series.real -= 1;  // the index of the positive sum
      series.whole = base;
      break;
  }
  series_.push_back(series);
  return true;
}

double SegmentReader::UsedRatio() const {
  const auto ratio = [](size_t used, uint64_t capacity) { return static_cast<double>(used) / static_cast<double>(capacity); };
  const uint64_t chunks = (header_->max_bytes - header_->chunks_offset) / segment::kChunkBytes;
  return std::max(ratio(records().size(), header_->descriptors_capacity), ratio(chunks_.size(), chunks));
}

void SegmentReader::ReadEvents(bool writer_lives, std::vector<JobEvent>& out) {
  const size_t before = out.size();
  const auto read = [&]() -> Status {
    events_.Read(*file_, writer_lives, out);
    return Done{};
  };
  if (const Status good = is_foreign_ ? memory_.Charge("", read) : read(); !good.ok()) out.resize(before);
  for (size_t i = before; i < out.size(); ++i) out[i].pid = header_->pid;
}

bool SegmentReader::ReadValues(SegmentProblem& problem) {
  constexpr size_t kDroppedWords = std::size(Header{}.dropped);
  static_assert(kDroppedWords == std::size(SegmentValues{}.dropped));
  if (!file_->Copy(offsetof(Header, dropped), next_.dropped)) {
    problem = Truncated("its header");
    return false;
  }
  next_.wholes.resize(ranges_.size() * kCellsPerChunk);
  next_.reals.assign(real_count_, {});
  next_.terms.clear();
  next_.commons.resize(common_count_);
  // The common lane first: every range has one, so its values overwrite those of the last Read.
  std::array<uint64_t, kCellsPerChunk> cells;
  for (const bool common : {true, false}) {
    for (size_t i = 0; i < chunks_.size(); ++i) {
      const auto range = range_indexes_.find(chunks_[i].range);
      if ((chunks_[i].lane == kCommonLane) != common || range == range_indexes_.end()) continue;
      if (!file_->Copy(header_->chunks_offset + i * segment::kChunkBytes, cells)) {
        problem = Truncated("its values");
        return false;
      }
      uint64_t* wholes = next_.wholes.data() + size_t{range->second} * kCellsPerChunk;
      if (common) {
        std::copy(cells.begin(), cells.end(), wholes);
        for (const CellIndex& at : ranges_[range->second].commons) next_.commons[at.index] = cells[at.cell];
      } else {
        for (size_t cell = 0; cell < kCellsPerChunk; ++cell) wholes[cell] += cells[cell];
      }
      AddReals(cells.data(), ranges_[range->second]);
    }
  }
  return true;
}

std::optional<double> SegmentReader::StepIn(std::optional<uint32_t> common) const {
  if (!common || *common >= values_.commons.size() || values_.commons[*common] == segment::kUnset) return std::nullopt;
  const auto step = std::bit_cast<double>(values_.commons[*common]);
  constexpr double kMost = 0x1p53;
  return step >= 0 && step <= kMost ? std::optional(step) : std::nullopt;
}

void SegmentReader::AddReals(const uint64_t* cells, const Range& range) {
  for (const CellIndex& at : range.reals) {
    const auto value = std::bit_cast<double>(cells[at.cell]);
    if (value == 0) continue;
    SegmentValues::Real& sum = next_.reals[at.index];
    if (sum.first == 0) {
      sum.first = value;
    } else {
      next_.terms.push_back({value, sum.more});
      sum.more = static_cast<uint32_t>(next_.terms.size());
    }
  }
}

// REQUIRES: series_count_ is that of the Read before.
void SegmentReader::RecordLaterSeries(std::chrono::system_clock::time_point now) {
  if (read_at_ != now) former_at_ = std::exchange(read_at_, now);
  if (former_at_ && series_count_ < series_.size()) {
    const auto since_1970 = std::chrono::duration_cast<std::chrono::nanoseconds>(former_at_->time_since_epoch()).count();
    later_series_.push_back({series_count_, static_cast<uint64_t>(std::max<int64_t>(0, since_1970))});
  }
}

// REQUIRES: next_ has the values of the Read before.
void SegmentReader::RecordChanges(uint64_t tick, std::chrono::system_clock::time_point now) {
  clocks_.CopySeconds(next_, values_);
  if (!SameValues(values_, next_)) {
    last_change_tick_ = tick;
    if (generation_ > 0) {
      last_change_ = now;
      ++changes_;
    }
  }
  const size_t known = changed_at_.size();
  changed_at_.resize(values_.commons.size(), tick);
  for (size_t i = 0; i < known; ++i)
    if (values_.commons[i] != next_.commons[i]) changed_at_[i] = tick;
}

}  // namespace persia::agent
