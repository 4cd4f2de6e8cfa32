// Writes strings and numbers as JSON (RFC 8259), with Python's NaN and Infinity.
// Thread safety: pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

namespace persia::metrics {
inline namespace abi_1 {
namespace json {

// Appends `text` in quotes. Bytes that are not UTF-8 are copied unchanged.
void AppendString(std::string& out, std::string_view text);
// Appends the shortest text that reads back as `value`. It always has a fraction or an exponent, so a reader takes it for a
// float.
void AppendNumber(std::string& out, double value);

}  // namespace json
}  // namespace abi_1
}  // namespace persia::metrics
