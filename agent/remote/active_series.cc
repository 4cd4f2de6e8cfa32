// The file is a journal with one record: a snappy block of the list of labels (String), as in files/bytes.h. Labels are encoded
// as in write_request.cc, after kNativeMark if the series is of native histograms.
#include "remote/active_series.h"

#include <cstdint>
#include <utility>

#include "base/log.h"
#include "files/bytes.h"
#include "files/journal.h"
#include "remote/write_request.h"

namespace persia::agent {
namespace {

constexpr size_t kMaxBytes = 4ULL << 30;

constexpr JournalFormat kFormat{.magic = {'P', 'R', 'S', 'M', 'R', 'W', 'S', '\n'}, .version = 1};

}  // namespace

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
  const auto content = ReadJournal(file_, kFormat, /*look=*/false, broken);
  if (!content.ok()) return Error{content.error()};
  if (const auto payload = content.value().only()) {
    const auto bytes = SnappyUncompress(*payload, kMaxBytes);
    ByteReader reader(bytes ? std::string_view(*bytes) : std::string_view());
    for (uint32_t left = reader.Count(4); left > 0 && reader.ok(); --left) series.Add(reader.String());
    if (!reader.done()) {
      static_cast<void>(file_.SetAside("its content is not a list of series", broken));
      series = {};
    }
  }
  if (!broken.empty()) LogWarning("remote.series", broken + "; series that ended since then get no stale marker");
  return series;
}

void ActiveSeries::Save(const std::vector<std::string_view>& labels) {
  unsaved_ = true;
  if (!loaded_) return;
  std::string block;
  SnappyCompress(Encode(labels), block);
  const Status written = file_.Replace(JournalCheckpoint(kFormat, OnlyRecord(block)));
  unsaved_ = !written.ok();
  if (unsaved_ && !is_save_reported_) {
    LogWarning("remote.series", written.error() +
                                    "; the agent tries again at each collection, and until then series that end while no agent "
                                    "runs get no stale marker");
  }
  is_save_reported_ = unsaved_;
}

}  // namespace persia::agent
