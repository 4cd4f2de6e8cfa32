// How the agent's heap behaves: one that can be forgotten takes what it needs and gives back the rest.
#pragma once

namespace persia::agent {

// Called first in main. glibc would give up to eight heaps per processor to the threads, and keep blocks of up to 32 MiB once
// one of the size was freed: each page and push of a large job then leaves texts of 12 MB behind (600 MiB after a few scrapes
// of 100,000 series, where it is 60 now).
void SetUpHeap();

// Gives free pages back to the kernel. Takes a millisecond for 100 MiB; for after a change of layout, whose making takes more
// than what is left of it.
void ReturnFreeMemory();

}  // namespace persia::agent
