// Numbers as text: the shortest form that reads back as the same number.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>

namespace persia::agent {

// "-2.2250738585072014e-308" is the longest.
inline constexpr size_t kMaxNumberSize = 24;

// Prints the value of a line and returns the end. Whole numbers up to 2^53 are printed as integers.
// REQUIRES: kMaxNumberSize bytes at `to`.
char* PrintNumber(char* to, double number);

// A number as the value of the label `le` or `quantile`. Labels are compared as text, so a bucket is one series on every path
// to Prometheus only if it is printed as Go's clients and the PushGateway print it: 0.0001, 10000, 1e+06.
// OpenMetrics has 10000.0 instead, as Go's clients have; Prometheus 3 makes all of them 10000.0 when it scrapes.
std::string LabelText(double number);

}  // namespace persia::agent
