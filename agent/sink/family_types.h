// Which types a gateway knows the families of our groups by.
//
// A family whose type changes, as a rule may make it, is refused by the gateway for each group as long as it stands in another
// one with the former type. So all groups are pushed without it first. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "model/snapshot.h"

namespace persia::agent {

class FamilyTypes {
 public:
  // The snapshot without the families whose type is another one than before; nothing if there are none.
  [[nodiscard]] std::optional<Snapshot> WithoutChanged(const Snapshot& snapshot) const;
  // From now on the types are those of this one.
  void Take(const Snapshot& snapshot);

 private:
  std::shared_ptr<const Layout> layout_;  // they are taken from
  std::map<std::string, MetricType> types_;
};

}  // namespace persia::agent
