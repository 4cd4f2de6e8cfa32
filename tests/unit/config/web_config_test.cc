#include "config/web_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kHash[] = "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";

// A certificate that signs itself, its key, and the same key with a passphrase.
constexpr char kCertificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBdDCCARugAwIBAgIUbYfnoL23M23JsBAdw1Xw7KpPEg8wCgYIKoZIzj0EAwIw\n"
    "DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjMwOTQ5MjlaGA8yMTI2MTAzMDA5NDky\n"
    "OVowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABB/X\n"
    "VCfH6lD1477u2Ejd7sEkMkEaiOLbdrVDBiShO/yuUGP+ZEbcXemNe2wqt/NQMzh/\n"
    "+7E1gwNP2DmBhYnKXRmjUzBRMB0GA1UdDgQWBBThsY8MzQvG4PGJLjr4h1I2FYA0\n"
    "JTAfBgNVHSMEGDAWgBThsY8MzQvG4PGJLjr4h1I2FYA0JTAPBgNVHRMBAf8EBTAD\n"
    "AQH/MAoGCCqGSM49BAMCA0cAMEQCIAa6zDw1ALXJ8l9UcrHJiqWjxI4lUy1/BL7J\n"
    "w/sHfOGFAiBuu2O9XnHAy33l+BPw2MiUkw/iKtH2ZnfXOyhDbHsYgQ==\n"
    "-----END CERTIFICATE-----\n";
constexpr char kKey[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgS71SvVQUZTS1uPoH\n"
    "9od54XMHGZEISwGJDk0mmknLgtyhRANCAAQf11Qnx+pQ9eO+7thI3e7BJDJBGoji\n"
    "23a1QwYkoTv8rlBj/mRG3F3pjXtsKrfzUDM4f/uxNYMDT9g5gYWJyl0Z\n"
    "-----END PRIVATE KEY-----\n";
constexpr char kEncryptedKey[] =
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
    "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgN7ohBYuueqgICCAAw\n"
    "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEM22PPj674Erc6ryjOdClKQEgZDI\n"
    "1AnbU5L5kEs8JrIBrO7Gm3Kt6768U81MY3rL1znHCMAj5+rm16c1ghtO05qhqDPO\n"
    "l9ro1J+wdljlSUweV6HdUeL1Mvl1/PJHKKJuFBWBYCBgnkDLzX/1hL+yUhsDRg43\n"
    "K7BikN42hKun5fcTnVfR/W95idtnh+7PG7Om4jaWpqX+rWUs2mHhAhC7QMi0iyc=\n"
    "-----END ENCRYPTED PRIVATE KEY-----\n";

std::string TlsIsThere() { return ""; }

WebConfig ParseWeb(const std::string& text) { return ParseWebConfig("w.yaml", text, TlsFiles::kCheck, TlsIsThere); }

TEST(WebConfig, NamesUsersAndTheirHashes) {
  const WebConfig config = ParseWeb(std::string("basic_auth_users:\n  alice: ") + kHash + "\n  \"bob b\": '" + kHash + "'\n");
  EXPECT_THAT(config.errors, IsEmpty());
  EXPECT_THAT(config.users, ElementsAre(std::pair("alice", kHash), std::pair("bob b", kHash)));
  EXPECT_FALSE(config.tls);
}

TEST(WebConfig, NamesTheFilesOfTlsRelativeToItself) {
  const TemporaryDirectory temporary;
  const std::string& directory = temporary.path();
  std::ofstream(directory + "/c.pem") << kCertificate << kKey;
  const std::string text =
      "tls_server_config:\n  cert_file: c.pem\n  key_file: " + directory +
      "/c.pem\n  client_ca_file: c.pem\n  client_auth_type: RequireAndVerifyClientCert\n  min_version: TLS13\n";
  const WebConfig config = ParseWebConfig(directory + "/w.yaml", text, TlsFiles::kCheck, TlsIsThere);
  EXPECT_THAT(config.errors, IsEmpty());
  ASSERT_TRUE(config.tls);
  EXPECT_EQ(*config.tls, (ListenerTls{.cert_file = directory + "/c.pem",
                                      .key_file = directory + "/c.pem",
                                      .client_ca_file = directory + "/c.pem",
                                      .client_cert = ListenerTls::ClientCert::kRequire,
                                      .min_version = ListenerTls::Version::k13}));
  EXPECT_THAT(ParseWebConfig(directory + "/w.yaml", text, TlsFiles::kCheck, [] { return "no luck"; }).errors,
              ElementsAre(directory + "/w.yaml:1:1: tls_server_config: no luck"));
}

TEST(WebConfig, FilesOfTlsThatOpenSslRefusesAreNamed) {
  const TemporaryDirectory temporary;
  const std::string& directory = temporary.path();
  std::ofstream(directory + "/cert.pem") << kCertificate;
  std::ofstream(directory + "/key.pem") << kKey;
  std::ofstream(directory + "/encrypted.pem") << kEncryptedKey;
  std::ofstream(directory + "/broken.pem") << "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";
  const struct {
    const char* cert;
    const char* key;
    const char* ca;
    const char* error;
  } cases[] = {{"broken.pem", "key.pem", "cert.pem", "cert_file \""},
               {"key.pem", "key.pem", "cert.pem", "cert_file \""},
               {"cert.pem", "cert.pem", "cert.pem", "key_file \""},
               {"cert.pem", "encrypted.pem", "cert.pem", "key_file \""},
               {"cert.pem", "key.pem", "broken.pem", "client_ca_file \""}};
  for (const auto& [cert, key, ca, error] : cases) {
    const std::string text = std::string("tls_server_config:\n  cert_file: ") + cert + "\n  key_file: " + key +
                             "\n  client_ca_file: " + ca + "\n  client_auth_type: RequireAndVerifyClientCert\n";
    EXPECT_THAT(ParseWebConfig(directory + "/w.yaml", text, TlsFiles::kCheck, TlsIsThere).errors,
                ElementsAre(StartsWith(directory + "/w.yaml:1:1: tls_server_config: " + error)));
  }
}

TEST(WebConfig, WhatIsWrongHasItsPlace) {
  const std::string hash = kHash;
  const struct {
    std::string text;
    const char* error;
  } cases[] = {
      {"users: {}", "w.yaml:1:1: unknown key \"users\" (basic_auth_users, tls_server_config)"},
      {"- a", "w.yaml:1:1: expected sections"},
      {"basic_auth_users:", "w.yaml:1:1: basic_auth_users: the value is missing"},
      {"basic_auth_users: {}", "w.yaml:1:19: basic_auth_users: expected users"},
      {"basic_auth_users:\n  alice: plain", "w.yaml:2:10: basic_auth_users: the value of \"alice\" is not a bcrypt hash"},
      {"basic_auth_users:\n  alice:\n", "w.yaml:2:3: basic_auth_users: the value of \"alice\" is not a bcrypt hash"},
      {"basic_auth_users:\n  " + hash + ": alice", "w.yaml:2:3: basic_auth_users: a user's name is expected here"},
      {"basic_auth_users:\n  a:b: " + hash, "w.yaml:2:3: basic_auth_users: a user's name is expected here"},
      {"basic_auth_users:\n  a: " + hash + "\n  a: " + hash, "w.yaml:3:3: basic_auth_users: the user \"a\" is given twice"},
      {"alice:" + hash + ": x", "w.yaml:1:1: unknown key \"alice\" ("},
      {"basic_auth_users:\n  a: " + hash + "\nbasic_auth_users:\n  b: " + hash,
       "w.yaml:3:1: \"basic_auth_users\" is given twice"},
      {"tls_server_config: x", "w.yaml:1:20: tls_server_config: expected settings"},
      {"tls_server_config:\n  max_version: TLS13", "w.yaml:2:3: unknown key \"max_version\"; did you mean \"min_version\"?"},
      {"tls_server_config:\n  min_version: TLS10", "w.yaml:2:16: min_version: \"TLS10\" is not one of: TLS12, TLS13"},
      {"tls_server_config:\n  client_auth_type: RequestClientCert",
       "w.yaml:2:21: client_auth_type: \"RequestClientCert\" is not"},
      {"tls_server_config:\n  cert_file: /nowhere/c.pem", "w.yaml:2:14: cert_file \"/nowhere/c.pem\": cannot be read"},
      {"tls_server_config:\n  min_version: TLS12", "w.yaml:1:1: tls_server_config: cert_file is missing"},
      {"a: [", "w.yaml:"},
  };
  for (const auto& [text, error] : cases) {
    EXPECT_THAT(ParseWeb(text).errors, Contains(StartsWith(error))) << text;
    EXPECT_THAT(ParseWeb(text).errors, Not(Contains(HasSubstr("abcdefghij"))));
    EXPECT_THAT(ParseWeb(text).errors, Not(Contains(HasSubstr("plain"))));
  }
}

}  // namespace
}  // namespace persia::agent
