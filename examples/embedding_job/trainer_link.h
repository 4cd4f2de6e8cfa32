// The trainer's connection to the embedding worker, with several batches in flight, so that training does not wait for
// look-ups.
//
// One thread requests batches ahead, while fewer than `staleness` are in flight. Another returns gradients and requests
// checkpoints, in the order of the calls. A batch is in flight from before its look-up until the servers have applied its
// gradients. Thread safety: one thread calls the public methods.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "channel.h"
#include "messages.h"
#include "socket.h"

namespace embedding_job {

class TrainerLink {
 public:
  using CheckpointSaved = std::function<void(const CheckpointDone&)>;

  TrainerLink(Connection lookups, Connection updates, uint32_t staleness);
  // Ends the connection immediately, unless Finish has ended it in order.
  ~TrainerLink();

  // The next batch; none at the end of the data. Throws a failure of the background threads.
  std::optional<EmbeddingBatch> Next();
  // Returns a batch's gradients.
  void Return(GradientBatch gradients);
  // Requests a checkpoint from the servers, after all gradients returned so far are applied. Then another thread calls `saved`.
  void Save(const std::string& name, CheckpointSaved saved);
  // Waits until all earlier calls are done, and says goodbye. REQUIRES: Next has returned none.
  void Finish();

 private:
  struct SaveRequest {
    std::string name;
    CheckpointSaved saved;
  };
  struct Permit {};

  void AskAhead();
  void Deliver();
  void Fail(std::exception_ptr error);
  void ThrowIfFailed();

  Connection lookups_;
  Connection updates_;
  Channel<Permit> permits_;  // one for each batch that may still be requested
  Channel<EmbeddingBatch> ready_;
  Channel<std::variant<GradientBatch, SaveRequest>> outgoing_;

  std::mutex mutex_;
  std::exception_ptr failure_;  // guarded by mutex_

  std::thread asking_;
  std::thread delivering_;
};

}  // namespace embedding_job
