// Adagrad: a step is the learning rate divided by the root of the sum of all squared gradients.
#pragma once

namespace embedding_job {

// Added to the root, so that the first step does not divide by zero.
inline constexpr float kAdagradEpsilon = 1e-8F;

}  // namespace embedding_job
