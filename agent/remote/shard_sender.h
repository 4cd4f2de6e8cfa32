// Takes requests from a queue and sends them, one at a time: there is one for each shard.
//
// A transport error, 429 or 5xx is tried again after a pause that doubles and is jittered, or that the target asked for, for as
// long as the queue keeps the request. Any other answer but a 2xx is final: the request is dropped, or nothing behind it would
// ever be sent.
//
// Thread safety: Run in one thread, Interrupt from any.
#pragma once

#include <chrono>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "net/http_client.h"
#include "remote/send_progress.h"
#include "remote/write_queue.h"

namespace persia::agent {

class ShardSender {
 public:
  struct Options {
    std::string url;
    std::vector<std::pair<std::string, std::string>> headers{};  // beside those that the protocol asks for
    HttpClient::Options http{};
    WriteQueue* queue = nullptr;
    SendProgress* progress = nullptr;
    // The first pause, before jitter; it doubles up to the longest. A pause is drawn evenly from its upper half.
    std::chrono::milliseconds first_pause{100};
    std::chrono::milliseconds longest_pause{5000};
    // Whoever asks to be left alone for longer is asked again after that.
    std::chrono::seconds longest_retry_after = std::chrono::hours(1);
    size_t max_quoted_bytes = 500;
  };

  explicit ShardSender(Options options);

  // Until the queue and the progress are stopped.
  void Run();
  void Interrupt() { client_.Interrupt(); }

 private:
  WriteQueue::Outcome Send(const WriteQueue::Claim& claim);
  std::chrono::milliseconds Jittered(std::chrono::milliseconds pause);

  const Options options_;
  HttpClient client_;
  std::minstd_rand jitter_;
};

}  // namespace persia::agent
