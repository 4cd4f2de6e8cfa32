#include "segment_view.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "segment_format.h"

namespace persia::metrics::tests {
namespace {

using namespace segment;  // NOLINT(google-build-using-namespace): this file is about the format

class Cursor {
 public:
  Cursor(const char* data, size_t size) : data_(data), size_(size) {}
  template <class T>
  T Take() {
    T value;
    std::memcpy(&value, Bytes(sizeof value), sizeof value);
    return value;
  }
  std::string String() {
    const auto size = Take<uint32_t>();
    return {Bytes(size), size};
  }
  void Skip(size_t n) { Bytes(n); }
  [[nodiscard]] size_t left() const { return size_; }

 private:
  const char* Bytes(size_t n) {
    if (n > size_) {
      throw std::runtime_error("a record ends before its fields do");
    }
    const char* at = data_;
    data_ += n;
    size_ -= n;
    return at;
  }
  const char* data_;
  size_t size_;
};

struct FamilyView {
  SeriesView prototype;
  std::string name;
};

std::string Metadata(Cursor& cursor, int entries) {
  std::string out;
  for (int i = 0; i < entries; ++i) {
    out += cursor.String() + "=";
    switch (static_cast<MetadataType>(cursor.Take<uint8_t>())) {
      case MetadataType::kNull:
        out += "null";
        break;
      case MetadataType::kBool:
        out += cursor.Take<uint8_t>() != 0 ? "true" : "false";
        break;
      case MetadataType::kInt:
        out += std::to_string(cursor.Take<int64_t>());
        break;
      case MetadataType::kDouble:
        out += std::to_string(cursor.Take<double>());
        break;
      case MetadataType::kString:
        out += "'" + cursor.String() + "'";
        break;
      default:
        throw std::runtime_error("unknown metadata type");
    }
    out += ";";
  }
  return out;
}

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {
    if (bytes_.size() < sizeof(Header)) {
      throw std::runtime_error("shorter than a header");
    }
    header_ = reinterpret_cast<const Header*>(bytes_.data());
    if (std::memcmp(header_->magic, kMagic, sizeof kMagic) != 0 || header_->major != kMajor) {
      throw std::runtime_error("not a segment");
    }
  }

  SegmentView Read() {
    view_.pid = header_->pid;
    view_.chunks = header_->chunks_used;
    view_.events_recorded = header_->events_recorded;
    view_.removals = header_->removals;
    for (const auto& count : header_->dropped) {
      view_.dropped.push_back(count);
    }
    for (uint64_t i = 0; i < view_.chunks; ++i) {
      const auto entry = At(header_->directory_offset + i * sizeof(ChunkEntry), sizeof(ChunkEntry)).Take<ChunkEntry>();
      view_.lanes = std::max<uint64_t>(view_.lanes, entry.lane);
      chunks_[entry.range].emplace_back(entry.lane, i);
    }
    Cursor records = At(header_->descriptors_offset, header_->descriptors_used);
    size_t offset = header_->descriptors_offset;
    while (records.left() > 0) {
      const auto record = records.Take<RecordHeader>();
      Cursor body = At(offset + sizeof record, record.bytes - sizeof record);
      ReadRecord(static_cast<RecordType>(record.type), body);
      records.Skip(record.bytes - sizeof record);
      offset += record.bytes;
    }
    ReadEvents();
    return std::move(view_);
  }

 private:
  Cursor At(uint64_t offset, uint64_t size) {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      throw std::runtime_error("an offset is outside the file");
    }
    return {bytes_.data() + offset, size};
  }

  void ReadRecord(RecordType type, Cursor body) {
    switch (type) {
      case RecordType::kIdentity: {
        const auto fixed = body.Take<IdentityFixed>();
        view_.replica = fixed.replica;
        view_.restart_count = fixed.restart_count;
        view_.forked = fixed.flags == kForked;
        view_.job = body.String();
        view_.run_id = body.String();
        view_.role = body.String();
        view_.labels.clear();
        for (uint32_t i = 0; i < fixed.labels; ++i) {
          const std::string name = body.String();
          view_.labels[name] = body.String();
        }
        break;
      }
      case RecordType::kWriter:
        view_.language = body.String();
        view_.library_version = body.String();
        break;
      case RecordType::kFamily: {
        FamilyView family;
        const auto fixed = body.Take<FamilyFixed>();
        family.prototype.kind = fixed.kind;
        family.prototype.gauge_policy = fixed.gauge_policy;
        for (uint32_t i = 0; i < fixed.bounds; ++i) {
          family.prototype.bounds.push_back(body.Take<double>());
        }
        const std::string group = body.String();
        family.name = group + "/" + body.String();
        family.prototype.help = body.String();
        family.prototype.unit = body.String();
        families_.push_back(family);
        break;
      }
      case RecordType::kSeries: {
        const auto fixed = body.Take<SeriesFixed>();
        const FamilyView& family = families_.at(fixed.family);
        std::string name = family.name;
        for (uint32_t i = 0; i < fixed.labels; ++i) {
          name += (i == 0 ? "{" : ",") + body.String() + "=\"";
          name += body.String() + "\"";
        }
        name += fixed.labels > 0 ? "}" : "";
        const auto [added, is_new] = view_.series.emplace(name, ReadSeries(family.prototype, fixed.slot));
        added->second.removed = fixed.removed != 0;
        if (!is_new) {
          throw std::runtime_error("two series are called " + name);
        }
        break;
      }
    }
  }

  // A slot's cell in each lane, or in the common lane alone.
  std::vector<uint64_t> Cells(uint32_t slot, bool common_only) {
    std::vector<uint64_t> cells;
    for (const auto& [lane, chunk] : chunks_[slot / kCellsPerChunk]) {
      if (!common_only || lane == 0) {
        cells.push_back(At(header_->chunks_offset + chunk * kChunkBytes + slot % kCellsPerChunk * 8, 8).Take<uint64_t>());
      }
    }
    return cells;
  }
  uint64_t Whole(uint32_t slot, bool common_only = false) {
    uint64_t sum = 0;
    for (const uint64_t bits : Cells(slot, common_only)) {
      sum += bits;
    }
    return sum;
  }
  double Double(uint32_t slot) {
    double sum = 0;
    for (const uint64_t bits : Cells(slot, false)) {
      sum += std::bit_cast<double>(bits);
    }
    return sum;
  }

  void ReadGauge(uint32_t slot, SeriesView& series) {
    const uint64_t bits = Whole(slot, true);
    series.set = bits != kUnset;
    series.value = std::bit_cast<double>(bits);
  }

  SeriesView ReadSeries(const SeriesView& prototype, uint32_t slot) {
    SeriesView series = prototype;
    const auto kind = static_cast<Kind>(prototype.kind);
    if (slot / kCellsPerChunk != (slot + CellsOf(kind, static_cast<uint32_t>(series.bounds.size())) - 1) / kCellsPerChunk) {
      throw std::runtime_error("a series straddles two chunks");
    }
    switch (kind) {
      case Kind::kCounter:
        series.whole = Whole(slot);
        series.fraction = Double(slot + 1);
        break;
      case Kind::kClock:
        series.whole = Whole(slot, true);
        break;
      case Kind::kGauge:
        ReadGauge(slot, series);
        break;
      case Kind::kStream:
        ReadGauge(slot, series);
        series.fraction = Double(slot + 1);
        series.negative = Double(slot + 2);
        for (uint32_t i = 3; i < CellsOf(kind, 0); ++i) {
          series.buckets.push_back(Whole(slot + i));
        }
        break;
      case Kind::kEvent:
        series.last_ms = Whole(slot, true);
        series.whole = Whole(slot + 1);
        slot += 2;
        [[fallthrough]];
      case Kind::kHistogram:
      case Kind::kNativeHistogram:
        series.fraction = Double(slot);
        for (uint32_t i = 0; i <= series.bounds.size(); ++i) {
          series.buckets.push_back(Whole(slot + 1 + i));
        }
        break;
      default:
        throw std::runtime_error("unknown kind");
    }
    return series;
  }

  void ReadEvents() {
    const uint64_t end = view_.events_recorded;
    for (uint64_t ticket = end - std::min(end, header_->ring_slots); ticket < end; ++ticket) {
      Cursor slot = At(header_->ring_offset + ticket % header_->ring_slots * kEventSlotBytes, kEventSlotBytes);
      if (slot.Take<uint64_t>() != 2 * ticket + 2) {
        continue;
      }
      EventView event;
      const auto fixed = slot.Take<EventFixed>();
      event.unix_ms = fixed.unix_ms;
      event.left_out = fixed.left_out;
      event.type = slot.String();
      event.name = slot.String();
      event.metadata = Metadata(slot, fixed.entries);
      view_.events.push_back(event);
    }
  }

  std::string bytes_;
  const Header* header_;
  std::vector<FamilyView> families_;
  std::map<uint32_t, std::vector<std::pair<uint32_t, uint64_t>>> chunks_;  // by range: lane, number
  SegmentView view_;
};

}  // namespace

uint64_t SeriesView::Count() const { return std::accumulate(buckets.begin(), buckets.end(), uint64_t{0}); }

SegmentView ReadSegment(const std::string& path) {
  // To the end, not to a size asked for before: a live file grows.
  std::ifstream file(path, std::ios::binary);
  std::string bytes;
  std::string block(1 << 20, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    bytes.append(block, 0, static_cast<size_t>(file.gcount()));
  }
  return Reader(std::move(bytes)).Read();
}

bool IsLocked(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  const bool asked = fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0;
  if (fd >= 0) {
    close(fd);
  }
  if (!asked) {
    throw std::runtime_error("cannot ask for the lock of " + path);
  }
  return lock.l_type != F_UNLCK;
}

std::vector<std::string> SegmentsIn(const std::string& directory) {
  std::vector<std::string> paths;
  if (std::filesystem::is_directory(directory)) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (entry.path().extension() == kFileSuffix) {
        paths.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(paths);
  return paths;
}

}  // namespace persia::metrics::tests
