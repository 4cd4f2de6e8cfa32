// Bounds the memory of large answers: a few are made and sent at a time, others wait for one to be sent, and beyond those a
// request is refused. A client that reads slowly holds up other large answers only.
//
//   BigAnswers big;
//   return big.Answer([&] { return AnswerOf(request); });
//
// Thread safety: any method, from any thread. Outlives the server that sends the answers.
#pragma once

#include <atomic>
#include <functional>
#include <semaphore>

#include "net/http_server.h"

namespace persia::agent {

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

}  // namespace persia::agent
