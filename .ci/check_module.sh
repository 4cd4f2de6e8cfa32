#!/usr/bin/env bash
# Sourced in the folder of a Go module: finds the Go that its go.mod requires, and formats, vets and tests the module.
# shellcheck source=/dev/null # a script of its own
source "$(dirname "${BASH_SOURCE[0]}")/find_go.sh"
find_go "$(sed -n 's/^go //p' go.mod)"
# Uses only the versions of go.mod and go.sum. Skips git, which may refuse a folder of another owner.
export GOFLAGS='-mod=readonly -buildvcs=false'

unformatted=$("$(go env GOROOT)/bin/gofmt" -l .)
if [[ -n $unformatted ]]; then
  printf '%s: not as gofmt writes it: %s\n' "$(basename "$PWD")" "$unformatted" >&2
  exit 1
fi
go vet ./...
go test -count=1 ./... # its tests read files outside of the module, whose changes Go would not notice
