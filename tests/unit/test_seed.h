// The seed of random tests: PERSIA_TEST_SEED, an unsigned number, 1 by default, so that a run of the tests is a function of the
// commit. A failed test that has asked for it prints it with the command that repeats the test (test_main.cc).
//
//   std::mt19937_64 random(TestSeed());
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace persia {

inline std::uint64_t TestSeedOfTheEnvironment() {
  const char* const given = std::getenv("PERSIA_TEST_SEED");
  return given == nullptr || *given == '\0' ? 1 : std::strtoull(given, nullptr, 10);
}

// Since the current test began, a seed was asked for.
inline std::atomic<bool> test_is_random = false;

inline std::uint64_t TestSeed() {
  test_is_random = true;
  return TestSeedOfTheEnvironment();
}

}  // namespace persia
