#include "persia/metrics/metric_stream.h"

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "handler_table.h"
#include "log.h"
#include "persia/metrics/prof.h"
#include "persia/metrics/stream.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

constinit HandlerTable<MetricHandler, ForkLock::kMetricHandlers> handlers;

// False for a derived class, which may override Emit.
template <class Handler>
bool IsA(const MetricHandler& handler) {
  return SameClass(handler, Handler());
}

double Now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string Number(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

void Export(std::string_view group, std::string_view name, double value) noexcept {
  Registry& registry = Registry::Get();
  if (registry.known_disabled()) return;
  internal::FamilyNode* family = registry.FindOrAddFamily({segment::Kind::kStream, group, name});
  Stream::AtSlot(registry.FindOrAddSeries(family, {})).Add(value);
}

}  // namespace

MetricHandler::~MetricHandler() = default;

void NullMetricHandler::Emit(const MetricData& /*data*/) {}

void ConsoleMetricHandler::Emit(const MetricData& data) {
  // One call, so that lines of several threads do not mix.
  std::string line = "[" + Number(data.timestamp) + "][";
  line.append(data.group_name).append("]: ").append(data.name).append("=").append(Number(data.value)).append("\n");
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

void ExportMetricHandler::Emit(const MetricData& data) { Export(data.group_name, data.name, data.value); }

void Configure(std::shared_ptr<MetricHandler> handler, std::string_view group) noexcept try {
  handlers.Set(std::move(handler), group);
} catch (const std::bad_alloc& error) {
  LogLine({"a metric handler was not configured: ", error.what()});
}

void Configure(std::shared_ptr<MetricHandler> handler) noexcept try {
  handlers.SetDefault(std::move(handler));
} catch (const std::bad_alloc& error) {
  LogLine({"a metric handler was not configured: ", error.what()});
}

MetricStream::MetricStream(std::string_view group, std::shared_ptr<MetricHandler> handler) noexcept
    : handler_(std::move(handler)),
      exports_(handler_ == nullptr || IsA<ExportMetricHandler>(*handler_)),
      ignores_(handler_ == nullptr ? Registry::Get().disabled() : IsA<NullMetricHandler>(*handler_)) {
  try {
    group_ = group;
  } catch (const std::bad_alloc&) {
    ignores_ = true;
    Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  }
}

void MetricStream::AddValue(std::string_view name, double value) noexcept {
  if (ignores_) return;
  if (exports_) return Export(group_, name, value);  // without reading the clock
  try {
    handler_->Emit({Now(), group_, name, value});
  } catch (...) {
    static std::atomic<bool> logged = false;
    LogLineOnce(logged, {"a metric handler threw an exception; a value of group \"", group_, "\" is lost"});
  }
}

MetricStream GetStream(std::string_view group) noexcept { return {group, handlers.Find(group)}; }

void PutMetric(std::string_view name, double value, std::string_view group) noexcept {
  if (!handlers.ever_set()) return Export(group, name, value);
  GetStream(group).AddValue(name, value);
}

Prof::Prof(std::string_view key, std::string_view group) noexcept
    : exceptions_(std::uncaught_exceptions()), began_(std::chrono::steady_clock::now()) {
  try {
    key_ = key;
    group_ = group;
  } catch (const std::bad_alloc&) {
    measures_ = false;
    Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  }
}

Prof::~Prof() {
  using std::chrono::milliseconds;
  if (!measures_) return;
  const auto took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began_);
  try {
    PutMetric(key_ + (std::uncaught_exceptions() > exceptions_ ? ".failure" : ".success"), 1, group_);
    PutMetric(key_ + ".duration.ms", static_cast<double>(took.count()), group_);
  } catch (const std::bad_alloc&) {
    Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  }
}

}  // namespace abi_1
}  // namespace persia::metrics
