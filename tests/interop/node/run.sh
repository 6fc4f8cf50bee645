#!/usr/bin/env bash
# Runs cases of the Node interop program against a fresh cluster.
#   run.sh SOURCE_ROOT BUILD_DIR CASE...
# Exit 77 (ctest: skipped) when Node or its registry cannot be had; never when the client itself fails.
set -euo pipefail
root=$1 build=$2
shift 2
here=$root/tests/interop/node
target=$build/interop-node
mkdir -p "$target"
. "$root/tests/interop/skip.sh"
need npm "no node or npm on this machine"
(
  flock 9
  if ! cmp -s "$here/package-lock.json" "$target/package-lock.json"; then
    cp "$here/package.json" "$here/package-lock.json" "$target"
    if ! (cd "$target" && npm ci --no-audit --no-fund) >"$target/npm.log" 2>&1; then
      tail -5 "$target/npm.log"
      rm "$target/package-lock.json"
      skip "npm cannot get ali-ons (see $target/npm.log)" timeout 60 npm ping
    fi
  fi
  cp "$here/main.js" "$target"
) 9>"$target/lock"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
TRIAD_ADMIN=$build/bin/triad-admin HOME=$scratch timeout "${TRIAD_INTEROP_SECONDS:-170}" "$build/tests/with_cluster" --root "$root" --programs "$build/bin" \
  --set "messageDelayLevel=1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s" -- \
  node "$target/main.js" {namesrv} "$@"
