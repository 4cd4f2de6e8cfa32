// A state of any bytes is read and merged, or refused with a reason. A state that was read is written and read again: it is the
// same.
//
// The input: records, each as a tag (2 bytes), a size (2 bytes) and a payload. The file's own checksums would keep a fuzzer
// from them.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ledger/ledger.h"
#include "ledger/memory_journal_file.h"
#include "merge/merge.h"
#include "naming/naming.h"

namespace {

using namespace persia::agent;
using testing::MemoryDisk;
using testing::MemoryJournalFile;

const CollectTime kNow{1, std::chrono::steady_clock::time_point(std::chrono::hours(1)),
                       std::chrono::system_clock::time_point(std::chrono::hours(500'000))};

void Require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

std::string FileOf(std::string_view input) {
  std::string records;
  while (input.size() >= 4) {
    const auto number = [&](size_t at) {
      return static_cast<uint16_t>(static_cast<uint8_t>(input[at]) | static_cast<uint8_t>(input[at + 1]) << 8);
    };
    const uint16_t tag = number(0);
    const std::string_view payload = input.substr(4, number(2));
    if (tag != kJournalMark) AddRecord(records, tag, payload);
    input.remove_prefix(4 + payload.size());
  }
  return JournalCheckpoint(kStateFormat, records);
}

struct Reader {
  Diagnostics diagnostics;
  std::unique_ptr<Ledger> ledger;
};

// The state as a ledger that has read it writes it; nothing if it was refused.
std::optional<std::string> ReadAndWrite(std::string file, Reader& reader) {
  MemoryDisk disk{.bytes = std::move(file)};
  const auto run = RunOfState(*std::make_shared<MemoryJournalFile>(disk));
  Require(run.ok());
  // Nothing ends meanwhile, so that all that is read is written again.
  const Ledger::Options options{.file = std::make_shared<MemoryJournalFile>(disk),
                                .run_id = run.value(),
                                .processes = {.gauge_ttl = std::chrono::hours(600'000), .hide_ended = false},
                                .threaded = false};
  reader.ledger = std::make_unique<Ledger>(options, reader.diagnostics);
  reader.ledger->Load(kNow);
  const bool refused = disk.set_aside.has_value();
  Require(reader.ledger->Loaded() && reader.diagnostics.Take().empty() == !refused);
  if (refused) return std::nullopt;
  reader.ledger->MoveTo(options.file);
  reader.ledger->Save(kNow);
  return disk.bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Reader first;
  const auto written = ReadAndWrite(FileOf({reinterpret_cast<const char*>(data), size}), first);
  if (!written) return 0;
  Reader second;
  Require(ReadAndWrite(*written, second) == written);

  const PlainNaming naming;
  Diagnostics diagnostics;
  std::vector<Measurements> inputs = first.ledger->processes().Inputs(kNow);
  for (const std::string& id : first.ledger->Orphans()) {
    if (const auto orphan = first.ledger->OrphanOf(id)) inputs.push_back(orphan->values);
  }
  Merger merger({.job = "job", .ip_addr = "127.0.0.1"}, naming, diagnostics);
  const auto snapshot = merger.Merge(inputs, {}, kNow.wall);
  size_t values = 0;
  for (const auto& family : snapshot->layout->families) {
    for (const auto& series : family.series) {
      Require(series.first_value == values && series.identity < snapshot->layout->identities.size());
      values += family.ValuesPerSeries();
    }
  }
  Require(values == snapshot->values.size());
  return 0;
}
