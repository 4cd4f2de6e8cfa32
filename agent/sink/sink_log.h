// How a sink says what it has to say beside the result of a push.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace persia::agent {

// `event`: a dotted name that does not change from release to release. Each is called in the thread that pushes.
struct SinkLog {
  using Write = std::function<void(std::string_view event, const std::string& message)>;
  Write note = [](std::string_view, const std::string&) {};
  Write warn = [](std::string_view, const std::string&) {};
};

}  // namespace persia::agent
