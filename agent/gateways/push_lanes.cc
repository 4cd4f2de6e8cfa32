#include "gateways/push_lanes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/task_threads.h"

namespace persia::agent {

void PushLanes::Start() {
  const MutexLock changing(changing_);
  started_ = true;
  for (const auto& pusher : Pushers()) pusher->Start();
}

void PushLanes::Use(const std::function<Sinks()>& make) {
  const MutexLock changing(changing_);
  if (finished_) return;
  const auto former = Pushers();
  for (const auto& pusher : former) pusher->sink()->Interrupt();
  for (const auto& pusher : former) pusher->Hold();
  const Sinks sinks = make();
  std::vector<std::string> names;
  std::transform(sinks.begin(), sinks.end(), std::back_inserter(names), [](const auto& sink) { return sink->name(); });
  reports_.SetGateways(names);
  std::vector<std::shared_ptr<Pusher>> pushers;
  for (const auto& sink : sinks) {
    const auto same = std::find_if(former.begin(), former.end(), [&](const auto& one) { return one->name() == sink->name(); });
    if (same != former.end()) {
      pushers.push_back(*same);
      continue;
    }
    pushers.push_back(std::make_shared<Pusher>(sink, reports_, limits()));
    if (started_) pushers.back()->Start();
  }
  const MutexLock lock(mutex_);
  pushers_ = std::move(pushers);
  for (size_t i = 0; i < sinks.size(); ++i) {
    if (interrupted_) pushers_[i]->Interrupt();
    pushers_[i]->Release(sinks[i]);
  }
}

std::vector<std::shared_ptr<Pusher>> PushLanes::Pushers() {
  const MutexLock lock(mutex_);
  return pushers_;
}

bool PushLanes::Offer(const std::shared_ptr<const Snapshot>& snapshot) {
  bool accepted = true;
  const MutexLock lock(mutex_);
  for (const auto& pusher : pushers_) accepted = pusher->Offer(snapshot) && accepted;
  return accepted;
}

void PushLanes::Enqueue(const std::shared_ptr<const Snapshot>& snapshot) {
  const MutexLock lock(mutex_);
  for (const auto& pusher : pushers_) pusher->Enqueue(snapshot);
}

// Each in a thread: a gateway that is down must not use the time of the others.
Status PushLanes::OnAll(const std::function<Status(Pusher&)>& act) {
  const auto pushers = Pushers();
  std::vector<Status> results(pushers.size(), Status(Done{}));
  TaskThreads others("push request");
  for (size_t i = 1; i < pushers.size(); ++i) {
    others.Run([&, i] { results[i] = act(*pushers[i]); });
  }
  if (!pushers.empty()) results[0] = act(*pushers[0]);
  others.Join();
  std::string errors;
  for (const Status& result : results) {
    if (!result.ok()) errors += (errors.empty() ? "" : "; ") + result.error();
  }
  return errors.empty() ? Status(Done{}) : Status(Error{errors});
}

Status PushLanes::Finish(const std::shared_ptr<const Snapshot>& last) {
  reports_.StopLogging();
  const MutexLock changing(changing_);
  finished_ = true;
  return OnAll([&last](Pusher& pusher) { return pusher.Finish(last); });
}

Status PushLanes::DeleteGroups(const std::string& job) {
  const MutexLock changing(changing_);
  const Pusher::Limits limit = limits();
  return OnAll([&](Pusher& pusher) {
    const std::shared_ptr<PushSink> sink = pusher.sink();
    if (!interrupted_) sink->Rearm();  // the last push may have been interrupted
    return sink->DeleteGroups(job, pusher.state().last_error.empty() ? limit.last_push : limit.last_push_if_away);
  });
}

void PushLanes::Interrupt() {
  const MutexLock lock(mutex_);
  interrupted_ = true;
  for (const auto& pusher : pushers_) pusher->Interrupt();
}

void PushLanes::SetPace(Pace pace) {
  reports_.SetInterval(pace.interval);
  const MutexLock lock(mutex_);
  pace_ = pace;
  for (const auto& pusher : pushers_) pusher->SetLimits({.last_push = pace.limit, .last_push_if_away = pace.limit_if_away});
}

Pusher::Limits PushLanes::limits() {
  const MutexLock lock(mutex_);
  return {.last_push = pace_.limit, .last_push_if_away = pace_.limit_if_away};
}

std::vector<PushLanes::Lane> PushLanes::lanes() {
  const MutexLock lock(mutex_);
  std::vector<Lane> lanes;
  for (const auto& pusher : pushers_) {
    const PushReport last = reports_.Last(pusher->name());
    lanes.push_back({pusher->name(), last.groups, last.format, pusher->state()});
  }
  return lanes;
}

}  // namespace persia::agent
