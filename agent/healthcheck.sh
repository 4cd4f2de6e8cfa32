#!/bin/bash
# Says by its exit code whether the container does its work: whether `persia-metrics-agent exec` or `run` is running. It does not ask the
# agent, so that no orchestrator stops a training job, or restarts an agent for ever, because metrics are disabled or a port is in
# use. The agent's own health is at /-/healthy.
set -uo pipefail
shopt -s nullglob
for words in /proc/[0-9]*/cmdline; do
  command=()
  mapfile -d '' -t command 2>/dev/null <"$words" || continue  # it has just ended
  [[ ${command[0]-} == persia-metrics-agent || ${command[0]-} == */persia-metrics-agent ]] || continue
  [[ ${command[1]-} == exec || ${command[1]-} == run ]] && exit 0
done
echo "persia-metrics-agent exec or run is not running in this container" >&2
exit 1
