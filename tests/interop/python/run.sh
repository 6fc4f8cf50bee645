#!/usr/bin/env bash
# Runs cases of the Python interop program (the C++ client inside a wheel) against a fresh cluster.
#   run.sh SOURCE_ROOT BUILD_DIR CASE...
# Exit 77 (ctest: skipped) when Python or its registry cannot be had; never when the client itself fails.
set -euo pipefail
root=$1 build=$2
shift 2
here=$root/tests/interop/python
target=$build/interop-python
mkdir -p "$target"
. "$root/tests/interop/skip.sh"
(
  flock 9
  if ! cmp -s "$here/requirements.txt" "$target/requirements.txt"; then
    if ! python3 -m pip install -q --disable-pip-version-check --no-deps --target "$target/site" --upgrade \
      -r "$here/requirements.txt" >"$target/pip.log" 2>&1; then
      tail -5 "$target/pip.log"
      skip "pip cannot get the rocketmq wheel (see $target/pip.log)" \
        timeout 60 python3 -m pip download -q --no-deps --no-cache-dir -d "$target/probe" wheel
    fi
    cp "$here/requirements.txt" "$target"
  fi
) 9>"$target/lock"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
HOME=$scratch PYTHONPATH=$target/site timeout "${TRIAD_INTEROP_SECONDS:-170}" "$build/tests/with_cluster" --root "$root" \
  --programs "$build/bin" --set "messageDelayLevel=1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s" -- \
  python3 "$here/main.py" {namesrv} "$@"
