// Writes the first inputs of fuzz_state into a directory: a state with ended and living processes of each kind, one with a sum
// of many terms, and one without processes.
//
//   write_state_corpus tests/fuzz/corpus/fuzz_state
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "files/bytes.h"
#include "ledger/ledger_records.h"
#include "ledger/sample_state.h"

namespace {

using namespace persia::agent;
using Records = std::vector<std::pair<uint16_t, std::string>>;

std::string SumOfManyTerms() {
  RetiredGroup group({.role = "worker"}, 0);
  SegmentFamily family;
  family.known = true;
  family.kind = persia::metrics::segment::Kind::kCounter;
  family.name = "c";
  const size_t series = group.FindOrAddSeries(group.FindOrAddFamily(family, {}), 0, "", 0, 1, true);
  const double terms[] = {1e300, 1e-300, 0.1, 3e20, 5e-324, 7};
  group.SetSum(series, 0, terms);
  return EncodeGroup(group, testing::SampleTime());
}

void Write(const std::string& path, const Records& more) {
  Records records = {{static_cast<uint16_t>(StateRecord::kRun), Encode(std::string("r"), uint64_t{3})}};
  records.insert(records.end(), more.begin(), more.end());
  std::string input;
  for (const auto& [tag, payload] : records) input += Encode(tag, static_cast<uint16_t>(payload.size())) + payload;
  std::ofstream(path, std::ios::binary) << input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  const std::string directory = std::string(argv[1]) + "/";
  Write(directory + "kinds", testing::SampleRecords());
  Write(directory + "a_sum_of_many_terms", {{static_cast<uint16_t>(StateRecord::kGroup), SumOfManyTerms()}});
  Write(directory + "empty", {});
  return 0;
}
