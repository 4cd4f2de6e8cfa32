// What each worker process is and needs, `persia_process_*`, and what each identity is made of, `persia_job_info`, without a
// word from the workers: from what the collector knows of them, and from /proc.
//
//   WorkerMetrics metrics({.processes = [&] { return segments.processes(); }, .agent_version = "0.1.0"});
//   segments.Collect();
//   auto snapshot = metrics.Collect();
//
// /proc/<pid> is read only if it is surely the worker's: its pid namespace and start time are those that the worker wrote. Of a
// worker in another container the rest is shown.
//
// Thread safety: as Source.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "source/proc_reader.h"
#include "source/process_ends.h"
#include "source/source.h"
#include "source/worker_process.h"

namespace persia::agent {

class WorkerMetrics : public Source {
 public:
  struct Options {
    // The processes now, each place (identity and ordinal) once. Called by Collect.
    std::function<std::span<const WorkerProcess>()> processes;
    std::string agent_version;
    std::string run_id = {};  // of the agent; a process that knows none belongs to it
    std::filesystem::path proc = "/proc";
    // Of processes in the agent's pid namespace; null: nobody buries any. REQUIRES: outlives the source.
    const ProcessEnds* ends = nullptr;
  };

  explicit WorkerMetrics(Options options);

  // The same layout object while the same processes come in the same order. What is not known is left out.
  Result<std::shared_ptr<const Snapshot>> Collect() override;

 private:
  // One number for each process.
  enum Value : size_t {
    kCpu,
    kLastChange,
    kOpenFds,
    kResident,
    kRestarts,
    kStartTime,
    kThreads,
    kUp,
    kVirtual,
    kValues,
  };
  struct Family {
    const char* name;
    MetricType type;
    const char* help;
  };
  static const std::array<Family, kValues> kFamilies;

  using PlaceKey = std::pair<Identity, uint32_t>;
  struct Place {
    WorkerProcess process;
    std::string pid;        // in decimal, as /proc has it
    bool readable = false;  // /proc/<pid> is of the same pid namespace
    std::optional<double> start_time;
    std::string library_version;  // stays known when the process has ended
    std::string last_exit;        // why the last process ended there; empty: not known
  };
  // What the layout is made of.
  struct Shape {
    std::vector<PlaceKey> places;
    std::vector<std::string> last_exits;  // of each place
    std::map<Identity, Labels> infos;

    friend bool operator==(const Shape&, const Shape&) = default;
  };

  bool Follow(std::span<const WorkerProcess> processes);
  void Enter(Place& place, const WorkerProcess& process);
  bool NoteEnd(Place& place);
  void Reshape();
  void Fill(Place& place, double* values, size_t stride);

  const Options options_;
  ProcReader proc_;
  const std::optional<uint64_t> own_namespace_;
  std::map<PlaceKey, Place> places_;
  std::vector<Place*> order_;  // as the processes came last
  Shape shape_;
  std::shared_ptr<const Layout> layout_;
};

}  // namespace persia::agent
