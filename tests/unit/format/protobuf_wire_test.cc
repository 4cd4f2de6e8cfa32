#include "format/protobuf_wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace persia::agent {
namespace {

TEST(ProtobufWireTest, AVarintIsAsLongAsItsSizeSaysAndReadsBack) {
  for (int bits = 0; bits < 64; ++bits) {
    for (const uint64_t number :
         {uint64_t{1} << bits, (uint64_t{1} << bits) - 1, std::numeric_limits<uint64_t>::max() >> bits}) {
      std::string bytes;
      AppendVarint(bytes, number);
      EXPECT_EQ(bytes.size(), VarintSize(number)) << number;
      EXPECT_EQ(bytes.size(), google::protobuf::io::CodedOutputStream::VarintSize64(number)) << number;
      google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                    static_cast<int>(bytes.size()));
      uint64_t read = 0;
      ASSERT_TRUE(stream.ReadVarint64(&read)) << number;
      EXPECT_EQ(read, number);
    }
  }
}

}  // namespace
}  // namespace persia::agent
