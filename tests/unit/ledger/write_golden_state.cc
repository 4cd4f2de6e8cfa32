// Writes the sample state of the current version, for the golden file of a new one:
//
//   write_golden_state tests/unit/ledger/testdata/state_v1
//
// The files of released versions never change.
#include <fstream>

#include "ledger/sample_state.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ofstream(argv[1], std::ios::binary) << persia::agent::testing::WholeSampleState();
}
