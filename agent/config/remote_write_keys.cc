#include "config/remote_write_keys.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"

namespace persia::agent {
namespace {

// Advice on a foreign key, or a note that it has no effect.
void JudgeForeign(const ForeignKey& foreign, const YamlReader::Field& field, const std::string& prefix,
                  TargetReaders& readers) {
  if (!foreign.fulfilled.empty() && field.value->text == foreign.fulfilled) return;
  const std::string text = prefix + std::string(foreign.key) + ": " + std::string(foreign.advice);
  if (foreign.is_refused) {
    readers.fatal.Fail(*field.key, text);
  } else {
    readers.notes.Fail(*field.key, text);
  }
}

// All of the section is commented out.
bool IsEmptySection(const YamlNode::Entry& entry, std::span<const TargetKey> keys, std::span<const ForeignKey> foreign) {
  const auto is_it = [&](const TargetKey& key) { return key.set == nullptr && key.key == entry.key->text; };
  const auto is_foreign = [&](const ForeignKey& key) { return key.key == entry.key->text; };
  return entry.value->kind == YamlNode::Kind::kNull &&
         (std::any_of(keys.begin(), keys.end(), is_it) || std::any_of(foreign.begin(), foreign.end(), is_foreign));
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

}  // namespace persia::agent
