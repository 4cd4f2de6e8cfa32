// The trainer's connection with the embedding worker: several batches in flight, so that training does not wait for look-ups.
//
// One thread asks for batches ahead, as long as fewer than `staleness` are in flight; another returns gradients and asks for
// checkpoints, in the order in which they were handed over. A batch is in flight from before its look-up until the servers have
// applied its gradients. Thread safety: the public methods are for one thread.
#pragma once

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
  // Ends at once what Finish has not ended in order.
  ~TrainerLink();

  // The next batch; none at the end of the data. Throws what went wrong in the background.
  std::optional<EmbeddingBatch> Next();
  // Returns a batch's gradients.
  void Return(GradientBatch gradients);
  // Asks the servers for a checkpoint, once all gradients returned before are applied; `saved` is then called, by another
  // thread.
  void Save(const std::string& name, CheckpointSaved saved);
  // Waits until all that was handed over is done, and says goodbye. REQUIRES: Next gave none.
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
  Channel<Permit> permits_;  // one for each batch that may still be asked for
  Channel<EmbeddingBatch> ready_;
  Channel<std::variant<GradientBatch, SaveRequest>> outgoing_;

  std::mutex mutex_;
  std::exception_ptr failure_;  // guarded by mutex_

  std::thread asking_;
  std::thread delivering_;
};

}  // namespace embedding_job
