// A value, or a sentence that says why there is none.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace persia::agent {

// Context first, then the cause; it quotes the bad input and says what to do.
struct Error {
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT(google-explicit-constructor): `return value;`
  Result(Error error) : value_(std::move(error)) {}  // NOLINT(google-explicit-constructor): `return Error{...};`

  [[nodiscard]] bool ok() const { return value_.index() == 0; }
  // REQUIRES: ok().
  [[nodiscard]] const T& value() const& { return std::get<0>(value_); }
  [[nodiscard]] T& value() & { return std::get<0>(value_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(value_)); }
  // REQUIRES: !ok().
  [[nodiscard]] const std::string& error() const { return std::get<1>(value_).message; }

 private:
  std::variant<T, Error> value_;
};

// For calls that give nothing but their success.
struct Done {};
using Status = Result<Done>;

}  // namespace persia::agent
