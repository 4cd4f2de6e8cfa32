#include "top/targets.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "job/job_directory.h"
#include "job/job_session.h"
#include "net/name_lookup.h"
#include "net/url.h"

namespace persia::agent {
namespace {

constexpr std::string_view kNamePrefix = "dns+";
constexpr char kDefaultPort[] = "19091";
constexpr size_t kMaxTargets = 1000;

// The address as a URL: "host:19091" becomes "http://host:19091".
std::string WithScheme(std::string_view address) {
  return address.find("://") == std::string_view::npos ? "http://" + std::string(address) : std::string(address);
}

// The page of an agent that listens on all addresses is reached on loopback.
std::string ReachableUrl(std::string url) {
  for (const auto& [any, own] : {std::pair("//0.0.0.0:", "//127.0.0.1:"), std::pair("//[::]:", "//[::1]:")})
    if (const size_t at = url.find(any); at != std::string::npos) url.replace(at, std::string_view(any).size(), own);
  return url;
}

Target TargetOf(std::string_view address) {
  const Result<Url> url = Url::Parse(WithScheme(address));
  std::string origin = url.value().scheme() + "://" +
                       (url.value().port() || address.find("://") != std::string_view::npos
                            ? url.value().Origin().substr(url.value().scheme().size() + 3)
                            : url.value().HostAndPort() + ":" + kDefaultPort);
  std::string path = url.value().path();
  while (path.ends_with('/')) path.pop_back();
  std::string name = origin.substr(origin.find("://") + 3) + path;
  return {.name = std::move(name), .url = std::move(origin) + path};
}

}  // namespace

Status CheckTopAddress(std::string_view address) {
  std::string_view rest = address;
  if (rest.starts_with(kNamePrefix)) {
    rest.remove_prefix(kNamePrefix.size());
    if (rest.find('/') != std::string_view::npos)
      return Error{ShownAddress(rest) + ": dns+ takes a name and a port, for example dns+trainers:19091"};
  }
  const Result<Url> url = Url::Parse(WithScheme(rest));
  if (!url.ok()) return Error{"address " + ShownAddress(rest) + ": " + url.error()};
  if (url.value().scheme() != "http" && url.value().scheme() != "https")
    return Error{"address " + ShownAddress(rest) + ": the scheme is neither http nor https"};
  if (url.value().has_user()) {
    return Error{"address " + ShownAddress(rest) +
                 ": other users see a password in a command line; use --username and "
                 "--password-file"};
  }
  if (url.value().has_query() || url.value().has_fragment())
    return Error{"address " + ShownAddress(rest) + ": a query is not accepted, give host and port"};
  return Done{};
}

std::string LocalJobsFolder() { return "/dev/shm/persia-metrics-" + std::to_string(geteuid()); }

TargetFinder::TargetFinder(std::vector<std::string> addresses, std::string jobs)
    : addresses_(std::move(addresses)), jobs_(std::move(jobs)) {}

void TargetFinder::Put(Target target) {
  const auto known =
      std::find_if(found_.begin(), found_.end(), [&target](const Target& other) { return other.name == target.name; });
  if (known == found_.end()) {
    if (found_.size() < kMaxTargets) found_.push_back(std::move(target));
  } else {
    *known = std::move(target);
  }
}

void TargetFinder::AddName(const std::string& address) {
  const std::string text = address.substr(kNamePrefix.size());
  const Result<Url> url = Url::Parse(WithScheme(text));
  const std::string port = url.value().port() ? std::to_string(*url.value().port()) : kDefaultPort;
  const auto found = LookUpAll(url.value().host());
  // The failure of a lookup is shown in a line of its own until the name is known.
  const std::string prefix = std::string(kNamePrefix) + text;
  std::erase_if(found_, [&prefix](const Target& target) { return target.name == prefix; });
  if (!found.ok()) {
    Put({.name = prefix, .problem = found.error()});
    return;
  }
  for (const std::string& ip : found.value())
    Put(TargetOf((ip.find(':') == std::string::npos ? ip : '[' + ip + ']') + ':' + port));
}

void TargetFinder::AddLocalJobs() {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(jobs_, error), end; !error && entry != end; entry.increment(error)) {
    const auto directory = JobDirectory::OpenExisting(entry->path());
    if (!directory.ok()) continue;
    const AgentConf conf = directory.value().ReadConf();
    if (conf.run_id.empty()) continue;
    const bool has_agent = directory.value().Holder().has_value();
    Target target{.name = entry->path().filename()};
    if (!has_agent && (conf.ended || !HasProcesses(directory.value()))) {
      const auto is_known = [&target](const Target& other) { return other.name == target.name; };
      if (std::none_of(found_.begin(), found_.end(), is_known)) continue;  // nothing of it has run since `top` started
      target.problem = conf.ended ? "the run has ended" : "no agent and no process of it runs";
      target.ended = true;
    } else if (!has_agent) {
      target.problem = "no agent runs";
    } else if (conf.web.empty()) {
      target.problem = "its agent serves no page, or is of an older version";
    } else {
      target.url = ReachableUrl(conf.web);
    }
    Put(std::move(target));
  }
}

std::vector<Target> TargetFinder::Find() {
  if (addresses_.empty()) AddLocalJobs();
  for (const std::string& address : addresses_)
    if (address.starts_with(kNamePrefix))
      AddName(address);
    else
      Put(TargetOf(address));
  return found_;
}

}  // namespace persia::agent
