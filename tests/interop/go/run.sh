#!/usr/bin/env bash
# Runs cases of the Go interop program against a fresh cluster.
#   run.sh SOURCE_ROOT BUILD_DIR CASE...
# Exit 77 (ctest: skipped) when Go or its module proxy cannot be had; never when the client itself fails.
set -euo pipefail
root=$1 build=$2
shift 2
here=$root/tests/interop/go
target=$build/interop-go
mkdir -p "$target"
. "$root/tests/interop/skip.sh"
need go "no go on this machine"
(
  flock 9
  if ! (cd "$here" && go mod download) >"$target/go.log" 2>&1; then
    tail -5 "$target/go.log"
    skip "go cannot get the client's modules (see $target/go.log)" timeout 60 go list -m -versions golang.org/x/text
  fi
  (cd "$here" && go build -o "$target/interop" .)
) 9>"$target/lock"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
ROCKETMQ_GO_LOG_LEVEL=error HOME="$scratch" timeout "${TRIAD_INTEROP_SECONDS:-170}" "$build/tests/with_cluster" \
  --root "$root" --programs "$build/bin" \
  --set "messageDelayLevel=1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s" -- \
  "$target/interop" {namesrv} "$@"
