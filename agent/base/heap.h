// Keeps glibc's heap and stacks small.
#pragma once

namespace persia::agent {

// Call first in main. By default glibc gives the threads up to eight heaps per processor, and keeps freed blocks of up to 32
// MiB: a few scrapes of 100,000 series, with texts of 12 MB, then leave 600 MiB resident instead of 60.
// By default a thread's stack is 8 MiB, which a limit on memory counts in full (`ulimit -v`, `ulimit -d`).
void SetUpHeap();

// Returns free pages to the kernel: about a millisecond per 100 MiB. Call it after a change of layout, whose construction takes
// more memory than its result.
void ReturnFreeMemory();

}  // namespace persia::agent
