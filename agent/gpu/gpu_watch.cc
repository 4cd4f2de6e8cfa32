#include "gpu/gpu_watch.h"

#include <system_error>
#include <utility>

#include "base/log.h"
#include "model/events.h"

namespace persia::agent {
namespace {

uint64_t NowInUnixMs() {
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  return static_cast<uint64_t>(now.time_since_epoch().count());
}

}  // namespace

GpuWatch::GpuWatch(Options options)
    : options_(std::move(options)), no_rank_(WithoutRank(options_.agent)), xids_(options_.xids), metrics_(options_.agent) {}

void GpuWatch::Use(bool on, std::chrono::milliseconds interval) {
  if (reader_ != nullptr && on && interval == interval_) return;
  if (reader_ != nullptr) {
    reader_->AskToStop();
    const GpuReader::News news = reader_->Take();
    former_restarts_ += news.restarts;
    TakeXids(news.xids, last_);
    stopping_ = std::move(reader_);
  }
  interval_ = interval;
  library_ = on ? options_.find_library() : "";
  StartReader();
}

// Not before the process of the reader before this one is gone, which may take as long as a call of the driver.
void GpuWatch::StartReader() {
  if (stopping_ != nullptr && stopping_->HasEnded()) stopping_.reset();
  if (stopping_ != nullptr || reader_ != nullptr || library_.empty()) return;
  auto reader =
      std::make_unique<GpuReader>(options_.reader ? options_.reader(library_, interval_) : ReaderOptions(library_, interval_));
  try {
    reader->Start();
    reader_ = std::move(reader);
  } catch (const std::system_error& error) {
    library_.clear();  // until a reload
    LogWarning("gpu", std::string("GPUs are not read: cannot start a thread: ") + error.what());
  }
}

void GpuWatch::Look(std::span<const Process> processes) {
  StartReader();
  GpuReader::News news;
  if (reader_ != nullptr) news = reader_->Take();
  // Values that were not renewed in time are not shown.
  const auto fresh = 2 * interval_ + std::chrono::seconds(1);
  const bool is_known = news.sample != nullptr && options_.now() - news.sampled_at <= fresh;
  Owners owners;
  std::vector<Identity> identities;
  if (is_known) {
    if (ranks_ == nullptr) ranks_ = std::make_unique<GpuRanks>("/proc", options_.initial_pid_namespace);
    const std::vector<std::optional<size_t>> ranks = ranks_->Assign(*news.sample, processes);
    for (size_t i = 0; i < ranks.size(); ++i) {
      const GpuDevice& device = news.sample->devices[i];
      Owner owner{.identity = no_rank_};
      if (ranks[i]) owner = {.identity = processes[*ranks[i]].identity, .pid = processes[*ranks[i]].id.pid};
      if (!device.uuid.empty()) uuids_[device.gpu] = device.uuid;
      identities.push_back(owner.identity);
      owners.emplace(device.gpu, std::move(owner));
    }
    ReportLost(*news.sample, owners);
  }
  TakeXids(news.xids, owners);
  for (const auto& [gpu, owner] : owners)
    if (owner.pid != 0) former_[gpu] = {owner, NowInUnixMs()};
  last_ = std::move(owners);
  const GpuXidCounts::Counts& xids = xids_.Shown();
  const bool has_reader = !library_.empty();
  if (!has_reader && xids.empty()) {
    snapshot_ = nullptr;
    return;
  }
  snapshot_ = metrics_.Collect({.sample = is_known ? news.sample.get() : nullptr,
                                .owners = std::move(identities),
                                .xids = xids,
                                .has_reader = has_reader,
                                .runs = news.runs,
                                .restarts = former_restarts_ + news.restarts});
}

// The owner of the device when the error happened: between the last Look and this one. The error often ends the process, and
// may be reported a moment later.
GpuWatch::Owner GpuWatch::OwnerAt(const GpuXid& xid, const Owners& now) const {
  constexpr uint64_t kLateMs = 2000;
  const auto find = [&](const Owners& owners) {
    const auto found = owners.find(xid.gpu);
    return found == owners.end() ? Owner{.identity = no_rank_} : found->second;
  };
  const Owner before = find(last_);
  const Owner after = find(now);
  if (before.pid != 0 && after.pid != 0 && before.identity != after.identity) return {.identity = no_rank_};
  if (after.pid != 0) return after;
  if (before.pid != 0) return before;
  const auto former = former_.find(xid.gpu);
  const bool is_late = former != former_.end() && xid.unix_ms <= former->second.second + kLateMs;
  return is_late ? former->second.first : Owner{.identity = no_rank_};
}

void GpuWatch::TakeXids(const std::vector<GpuXid>& xids, const Owners& now) {
  for (const GpuXid& xid : xids) {
    const Owner owner = OwnerAt(xid, now);
    xids_.Add({.identity = owner.identity, .gpu = xid.gpu, .xid = xid.xid});
    const std::string xid_class(XidClass(xid.xid));
    const std::string meaning(XidText(xid.xid));
    const std::string text = NameOf(xid.gpu, owner) + ": XID " + std::to_string(xid.xid) +
                             (meaning.empty() ? "" : ", " + meaning) + "; class " + xid_class;
    JobEvent& event = Report("gpu_xid", xid.gpu, owner, text);
    event.unix_ms = xid.unix_ms;
    event.metadata.emplace_back("xid", static_cast<int64_t>(xid.xid));
    event.metadata.emplace_back("class", xid_class);
  }
}

void GpuWatch::ReportLost(const GpuSample& sample, const Owners& owners) {
  for (const GpuDevice& device : sample.devices) {
    if (!device.is_lost) {
      lost_.erase(device.gpu);
    } else if (lost_.insert(device.gpu).second) {
      const Owner& owner = owners.at(device.gpu);
      Report("gpu_lost", device.gpu, owner, NameOf(device.gpu, owner) + " is lost: it does not answer the driver any more");
    }
  }
}

JobEvent& GpuWatch::Report(const char* name, const std::string& gpu, const Owner& owner, const std::string& text) {
  JobEvent& event = events_.emplace_back(LoggedAgentEvent(LogLevel::kWarning, name, text, std::chrono::system_clock::now()));
  event.metadata.emplace_back("gpu", gpu);
  if (const auto uuid = uuids_.find(gpu); uuid != uuids_.end()) event.metadata.emplace_back("uuid", uuid->second);
  event.identity = owner.identity;
  event.pid = owner.pid;
  return event;
}

std::string GpuWatch::NameOf(const std::string& gpu, const Owner& owner) const {
  const auto uuid = uuids_.find(gpu);
  const std::string role = LabelValueOf(owner.identity, "role");
  const std::string rank =
      owner.pid == 0 ? "no rank" : (role.empty() ? "" : role + " ") + LabelValueOf(owner.identity, "instance");
  return "GPU " + gpu + " (" + (uuid == uuids_.end() ? "" : uuid->second + ", ") + rank + ")";
}

}  // namespace persia::agent
