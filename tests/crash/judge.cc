#include "judge.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "format/group_renderer.h"
#include "job/event_log.h"
#include "job/job_session.h"
#include "push/group_ledger.h"
#include "remote/active_series.h"
#include "remote/disk_queue.h"
#include "remote/write_request.h"
#include "workers/segment_source.h"

namespace persia::agent::crash {
namespace {

constexpr std::string_view kEvents = "events.jsonl";
constexpr std::string_view kBroken = ".broken";
constexpr std::string_view kStaleSample("\x12\x10\x09\x02\0\0\0\0\0\xf0\x7f", 11);  // without its timestamp

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The files below a directory that were set aside.
std::set<std::string> BrokenIn(const std::string& directory) {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.path().filename().string().find(kBroken) != std::string::npos) found.insert(entry.path().filename());
  }
  return found;
}

bool HasFileWith(const std::string& directory, const std::string& content) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("agent.state") && ReadFile(entry.path()) == content) return true;
  }
  return false;
}

uint64_t CountOf(const Snapshot& snapshot) {
  double count = 0;
  for (const FamilyLayout& family : snapshot.layout->families) {
    if (family.name != "crash_counts") continue;
    for (const SeriesLayout& series : family.series) count += snapshot.values[series.first_value];
  }
  return static_cast<uint64_t>(count);
}

// Which processes are counted, and how often.
std::string Processes(uint64_t count) {
  std::string text;
  for (; count > 0; count /= 4) text += (text.empty() ? "" : " ") + std::to_string(count % 4);
  return "processes counted " + (text.empty() ? "0" : text) + " times";
}

// The body of a request of the disk queue, of which these bytes were written, read without the agent's code.
std::string BodyOf(std::string_view written) {
  constexpr size_t kBefore = 16 + 24 + 12;  // the headers of the file, the batch and the record
  return std::string(written.substr(std::min(kBefore, written.size())));
}

}  // namespace

void Told::Apply(const Operation& operation) {
  switch (operation.what) {
    case Do::kSegment:
      segments.push_back(operation.name);
      ++events;
      break;
    case Do::kPut:
      groups.insert(operation.name);
      break;
    case Do::kDelete:
      groups.erase(operation.name);
      break;
    case Do::kShown:
      shown[operation.name] = std::max(shown[operation.name], operation.number);
      break;
    case Do::kSeries:
      operation.number == 0 ? static_cast<void>(series.insert(operation.data))
                            : static_cast<void>(series.erase(operation.data));
      break;
    case Do::kLink:
      if (operation.name.ends_with(".state.draft")) run_is_over = run_may_be_over = false;  // of the next run
      break;
    case Do::kUnlink:
      run_may_be_over = run_may_be_over || operation.name.ends_with(".state");
      break;
    case Do::kDamaged:
      damaged = operation.data;
      segments_before_damage = segments.size();
      break;
    case Do::kRunEnded:
      segments.clear();
      shown.clear();
      run_is_over = true;
      break;
    case Do::kWrite: {
      constexpr std::string_view kConf = "enabled=1\nrun_id=";
      if (!operation.data.starts_with(kConf)) break;
      const std::string run = operation.data.substr(kConf.size(), operation.data.find('\n', kConf.size()) - kConf.size());
      if (run != run_id) run_is_over = run_may_be_over = false;
      run_id = run;
      run_may_be_over = run_may_be_over || operation.data.find("\nended=1\n") != std::string::npos;
      break;
    }
    default:
      break;
  }
}

uint64_t Told::Shown() const {
  uint64_t sum = 0;
  for (const auto& [group, count] : shown) sum += count;
  return sum;
}

// The agent's parts, on the files of one state.
class Judge::Recovery {
 public:
  Recovery(const Options& options, const std::string& root)
      : root_(root), session_(JobSession::Begin(Settings(options, root))) {
    if (!session_.ok() || session_.value().other_agent() || !session_.value().other_job().empty()) return;
    const StateLocation state = session_.value().state_location();
    positions_.emplace(state);
    SegmentSourceOptions source;
    source.directory = session_.value().directory().path();
    source.job = "crash";
    source.run_id = session_.value().run_id();
    source.reads_events = true;
    if (session_.value().continued()) source.event_positions = positions_->Load();
    source.ledger = {.file = StateFileOf(state),
                     .saves_living = state.directory != source.directory,
                     .run_id = source.run_id,
                     .new_run = !session_.value().continued(),
                     .processes = {.gauge_ttl = std::chrono::hours(24), .hide_ended = false},
                     .threaded = false};
    source_ = std::make_unique<SegmentSource>(std::move(source));
  }

  // Empty: it has started.
  [[nodiscard]] std::string Refusal() const {
    if (!session_.ok()) return session_.error();
    if (session_.value().other_agent()) return "another agent holds the lock";
    return session_.value().other_job();
  }
  [[nodiscard]] const JobSession& session() const { return session_.value(); }

  uint64_t Count() {
    EventLog events({.file = root_ + "/" + std::string(kEvents)});
    source_->Read();
    events.Add(source_->TakeEvents());
    source_->Retire();
    source_->Commit();
    source_->Plan({});
    for (const Diagnostic& diagnostic : source_->TakeDiagnostics()) LogWarning("segments." + diagnostic.kind, diagnostic.text);
    for (const RefusedSegment& refused : source_->stats().refused)
      LogWarning("segments.refused", refused.path + ": " + refused.problem.text);
    return CountOf(*source_->Expose({}));
  }

  [[nodiscard]] std::set<std::string> Groups() const {
    const StateLocation state = session().state_location();
    const GroupLedger ledger({.directory_fd = state.directory_fd,
                              .directory = state.directory,
                              .name = state.FileName("groups"),
                              .mode = state.mode,
                              .run_id = session().run_id()});
    std::set<std::string> groups;
    for (const GroupLedger::Group& group : ledger.groups()) groups.insert(GroupingKeyPath(group.identity));
    return groups;
  }

  // The bodies that are sent, in their order.
  [[nodiscard]] std::vector<std::string> Send() const {
    const StateLocation state = session().state_location();
    auto queue = DiskQueue::Open({.directory_fd = state.directory_fd,
                                  .directory = state.directory,
                                  .name = state.FileName("remote.db.queue"),
                                  .free_bytes = [] { return UINT64_MAX; }});
    std::vector<std::string> bodies;
    if (!queue.ok()) return {queue.error()};
    queue.value()->EndWhenEmpty();
    while (auto request = queue.value()->Next()) {
      bodies.push_back(request->body);
      queue.value()->Finish();
    }
    return bodies;
  }

  [[nodiscard]] SeriesTable Series() const {
    const StateLocation state = session().state_location();
    ActiveSeries series(
        {.directory_fd = state.directory_fd, .directory = state.directory, .name = state.FileName("remote.db.series")});
    return series.Load();
  }

 private:
  static AgentOptions Settings(const Options& options, const std::string& root) {
    AgentOptions settings;
    settings.job_name = "crash";
    settings.has_job_name = true;
    settings.metrics_dir = root + "/metrics";
    if (options.state_elsewhere) settings.state_dir = root + "/state";
    return settings;
  }

  const std::string root_;
  Result<JobSession> session_;
  std::optional<EventPositionFile> positions_;
  std::unique_ptr<SegmentSource> source_;
};

Judge::Judge(Options options)
    : options_(std::move(options)), log_(memfd_create("log", MFD_CLOEXEC)), stderr_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) {
  umask(077);
  std::filesystem::remove_all(options_.directory);
  std::filesystem::create_directories(options_.directory + "/segments");
  dup2(log_.get(), STDERR_FILENO);
}

Judge::~Judge() {
  dup2(stderr_.get(), STDERR_FILENO);
  std::filesystem::remove_all(options_.directory);
}

void Judge::Write(const Image& image, const std::string& to) {
  std::filesystem::remove_all(to);
  std::filesystem::create_directory(to);
  for (const std::string& path : image.directories) std::filesystem::create_directory(to + "/" + path);
  for (const auto& [path, file] : image.files) {
    if (path.ends_with(".seg")) {
      if (!options_.keeps_segments) continue;
      // Linked, because segments are large, and the agent does not write to them.
      std::string& segment = segments_[file.content.get()];
      if (segment.empty()) {
        segment = options_.directory + "/segments/" + std::to_string(segments_.size());
        std::ofstream(segment, std::ios::binary) << file.content->bytes;
      }
      std::error_code other_disk;
      std::filesystem::create_hard_link(segment, to + "/" + path, other_disk);
      if (other_disk) std::filesystem::copy_file(segment, to + "/" + path);
      continue;
    }
    std::ofstream(to + "/" + path, std::ios::binary) << file.content->bytes;
  }
}

std::string Judge::Check(const Image& image, const Told& told, const Disk& disk) {
  Write(image, options_.directory + "/state");
  if (ftruncate(log_.get(), 0) != 0 || lseek(log_.get(), 0, SEEK_SET) != 0) return "the log cannot be read";
  std::string wrong = Recover(image, told, disk);
  if (wrong.empty()) return wrong;
  std::string text(4096, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, pread(log_.get(), text.data(), text.size(), 0))));
  return wrong + (text.empty() ? "" : "\n  the log:\n" + text);
}

std::string Judge::Recover(const Image& image, const Told& told, const Disk& disk) {
  const std::string root = options_.directory + "/state";
  const std::set<std::string> broken_before = BrokenIn(root);
  uint64_t count = 0;
  {
    Recovery agent(options_, root);
    if (const std::string why = agent.Refusal(); !why.empty()) return "the agent does not start: " + why;
    count = agent.Count();
    const bool same_run = options_.keeps_segments ? agent.session().run_id() == told.run_id : agent.session().continued();
    if (same_run && told.run_is_over) return "the run goes on, though it had ended";
    if (std::string wrong = WrongCount(count, same_run, told); !wrong.empty()) return wrong;
    if (std::string wrong = WrongGroups(agent.Groups(), told); !wrong.empty()) return wrong;
    const std::vector<std::string> sent = image.directories.contains(QueueName()) ? agent.Send() : std::vector<std::string>();
    if (std::string wrong = WrongRequests(sent, image, disk); !wrong.empty()) return wrong;
    if (std::string wrong = WrongSeries(agent.Series(), sent, told); !wrong.empty()) return wrong;
    if (std::string wrong = WrongEvents(root, image, told); !wrong.empty()) return wrong;
  }
  for (const std::string& name : BrokenIn(root)) {
    // A queue's file whose requests the cut has lost is kept. WrongRequests has found that no whole one was in it.
    const bool is_lost = name.find(".queue.broken-") != std::string::npos;
    if (!broken_before.contains(name) && !told.damaged && !is_lost) return "a cut has damaged a file: " + name;
  }
  if (told.damaged && !HasFileWith(root, *told.damaged)) return "the damaged state is overwritten";
  Recovery next(options_, root);
  if (const std::string why = next.Refusal(); !why.empty()) return "the second agent does not start: " + why;
  if (const uint64_t again = next.Count(); again != count) {
    return Processes(count) + "; after another start, " + Processes(again);
  }
  return "";
}

std::string Judge::QueueName() const {
  return options_.state_elsewhere ? "state/crash.rep_0.remote.db.queue" : "metrics/agent.remote.db.queue";
}

std::string Judge::WrongCount(uint64_t count, bool same_run, const Told& told) const {
  uint64_t all = 0;
  for (size_t i = 0; i < told.segments.size(); ++i) all += uint64_t{1} << 2 * i;
  if (!options_.keeps_segments) {
    if (told.run_is_over || (told.run_may_be_over && !same_run))
      return count == 0 ? "" : "a new run begins with " + Processes(count);
    if (count > told.most) return Processes(count) + ", of " + Processes(told.most);
    return count >= told.Shown() ? "" : Processes(count) + ", but shown was " + Processes(told.Shown());
  }
  if (!same_run) {
    if (!told.run_may_be_over && all > 0) return "the run is lost, which had counts";
    return count == 0 ? "" : "a new run begins with " + Processes(count);
  }
  // The counts of processes that had ended before the damage may be lost.
  const uint64_t may_be_lost = (uint64_t{1} << 2 * told.segments_before_damage) - 1;
  const bool lost = told.damaged && (count | may_be_lost) == (all | may_be_lost) && (count & ~all) == 0;
  return count == all || lost ? "" : Processes(count) + ", expected " + Processes(all);
}

std::string Judge::WrongGroups(const std::set<std::string>& groups, const Told& told) {
  for (const std::string& group : told.groups) {
    if (!groups.contains(group)) return "the group " + group + " was PUT, and is not known";
  }
  return "";
}

// Each whole request that is not done is sent, once, in its order.
std::string Judge::WrongRequests(const std::vector<std::string>& sent, const Image& image, const Disk& disk) const {
  std::vector<std::string> expected;
  for (const auto& [path, file] : image.files) {
    if (!path.starts_with(QueueName()) || !path.ends_with(".queue") || path.ends_with(".0.queue")) continue;
    const std::string_view written = disk.Written(file.number);
    if (file.content->bytes == written) expected.push_back(BodyOf(written));
  }
  if (sent == expected) return "";
  return std::to_string(sent.size()) + " requests are sent, of " + std::to_string(expected.size()) + " whole ones on disk" +
         (sent.size() == expected.size() ? ", but other ones, or in another order" : "");
}

std::string Judge::WrongSeries(const SeriesTable& series, const std::vector<std::string>& sent, const Told& told) {
  std::string markers;
  for (const std::string& body : sent) markers += SnappyUncompress(body, 64 << 20).value_or("");
  for (const std::string& labels : told.series) {
    if (series.Find(labels) || markers.find(labels + std::string(kStaleSample)) != std::string::npos) continue;
    std::string text = labels;
    std::ranges::replace_if(
        text, [](char c) { return c < ' '; }, ' ');
    return "a series was sent, and gets no stale marker: " + text;
  }
  return "";
}

// A kill loses no event. A cut damages only the line that was being written.
std::string Judge::WrongEvents(const std::string& root, const Image& image, const Told& told) {
  const std::string path = root + "/" + std::string(kEvents);
  JobEvent last;
  last.type = "crash";
  last.name = "last";
  {
    EventLog log({.file = path});
    log.Add({&last, 1});
  }
  const std::string text = ReadFile(path);
  if (!text.ends_with("\n" + EventJson(last) + "\n") && text != EventJson(last) + "\n") {
    return "a line does not have exactly one event: " + text.substr(text.size() - std::min<size_t>(text.size(), 300));
  }
  for (size_t i = 0; image.all && i < told.events; ++i) {
    if (text.find("\"name\": \"e" + std::to_string(i) + "\"") == std::string::npos) {
      return "event e" + std::to_string(i) + " is lost";
    }
  }
  return "";
}

}  // namespace persia::agent::crash
