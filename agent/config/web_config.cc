#include "config/web_config.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "files/small_file.h"
#include "files/yaml_reader.h"
#include "net/password_check.h"

namespace persia::agent {
namespace {

using ClientCert = ListenerTls::ClientCert;
using Version = ListenerTls::Version;

constexpr std::string_view kSections[] = {"basic_auth_users", "tls_server_config"};
constexpr std::string_view kTlsKeys[] = {"cert_file", "key_file", "client_ca_file", "client_auth_type", "min_version"};
constexpr Choice<ClientCert> kClientAuthTypes[] = {{"NoClientCert", ClientCert::kIgnore},
                                                   {"VerifyClientCertIfGiven", ClientCert::kVerifyIfGiven},
                                                   {"RequireAndVerifyClientCert", ClientCert::kRequire}};
constexpr Choice<Version> kVersions[] = {{"TLS12", Version::k12}, {"TLS13", Version::k13}};

class WebConfigReader {
 public:
  WebConfigReader(const std::string& path, TlsFiles tls_files, WebConfig& config)
      : path_(path), tls_files_(tls_files), reader_(path, config.errors), config_(config) {}

  void Read(const YamlNode& root, const std::function<std::string()>& why_no_tls) {
    if (root.kind == YamlNode::Kind::kNull ||
        !reader_.Expect(root, YamlNode::Kind::kMap, "expected sections (basic_auth_users: ...)"))
      return;
    const YamlReader::Fields sections = reader_.ReadMap(root, kSections);
    if (const YamlNode* users = YamlReader::Find(sections, "basic_auth_users")) ReadUsers(*users);
    if (const auto tls = sections.find("tls_server_config"); tls != sections.end()) {
      ReadTls(*tls->second.key, *tls->second.value);
      if (const std::string why = why_no_tls(); !why.empty()) reader_.Fail(*tls->second.key, "tls_server_config: " + why);
    }
  }

 private:
  void ReadUsers(const YamlNode& users) {
    if (!reader_.Expect(users, YamlNode::Kind::kMap, "basic_auth_users: expected users (name: bcrypt hash)")) return;
    if (users.entries.empty()) reader_.Fail(users, "basic_auth_users: expected users (name: bcrypt hash), found none");
    for (const auto& [key, value] : users.entries) {
      const std::string& name = key->text;
      // A text that cannot be a name is not quoted: it may be a hash or a password.
      if (!CheckText(name, "a user's name").ok() || name[0] == '$' || name.find(':') != std::string::npos) {
        reader_.Fail(*key, "basic_auth_users: a user's name is expected here, without a colon and not beginning with '$'");
      } else if (config_.users.contains(name)) {
        reader_.Fail(*key, "basic_auth_users: the user " + Quoted(name) + " is given twice");
      } else if (const std::string why = PasswordCheck::WhyUnusable(value->text); !why.empty()) {
        reader_.Fail(value->kind == YamlNode::Kind::kNull ? *key : *value,
                     "basic_auth_users: the value of " + Quoted(name) + " " + why);
      } else {
        config_.users[name] = value->text;
      }
    }
  }

  void ReadTls(const YamlNode& key, const YamlNode& section) {
    if (!reader_.Expect(section, YamlNode::Kind::kMap, "tls_server_config: expected settings (cert_file: ...)")) return;
    const YamlReader::Fields fields = reader_.ReadMap(section, kTlsKeys);
    ListenerTls tls;
    tls.client_cert = reader_.Choose(fields, "client_auth_type", kClientAuthTypes).value_or(tls.client_cert);
    tls.min_version = reader_.Choose(fields, "min_version", kVersions).value_or(tls.min_version);
    tls.cert_file = PemFile(fields, "cert_file");
    tls.key_file = PemFile(fields, "key_file");
    tls.client_ca_file = PemFile(fields, "client_ca_file");
    for (const char* const needed : {"cert_file", "key_file"})
      if (!fields.contains(needed)) reader_.Fail(key, std::string("tls_server_config: ") + needed + " is missing");
    const bool asks_clients = tls.client_cert != ClientCert::kIgnore;
    if (asks_clients && !fields.contains("client_ca_file"))
      reader_.Fail(key, "tls_server_config: client_auth_type asks for certificates, but client_ca_file is missing");
    if (!asks_clients && fields.contains("client_ca_file"))
      reader_.Fail(key, "tls_server_config: client_ca_file is set, but client_auth_type does not ask for certificates");
    if (config_.errors.empty() && tls_files_ == TlsFiles::kCheck) {
      if (const Status status = CheckFiles(tls); !status.ok()) reader_.Fail(key, "tls_server_config: " + status.error());
    }
    config_.tls = std::move(tls);
  }

  // The path of the file that `key` names; empty if there is none.
  std::string PemFile(const YamlReader::Fields& fields, const std::string& key) {
    const auto name = reader_.Text(fields, key);
    if (!name) return "";
    const YamlNode& value = *YamlReader::Find(fields, key);
    const std::string path = std::filesystem::path(path_).parent_path() / *name;
    if (tls_files_ == TlsFiles::kLeave) return path;
    const Result<std::string> content = WatchedFile(key, path).Read();
    if (!content.ok())
      reader_.Fail(value, content.error());
    else if (content.value().find("-----BEGIN ") == std::string::npos)
      reader_.Fail(value, key + " " + Quoted(path) + ": is not PEM");
    return path;
  }

  const std::string path_;
  const TlsFiles tls_files_;
  YamlReader reader_;
  WebConfig& config_;
};

}  // namespace

WebConfig ParseWebConfig(const std::string& path, const std::string& text, TlsFiles tls_files,
                         const std::function<std::string()>& why_no_tls) {
  WebConfig config;
  const auto document = ParseYaml(path, text);
  if (!document.ok()) {
    config.errors.push_back(document.error());
    return config;
  }
  WebConfigReader(path, tls_files, config).Read(*document.value(), why_no_tls);
  return config;
}

WebConfig ReadWebConfig(const std::string& path) {
  const Result<std::string> text = WatchedFile("web_config_file", path).Read();
  if (!text.ok()) return {.users = {}, .tls = {}, .errors = {text.error()}};
  return ParseWebConfig(path, text.value());
}

}  // namespace persia::agent
