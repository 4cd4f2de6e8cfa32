#include "files/journal.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "files/bytes.h"
#include "files/small_file.h"

namespace persia::agent {
namespace {

constexpr size_t kFileHeaderBytes = 16;
constexpr size_t kRecordHeaderBytes = 12;
constexpr size_t kMarkPayloadBytes = 12;
constexpr size_t kMarkBytes = kRecordHeaderBytes + kMarkPayloadBytes;

std::string Mark(uint64_t offset, size_t records_size) {
  std::string mark;
  AddRecord(mark, kJournalMark, Encode(offset, static_cast<uint32_t>(records_size)));
  return mark;
}

// The record at `at`, if it is whole and its payload ends at `end` or before.
std::optional<JournalRecord> RecordAt(std::string_view bytes, size_t at, size_t end) {
  if (end - at < kRecordHeaderBytes) return {};
  const std::string_view record = bytes.substr(at, end - at);
  ByteReader header(record);
  const uint32_t size = header.U32();
  const uint32_t tag = header.U32();  // and the 0 after it
  const uint32_t checksum = header.U32();
  if (tag > kJournalMark || size > record.size() - kRecordHeaderBytes) return {};
  const std::string_view payload = record.substr(kRecordHeaderBytes, size);
  if (Checksum(payload, Checksum(record.substr(0, 8))) != checksum) return {};
  return JournalRecord{static_cast<uint16_t>(tag), payload};
}

// The size of the records after the mark at `at`, if there is a mark.
std::optional<size_t> MarkAt(std::string_view bytes, size_t at) {
  const auto record = RecordAt(bytes, at, std::min(bytes.size(), at + kMarkBytes));
  uint64_t offset = 0;
  uint32_t size = 0;
  const bool is_mark = record && record->tag == kJournalMark && Decode(record->payload, offset, size) && offset == at;
  return is_mark ? std::optional<size_t>(size) : std::nullopt;
}

bool MarkAfter(std::string_view bytes, size_t at) {
  const std::string begin = Mark(0, 0).substr(0, 8);
  for (at = bytes.find(begin, at); at != std::string_view::npos; at = bytes.find(begin, at + 1))
    if (MarkAt(bytes, at)) return true;
  return false;
}

// Returns why the file is damaged; empty: it is not.
std::string ReadBatches(std::string_view bytes, std::vector<JournalRecord>& records) {
  for (size_t at = kFileHeaderBytes; at == kFileHeaderBytes || at < bytes.size();) {
    const bool checkpoint = at == kFileHeaderBytes;
    const auto size = MarkAt(bytes, at);
    const size_t batch_end = at + kMarkBytes + size.value_or(0);
    if (size) at += kMarkBytes;
    const size_t end = std::min(batch_end, bytes.size());
    while (size && at < end) {
      const auto record = RecordAt(bytes, at, end);
      if (!record) break;
      if (record->tag != kJournalMark) records.push_back(*record);
      at += kRecordHeaderBytes + record->payload.size();
    }
    if (size && at == batch_end) continue;
    if (!checkpoint && !MarkAfter(bytes, at)) return {};  // the writer was killed here, or the power was cut
    return "it is damaged at byte " + std::to_string(at) + ", and " + std::to_string(std::max(bytes.size(), batch_end) - at) +
           " bytes from there on are lost";
  }
  return {};
}

std::string ReadFile(const JournalFormat& format, JournalContent& content) {
  const std::string_view bytes = *content.bytes;
  if (!bytes.starts_with(std::string_view(format.magic.data(), format.magic.size())))
    return "it does not begin as an agent's state does";
  ByteReader header(bytes.substr(format.magic.size()));
  const uint32_t version = header.U32();
  header.U32();
  if (!header.ok()) return "it has " + std::to_string(bytes.size()) + " bytes, which is less than its header";
  if (version != format.version)
    return "it has version " + std::to_string(version) + ", this agent reads version " + std::to_string(format.version);
  return ReadBatches(bytes, content.records);
}

}  // namespace

Result<JournalContent> ReadJournal(JournalFile& file, const JournalFormat& format, bool look, std::string& problem) {
  problem.clear();
  std::string broken;
  auto read = file.Read(broken);
  if (!read.ok()) return Error{read.error()};
  JournalContent content;
  if (read.value()) {
    content.bytes = std::make_shared<const std::string>(std::move(*read.value()));
    broken = ReadFile(format, content);
  }
  if (broken.empty()) return content;
  if (look)
    problem = file.path() + " cannot be used: " + broken;
  else if (!file.SetAside(broken, problem))
    return Error{std::exchange(problem, {})};
  return content;
}

void AddRecord(std::string& batch, uint16_t tag, std::string_view payload) {
  const std::string header = Encode(static_cast<uint32_t>(payload.size()), uint32_t{tag});
  batch += header;
  batch += Encode(Checksum(payload, Checksum(header)));
  batch += payload;
}

std::string OnlyRecord(std::string_view payload) {
  constexpr uint16_t kTag = 1;
  std::string records;
  AddRecord(records, kTag, payload);
  return records;
}

std::string JournalCheckpoint(const JournalFormat& format, std::string_view records) {
  std::string bytes = Encode(format.magic, format.version, uint32_t{0});
  bytes += JournalBatch(bytes.size(), records);
  return bytes;
}

std::string JournalBatch(uint64_t file_bytes, std::string_view records) {
  std::string bytes = Mark(file_bytes, records.size());
  bytes += records;
  return bytes;
}

}  // namespace persia::agent
