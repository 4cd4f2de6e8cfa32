#include "config/remote_write_access.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/values.h"
#include "net/url.h"

namespace persia::agent {
namespace {

// Advice on a foreign key, or a note that it has no effect.
void JudgeForeign(const ForeignKey& foreign, const YamlReader::Field& field, const std::string& prefix,
                  TargetReaders& readers) {
  if (!foreign.fulfilled.empty() && field.value->text == foreign.fulfilled) return;
  const std::string text = prefix + std::string(foreign.key) + ": " + std::string(foreign.advice);
  if (foreign.is_refused)
    readers.fatal.Fail(*field.key, text);
  else
    readers.notes.Fail(*field.key, text);
}

// All of the section is commented out.
bool IsEmptySection(const YamlNode::Entry& entry, std::span<const TargetKey> keys, std::span<const ForeignKey> foreign) {
  const auto is_it = [&](const TargetKey& key) { return key.set == nullptr && key.key == entry.key->text; };
  const auto is_foreign = [&](const ForeignKey& key) { return key.key == entry.key->text; };
  return entry.value->kind == YamlNode::Kind::kNull &&
         (std::any_of(keys.begin(), keys.end(), is_it) || std::any_of(foreign.begin(), foreign.end(), is_foreign));
}

using Target = RemoteWriteTarget;
using Access = GatewayAccessOptions;
using Kind = YamlNode::Kind;

constexpr size_t kMaxPem = 1 << 20;
// Set by the protocol or by other settings.
constexpr std::string_view kReservedHeaders[] = {"accept-encoding",
                                                 "authorization",
                                                 "connection",
                                                 "content-encoding",
                                                 "content-length",
                                                 "content-type",
                                                 "host",
                                                 "keep-alive",
                                                 "proxy-authenticate",
                                                 "proxy-authorization",
                                                 "transfer-encoding",
                                                 "user-agent",
                                                 "x-prometheus-remote-write-version"};

bool IsHeaderName(std::string_view name) {
  return !name.empty() &&
         std::all_of(
             name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '.'; });
}

// Neither error quotes the text, which may be a secret.
Status ParsePem(std::string_view text, std::string& value) {
  if (text.find("-----BEGIN ") == std::string_view::npos || text.size() > kMaxPem)
    return Error{"is not in PEM form (-----BEGIN ...); a file's name belongs into the key that ends with _file"};
  value = text;
  return Done{};
}

// Not quoted: it may be "Bearer TOKEN".
Status ParseScheme(std::string_view text, std::string& value) {
  if (text.size() == 5 && strncasecmp(text.data(), "basic", 5) == 0)
    return Error{"\"" + std::string(text) + "\" has its own section: basic_auth"};
  if (!IsHeaderName(text))
    return Error{"is not a type of authorization, for example Bearer; the token belongs into credentials"};
  value = text;
  return Done{};
}

constexpr TargetKey kAccessKeys[] = {
    {"headers"},
    {"basic_auth"},
    {"authorization"},
    {"bearer_token", Set<ParseSecret, &Target::access, &Access::bearer_token>},
    {"bearer_token_file", Set<ParseFileName, &Target::access, &Access::bearer_token_file>},
    {"tls_config"},
    {"proxy_url", Set<ParseProxy, &Target::proxy, &ProxySettings::url>},
    {"no_proxy", Set<ParseText, &Target::proxy, &ProxySettings::no_proxy>},
    {"proxy_from_environment", Set<ParseBoolean, &Target::proxy, &ProxySettings::from_environment>},
    {"follow_redirects", Set<ParseBoolean, &Target::follow_redirects>},
};
constexpr TargetKey kBasicAuthKeys[] = {
    {"username", Set<ParseUserName, &Target::access, &Access::username>},
    {"username_file", Set<ParseFileName, &Target::access, &Access::username_file>},
    {"password", Set<ParseSecret, &Target::access, &Access::password>},
    {"password_file", Set<ParseFileName, &Target::access, &Access::password_file>},
};
constexpr TargetKey kAuthorizationKeys[] = {
    {"type", Set<ParseScheme, &Target::access, &Access::token_type>},
    {"credentials", Set<ParseSecret, &Target::access, &Access::bearer_token>},
    {"credentials_file", Set<ParseFileName, &Target::access, &Access::bearer_token_file>},
};
constexpr TargetKey kTlsConfigKeys[] = {
    {"ca", Set<ParsePem, &Target::access, &Access::ca>},
    {"cert", Set<ParsePem, &Target::access, &Access::cert>},
    {"key", Set<ParsePem, &Target::access, &Access::key>},
    {"ca_file", Set<ParseFileName, &Target::access, &Access::ca_file>},
    {"cert_file", Set<ParseFileName, &Target::access, &Access::cert_file>},
    {"key_file", Set<ParseFileName, &Target::access, &Access::key_file>},
    {"server_name", Set<ParseServerName, &Target::access, &Access::server_name>},
    {"insecure_skip_verify", Set<ParseBoolean, &Target::access, &Access::insecure_skip_verify>},
    {"min_version", Set<ParseWord<TlsVersion>, &Target::access, &Access::min_version>},
    {"max_version", Set<ParseWord<TlsVersion>, &Target::access, &Access::max_version>},
};

constexpr char kSigning[] =
    "the agent does not sign requests; set url to a proxy that signs them, or give a token in authorization: "
    "{credentials_file: ...}";
constexpr char kTokens[] =
    "the agent fetches no tokens; let another program write them to a file, and name it in authorization: {credentials_file: "
    "...}, "
    "which is read again when it changes";
constexpr ForeignKey kForeignAccessKeys[] = {
    {"sigv4", kSigning, true},
    {"oauth2", kTokens, true},
    {"azuread", kTokens, true},
    {"google_iam", kTokens, true},
    {"http_headers", "give the headers in headers: {NAME: VALUE}", true},
    {"proxy_connect_header", "the agent sends no headers to a proxy; give a user and password in proxy_url", true},
    {"username", "belongs into basic_auth: {username: ...}", true},
    {"password", "belongs into basic_auth: {password: ...}", true},
    {"password_file", "belongs into basic_auth: {password_file: ...}", true},
    {"ca_file", "belongs into tls_config: {ca_file: ...}", true},
    {"cert_file", "belongs into tls_config: {cert_file: ...}", true},
    {"key_file", "belongs into tls_config: {key_file: ...}", true},
    {"server_name", "belongs into tls_config: {server_name: ...}", true},
    {"insecure_skip_verify", "belongs into tls_config: {insecure_skip_verify: true}", true},
    {"enable_http2", "has no effect: requests are HTTP/1.1", false, "false"},
    {"round_robin_dns", "has no effect: the addresses of a name are tried in turn", false, "false"},
};

// The fields of a section; nothing if there is none, or it is no map.
std::optional<YamlReader::Fields> ReadSection(const YamlReader::Fields& fields, std::string_view section,
                                              std::span<const TargetKey> keys, TargetReaders& readers, Target& target) {
  const YamlNode* const map = YamlReader::Find(fields, section);
  const std::string prefix = std::string(section) + ": ";
  if (map == nullptr || !readers.fatal.Expect(*map, Kind::kMap, prefix + "expected a map")) return std::nullopt;
  return ReadKeys(*map, prefix, keys, {}, readers, target);
}

void Need(bool has, const YamlReader::Fields& of, std::string_view section, const std::string& what, TargetReaders& readers) {
  if (!has) readers.fatal.Fail(*of.find(section)->second.key, std::string(section) + ": " + what);
}

void NoteWithoutEffect(const YamlReader::Fields& fields, std::string_view section, const std::string& why,
                       TargetReaders& readers) {
  readers.notes.Fail(*fields.find(section)->second.key, std::string(section) + ": has no effect: " + why);
}

Status CheckHeader(const std::string& name, const YamlNode& value) {
  if (!IsHeaderName(name)) return Bad(name, "is not a header's name");
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "authorization") return Bad(name, "is set by basic_auth or authorization");
  if (std::ranges::find(kReservedHeaders, lower) != std::end(kReservedHeaders))
    return Bad(name, "is a header that the protocol or another setting decides");
  if (value.kind != Kind::kScalar) return Bad(name, "needs a text as its value");
  if (!CheckText(value.text, "a value").ok())
    return Bad(name, "has a value that is empty or has control characters");  // the value may be secret
  return Done{};
}

void ReadHeaders(const YamlReader::Fields& fields, TargetReaders& readers, Target& target) {
  const YamlNode* const map = YamlReader::Find(fields, "headers");
  if (map == nullptr || !readers.fatal.Expect(*map, Kind::kMap, "headers: expected a map (X-Scope-OrgID: team)")) return;
  for (const YamlNode::Entry& entry : map->entries)
    if (const Status status = CheckHeader(entry.key->text, *entry.value); !status.ok())
      readers.fatal.Fail(*entry.key, "headers: " + status.error());
    else
      target.headers.emplace_back(entry.key->text, entry.value->text);
}

void ReadCredentials(const YamlReader::Fields& fields, TargetReaders& readers, Target& target) {
  constexpr std::string_view kForms[] = {"basic_auth", "authorization", "bearer_token", "bearer_token_file"};
  for (const auto* first = std::begin(kForms); first != std::end(kForms); ++first)
    for (const auto* second = first + 1; second != std::end(kForms); ++second) RefuseBoth(fields, "", *first, *second, readers);
  if (const auto basic = ReadSection(fields, "basic_auth", kBasicAuthKeys, readers, target)) {
    RefuseBoth(*basic, "basic_auth: ", "username", "username_file", readers);
    RefuseBoth(*basic, "basic_auth: ", "password", "password_file", readers);
    const bool has_user = basic->contains("username") || basic->contains("username_file");
    if (basic->empty())
      NoteWithoutEffect(fields, "basic_auth", "username or username_file is missing", readers);
    else
      Need(has_user, fields, "basic_auth", "username or username_file is missing", readers);
  }
  if (const auto token = ReadSection(fields, "authorization", kAuthorizationKeys, readers, target)) {
    RefuseBoth(*token, "authorization: ", "credentials", "credentials_file", readers);
    if (!token->contains("credentials") && !token->contains("credentials_file"))
      NoteWithoutEffect(fields, "authorization", "credentials or credentials_file is missing", readers);
  }
}

void ReadTls(const YamlReader::Fields& fields, TargetReaders& readers, Target& target) {
  const auto tls = ReadSection(fields, "tls_config", kTlsConfigKeys, readers, target);
  if (!tls) return;
  for (const char* const key : {"ca", "cert", "key"})
    RefuseBoth(*tls, "tls_config: ", key, std::string(key) + "_file", readers);
  const bool has_cert = tls->contains("cert") || tls->contains("cert_file");
  const bool has_key = tls->contains("key") || tls->contains("key_file");
  Need(has_cert == has_key, fields, "tls_config", has_cert ? "key or key_file is missing" : "cert or cert_file is missing",
       readers);
  const Access& access = target.access;
  Need(access.max_version == TlsVersion::kDefault || access.min_version <= access.max_version, fields, "tls_config",
       "min_version is above max_version", readers);
  if (!tls->empty() && target.url.starts_with("http:"))
    NoteWithoutEffect(fields, "tls_config", "url is one without TLS (http://)", readers);
}

void CheckProxy(const YamlReader::Fields& fields, TargetReaders& readers, const Target& target) {
  if (target.proxy.from_environment) {
    RefuseBoth(fields, "", "proxy_url", "proxy_from_environment", readers);
    RefuseBoth(fields, "", "no_proxy", "proxy_from_environment", readers);
  } else if (fields.contains("no_proxy") && !fields.contains("proxy_url")) {
    readers.fatal.Fail(*fields.find("no_proxy")->second.key, "no_proxy is set, but proxy_url is not");
  }
}

// As in Prometheus, a relative name begins in the directory of the file that has it.
void ResolveFileNames(const std::string& directory, Access& access) {
  for (std::string* file : {&access.ca_file, &access.cert_file, &access.key_file, &access.username_file, &access.password_file,
                            &access.bearer_token_file})
    if (!file->empty() && file->front() != '/') file->insert(0, directory);
}

}  // namespace

YamlReader::Fields ReadKeys(const YamlNode& map, const std::string& prefix, std::span<const TargetKey> keys,
                            std::span<const ForeignKey> foreign, TargetReaders& readers, RemoteWriteTarget& target) {
  std::vector<std::string_view> names;
  for (const TargetKey& key : keys) names.push_back(key.key);
  for (const ForeignKey& key : foreign) names.push_back(key.key);
  YamlNode present = map;
  std::erase_if(present.entries, [&](const YamlNode::Entry& entry) { return IsEmptySection(entry, keys, foreign); });
  YamlReader::Fields fields = readers.fatal.ReadMap(present, names, prefix);
  for (const ForeignKey& key : foreign) {
    const auto found = fields.find(key.key);
    if (found == fields.end()) continue;
    JudgeForeign(key, found->second, prefix, readers);
    fields.erase(found);
  }
  for (const TargetKey& key : keys) {
    const YamlNode* const value = YamlReader::Find(fields, key.key);
    if (value == nullptr || key.set == nullptr) continue;
    YamlReader& reader = key.has_safe_default ? readers.mild : readers.fatal;
    const std::string place = prefix + std::string(key.key) + ": ";
    if (!reader.Expect(*value, YamlNode::Kind::kScalar, place + "expected a text")) continue;
    if (const Status status = key.set(value->text, target); !status.ok()) reader.Fail(*value, place + status.error());
  }
  return fields;
}

bool RefuseBoth(const YamlReader::Fields& fields, const std::string& prefix, std::string_view first, std::string_view second,
                TargetReaders& readers) {
  const auto one = fields.find(first);
  const auto other = fields.find(second);
  if (one == fields.end() || other == fields.end()) return true;
  readers.fatal.Fail(*other->second.key,
                     prefix + std::string(first) + " and " + std::string(second) + " are both set; leave one out");
  return false;
}

std::span<const TargetKey> AccessKeys() { return kAccessKeys; }
std::span<const ForeignKey> ForeignAccessKeys() { return kForeignAccessKeys; }

void ReadAccess(const YamlReader::Fields& fields, TargetReaders& readers, RemoteWriteTarget& target) {
  ReadHeaders(fields, readers, target);
  ReadCredentials(fields, readers, target);
  ReadTls(fields, readers, target);
  CheckProxy(fields, readers, target);
  ResolveFileNames(readers.directory, target.access);
}

}  // namespace persia::agent
