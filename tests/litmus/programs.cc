#include "programs.h"

#include <cstdint>
#include <string>
#include <vector>

#include "faults.h"
#include "threads.h"

namespace persia::litmus {
namespace {

void OneCounter(const Workload& job) {
  job.Init();
  const auto steps = job.NewCounter("steps");
  job.Increment(steps, 1);
  job.Exit();
}

void OneGauge(const Workload& job) {
  job.Init();
  const auto rate = job.NewGauge("rate", "a");
  job.Set(rate, 1);
  job.Set(rate, 2);
}

void OneEvent(const Workload& job) {
  job.Init();
  job.Record(0);
}

void Series(const Workload& job) {
  job.Init();
  for (const std::string of : {"a", "b"}) {
    const auto rows = job.NewCounter("rows", of);
    job.Increment(rows, 2);
    job.Increment(rows, 0.5);
    const auto rate = job.NewGauge("rate", of);
    job.Set(rate, 1);
    job.Set(rate, 2);
    const auto sizes = job.NewHistogram("sizes", of);
    job.Observe(sizes, 0.5);
    job.Observe(sizes, 20);
    const auto latency = job.NewStream("latency", of);
    job.Add(latency, 2);
    job.Add(latency, 3);
    job.Init(of == "a" ? 1 : 2);
    job.Increment(rows, 1);
  }
  job.Exit();
}

// A third thread gets the lane of one that ended.
void Lanes(const Workload& job) {
  job.Init();
  const auto steps = job.NewCounter("steps");
  const auto sizes = job.NewHistogram("sizes");
  const auto sum = job.NewGauge("sum");
  const auto count = [&](const std::string& of) {
    const auto own = job.NewStream("latency", of);
    for (int i = 1; i <= 4; ++i) {
      job.Increment(steps, 1);
      job.Increment(steps, 0.25);
      job.Observe(sizes, i);
      job.Add(sum, 1);
      job.Add(own, i);
    }
  };
  RunThreads({[&] { count("a"); }, [&] { count("b"); }});
  RunThreads({[&] { count("c"); }});
  count("d");
  job.Exit();
}

// Threads ask for the same metrics by name.
void SameNames(const Workload& job) {
  job.Init();
  const auto count = [&](bool sets) {
    for (int i = 0; i < 2; ++i) {
      job.Increment(job.NewCounter("steps"), 1);
      job.Increment(job.NewCounter("rows", "a"), 1);
      const auto rate = job.NewGauge("rate");
      if (sets) job.Set(rate, i);
      job.Observe(job.NewHistogram("sizes"), i);
      job.Record(i * 2 + (sets ? 1 : 0));
    }
  };
  job.notes().events_of_several = true;
  RunThreads({[&] { count(true); }, [&] { count(false); }});
  job.Exit();
}

// Many records, of which some begin in one step of growth and end in the next, and many chunks.
void Growth(const Workload& job) {
  job.Init();
  for (int i = 0; i < 10; ++i) {
    const std::string number = std::to_string(i);
    job.Increment(job.NewCounter("long" + number, {}, 4000), 1);
    for (const std::string of : {"a", "b"}) {
      job.Add(job.NewStream("latency" + number, of), 1);
    }
  }
  job.Exit();
}

void Removals(const Workload& job) {
  job.Init();
  static_cast<void>(job.NewCounter("kept"));
  static_cast<void>(job.NewCounter("kept", "a"));
  for (int i = 0; i < 3; ++i) {
    for (const std::string of : {"a", "b"}) {
      job.Export("lag", of);
      job.Remove("lag", of);
    }
  }
  job.Export("lag", "b");
  job.Exit();
}

void Phases(const Workload& job) {
  job.Init();
  const auto data = job.NewPhase("data");
  const auto sync = job.NewPhase("sync");
  for (int i = 0; i < 3; ++i) {
    job.Enter(data, i == 0 ? "" : "other");
    job.Enter(sync, "data");
    job.Leave(sync, 1);
    job.Leave(data, 2);
  }
  job.Exit();
}

void Events(const Workload& job) {
  job.Init();
  for (uint64_t i = 0; i < 40; ++i) {
    job.Record(i);
  }
  job.Exit();
}

void EventsOfSeveral(const Workload& job) {
  job.notes().events_of_several = true;
  job.Init();
  const auto record = [&](uint64_t first) {
    for (uint64_t i = first; i < 42; i += 3) {
      job.Record(i);
    }
  };
  RunThreads({[&] { record(0); }, [&] { record(1); }, [&] { record(2); }});
  job.Exit();
}

void BeforeInit(const Workload& job) {
  job.notes().Wait();
  const auto steps = job.NewCounter("steps");
  const auto rate = job.NewGauge("rate");
  job.Increment(steps, 5);
  job.Set(rate, 1);
  for (uint64_t i = 0; i < 20; ++i) {
    job.Record(i);
  }
  job.Init();
  job.notes().Published();
  job.Increment(steps, 1);
  job.Set(rate, 2);
  for (uint64_t i = 20; i < 40; ++i) {
    job.Record(i);
  }
  job.Exit();
}

// Events while their ring moves to the file.
void EventsDuringInit(const Workload& job) {
  job.notes().events_of_several = true;
  job.notes().counts_may_be_lost = true;
  job.notes().Wait();
  for (uint64_t i = 0; i < 17; ++i) {
    job.Record(i);
  }
  const auto record = [&](uint64_t first) {
    for (uint64_t i = first; i < 65; i += 2) {
      // A call is some 60 operations, and Init some 16,000.
      if (i == first) RestSoon(60, 0, 40'000);
      job.Record(i);
    }
  };
  RunThreads({[&] {
                RestSoon(1, 0, 2'000);
                job.Init();
                job.notes().Published();
              },
              [&] { record(17); }, [&] { record(18); }});
}

// Series wait for space, while threads count there.
void Waiting(const Workload& job) {
  job.Init();
  const auto steps = job.NewCounter("steps");
  Faults::Get().is_full = true;
  job.notes().Wait();
  std::vector<Workload::Counter> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.push_back(job.NewCounter("late" + std::to_string(i), {}, 4000));
  }
  const auto sum = job.NewGauge("late-sum");
  const auto count = [&] {
    for (const Workload::Counter& counter : waiting) {
      job.Increment(counter, 1);
      job.Increment(counter, 0.5);
      job.Add(sum, 1);
    }
    job.Increment(steps, 1);
  };
  RunThreads({[&] {
                count();
                Faults::Get().is_full = false;
                Faults::Get().seconds_later += 2;
                count();
              },
              count});
  Faults::Get().seconds_later += 2;
  job.Increment(job.NewCounter("last"), 1);
  job.notes().Published();
  count();
  job.Exit();
}

void BeforeFork(const Workload& job) {
  job.Init();
  job.Increment(job.NewCounter("steps"), 7);
  job.Set(job.NewGauge("rate"), 7);
  job.Record(7);
}

// A child has all of its parent's series, from 0 on, once it uses one.
void Forked(const Workload& job) {
  job.notes().Wait();
  job.notes().Identified(0, 0);
  for (const char* series : {"steps", "rate", "step"}) job.notes().Made(series, 0);
  job.Increment(job.NewCounter("steps"), 1);
  const auto rate = job.NewGauge("rate");
  job.Record(0);
  job.notes().Published();
  job.Set(rate, 1);
  for (uint64_t i = 1; i < 20; ++i) {
    job.Record(i);
  }
  job.Increment(job.NewCounter("rows", "a"), 1);
  job.Exit();
}

constexpr Program kPrograms[] = {
    {"one-counter", &OneCounter, true},
    {"one-gauge", &OneGauge, true},
    {"one-event", &OneEvent},
    {"series", &Series},
    {"lanes", &Lanes},
    {"same-names", &SameNames},
    {"growth", &Growth},
    {"removals", &Removals},
    {"phases", &Phases},
    {"events", &Events},
    {"events-of-several", &EventsOfSeveral},
    {"before-init", &BeforeInit},
    {"events-during-init", &EventsDuringInit},
    {"waiting", &Waiting},
    {"forked", &Forked, false, &BeforeFork},
};

}  // namespace

std::span<const Program> Programs() { return kPrograms; }

}  // namespace persia::litmus
