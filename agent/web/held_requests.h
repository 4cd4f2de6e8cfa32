// Requests that hold a worker of the server for long, and how many of them may.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <semaphore>

#include "base/mutex.h"
#include "net/http_server.h"

namespace persia::agent {

// Bounds the memory of large answers: a few are made and sent at a time, others wait for one to be sent, and beyond those a
// request is refused. A client that reads slowly holds up other large answers only.
//
//   BigAnswers big;
//   return big.Answer([&] { return AnswerOf(request); });
//
// Thread safety: any method, from any thread. Outlives the server that sends the answers.
class BigAnswers {
 public:
  static constexpr int kAtATime = 2;
  static constexpr int kMostWaiting = kWebWorkers / 6;

  // The answer of `make`, or status 503 if too many wait, or none was sent for a while.
  ServerResponse Answer(const std::function<ServerResponse()>& make);

 private:
  void Return();

  std::counting_semaphore<kAtATime> free_{kAtATime};
  std::atomic<int> waiting_ = 0;
  std::atomic<int> held_ = 0;
};

// Holds requests until the agent ends, so that an open page learns how the job ended: the last poll may be a second before the
// end, and that of a hidden page ten.
//
//   EndNotice notice;
//   notice.Await();      // in a request: until End, for kPatience at most
//   notice.End();        // once the last collection is over, before the server stops
//   notice.AwaitReaders();
//
// Thread safety: any method, from any thread. Outlives the server.
class EndNotice {
 public:
  enum class Outcome { kEnded, kNotYet, kTooMany };

  // The server has few workers: most of them stay free.
  static constexpr int kMostWaiting = kWebWorkers / 3;
  // Proxies end a request that has no answer after a minute.
  static constexpr std::chrono::seconds kPatience{25};

  static constexpr std::chrono::seconds kReading{1};

  explicit EndNotice(std::chrono::milliseconds patience = kPatience) : patience_(patience) {}

  Outcome Await();
  // Answers all requests that wait, and all later ones at once.
  void End();
  // If requests waited at the end: until kReading after it. Their pages load the charts of the end meanwhile.
  void AwaitReaders();

 private:
  const std::chrono::milliseconds patience_;
  Mutex mutex_;
  CondVar ended_;
  bool is_over_ PERSIA_GUARDED_BY(mutex_) = false;
  int waiting_ PERSIA_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point read_at_ PERSIA_GUARDED_BY(mutex_);
};

}  // namespace persia::agent
