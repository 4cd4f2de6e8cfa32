// The sanitizer that a test is compiled with, which gcc and clang tell by different names: PERSIA_TEST_ASAN and
// PERSIA_TEST_TSAN are 0 or 1.
#pragma once

#if defined(__has_feature)
#define PERSIA_TEST_HAS_FEATURE(name) __has_feature(name)
#else
#define PERSIA_TEST_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || PERSIA_TEST_HAS_FEATURE(address_sanitizer)
#define PERSIA_TEST_ASAN 1
#else
#define PERSIA_TEST_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || PERSIA_TEST_HAS_FEATURE(thread_sanitizer)
#define PERSIA_TEST_TSAN 1
#else
#define PERSIA_TEST_TSAN 0
#endif
