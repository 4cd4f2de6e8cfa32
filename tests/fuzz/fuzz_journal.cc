// A journal of any bytes is read up to its damage, or refused with a reason. A reader of a written journal gets the written
// records; after damage, the first of them.
//
// The input: a selector byte; then the bytes of a file after its magic; or the lengths of records, and what to damage.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/bytes.h"
#include "files/journal.h"

namespace {

using namespace persia::agent;

constexpr JournalFormat kFormat{.magic = {'F', 'U', 'Z', 'Z', 'J', 'R', 'N', '\n'}, .version = 1};

void Require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

class ReadOnlyFile : public JournalFile {
 public:
  explicit ReadOnlyFile(std::string bytes) : bytes_(std::move(bytes)) {}
  Result<std::optional<std::string>> Read(std::string& broken) override {
    broken.clear();
    return std::optional<std::string>(bytes_);
  }
  Status Replace(std::string_view) override { return Error{"read-only"}; }
  Status Append(std::string_view) override { return Error{"read-only"}; }
  bool SetAside(std::string_view, std::string&) override { return false; }
  Status Remove() override { return Error{"read-only"}; }
  [[nodiscard]] std::string path() const override { return "journal"; }

 private:
  const std::string bytes_;
};

JournalContent ReadBytes(const std::string& bytes, std::string& problem) {
  ReadOnlyFile file(bytes);
  const auto content = ReadJournal(file, kFormat, true, problem);
  Require(content.ok());
  return content.value();
}

void ReadAny(std::string_view bytes) {
  std::string problem;
  const JournalContent content =
      ReadBytes(std::string(kFormat.magic.data(), kFormat.magic.size()) + std::string(bytes), problem);
  std::string records;
  for (const JournalRecord& record : content.records) {
    AddRecord(records, record.tag, record.payload);
  }
  const JournalContent again = ReadBytes(JournalCheckpoint(kFormat, records), problem);
  Require(problem.empty() && again.records.size() == content.records.size());
}

void ReadDamaged(ByteReader reader) {
  const uint32_t at = reader.U32();
  const uint8_t bits = reader.U8();
  const uint32_t cut = reader.U32();
  std::string bytes;
  std::vector<std::string> payloads;
  do {
    std::string records;
    for (int count = reader.U8() % 8; count > 0; --count) {
      payloads.emplace_back(reader.U8(), static_cast<char>(reader.U8()));
      AddRecord(records, static_cast<uint16_t>(payloads.size() & 0xFF), payloads.back());
    }
    bytes += bytes.empty() ? JournalCheckpoint(kFormat, records) : JournalBatch(bytes.size(), records);
  } while (reader.ok());
  std::string problem;
  Require(ReadBytes(bytes, problem).records.size() == payloads.size() && problem.empty());

  bytes[at % bytes.size()] = static_cast<char>(bytes[at % bytes.size()] ^ bits);
  bytes.resize(bytes.size() - cut % bytes.size());
  const JournalContent content = ReadBytes(bytes, problem);
  Require(content.records.size() <= payloads.size());
  for (size_t i = 0; i < content.records.size(); ++i) {
    Require(content.records[i].tag == ((i + 1) & 0xFF) && content.records[i].payload == payloads[i]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) {
    return 0;
  }
  if (input[0] % 2 == 0) {
    ReadAny(input.substr(1));
  } else {
    ReadDamaged(ByteReader(input.substr(1)));
  }
  return 0;
}
