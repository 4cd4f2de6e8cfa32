// A remote write receiver on a real server. It keeps all samples, and refuses the requests that a strict database refuses.
//
// Thread safety: any method, from any thread.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "net/http_server.h"
#include "remote/decoded.h"

namespace persia::agent {

class Receiver {
 public:
  // The answer to request `number`, from 0 on; `status` 0: as a database would.
  using Script = std::function<ServerResponse(size_t number)>;

  explicit Receiver(Script script = [](size_t) { return ServerResponse{.status = 0}; }) : script_(std::move(script)) {
    auto server =
        HttpServer::Start({.max_body_bytes = 64 << 20},
                          {{"POST", "/api/v1/write", [this](const ServerRequest& request) { return Take(request); }}});
    if (!server.ok()) throw std::runtime_error(server.error());
    server_ = std::move(server).value();
  }

  // Requests with more series are refused with 413.
  void SetMaxSeries(int series) {
    const std::lock_guard lock(mutex_);
    max_series_ = series;
  }
  [[nodiscard]] std::string url() const { return "http://" + server_->address() + "/api/v1/write"; }
  // The samples of one series, "value @timestamp" each. `series` is as Line() writes it.
  std::vector<std::string> Of(const std::string& series) {
    const std::lock_guard lock(mutex_);
    const auto found = samples_.find(series);
    return found == samples_.end() ? std::vector<std::string>() : found->second;
  }
  size_t samples() {
    const std::lock_guard lock(mutex_);
    size_t count = 0;
    for (const auto& [series, samples] : samples_) count += samples.size();
    return count;
  }
  // Bodies of all requests, also of refused ones.
  std::vector<std::string> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  std::map<std::string, std::string> last_headers() {
    const std::lock_guard lock(mutex_);
    return headers_;
  }
  template <class Condition>
  [[nodiscard]] bool WaitFor(Condition condition) {
    std::unique_lock lock(wait_mutex_);
    return came_.wait_for(lock, std::chrono::seconds(100), condition);
  }

 private:
  ServerResponse Take(const ServerRequest& request) {
    size_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = bodies_.size();
      bodies_.push_back(request.body);
      headers_.clear();
      for (const auto& [name, value] : request.headers) headers_[name] = value;
    }
    ServerResponse response = script_(number);
    {
      const std::lock_guard lock(mutex_);
      if (response.status == 0) response = Store(request.body);
    }
    const std::lock_guard lock(wait_mutex_);
    came_.notify_all();
    return response;
  }

  // All or nothing, as Prometheus does.
  ServerResponse Store(const std::string& body) {
    const auto message = SnappyUncompress(body, 64 << 20);
    persia_test::WriteRequest request;
    if (!message || !request.ParseFromString(*message)) return {.status = 400, .body = "no request"};
    if (request.timeseries_size() > max_series_) return {.status = 413, .body = "too large"};
    std::set<std::string> seen;
    for (const auto& series : request.timeseries()) {
      std::string before;
      for (const auto& label : series.labels()) {
        if (label.name() <= before || label.value().empty()) return {.status = 400, .body = "labels of " + Line(series)};
        before = label.name();
      }
      const std::string name = Name(series);
      if (!seen.insert(name).second) return {.status = 400, .body = "twice: " + name};
      const auto last = last_.find(name);
      if (last != last_.end() && Timestamp(series) < last->second.first) {
        return {.status = 400, .body = "out of order sample: " + Line(series)};
      }
    }
    for (const auto& series : request.timeseries()) {
      const std::string name = Name(series);
      const std::string sample = Line(series).substr(name.size() + 1);
      auto& last = last_[name];
      // A repeated sample is ignored.
      if (last != std::pair(Timestamp(series), sample)) samples_[name].push_back(sample);
      last = {Timestamp(series), sample};
    }
    return {.status = 204};
  }

  static int64_t Timestamp(const persia_test::TimeSeries& series) {
    return series.samples_size() > 0 ? series.samples(0).timestamp() : series.histograms(0).timestamp();
  }
  static std::string Name(const persia_test::TimeSeries& series) {
    const std::string line = Line(series);
    return line.substr(0, line.rfind('}') + 1);
  }

  const Script script_;
  std::mutex mutex_;  // guards the following members
  std::map<std::string, std::vector<std::string>> samples_;
  std::map<std::string, std::pair<int64_t, std::string>> last_;
  std::vector<std::string> bodies_;
  std::map<std::string, std::string> headers_;
  int max_series_ = std::numeric_limits<int>::max();

  std::mutex wait_mutex_;
  std::condition_variable came_;
  std::unique_ptr<HttpServer> server_;  // last: its threads use the rest
};

}  // namespace persia::agent
