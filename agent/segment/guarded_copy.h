// Copies from a mapped file that another process may truncate during the copy.
//
// Reading a page beyond the file's new end raises SIGBUS, which would end the agent. The first guarded call installs a handler
// that makes the faulting copy return false, and passes every other SIGBUS to the previous handler or the default action.
// Thread safety: any thread; the handler is installed once for the process and stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace persia::agent {

// Copies `to.size()` words from `from` by relaxed loads: a word is never torn by a concurrent write; words are not ordered.
// False, with `to` in any state, if the file was truncated. REQUIRES: `from` is aligned to 8 bytes.
[[nodiscard]] bool GuardedCopy(const std::byte* from, std::span<uint64_t> to);

// As GuardedCopy, by acquire loads in order, each of which pairs with a release store of the writer. For a count of published
// data, and for words that are valid only while the sequence beside them does not change.
[[nodiscard]] bool GuardedCopyInOrder(const std::byte* from, std::span<uint64_t> to);

}  // namespace persia::agent
