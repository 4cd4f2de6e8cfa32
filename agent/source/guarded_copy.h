// Reads memory that may vanish while it is read: a mapped file that somebody truncates.
//
// Touching a page behind the file's new end is a SIGBUS, which would end the agent. The first guarded call installs a handler
// for it that returns into the copy at fault, and hands every other SIGBUS to whoever handled it before, or to the default.
// Thread safety: any thread; the handler is installed once for the process and stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace persia::agent {

// Copies `to.size()` words from `from` by relaxed loads: each word is whole, whoever writes it meanwhile; between words there
// is no order. False, with `to` in any state, if the memory is gone. REQUIRES: `from` is aligned to 8 bytes.
[[nodiscard]] bool GuardedCopy(const std::byte* from, std::span<uint64_t> to);

// The same by acquire loads, one after another, each of which pairs with a release store of the writer. For a word that counts
// what was published before it, and for words that are only good if one beside them stays as it is.
[[nodiscard]] bool GuardedCopyInOrder(const std::byte* from, std::span<uint64_t> to);

}  // namespace persia::agent
