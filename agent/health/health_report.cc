#include "health/health_report.h"

namespace persia::agent {

std::string_view Name(WorkerState state) {
  switch (state) {
    case WorkerState::kStarting:
      return "starting";
    case WorkerState::kRunning:
      return "running";
    case WorkerState::kIdle:
      return "idle";
    case WorkerState::kHung:
      return "hung";
    case WorkerState::kExited:
      return "exited";
    case WorkerState::kDied:
      return "died";
  }
  return "";
}

std::string_view Name(JobState state) {
  switch (state) {
    case JobState::kWaiting:
      return "waiting";
    case JobState::kRunning:
      return "running";
    case JobState::kDegraded:
      return "degraded";
    case JobState::kHung:
      return "hung";
    case JobState::kFailed:
      return "failed";
    case JobState::kFinished:
      return "finished";
  }
  return "";
}

}  // namespace persia::agent
