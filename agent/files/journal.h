// A journal: a state file to which records of changes are appended. From time to time a checkpoint, the records of the whole
// state, replaces them. So the bytes written grow with the changes. `journal_writer.h` writes it.
//
//   Result<JournalContent> content = ReadJournal(file, format, /*look=*/false, problem);
//   for (const JournalRecord& record : content.value().records) ...
//
// The file, numbers are little-endian:
//
//   file    header batch*
//   header  8 bytes of magic, uint32 version, uint32 0
//   batch   mark record*               the first is the checkpoint; each other one was appended by one write
//   mark    record with tag 0xFFFF, payload: uint64 offset of the mark in the file, uint32 size of the batch's records
//   record  uint32 size of the payload, uint16 tag, uint16 0, uint32 CRC-32 of those 8 bytes and the payload, payload
//
// The journal of a state that is small, and replaced whole, has only checkpoints of one record.
//
// The checkpoint is on disk before it gets the file's name, and a batch is on disk before the next one is begun. So a kill or a
// power cut may leave only the last batch incomplete: any of its pages may be cut off or zero. An invalid record in the
// checkpoint, or before a later mark, is damage. A mark has its offset, so that no other bytes are taken for a mark.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "files/journal_file.h"

namespace persia::agent {

struct JournalFormat {
  std::array<char, 8> magic{};
  uint32_t version = 1;  // of the records; a file of another version is not read
};

inline constexpr uint16_t kJournalMark = 0xFFFF;

struct JournalRecord {
  uint16_t tag = 0;
  std::string_view payload;
};

struct JournalContent {
  std::shared_ptr<const std::string> bytes = nullptr;  // the records' payloads point into it; null: there is no file
  std::vector<JournalRecord> records = {};

  // The payload of the only record; none: there is no file.
  [[nodiscard]] std::optional<std::string_view> only() const {
    return records.empty() ? std::nullopt : std::optional(records.back().payload);
  }
};

// Reads the records up to the end, or to one that was not written whole, as when the writer was killed. A damaged file is set
// aside, and its records before the damage are returned; `problem` then says so, and says how many bytes are lost. An error if
// it cannot be read, or is damaged and cannot be set aside: it must not be replaced. `look`: nothing is set aside, and damage
// is only described.
Result<JournalContent> ReadJournal(JournalFile& file, const JournalFormat& format, bool look, std::string& problem);

// Appends a record to `batch`. REQUIRES: tag != kJournalMark.
void AddRecord(std::string& batch, uint16_t tag, std::string_view payload);
// The records of a journal that has one.
[[nodiscard]] std::string OnlyRecord(std::string_view payload);

// The bytes of a file whose only batch has `records`.
[[nodiscard]] std::string JournalCheckpoint(const JournalFormat& format, std::string_view records);

// The bytes that append a batch to a file of `file_bytes`.
[[nodiscard]] std::string JournalBatch(uint64_t file_bytes, std::string_view records);

}  // namespace persia::agent
