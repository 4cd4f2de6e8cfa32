#include "cli/explain.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "exposure/definition.h"
#include "format/number.h"
#include "job/job_session.h"
#include "model/bounds.h"
#include "segment/segment_reader.h"

namespace persia::agent {
namespace {

constexpr Choice<MetricType> kTypes[] = {{"stream", MetricType::kUntyped},
                                         {"counter", MetricType::kCounter},
                                         {"gauge", MetricType::kGauge},
                                         {"histogram", MetricType::kHistogram}};

std::string NumberList(const std::vector<double>& numbers) {
  std::string out;
  for (const double number : numbers) out += (out.empty() ? "" : ", ") + LabelText(number);
  return out;
}

std::string Row(std::string_view label, const std::string& text) {
  std::string line = "  " + std::string(label);
  line.resize(12, ' ');
  return line + text + "\n";
}

std::string RuleLine(const MappingRules* rules, const MappingRule* rule) {
  if (rules == nullptr) return "none: there are no rules";
  if (rule == nullptr) return "none of " + std::to_string(rules->rules().size()) + " matches: the name is that of the program";
  std::string out = rule->place + ": " + (rule->regex ? "regex " : "") + rule->match;
  if (rule->group != "*") out += rule->group.empty() ? " in the empty group" : " in group " + rule->group;
  if (rule->left_out) out += ", which is not applied because of an error in the file: the bundled rules apply";
  return out;
}

std::string StreamType(const Exposed& exposed) {
  switch (exposed.type.value_or(MetricType::kGauge)) {
    case MetricType::kCounter:
      return "counter: the sum";
    case MetricType::kHistogram:
      if (!exposed.native) return "histogram: counts at bounds";
      return exposed.classic ? "histogram: native, and classic beside it"
                             : "histogram: native; classic where native is not taken";
    case MetricType::kSummary:
      return "summary: quantiles";
    default:
      return "gauge: the last value";
  }
}

std::string BoundsLines(const Exposed& exposed) {
  const std::vector<double> exact = SnapToStreamBounds(exposed.bounds, Scale(exposed.scale));
  std::string out = Row("bounds", NumberList(exact) + ", +Inf");
  if (exact != exposed.bounds) out += Row("", "the nearest at which streams count; asked for: " + NumberList(exposed.bounds));
  return out;
}

std::string TypeLine(const SourceMetric& metric, const Exposed& exposed, bool type_is_known) {
  if (!type_is_known) return "as in the program; of a stream (Stream, put_metric, emit) " + StreamType(exposed);
  return metric.type == MetricType::kUntyped ? StreamType(exposed) : std::string(TypeName(metric.type)) + ", as in the program";
}

// Those that the job's processes give the metric now.
std::set<MetricType> TypesInJob(const AgentOptions& options, const SourceMetric& metric) {
  std::set<MetricType> types;
  const auto directory = JobDirectory::OpenExisting(MetricsDirOf(options), options.metrics_dir_group);
  if (!directory.ok()) return types;
  std::error_code ended;
  for (const auto& entry : std::filesystem::directory_iterator(directory.value().path(), ended)) {
    const std::string file = entry.path().filename();
    if (!file.ends_with(metrics::segment::kFileSuffix)) continue;
    SegmentProblem problem;
    const SegmentAccess access{.owner = geteuid(), .group = directory.value().group(), .max_bytes = options.max_segment_bytes};
    const auto reader = SegmentReader::Open(directory.value().fd(), file.c_str(), access, problem);
    if (reader == nullptr || !reader->Read(1, std::chrono::system_clock::now(), problem)) continue;
    for (const SegmentFamily& family : reader->families()) {
      const bool is_metric = family.known && family.kind != metrics::segment::Kind::kEvent;
      if (is_metric && family.group == metric.group && family.name == metric.name)
        types.insert(FamiliesOf(family.kind).front().type);
    }
  }
  return types;
}

}  // namespace

std::string Explain(const MappingRules* rules, const SourceMetric& metric, bool type_is_known) {
  const bool stream = metric.type == MetricType::kUntyped;
  const auto exposed = rules != nullptr ? rules->Expose(metric) : PlainNaming().Expose(metric);
  const std::string_view kind = stream ? "stream" : TypeName(metric.type);
  std::string out = OneLine(std::string(metric.group) + "/" + std::string(metric.name));
  out += type_is_known ? " (" + std::string(kind) + ")\n" : "\n";
  out += Row("rule", OneLine(RuleLine(rules, rules == nullptr ? nullptr : rules->RuleFor(metric))));
  if (exposed->drop) return out + Row("action", "drop: it is not exposed");
  out += Row("name", exposed->name);
  out += Row("type", TypeLine(metric, *exposed, type_is_known));
  std::string labels;
  for (const auto& [name, value] : exposed->labels) labels += (labels.empty() ? "" : ", ") + name + "=" + Quoted(value);
  if (!labels.empty()) out += Row("labels", labels + (exposed->labels_yield ? ", where the metric has none of that name" : ""));
  if (exposed->scale != 1) out += Row("scale", LabelText(exposed->scale));
  if (stream && exposed->type == MetricType::kHistogram) out += BoundsLines(*exposed);
  if (stream && exposed->type == MetricType::kSummary) out += Row("quantiles", NumberList(exposed->quantiles));
  if (stream && exposed->ttl && exposed->ttl->count() > 0)
    out += Row("ttl", LabelText(static_cast<double>(exposed->ttl->count()) / 1000) + " s without a value");
  return out + Row("help", exposed->help.empty() ? "the program's own" : OneLine(exposed->help));
}

int ExplainCommand(const CommandLine& line, const Config& config) {
  const Result<MetricType> type = ParseChoice(line.metric_type, kTypes);
  const bool is_given = !line.metric_type.empty();
  if (is_given && !type.ok()) {
    std::fprintf(stderr, "--type: %s\n", type.error().c_str());
    return kExitUsage;
  }
  if (line.metrics.empty()) {
    std::fputs("persia-metrics-agent explain: a metric is missing: persia-metrics-agent explain GROUP/NAME...\n", stderr);
    return kExitUsage;
  }
  std::string text;
  for (const std::string& metric : line.metrics) {
    const size_t slash = metric.find('/');
    const std::string group = slash == std::string::npos ? "" : metric.substr(0, slash);
    const std::string name = slash == std::string::npos ? metric : metric.substr(slash + 1);
    const auto explain = [&](MetricType of, bool is_known) {
      text += (text.empty() ? "" : "\n") + Explain(config.options.mapping.get(), {group, name, of}, is_known);
    };
    if (is_given) {
      explain(type.value(), true);
      continue;
    }
    const std::set<MetricType> types = TypesInJob(config.options, {group, name, MetricType::kUntyped});
    for (const MetricType of : types) explain(of, true);
    if (!types.empty()) continue;
    explain(MetricType::kUntyped, false);
    text += Row("job", "no process of the job " + OneLine(config.options.job_name) + " has it now, which would tell its type");
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? kExitDone : kExitFailed;
}

}  // namespace persia::agent
