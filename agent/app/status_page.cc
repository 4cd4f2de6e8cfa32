#include "app/status_page.h"

#include <cstdio>
#include <ctime>

#include "app/text.h"

namespace persia::agent {
namespace {

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Persia Metrics agent</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin-bottom: 0; }
p.version { color: GrayText; margin-top: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; }
dt { color: GrayText; }
dd { margin: 0; overflow-wrap: anywhere; }
.bad { color: #d55e00; }
nav a { margin-right: 1.2rem; }
</style>
</head>
<body>
)";

std::string UtcTime(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  struct tm parts {};
  char text[32];
  gmtime_r(&seconds, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

void AddRow(std::string& out, std::string_view name, std::string_view value, bool bad = false) {
  out += "<dt>" + HtmlText(name) + "</dt><dd" + (bad ? " class=\"bad\"" : "") + ">" + HtmlText(value) + "</dd>\n";
}

std::string LastPush(const StatusPage& page) {
  if (!page.last_success) {
    return page.pushes == 0 ? "not yet" : "never arrived";
  }
  return UtcTime(*page.last_success) + " (" + std::to_string(page.since_success.count()) + " s ago)";
}

}  // namespace

std::string RenderStatusPage(const StatusPage& page) {
  std::string out = kHead;
  out += "<h1>Persia Metrics agent</h1>\n<p class=\"version\">" + HtmlText(page.version) + "</p>\n";
  out +=
      "<nav><a href=\"metrics\">/metrics</a><a href=\"-/healthy\">/-/healthy</a><a href=\"-/ready\">/-/ready</a></nav>\n<dl>\n";
  AddRow(out, "Job", page.job);
  AddRow(out, "Run", page.run_id);
  AddRow(out, "Directory", page.directory);
  AddRow(out, "Workers", std::to_string(page.workers) + " alive, " + std::to_string(page.workers_ended) + " ended");
  if (page.segments_refused > 0) {
    AddRow(out, "Segments refused", std::to_string(page.segments_refused), true);
  }
  AddRow(out, "Series", std::to_string(page.series));
  AddRow(out, "Gateway", page.gateway + ", every " + Number(page.push_interval_seconds) + " s");
  AddRow(out, "Pushes", std::to_string(page.pushes) + ", " + std::to_string(page.pushes_failed) + " failed");
  AddRow(out, "Last success", LastPush(page), !page.last_success && page.pushes > 0);
  if (!page.last_error.empty()) {
    AddRow(out, "Last error", page.last_error, true);
  }
  return out + "</dl>\n</body>\n</html>\n";
}

}  // namespace persia::agent
