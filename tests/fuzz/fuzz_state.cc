// A state of any bytes is read and merged, or refused with a reason; what was read is written, and read again, as the same.
//
// The input is the payload of a state file: the file's own checksum would keep a fuzzer from it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ledger/retired_codec.h"
#include "merge/merge.h"
#include "naming/naming.h"

namespace {

using namespace persia::agent;

void Require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void ReadWriteAndMerge(std::string_view payload, uint32_t version) {
  const CollectTime now{1, std::chrono::steady_clock::time_point(std::chrono::hours(1)),
                        std::chrono::system_clock::time_point(std::chrono::hours(500'000))};
  // Nothing ends meanwhile, so that all that is read is written again.
  const RetiredProcesses::Options options{.gauge_ttl = std::chrono::hours(600'000), .hide_ended = false};
  auto state = DecodeRetired(payload, options, now, version);
  if (!state.ok()) {
    Require(!state.error().empty());
    return;
  }
  const std::string written = EncodeRetired(state.value(), now);
  const auto again = DecodeRetired(written, options, now);
  Require(again.ok() && EncodeRetired(again.value(), now) == written);

  const PlainNaming naming;
  Diagnostics diagnostics;
  Merger merger({.job = "job", .ip_addr = "127.0.0.1"}, naming, diagnostics);
  const auto snapshot = merger.Merge(state.value().processes.Inputs(now), {}, now.wall);
  size_t values = 0;
  for (const auto& family : snapshot->layout->families) {
    for (const auto& series : family.series) {
      Require(series.first_value == values && series.identity < snapshot->layout->identities.size());
      values += family.ValuesPerSeries();
    }
  }
  Require(values == snapshot->values.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (uint32_t version = 1; version <= kRetiredStateVersion; ++version) {
    ReadWriteAndMerge({reinterpret_cast<const char*>(data), size}, version);
  }
  return 0;
}
