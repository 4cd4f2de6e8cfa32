// What each setting takes, but those of the gateway's access (gateway_settings.h). An error quotes the text and says what is
// allowed.
#pragma once

#include <string_view>

#include "app/options.h"
#include "model/result.h"

namespace persia::agent {

Status SetEnabled(std::string_view text, AgentOptions& options);
Status SetEnableLifecycle(std::string_view text, AgentOptions& options);
Status SetJobName(std::string_view text, AgentOptions& options);
Status SetPushInterval(std::string_view text, AgentOptions& options);
Status SetConnectTimeout(std::string_view text, AgentOptions& options);
Status SetPushTimeout(std::string_view text, AgentOptions& options);
Status SetGatewayAddress(std::string_view text, AgentOptions& options);
Status SetMetricsDir(std::string_view text, AgentOptions& options);
Status SetEventsFile(std::string_view text, AgentOptions& options);
Status SetFifo(std::string_view text, AgentOptions& options);
Status SetStateDir(std::string_view text, AgentOptions& options);
Status SetPushFormat(std::string_view text, AgentOptions& options);
Status SetMaxPushBytes(std::string_view text, AgentOptions& options);
Status SetMaxSegmentBytes(std::string_view text, AgentOptions& options);
Status SetGaugeTtl(std::string_view text, AgentOptions& options);
Status SetHistory(std::string_view text, AgentOptions& options);
Status SetHistoryMaxBytes(std::string_view text, AgentOptions& options);
Status SetMaxSeries(std::string_view text, AgentOptions& options);
Status SetMaxSeriesPerInstance(std::string_view text, AgentOptions& options);
Status SetMaxLabelValueBytes(std::string_view text, AgentOptions& options);
Status SetMetricsDirGroup(std::string_view text, AgentOptions& options);
Status SetListenAddress(std::string_view text, AgentOptions& options);
Status SetWebConfigFile(std::string_view text, AgentOptions& options);
Status SetMappingFile(std::string_view text, AgentOptions& options);
Status AddLabel(std::string_view text, AgentOptions& options);
Status SetOnJobEnd(std::string_view text, AgentOptions& options);
Status SetOnInstanceEnd(std::string_view text, AgentOptions& options);
Status SetRunId(std::string_view text, AgentOptions& options);
Status SetReplica(std::string_view text, AgentOptions& options);
Status SetIpAddr(std::string_view text, AgentOptions& options);
Status SetLogLevel(std::string_view text, AgentOptions& options);
Status SetLogFormat(std::string_view text, AgentOptions& options);

// A level as it is written in settings.
std::string_view NameOf(LogLevel level);

}  // namespace persia::agent
