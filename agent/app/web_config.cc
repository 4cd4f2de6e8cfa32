#include "app/web_config.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "app/text.h"
#include "app/yaml_document.h"
#include "net/password_check.h"
#include "net/watched_file.h"

namespace persia::agent {
namespace {

class WebConfigReader {
 public:
  WebConfigReader(const std::string& path, WebConfig& config) : path_(path), config_(config) {}

  void Read(const YamlNode& root, const std::function<std::string()>& why_no_tls) {
    if (root.kind == YamlNode::Kind::kNull) return;
    if (root.kind != YamlNode::Kind::kMap) {
      return Fail(root, "expected sections (basic_auth_users: ...), found " + std::string(root.KindName()));
    }
    for (const YamlNode::Entry& entry : root.entries) {
      const std::string key = KeyOnce(root, entry, {"basic_auth_users", "tls_server_config"});
      if (key == "basic_auth_users") ReadUsers(*entry.key, *entry.value);
      if (key == "tls_server_config") {
        ReadTls(*entry.key, *entry.value);
        if (const std::string why = why_no_tls(); !why.empty()) Fail(*entry.key, key + ": " + why);
      }
    }
  }

 private:
  void ReadUsers(const YamlNode& key, const YamlNode& users) {
    if (users.kind != YamlNode::Kind::kMap || users.entries.empty()) {
      return Fail(key, "basic_auth_users: expected users (name: bcrypt hash), found " + std::string(users.KindName()));
    }
    for (const YamlNode::Entry& entry : users.entries) {
      const std::string& name = entry.key->text;
      // What does not look like a name may be a hash or a password in the wrong place.
      if (entry.key->kind != YamlNode::Kind::kScalar || !CheckText(name, "a user's name").ok() || name[0] == '$' ||
          name.find(':') != std::string::npos) {
        Fail(*entry.key, "basic_auth_users: a user's name is expected here, without a colon and not beginning with '$'");
      } else if (config_.users.contains(name)) {
        Fail(*entry.key, "basic_auth_users: the user " + Quoted(name) + " is given twice");
      } else if (const std::string why = WhyNoHash(*entry.value); !why.empty()) {
        Fail(PlaceOf(entry), "basic_auth_users: what the user " + Quoted(name) + " has " + why);
      } else {
        config_.users[name] = entry.value->text;
      }
    }
  }

  // A missing value has no place of its own.
  static const YamlNode& PlaceOf(const YamlNode::Entry& entry) {
    return entry.value->kind == YamlNode::Kind::kNull ? *entry.key : *entry.value;
  }

  static std::string WhyNoHash(const YamlNode& value) {
    return PasswordCheck::WhyUnusable(value.kind == YamlNode::Kind::kScalar ? value.text : "");
  }

  void ReadTls(const YamlNode& key, const YamlNode& section) {
    if (section.kind != YamlNode::Kind::kMap) {
      return Fail(key, "tls_server_config: expected settings (cert_file: ...), found " + std::string(section.KindName()));
    }
    ListenerTls tls;
    for (const YamlNode::Entry& entry : section.entries) {
      const std::string name =
          KeyOnce(section, entry, {"cert_file", "key_file", "client_ca_file", "client_auth_type", "min_version"});
      if (name.empty()) continue;
      if (entry.value->kind != YamlNode::Kind::kScalar || entry.value->text.empty()) {
        Fail(PlaceOf(entry), name + ": expected a text, found " + std::string(entry.value->KindName()));
      } else if (name == "client_auth_type") {
        Choose(name, *entry.value,
               {{"NoClientCert", ListenerTls::ClientCert::kIgnore},
                {"VerifyClientCertIfGiven", ListenerTls::ClientCert::kVerifyIfGiven},
                {"RequireAndVerifyClientCert", ListenerTls::ClientCert::kRequire}},
               tls.client_cert);
      } else if (name == "min_version") {
        Choose(name, *entry.value, {{"TLS12", ListenerTls::Version::k12}, {"TLS13", ListenerTls::Version::k13}}, tls.least);
      } else {
        (name == "cert_file"  ? tls.cert_file
         : name == "key_file" ? tls.key_file
                              : tls.client_ca_file) = PemFile(name, *entry.value);
      }
    }
    const bool asks_clients = tls.client_cert != ListenerTls::ClientCert::kIgnore;
    if (!Has(section, "cert_file")) Fail(key, "tls_server_config: cert_file is missing");
    if (!Has(section, "key_file")) Fail(key, "tls_server_config: key_file is missing");
    if (asks_clients && !Has(section, "client_ca_file")) {
      Fail(key, "tls_server_config: client_auth_type asks for certificates, but client_ca_file is missing");
    }
    if (!asks_clients && Has(section, "client_ca_file")) {
      Fail(key, "tls_server_config: client_ca_file is set, but client_auth_type does not ask for certificates");
    }
    config_.tls = std::move(tls);
  }

  std::string PemFile(const std::string& name, const YamlNode& value) {
    const std::string path = std::filesystem::path(path_).parent_path() / value.text;
    const Result<std::string> content = WatchedFile(name, path).Read();
    if (!content.ok()) {
      Fail(value, content.error());
    } else if (content.value().find("-----BEGIN ") == std::string::npos) {
      Fail(value, name + " " + Quoted(path) + ": is not PEM");
    }
    return path;
  }

  template <class T>
  void Choose(const std::string& name, const YamlNode& value, const std::vector<std::pair<std::string_view, T>>& words,
              T& into) {
    std::string list;
    for (const auto& [word, meaning] : words) {
      if (word == value.text) {
        into = meaning;
        return;
      }
      list += (list.empty() ? "" : ", ") + std::string(word);
    }
    Fail(value, name + ": " + Quoted(value.text) + " is not one of: " + list);
  }

  static bool Has(const YamlNode& map, std::string_view key) {
    return std::any_of(map.entries.begin(), map.entries.end(), [&](const auto& entry) { return entry.key->text == key; });
  }

  // The key, if it is one of these and stands there for the first time; else nothing, and an error.
  std::string KeyOnce(const YamlNode& map, const YamlNode::Entry& entry, const std::vector<std::string_view>& known) {
    const std::string& key = entry.key->text;
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      std::string list;
      for (const std::string_view word : known) list += (list.empty() ? "" : ", ") + std::string(word);
      // No more of it than can be a key: a hash without its blank may follow.
      const size_t end =
          std::find_if_not(key.begin(), key.end(), [](char c) { return IsLetter(c) || IsDigit(c); }) - key.begin();
      Fail(*entry.key, "unknown key " + Quoted(key.substr(0, end)) + " (" + list + ")");
      return "";
    }
    for (const YamlNode::Entry& other : map.entries) {
      if (other.key == entry.key) return key;
      if (other.key->text == key) break;
    }
    Fail(*entry.key, Quoted(key) + " is given twice");
    return "";
  }

  void Fail(const YamlNode& at, const std::string& what) {
    config_.errors.push_back(path_ + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + what);
  }

  const std::string path_;
  WebConfig& config_;
};

}  // namespace

WebConfig ParseWebConfig(const std::string& path, const std::string& text, const std::function<std::string()>& why_no_tls) {
  WebConfig config;
  const auto document = ParseYaml(path, text);
  if (!document.ok()) {
    config.errors.push_back(document.error());
    return config;
  }
  WebConfigReader(path, config).Read(*document.value(), why_no_tls);
  return config;
}

WebConfig ReadWebConfig(const std::string& path) {
  const Result<std::string> text = WatchedFile("web_config_file", path).Read();
  if (!text.ok()) return {.users = {}, .tls = {}, .errors = {text.error()}};
  return ParseWebConfig(path, text.value());
}

}  // namespace persia::agent
