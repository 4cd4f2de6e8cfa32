// Uses the library inside a scope, in which calls may be made to fail (inject.h).
#pragma once

#include "inject.h"

namespace faults {

// True: the program runs without the library.
inline bool bare = false;

template <class Use>
void Library(const Use& use) {
  if (bare) return;
  if (persia_faults_scope != nullptr) persia_faults_scope(1);
  use();
  if (persia_faults_scope != nullptr) persia_faults_scope(-1);
}

}  // namespace faults
