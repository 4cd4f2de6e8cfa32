// A value, or an error message.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

namespace persia::agent {

// The message has the context, then the cause. It quotes the bad input and says what to do.
struct Error {
  std::string message;
};

// "<what>: <what `error`, a value of errno, means>".
inline Error SystemError(const std::string& what, int error = errno) {
  return Error{what + ": " + std::generic_category().message(error)};
}

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

// For calls without a value.
struct Done {};
using Status = Result<Done>;

}  // namespace persia::agent
