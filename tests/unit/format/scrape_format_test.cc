#include "format/scrape_format.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace persia::agent {
namespace {

const std::string kMessages = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";

TEST(AcceptedFormatTest, ProtobufIsForClientsThatNameItAndDoNotPreferText) {
  for (const std::string& accept : std::vector<std::string>{
           kMessages,
           kMessages + ";q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
           // Prometheus 2.40 and later, with native histograms.
           kMessages + ",application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,"
                       "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
           "TEXT/PLAIN ; Q=0.3 , Application/Vnd.Google.Protobuf ; Proto=\"io.prometheus.client.MetricFamily\" ; "
           "encoding=delimited",
           "text/plain;q=0.2," + kMessages + ";q=0.3,*/*;q=0.9",
           "text/*;q=0.2," + kMessages + ";q=0.3,*/*;q=0.9",
           kMessages + ";q=0.5,application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=1.0.0;q=0.5",
       }) {
    EXPECT_EQ(AcceptedFormat(accept), ScrapeFormat::kProtobuf) << accept;
  }
}

TEST(AcceptsGzipTest, OnlyIfTheClientNamesIt) {
  for (const char* const accept :
       {"gzip", "GZIP", "x-gzip", "deflate, gzip;q=0.1", "br;q=1.0, gzip;q=0.8, *;q=0", "*", "identity;q=0.5, *"}) {
    EXPECT_TRUE(AcceptsGzip(accept)) << accept;
  }
  for (const char* const accept :
       {"", "identity", "deflate, br", "gzip;q=0", "gzip;q=0.000, *", "*;q=0", "gzip;q=high", ",;q=1", "gzippy"}) {
    EXPECT_FALSE(AcceptsGzip(accept)) << accept;
  }
}

TEST(AcceptedFormatTest, OpenMetricsIsForClientsThatNameIt) {
  const struct {
    std::string accept;
    ScrapeFormat format;
  } kCases[] = {
      {"application/openmetrics-text", ScrapeFormat::kOpenMetrics},
      {"Application/OpenMetrics-Text;Version=1.0.0", ScrapeFormat::kOpenMetrics},
      {"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4,*/*", ScrapeFormat::kOpenMetrics},
      {"application/openmetrics-text;version=1.0.0;q=0.2,application/openmetrics-text;q=0.9,text/plain;q=0.3",
       ScrapeFormat::kText},
      // Prometheus 3.16.
      {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,"
       "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
       ScrapeFormat::kOpenMetrics},
      // Prometheus 2.42.
      {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;"
       "q=0.5,*/*;q=0.1",
       ScrapeFormat::kOpenMetrics},
  };
  for (const auto& [accept, format] : kCases) EXPECT_EQ(AcceptedFormat(accept), format) << accept;
}

TEST(ContentTypeTest, NamesFormatAndVersion) {
  EXPECT_EQ(ContentType(ScrapeFormat::kText), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(ContentType(ScrapeFormat::kOpenMetrics), "application/openmetrics-text; version=1.0.0; charset=utf-8");
  EXPECT_EQ(ContentType(ScrapeFormat::kProtobuf),
            "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited");
}

TEST(AcceptedFormatTest, TextIsForAllOthers) {
  for (const std::string& accept : std::vector<std::string>{
           "",
           "*/*",
           ",;,;q=,",
           // A browser.
           "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
           "application/*",
           "application/openmetrics-text;version=0.0.1;q=0.75",
           "application/openmetrics-text;version=2.0.0",
           "application/openmetrics-text;q=0.4,text/*;q=0.5",
           "text/plain;version=1.0.0,text/plain;version=0.0.4;q=0.3",
           "text/plain;escaping=dots",
           "text/plain;version=2.0.0,text/plain;q=0.1",
           kMessages + ";q=0",
           kMessages + ";q=high",
           kMessages + ";q=2",
           kMessages + ";q=0.5,text/plain;q=0.6",
           kMessages + ";q=0.5,*/*",
           "application/vnd.google.protobuf",
           "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=compact-text",
           "application/vnd.google.protobuf;proto=another.Message;encoding=delimited",
       }) {
    EXPECT_EQ(AcceptedFormat(accept), ScrapeFormat::kText) << accept;
  }
}

}  // namespace
}  // namespace persia::agent
