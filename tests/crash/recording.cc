// The file is a sequence of: what (U8), object (U32), number (U64), name (String), data (String), as in files/bytes.h.
#include "recording.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "files/bytes.h"

namespace persia::agent::crash {

std::vector<Operation> ReadRecording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<Operation> operations;
  ByteReader reader(bytes);
  while (file && reader.ok() && !reader.done()) {
    Operation operation;
    const uint8_t what = reader.U8();
    if (what > static_cast<uint8_t>(Do::kLast)) break;
    operation.what = static_cast<Do>(what);
    operation.object = reader.U32();
    operation.number = reader.U64();
    operation.name = reader.String();
    operation.data = reader.String();
    operations.push_back(std::move(operation));
  }
  if (operations.empty() || !reader.done()) {
    std::fprintf(stderr, "%s is not a recording\n", path.c_str());
    std::exit(2);
  }
  return operations;
}

}  // namespace persia::agent::crash
