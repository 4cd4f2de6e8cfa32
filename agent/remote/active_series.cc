// The file's payload, version 1: a snappy block of  count:U32  labels:String{count}, as in files/bytes.h; labels are encoded as
// in write_request.cc, after kNativeMark if the series is of native histograms.
#include "remote/active_series.h"

#include <cstdint>
#include <utility>

#include "base/log.h"
#include "files/bytes.h"
#include "remote/snappy_block.h"

namespace persia::agent {
namespace {

constexpr size_t kMaxBytes = 4ULL << 30;

StateFile::Options WithFormat(StateFile::Options options) {
  options.magic = {'P', 'R', 'S', 'M', 'R', 'W', 'S', '\n'};
  options.version = 1;
  return options;
}

}  // namespace

ActiveSeries::ActiveSeries(StateFile::Options file) : file_(WithFormat(std::move(file))) {}

SeriesTable ActiveSeries::Load() {
  auto series = memory_.Charge(file_.path(), [this] { return Read(); });
  loaded_ = series.ok();
  if (loaded_) return std::move(series).value();
  if (!std::exchange(is_load_reported_, true)) {
    LogWarning("remote.series",
               series.error() + "; the agent tries again at each collection, and does not replace the file until then");
  }
  return {};
}

Result<SeriesTable> ActiveSeries::Read() {
  SeriesTable series;
  std::string broken;
  const auto payload = file_.Read(broken);
  if (!payload.ok()) return Error{payload.error()};
  if (payload.value()) {
    const auto bytes = SnappyUncompress(*payload.value(), kMaxBytes);
    ByteReader reader(bytes ? std::string_view(*bytes) : std::string_view());
    for (uint32_t left = reader.Count(4); left > 0 && reader.ok(); --left) series.Add(reader.String());
    if (!reader.done()) {
      broken = file_.SetAside("its content is not a list of series");
      series = {};
    }
  }
  if (!broken.empty()) LogWarning("remote.series", broken + "; series that ended since then get no stale marker");
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
  if (unsaved_ && !is_save_reported_) {
    LogWarning("remote.series", written.error() +
                                    "; the agent tries again at each collection, and until then series that end while no agent "
                                    "runs get no stale marker");
  }
  is_save_reported_ = unsaved_;
}

}  // namespace persia::agent
