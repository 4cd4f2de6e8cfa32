// How a target of `remote_write` is reached: credentials, TLS, proxy, headers. The words are those of Prometheus. No error
// quotes a secret.
#pragma once

#include <span>

#include "config/remote_write_keys.h"

namespace persia::agent {

// The keys of a target for ReadKeys, those with a section included.
std::span<const TargetKey> AccessKeys();
// Those of Prometheus that the agent refuses.
std::span<const ForeignKey> ForeignAccessKeys();

// Reads the sections and checks that nothing contradicts. `fields`: of the target, after ReadKeys.
void ReadAccess(const YamlReader::Fields& fields, TargetReaders& readers, RemoteWriteTarget& target);

}  // namespace persia::agent
