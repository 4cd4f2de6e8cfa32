// Why series are left out of the exposition.
//
// A rule can also drop a whole metric (naming/mapping_rules.h); that is not counted here. exposure/README.md lists the later
// steps that leave out series for one destination.
#pragma once

#include <cstddef>

namespace persia::agent {

// The number of series left out, by reason.
struct SeriesLeftOut {
  // series_limits.h
  size_t agent_limit = 0;
  size_t instance_limit = 0;
  size_t label_value_limit = 0;
  size_t family_limit = 0;
  // family_conflicts.h: another definition of the name won.
  size_t definition = 0;
  // draft_layout.h: another series has the same labels.
  size_t collision = 0;
};

}  // namespace persia::agent
