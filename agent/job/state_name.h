// The names of a job's files in a `state_dir`, which the agents of several jobs and hosts may share: `JOB.rep_N.state` and so
// on. N is the replica of the first agent of the job on its host. Those that go on there use the same files, whichever replica
// they have. They know N from agent.conf, and in a container that restarts, where that is lost, each from its note
// `JOB.rep_OWN.host`.
//
// Thread safety: functions without a state.
#pragma once

#include <optional>
#include <string>

#include "job/job_directory.h"

namespace persia::agent {

std::string StatePrefix(const std::string& job, int replica);

// Whose files the agent with this replica used last; none if it has no note, or if they are gone with their run.
std::optional<int> NotedReplica(const JobDirectory& state, const std::string& job, int own);

// Writes the note, or removes it if the files have its own name. Errors are ignored: the state itself reports a full directory.
void NoteReplica(const JobDirectory& state, const std::string& job, int own, int files);

// The run of these files has ended: removes the notes that name them.
void RemoveNotes(const JobDirectory& state, const std::string& job, int files);

}  // namespace persia::agent
