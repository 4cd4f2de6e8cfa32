// The payload of the file, version 1: a snappy block of  count:U32  labels:String{count}, as in state/bytes.h; labels are
// encoded as in write_request.cc.
#include "remote/active_series.h"

#include <utility>

#include "remote/snappy_block.h"
#include "remote/write_request.h"
#include "state/bytes.h"

namespace persia::agent {
namespace {

constexpr size_t kMostBytes = 4ULL << 30;

StateFile::Options FileOptions(StateFile::Options options) {
  options.magic = {'P', 'R', 'S', 'M', 'R', 'W', 'S', '\n'};
  options.version = 1;
  return options;
}

}  // namespace

ActiveSeries::ActiveSeries(Options options) : options_(std::move(options)), file_(FileOptions(options_.file)) {}

SeriesTable ActiveSeries::Load() {
  constexpr char kCost[] = "; series that ended since are not marked as ended";
  std::string set_aside;
  const auto payload = file_.Read(set_aside);
  SeriesTable series;
  if (!payload.ok()) {
    if (!std::exchange(unread_told_, true)) {
      options_.warn(payload.error() + "; it is tried again with each collection, and left as it is until then");
    }
    return series;
  }
  loaded_ = true;
  if (payload.value()) {
    const auto bytes = SnappyUncompress(*payload.value(), kMostBytes);
    ByteReader reader(bytes ? std::string_view(*bytes) : std::string_view());
    Labels labels;
    bool good = true;
    for (uint32_t left = reader.Count(4); left > 0 && good; --left) {
      const std::string_view encoded = reader.String();
      good = reader.ok() && !encoded.empty() && ParseLabels(encoded, labels);
      if (good) series.Add(encoded);
    }
    if (!good || !reader.done()) {
      set_aside = file_.SetAside("its content is not a list of series");
      series = {};
    }
  }
  if (!set_aside.empty()) options_.warn(set_aside + kCost);
  return series;
}

void ActiveSeries::Save(const std::vector<std::string_view>& labels) {
  unsaved_ = true;
  if (!loaded_) return;
  ByteWriter writer;
  writer.U32(static_cast<uint32_t>(labels.size()));
  for (const std::string_view series : labels) writer.String(series);
  std::string block;
  SnappyCompress(std::move(writer).Take(), block);
  const Status written = file_.Write(block);
  unsaved_ = !written.ok();
  if (unsaved_ && !unsaved_told_) {
    options_.warn(written.error() +
                  "; it is tried again with each collection, and until then series that end while no agent is "
                  "there will not be marked as ended");
  }
  unsaved_told_ = unsaved_;
}

}  // namespace persia::agent
