#include "persia/metrics/metric_stream.h"

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <typeinfo>
#include <utility>

#include "handler_table.h"
#include "log.h"
#include "persia/metrics/stream.h"
#include "registry.h"

namespace persia::metrics {
namespace {

using Handlers = HandlerTable<MetricHandler>;

std::shared_ptr<MetricHandler> HandlerOf(std::string_view group) {
  static const auto& null = *new std::shared_ptr<MetricHandler>(std::make_shared<NullMetricHandler>());
  static const auto& exporting = *new std::shared_ptr<MetricHandler>(std::make_shared<ExportMetricHandler>());
  auto handler = Handlers::Get().Find(group);
  return handler != nullptr ? handler : Registry::Get().disabled() ? null : exporting;
}

// Not a class made of it, which may do otherwise.
template <class Handler>
bool IsA(const MetricHandler& handler) {
  return typeid(handler) == typeid(Handler);
}

double Now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string Number(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

void Export(std::string_view group, std::string_view name, double value) noexcept {
  static const Description& about = *new Description;  // never destroyed: values come after main
  Registry& registry = Registry::Get();
  if (registry.known_disabled()) {
    return;
  }
  internal::FamilyNode* family = registry.FindOrAddFamily({segment::Kind::kStream, group, name, about});
  Stream::AtSlot(registry.FindOrAddSeries(family, {})).Add(value);
}

}  // namespace

MetricHandler::~MetricHandler() = default;

void NullMetricHandler::Emit(const MetricData& /*data*/) {}

void ConsoleMetricHandler::Emit(const MetricData& data) {
  // In one call, so that lines of several threads stay whole.
  std::string line = "[" + Number(data.timestamp) + "][";
  line.append(data.group_name).append("]: ").append(data.name).append("=").append(Number(data.value)).append("\n");
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

void ExportMetricHandler::Emit(const MetricData& data) { Export(data.group_name, data.name, data.value); }

void Configure(std::shared_ptr<MetricHandler> handler, std::string_view group) noexcept try {
  Handlers::Get().Set(std::move(handler), group);
} catch (const std::exception& error) {
  LogLine("the handler of a group was not configured: " + std::string(error.what()));
}

void Configure(std::shared_ptr<MetricHandler> handler) noexcept { Handlers::Get().SetDefault(std::move(handler)); }

MetricStream::MetricStream(std::string_view group, std::shared_ptr<MetricHandler> handler)
    : group_(group),
      handler_(std::move(handler)),
      exports_(IsA<ExportMetricHandler>(*handler_)),
      ignores_(IsA<NullMetricHandler>(*handler_)) {}

void MetricStream::AddValue(std::string_view name, double value) noexcept {
  if (ignores_) {
    return;
  }
  if (exports_) {
    return Export(group_, name, value);  // which needs no time
  }
  try {
    handler_->Emit({Now(), group_, name, value});
  } catch (...) {
    static std::atomic<bool> said = false;
    LogLineOnce(said, "a metric handler threw, and the value is lost: that of group \"" + group_ + "\"");
  }
}

MetricStream GetStream(std::string_view group) { return {group, HandlerOf(group)}; }

void PutMetric(std::string_view name, double value, std::string_view group) noexcept try {
  if (Handlers::Get().untouched()) {
    return Export(group, name, value);
  }
  GetStream(group).AddValue(name, value);
} catch (const std::exception& error) {
  LogLine("a metric was not recorded: " + std::string(error.what()));
}

}  // namespace persia::metrics
