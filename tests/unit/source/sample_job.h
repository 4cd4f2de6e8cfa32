// A process that uses a bit of everything of the real library, and what must be shown of it.
#pragma once

#include <map>
#include <string>

namespace persia::agent::testing {

// Records the sample in this process, which must not have used the library before. Two of its threads count.
void RecordSample();

// What Flatten gives of the sample. Events happened when they happened: what depends on the clock is not in here.
std::map<std::string, std::string> ExpectedOfSample();

}  // namespace persia::agent::testing
