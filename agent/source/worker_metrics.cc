// Values of a snapshot: for each Value one number of each process, in the order of the processes; then a 1 for each series that
// says something by its labels alone.
#include "source/worker_metrics.h"

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

#include "model/naming.h"

namespace persia::agent {
namespace {

// What a worker says about itself may be of any length.
constexpr size_t kMaxTextBytes = 128;

std::string Text(std::string_view text) { return SanitizeText(text.substr(0, kMaxTextBytes)); }

// Whether the same process stands there as before, in all that the layout and /proc depend on.
bool Same(const WorkerProcess& a, const WorkerProcess& b) {
  const auto all = [](const WorkerProcess& p) {
    return std::tie(p.alive, p.pid, p.start_ticks, p.pid_namespace, p.ordinal, p.restart_count, p.run_id, p.library_version,
                    p.identity);
  };
  return all(a) == all(b);
}

// A living process before a dead one, then the later one.
bool Newer(const WorkerProcess& a, const WorkerProcess& b) {
  const auto age = [](const WorkerProcess& p) { return std::tie(p.alive, p.start_ticks, p.pid); };
  return age(a) > age(b);
}

}  // namespace

const std::array<WorkerMetrics::Family, WorkerMetrics::kValues> WorkerMetrics::kFamilies{{
    {"persia_process_cpu_seconds", MetricType::kGauge,
     "Processor time, user and system, of the process now on this place; begins again with each process."},
    {"persia_process_last_change_timestamp_seconds", MetricType::kGauge,
     "When a metric of the process last changed, in seconds since 1970: of a process that hangs it stands still."},
    {"persia_process_open_fds", MetricType::kGauge, "File descriptors that the process has open."},
    {"persia_process_resident_memory_bytes", MetricType::kGauge, "Memory of the process that is in RAM."},
    {"persia_process_restarts_total", MetricType::kCounter,
     "Processes of this run that came to this place after another had ended there."},
    {"persia_process_start_time_seconds", MetricType::kGauge, "When the process started, in seconds since 1970."},
    {"persia_process_threads", MetricType::kGauge, "Threads of the process."},
    {"persia_process_up", MetricType::kGauge, "1 if a process is on this place, 0 if the last one there has ended."},
    {"persia_process_virtual_memory_bytes", MetricType::kGauge, "Address space of the process."},
}};

WorkerMetrics::WorkerMetrics(Options options)
    : options_(std::move(options)), proc_(options_.proc), own_namespace_(proc_.PidNamespace("self")) {}

Result<std::shared_ptr<const Snapshot>> WorkerMetrics::Collect() {
  if (Follow(options_.processes()) || layout_ == nullptr) {
    Reshape();
  }
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = layout_;
  snapshot->collected_at = std::chrono::system_clock::now();
  snapshot->values.assign(layout_->value_count, 1);
  for (size_t i = 0; i < order_.size(); ++i) {
    Fill(*order_[i], snapshot->values.data() + i, order_.size());
  }
  return std::shared_ptr<const Snapshot>(std::move(snapshot));
}

// Brings the places up to date. Returns whether something came, went, or ended.
bool WorkerMetrics::Follow(std::span<const WorkerProcess> processes) {
  bool changed = processes.size() != order_.size();
  std::vector<Place*> order;
  order.reserve(processes.size());
  for (size_t i = 0; i < processes.size(); ++i) {
    const WorkerProcess& process = processes[i];
    Place* place = i < order_.size() ? order_[i] : nullptr;
    if (place == nullptr || !Same(place->process, process)) {
      changed = true;
      place = &places_[{process.identity, process.ordinal}];
      Enter(*place, process);
    } else {
      place->process.predecessors = process.predecessors;
      place->process.last_change = process.last_change;
    }
    changed = (!process.alive && NoteEnd(*place)) || changed;
    order.push_back(place);
  }
  order_ = std::move(order);
  if (changed) {
    const std::set<const Place*> there(order_.begin(), order_.end());
    std::erase_if(places_, [&](const auto& place) { return !there.contains(&place.second); });
  }
  return changed;
}

void WorkerMetrics::Enter(Place& place, const WorkerProcess& process) {
  NoteEnd(place);  // of the one before, which may have come and gone since the last look
  const bool other = place.process.pid != process.pid || place.process.start_ticks != process.start_ticks;
  place.process = process;
  place.pid = std::to_string(process.pid);
  const std::optional<uint64_t> there = proc_.PidNamespace(place.pid);
  // Of another user's process the namespace cannot be read; if it is said to be ours, the start time decides.
  place.readable =
      process.alive && process.pid_namespace != 0 && there.value_or(own_namespace_.value_or(0)) == process.pid_namespace;
  if (other) {
    place.start_time.reset();
  }
  if (other || !process.library_version.empty()) {
    place.library_version = process.library_version;
  }
}

// Returns whether how it ended is known since now.
bool WorkerMetrics::NoteEnd(Place& place) {
  const WorkerProcess& process = place.process;
  if (options_.ends == nullptr || process.pid_namespace != own_namespace_) {
    return false;
  }
  const auto reason = options_.ends->ReasonOf(process.pid, process.start_ticks);
  if (!reason || *reason == place.last_exit) {
    return false;
  }
  place.last_exit = *reason;
  return true;
}

void WorkerMetrics::Reshape() {
  Shape shape;
  std::map<Identity, const Place*> newest;
  for (const Place* place : order_) {
    const WorkerProcess& process = place->process;
    shape.places.emplace_back(process.identity, process.ordinal);
    shape.last_exits.push_back(place->last_exit);
    const Place*& of_identity = newest[process.identity];
    if (of_identity == nullptr || Newer(process, of_identity->process)) {
      of_identity = place;
    }
  }
  for (const auto& [identity, place] : newest) {
    shape.infos[identity] = {{"agent_version", options_.agent_version},
                             {"library_version", Text(place->library_version)},
                             {"restart_count", std::to_string(place->process.restart_count)},
                             {"run_id", Text(place->process.run_id.empty() ? options_.run_id : place->process.run_id)}};
  }
  if (layout_ != nullptr && shape == shape_) {
    return;
  }
  shape_ = std::move(shape);

  auto layout = std::make_shared<Layout>();
  std::map<Identity, uint32_t> indexes;
  for (const auto& [identity, info] : shape_.infos) {
    indexes.emplace(identity, static_cast<uint32_t>(layout->identities.size()));
    layout->identities.push_back(identity);
  }
  const auto label = [](uint32_t ordinal) { return std::pair<std::string, std::string>("process", std::to_string(ordinal)); };
  const auto add = [&](FamilyLayout& family, const Identity& identity, Labels labels) {
    family.series.push_back(
        {.identity = indexes.at(identity), .first_value = layout->value_count++, .labels = std::move(labels)});
  };
  for (const Family& about : kFamilies) {
    FamilyLayout family{.name = about.name, .type = about.type, .help = about.help, .unit = "", .bounds = {}, .series = {}};
    for (const auto& [identity, ordinal] : shape_.places) {
      add(family, identity, {label(ordinal)});
    }
    layout->families.push_back(std::move(family));
  }
  FamilyLayout job_info{.name = "persia_job_info",
                        .type = MetricType::kGauge,
                        .help = "1, with the run and the versions of an identity's newest process in its labels.",
                        .unit = "",
                        .bounds = {},
                        .series = {}};
  for (const auto& [identity, info] : shape_.infos) {
    add(job_info, identity, info);
  }
  FamilyLayout last_exit{.name = "persia_process_last_exit_info",
                         .type = MetricType::kGauge,
                         .help =
                             "1, with how the last process that ended on this place did so; known if the agent was its "
                             "parent: exit_<code>, or the signal's name.",
                         .unit = "",
                         .bounds = {},
                         .series = {}};
  for (size_t i = 0; i < shape_.places.size(); ++i) {
    if (!shape_.last_exits[i].empty()) {
      const auto& [identity, ordinal] = shape_.places[i];
      add(last_exit, identity, {label(ordinal), {"reason", shape_.last_exits[i]}});
    }
  }
  layout->families.push_back(std::move(job_info));
  layout->families.push_back(std::move(last_exit));
  std::erase_if(layout->families, [](const FamilyLayout& family) { return family.series.empty(); });
  std::ranges::sort(layout->families, {}, &FamilyLayout::name);
  layout_ = std::move(layout);
}

// Writes one of each Value, `stride` apart.
void WorkerMetrics::Fill(Place& place, double* values, size_t stride) {
  const auto set = [&](Value value, double to) { values[value * stride] = to; };
  for (size_t value = 0; value < kValues; ++value) {
    set(static_cast<Value>(value), kAbsentValue);
  }
  const WorkerProcess& process = place.process;
  set(kUp, process.alive ? 1 : 0);
  // A predecessor of a place that is empty now has had no successor.
  const uint64_t unfollowed = process.alive ? 0 : std::min<uint64_t>(process.predecessors, 1);
  set(kRestarts, static_cast<double>(process.predecessors - unfollowed));
  if (process.last_change.time_since_epoch().count() != 0) {
    // In milliseconds first: whole ones divided give the shortest number.
    const auto at = std::chrono::floor<std::chrono::milliseconds>(process.last_change.time_since_epoch());
    set(kLastChange, static_cast<double>(at.count()) / 1000);
  }
  const auto stat = place.readable ? proc_.Stat(place.pid) : std::nullopt;
  if (!stat || stat->start_ticks != process.start_ticks) {
    return;
  }
  set(kCpu, stat->cpu_seconds);
  set(kThreads, static_cast<double>(stat->threads));
  if (const auto memory = proc_.Memory(place.pid)) {
    set(kResident, memory->resident_bytes);
    set(kVirtual, memory->virtual_bytes);
  }
  if (!place.start_time) {
    place.start_time = proc_.UnixTime(process.start_ticks);
  }
  set(kStartTime, place.start_time.value_or(kAbsentValue));
  if (const auto open_fds = proc_.OpenFds(place.pid)) {
    set(kOpenFds, static_cast<double>(*open_fds));
  }
}

}  // namespace persia::agent
