// The only record of the file (as in files/bytes.h): run id (String), and the list of counts: job (String), list of labels:
// name, value (String); gpu (String), xid, count (U64).
#include "gpu/gpu_xids.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "files/bytes.h"

namespace persia::agent {
namespace {

constexpr JournalFormat kFormat{.magic = {'P', 'R', 'S', 'M', 'G', 'P', 'U', '\n'}, .version = 1};

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

template <class Archive>
void Fields(Archive& archive, GpuXidKey& key) {
  archive(key.identity.job, key.identity.labels, key.gpu, key.xid);
}

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
  std::string run_id;
  Counts counts;
  const bool is_good = Decode(content.value().only().value_or(""), run_id, counts) && counts.size() <= kMaxKeys;
  if (!is_good || run_id != options_.run_id) return;
  for (const auto& [key, count] : counts) counts_[key] += count;
  shown_ = std::move(counts);
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
  write_ = writer_->ReplaceOnly(Encode(options_.run_id, counts_));
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
