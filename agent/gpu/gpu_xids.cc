// The file is a journal of checkpoints alone. Its record: String run_id, U32 entries, then of each String job, U32 labels,
// (String name, String value)*, String gpu, U64 xid, U64 count.
#include "gpu/gpu_xids.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "files/bytes.h"

namespace persia::agent {
namespace {

constexpr JournalFormat kFormat{.magic = {'P', 'R', 'S', 'M', 'G', 'P', 'U', '\n'}, .version = 2};
constexpr uint16_t kCountsTag = 1;

struct XidAbout {
  uint64_t xid;
  std::string_view xid_class;
  std::string_view text;
};

constexpr std::string_view kFatal = "fatal";
constexpr std::string_view kMemory = "memory";
constexpr std::string_view kApplication = "application";

// By NVIDIA's "XID Errors" (docs.nvidia.com/deploy/xid-errors), as far as their meaning does not depend on the driver's
// version.
constexpr XidAbout kXids[] = {
    {13, kApplication, "graphics engine exception: a kernel accessed memory out of bounds, or an instruction failed"},
    {31, kApplication, "memory page fault: a kernel used an invalid address"},
    {43, kApplication, "GPU stopped processing: a kernel hit an error, and its process was ended"},
    {45, kApplication, "preemptive cleanup: its process was ended, often after another error"},
    {46, kFatal, "GPU stopped processing"},
    {48, kFatal, "double-bit ECC error"},
    {61, kFatal, "internal micro-controller breakpoint"},
    {62, kFatal, "internal micro-controller halt"},
    {63, kMemory, "a row is remapped or a page is retired"},
    {64, kFatal, "a row could not be remapped, or a page not be retired"},
    {69, kApplication, "graphics engine class error"},
    {74, kFatal, "NVLink error"},
    {79, kFatal, "GPU has fallen off the bus"},
    {92, kMemory, "high rate of single-bit ECC errors"},
    {94, kMemory, "contained memory error: its process was ended"},
    {95, kFatal, "uncontained memory error"},
    {109, kApplication, "context switch timeout"},
    {119, kFatal, "GSP does not answer"},
    {120, kFatal, "GSP error"},
    {136, kFatal, "link training failed"},
    {140, kFatal, "unrecovered ECC error"},
    {143, kFatal, "GPU initialization error"},
};

const XidAbout* FindXid(uint64_t xid) {
  const auto* const found = std::ranges::find(kXids, xid, &XidAbout::xid);
  return found == std::end(kXids) ? nullptr : found;
}

}  // namespace

std::string_view XidClass(uint64_t xid) {
  const XidAbout* const about = FindXid(xid);
  return about == nullptr ? "other" : about->xid_class;
}

std::string_view XidText(uint64_t xid) {
  const XidAbout* const about = FindXid(xid);
  return about == nullptr ? "" : about->text;
}

GpuXidCounts::GpuXidCounts(Options options) : options_(std::move(options)) { Read(); }

// Adds the counts of the agent before to those since this agent's start.
void GpuXidCounts::Read() {
  tried_ = options_.now();
  is_read_ = options_.file == nullptr;
  if (is_read_) return;
  std::string set_aside;
  const auto content = ReadJournal(*options_.file, kFormat, /*look=*/false, set_aside);
  if (!set_aside.empty()) LogWarning("gpu.state", set_aside);
  if (!content.ok()) {
    log_.Bad("read", "the counts of GPU errors are not shown: " + content.error());
    return;
  }
  is_read_ = true;
  log_.Recovered("the counts of GPU errors are shown again");
  if (content.value().records.empty()) return;
  ByteReader reader(content.value().records.back().payload);
  if (reader.String() != options_.run_id) return;
  constexpr size_t kLeastEntryBytes = 3 * sizeof(uint32_t) + 2 * sizeof(uint64_t);
  constexpr size_t kLeastLabelBytes = 2 * sizeof(uint32_t);
  for (uint32_t left = reader.Count(kLeastEntryBytes); left > 0; --left) {
    GpuXidKey key;
    key.identity.job = reader.String();
    for (uint32_t labels = reader.Count(kLeastLabelBytes); labels > 0; --labels) {
      std::string name(reader.String());
      key.identity.labels.emplace_back(std::move(name), reader.String());
    }
    key.gpu = reader.String();
    key.xid = reader.U64();
    const uint64_t count = reader.U64();
    if (!reader.ok() || shown_.size() == kMaxKeys) break;
    counts_[key] += count;
    shown_[std::move(key)] = count;
  }
}

void GpuXidCounts::Add(const GpuXidKey& key) {
  if (counts_.size() == kMaxKeys && !counts_.contains(key)) return;
  ++counts_[key];
  is_shown_ = false;
  Save();
}

void GpuXidCounts::Save() {
  if (options_.file == nullptr || !is_read_) return;
  if (!writer_) {
    writer_.emplace(JournalWriter::Options{.file = options_.file, .format = kFormat, .threaded = options_.threaded});
    writer_->Start();
  }
  ByteWriter writer;
  writer.String(options_.run_id);
  writer.U32(static_cast<uint32_t>(counts_.size()));
  for (const auto& [key, count] : counts_) {
    writer.String(key.identity.job);
    writer.U32(static_cast<uint32_t>(key.identity.labels.size()));
    for (const auto& [name, value] : key.identity.labels) {
      writer.String(name);
      writer.String(value);
    }
    writer.String(key.gpu);
    writer.U64(key.xid);
    writer.U64(count);
  }
  std::string record;
  AddRecord(record, kCountsTag, std::move(writer).Take());
  write_ = writer_->Replace(std::move(record));
}

const GpuXidCounts::Counts& GpuXidCounts::Shown() {
  if (!is_read_ && options_.now() - tried_ >= kReadRetry) {
    Read();
    if (!is_shown_) Save();
  }
  if (is_shown_ || !is_read_) return shown_;
  if (writer_ && writer_->written() < write_) {
    if (!writer_->stats().error) return shown_;
    if (writer_->WantsCheckpoint()) Save();
  }
  is_shown_ = !writer_ || writer_->written() >= write_;
  shown_ = counts_;
  return shown_;
}

void GpuXidCounts::Flush(std::chrono::milliseconds patience) {
  if (writer_) writer_->AwaitWritten(write_, patience);
}

}  // namespace persia::agent
