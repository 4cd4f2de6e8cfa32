// Writes an input of fuzz_state into a directory: a state with ended and living processes of each kind.
//
//   write_state_corpus tests/fuzz/corpus/fuzz_state
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "files/journal.h"
#include "ledger/sample_state.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  std::string input = "\2";
  const auto add = [&](uint16_t tag, const std::string& payload) {
    for (const size_t number : {size_t{tag}, payload.size()}) {
      input += static_cast<char>(number & 0xFF);
      input += static_cast<char>(number >> 8);
    }
    input += payload;
  };
  add(1, std::string("\1\0\0\0r", 5));
  for (const auto& [tag, payload] : persia::agent::testing::SampleRecords()) {
    add(tag, payload);
  }
  std::ofstream(std::string(argv[1]) + "/kinds", std::ios::binary) << input;
  return 0;
}
