// The file: 8 bytes of magic, uint32 version, uint32 CRC-32 of the payload, uint64 size of the payload, the payload. Numbers
// are little-endian.
#include "files/state_file.h"

#include <utility>

#include "files/bytes.h"
#include "files/checksum.h"

namespace persia::agent {
namespace {

constexpr size_t kHeaderBytes = 24;

}  // namespace

Result<std::optional<std::string>> StateFile::Read(std::string& set_aside) {
  set_aside.clear();
  std::string broken;
  auto payload = Look(broken);
  // A file that keeps its name would be replaced by the next Write.
  if (!broken.empty() && !SetAsideDurable(File(), broken, set_aside)) return Error{std::exchange(set_aside, {})};
  return payload;
}

Result<std::optional<std::string>> StateFile::Look(std::string& why_broken) const {
  auto read = ReadDurable(File(), why_broken);
  if (!read.ok() || !read.value()) return read;
  std::string& bytes = *read.value();
  const auto broken = [&](std::string_view why) {
    why_broken = why;
    return std::optional<std::string>();
  };
  ByteReader header(std::string_view(bytes).substr(0, kHeaderBytes));
  const bool magic = std::string_view(bytes).starts_with(std::string_view(options_.magic.data(), options_.magic.size()));
  header.U64();
  const uint32_t version = header.U32();
  const uint32_t checksum = header.U32();
  const uint64_t payload_size = header.U64();
  if (!magic) return broken("it does not begin as an agent's state does");
  if (header.ok() && version != options_.version) {
    return broken("it has version " + std::to_string(version) + ", this agent reads version " +
                  std::to_string(options_.version));
  }
  if (!header.ok() || payload_size != bytes.size() - kHeaderBytes) {
    return broken("it has " + std::to_string(bytes.size()) + " bytes, which does not match its header");
  }
  bytes.erase(0, kHeaderBytes);
  if (Checksum(bytes) != checksum) return broken("its checksum does not match its content");
  return read;
}

Status StateFile::Write(std::string_view payload) {
  ByteWriter header;
  for (const char c : options_.magic) header.U8(static_cast<uint8_t>(c));
  header.U32(options_.version);
  header.U32(Checksum(payload));
  header.U64(payload.size());
  const auto written = ReplaceDurable(File(), options_.mode, {std::move(header).Take(), payload}, options_.after_step);
  if (!written.ok()) return Error{written.error()};
  return Done{};
}

std::string StateFile::SetAside(std::string_view why) {
  std::string message;
  SetAsideDurable(File(), why, message);
  return message;
}

}  // namespace persia::agent
