// A process with metrics of each kind, and a state that such processes leave.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ledger/ledger.h"
#include "ledger/memory_journal_file.h"
#include "ledger/retired_processes.h"
#include "segment/segment_reader.h"

namespace persia::agent::testing {

CollectTime SampleTime();

// The measurements of a process that counted to `counted`, and has more series that stay at 1.
class SampleProcess {
 public:
  explicit SampleProcess(uint64_t counted, size_t more_series = 0, int32_t replica = 0);
  [[nodiscard]] Measurements values() const;

 private:
  std::unique_ptr<SegmentReader> reader_;
};

// A ledger of run "r" that has read this disk.
std::unique_ptr<Ledger> Loaded(MemoryDisk& disk, Diagnostics& diagnostics);
// A state of run "r" with two ended processes and two that were alive.
std::string SampleState();
// That, and batches with records of each kind after its checkpoint.
std::string WholeSampleState();
// Its records except the first.
std::vector<std::pair<uint16_t, std::string>> SampleRecords();
// A state of run "r" with this record, after those that it needs.
std::string StateWith(uint16_t tag, const std::string& payload);

}  // namespace persia::agent::testing
