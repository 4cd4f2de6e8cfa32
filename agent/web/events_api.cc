#include "web/events_api.h"

#include <cstddef>
#include <string>

#include "base/text.h"
#include "web/query_string.h"

namespace persia::agent {
namespace {

constexpr size_t kMaxLimit = 1000;

Result<EventLog::Filter> ParseFilter(std::string_view query) {
  EventLog::Filter filter;
  for (const auto& [name, value] : ParseParameters(query)) {
    if (name == "type") {
      filter.type = value;
    } else if (name == "since") {
      if (!ParseNumber(value, filter.since_ms))
        return Error{"since: " + Quoted(value) + " is not a number of milliseconds since 1970"};
    } else if (name == "limit") {
      if (!ParseNumber(value, filter.limit) || filter.limit == 0 || filter.limit > kMaxLimit)
        return Error{"limit: " + Quoted(value) + " is not a number from 1 to " + std::to_string(kMaxLimit)};
    } else {
      return Error{"unknown parameter " + Quoted(name) + " (since, type, limit)"};
    }
  }
  return filter;
}

}  // namespace

JsonAnswer AnswerEvents(std::string_view query, const EventLog& log) {
  const auto filter = ParseFilter(query);
  if (!filter.ok()) return RefuseWith(400, filter.error());
  std::string body = "{\"events\": [";
  std::string_view separator = "\n";
  for (const JobEvent& event : log.Newest(filter.value())) {
    body.append(separator).append(EventJson(event));
    separator = ",\n";
  }
  return {.body = body + "\n]}\n"};
}

}  // namespace persia::agent
