#!/usr/bin/env bash
# Sourced by scripts that need Go.

# Queried outside any module, because Go before 1.21 cannot read a go.mod that requires a later version.
go_version() {
  (cd / && go env GOVERSION)
}

# download_go VERSION: Debian 12's Go is old. The Go project also publishes its releases as a module, which Go checks against the
# checksum database. Go before 1.21 does not make the module's programs executable.
download_go() {
  local module folder
  module=golang.org/toolchain@v0.0.1-go$1.$(go env GOOS)-$(go env GOARCH)
  folder=$(cd / && GOFLAGS='' go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p') &&
    [[ -n $folder ]] && chmod -R +x "$folder/bin" "$folder/pkg/tool" && PATH=$folder/bin:$PATH
}

# find_go VERSION: puts Go of this or a later version on PATH. Installs Debian's package if there is no Go, and downloads the version
# if Go is older. Prints what fails.
find_go() {
  local found advice="install Go $1 or later (https://go.dev/dl)"
  if ! command -v go >/dev/null; then PATH=$PATH:/usr/local/go/bin; fi
  if ! command -v go >/dev/null && ! "$(dirname "${BASH_SOURCE[0]}")/../run" deps boards; then
    echo "no Go, and Debian's package golang-go could not be installed: $advice" >&2
    return 1
  fi
  found=$(go_version)
  if ! printf 'go%s\n%s\n' "$1" "$found" | sort -CV && ! download_go "$1"; then
    echo "$(command -v go) is $found, and Go $1 could not be downloaded: $advice" >&2
    return 1
  fi
  # Uses only this Go.
  export GOTOOLCHAIN=local
}
