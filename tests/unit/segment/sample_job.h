// A process that uses each kind of metric of the real library, and the values that must be exposed.
#pragma once

#include <map>
#include <string>

namespace persia::agent::testing {

// Records the sample in this process, on two threads. REQUIRES: the process has not used the library before.
void RecordSample();

// The result of Flatten for the sample, without values that depend on the clock.
std::map<std::string, std::string> ExpectedOfSample();

}  // namespace persia::agent::testing
