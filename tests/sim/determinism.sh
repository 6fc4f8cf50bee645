#!/bin/sh
# A printed seed is worth something only when it means the same run always: fresh seeds (200) run twice in a
# simulator and twice in the same one as another compiler run made it, and all traces must be alike.
#   determinism.sh SIM OTHER_SIM [SCHEDULES]
set -eu
schedules=${3:-200}
here=$("$1" --determinism --schedules "$schedules")
printf '%s\n' "$here"
seed=$(printf '%s\n' "$here" | sed -n 's/^base seed //p')
there=$("$2" --determinism --schedules "$schedules" --seed "$seed") || {
  printf '%s failed:\n%s\n' "$2" "$there"
  exit 1
}
[ "$there" != "$here" ] || exit 0
printf 'in %s the same seeds gave:\n%s\n' "$2" "$there"
exit 1
