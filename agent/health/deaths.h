// Why a process of the job died: the cause, a sentence about it, and advice.
//
//   SetDeath(process, DeathOf(process));
//   Name(process.end->death->cause)      // a label's value: "out_of_memory"
//   SentenceOf(process)                  // "killed by the kernel for lack of memory (...); in data, step 812"
//
// docs/deaths.md describes the causes. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/ends.h"
#include "model/process.h"

namespace persia::agent {

// "out_of_memory", ...
[[nodiscard]] std::string_view Name(DeathCause cause);

// REQUIRES: the process has an end, whose exit is known. So do all functions here.
[[nodiscard]] Death DeathOf(const Process& ended);
// Gives its death to a process that has ended, with the phase in which and the time at which it died.
void SetDeath(Process& ended, Death death);

// "in data, step 812"; empty: the process marked no phases.
[[nodiscard]] std::string PlaceOf(const Process& dead);
// "killed by the kernel ...; in data, step 812", to follow "trainer rep_3 died: ".
[[nodiscard]] std::string SentenceOf(const Process& dead);

// Of deaths at one time, those of a lower precedence come first: a launcher ends the other ranks once one has died.
[[nodiscard]] int Precedence(std::string_view exit);

// Whether an end is a death. Further processes of a rank, such as data loaders, may end by _exit as they should, unless the
// kernel killed them, or by the SIGTERM with which the rank ends those of a pool.
[[nodiscard]] bool IsDeath(std::string_view exit, uint32_t ordinal, bool killed_for_memory = false);

// Whether the death only follows from what is told elsewhere: the job was asked to end, or the ranks of a launcher have failed.
// The kernel's kill for lack of memory, a crash, a full disk or a hang remain deaths.
[[nodiscard]] bool IsConsequence(const Death& death, const Process& ended, const std::optional<Interruption>& interruption);

}  // namespace persia::agent
