// Which process of a job is which rank. docs/ranks.md is the table of the sources, in the order in which they count.
//
// Shared by the library, for a worker, and the agent, for itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace persia::metrics {

// The project's own variable, by which a deployment overrides all other sources.
inline constexpr std::string_view kReplicaVariable = "REPLICA_INDEX";
// By which a process whose process group gives its rank passes that on to those that it starts, such as spawned data loaders.
inline constexpr std::string_view kParentsRankVariable = "PERSIA_METRICS_RANK_OF_PARENT";
// Those of launchers: torchrun and others, Horovod, Open MPI, PMIx, MPICH and Intel MPI, MVAPICH, Slurm. The first one also
// overrides the program.
inline constexpr std::string_view kRankVariables[] = {"RANK",     "HOROVOD_RANK",        "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                                      "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"};

// The ranks that the process itself has given.
struct OwnRanks {
  std::optional<int32_t> program = {};        // by Init
  std::optional<int32_t> process_group = {};  // by torch.distributed, in a group of several
};

// `number` returns a variable's number; none if it is not set, or is no number. None: no source gives a rank.
template <class Number>
std::optional<int32_t> RankOf(const Number& number, const OwnRanks& own) {
  // torchrun's ranks on one node inherit the node's.
  const bool is_of_node = number("LOCAL_WORLD_SIZE").value_or(1) > 1 && number(kRankVariables[0]);
  if (const std::optional<int32_t> rank = is_of_node ? std::nullopt : number(kReplicaVariable)) return rank;
  if (own.process_group && !own.program) return own.process_group;
  if (const std::optional<int32_t> rank = number(kRankVariables[0])) return rank;
  if (own.program) return own.program;
  if (const std::optional<int32_t> rank = number(kParentsRankVariable)) return rank;
  for (const std::string_view variable : std::span(kRankVariables).subspan(1))
    if (const std::optional<int32_t> rank = number(variable)) return rank;
  return std::nullopt;
}

}  // namespace persia::metrics
