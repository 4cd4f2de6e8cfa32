// How a target of `remote_write` is reached: credentials, TLS, proxy, headers. The words are those of Prometheus. No error
// quotes a secret.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/options.h"
#include "files/yaml_reader.h"

namespace persia::agent {

// Reads the keys of a target of `remote_write` and of its sections (`queue_config`, ...) by tables.
//
//   const YamlReader::Fields fields = ReadKeys(map, "queue_config: ", kQueueKeys, kForeignQueueKeys, readers, target);
//
// Thread safety: none.
struct TargetReaders {
  YamlReader& fatal;      // an error switches the target off
  YamlReader& mild;       // after an error, the key has its default
  YamlReader& notes;      // of keys without effect here
  std::string directory;  // of the file, for names of other files
};

struct TargetKey {
  std::string_view key;
  Status (*set)(std::string_view text, RemoteWriteTarget& target) = nullptr;  // null: a section
  bool has_safe_default = false;                                              // it does not decide where samples go, or which
};

// A key that Prometheus has and the agent has not.
struct ForeignKey {
  std::string_view key;
  std::string_view advice;
  // Such a target is refused; otherwise the key has no effect, which is a note.
  bool is_refused = false;
  // With this value, the agent does what the key says.
  std::string_view fulfilled{};
};

// Sets the keys in the order of the table. Unknown, repeated and misplaced keys are fatal; a section without a value is left
// out. Each error begins with `prefix`. Returns the fields that are no foreign keys.
YamlReader::Fields ReadKeys(const YamlNode& map, const std::string& prefix, std::span<const TargetKey> keys,
                            std::span<const ForeignKey> foreign, TargetReaders& readers, RemoteWriteTarget& target);

// The fatal error `what` if both keys are there, at the second one. False: an error.
bool RefuseBoth(const YamlReader::Fields& fields, const std::string& prefix, std::string_view first, std::string_view second,
                TargetReaders& readers);

// The keys of a target for ReadKeys, those with a section included.
std::span<const TargetKey> AccessKeys();
// Those of Prometheus that the agent refuses.
std::span<const ForeignKey> ForeignAccessKeys();

// Reads the sections and checks that nothing contradicts. `fields`: of the target, after ReadKeys.
void ReadAccess(const YamlReader::Fields& fields, TargetReaders& readers, RemoteWriteTarget& target);

}  // namespace persia::agent
