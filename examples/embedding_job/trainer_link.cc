#include "trainer_link.h"

#include <cstdint>
#include <utility>

namespace embedding_job {

// Each channel has space for all items that can be in flight, so that no thread waits for another without need.
TrainerLink::TrainerLink(Connection lookups, Connection updates, uint32_t staleness)
    : lookups_(std::move(lookups)),
      updates_(std::move(updates)),
      permits_(staleness),
      ready_(staleness),
      outgoing_(staleness + 1) {
  for (uint32_t i = 0; i < staleness; ++i) permits_.Push({});
  asking_ = std::thread([this] { AskAhead(); });
  delivering_ = std::thread([this] { Deliver(); });
}

TrainerLink::~TrainerLink() {
  if (asking_.joinable()) {
    Fail(std::make_exception_ptr(JobError("the trainer gave up")));
    asking_.join();
    delivering_.join();
  }
}

std::optional<EmbeddingBatch> TrainerLink::Next() {
  std::optional<EmbeddingBatch> batch = ready_.Pop();
  ThrowIfFailed();
  return batch;
}

void TrainerLink::Return(GradientBatch gradients) {
  if (!outgoing_.Push(std::move(gradients))) ThrowIfFailed();
}

void TrainerLink::Save(const std::string& name, CheckpointSaved saved) {
  if (!outgoing_.Push(SaveRequest{name, std::move(saved)})) ThrowIfFailed();
}

void TrainerLink::Finish() {
  outgoing_.Close();
  asking_.join();
  delivering_.join();
  ThrowIfFailed();
  lookups_.Send({MessageType::kGoodbye});
  updates_.Send({MessageType::kGoodbye});
}

void TrainerLink::AskAhead() {
  try {
    while (permits_.Pop()) {
      const Frame answer = lookups_.Call({MessageType::kNextBatch});
      if (answer.type == MessageType::kEndOfData) break;
      ready_.Push(Decode<EmbeddingBatch>(answer));
    }
  } catch (...) {
    Fail(std::current_exception());
  }
  ready_.Close();
}

void TrainerLink::Deliver() {
  try {
    while (auto item = outgoing_.Pop()) {
      if (const auto* gradients = std::get_if<GradientBatch>(&*item)) {
        Expect(updates_.Call(Encode(*gradients)), MessageType::kAck);
        permits_.Push({});
      } else {
        const auto& request = std::get<SaveRequest>(*item);
        request.saved(Decode<CheckpointDone>(updates_.Call(Encode(Checkpoint{request.name}))));
      }
    }
  } catch (...) {
    Fail(std::current_exception());
  }
}

void TrainerLink::Fail(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;  // later failures follow from the first one
    failure_ = std::move(error);
  }
  permits_.Close();
  ready_.Close();
  outgoing_.Close();
  lookups_.Shutdown();
  updates_.Shutdown();
}

void TrainerLink::ThrowIfFailed() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace embedding_job
