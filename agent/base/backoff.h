// Exponential backoff: the delay before each retry.
//
//   Backoff backoff(100ms, 5s);
//   while (!Try()) Sleep(backoff.NextJittered());
//
// Thread safety: none; one per sequence of attempts.
#pragma once

#include <chrono>
#include <optional>

namespace persia::agent {

class Backoff {
 public:
  // REQUIRES: 0 < first <= longest.
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest) : first_(first), longest_(longest) {}

  // `first`, then twice the last delay, up to `longest`.
  std::chrono::milliseconds Next();
  // A random delay from Next() / 2 to Next(); if the peer asks for at least `least`, from `least` to Next().
  std::chrono::milliseconds NextJittered(std::optional<std::chrono::milliseconds> least = {});

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds last_{0};
};

}  // namespace persia::agent
