#!/bin/sh
# A printed seed is worth something only when it means the same run always: 200 fresh seeds run twice in the
# optimised simulator and twice in the one built without optimisation, and all traces must be alike.
#   determinism.sh SIM_RAFT SIM_RAFT_UNOPTIMISED
set -eu
optimised=$("$1" --determinism --schedules 200)
printf '%s\n' "$optimised"
seed=$(printf '%s\n' "$optimised" | sed -n 's/^base seed //p')
unoptimised=$("$2" --determinism --schedules 200 --seed "$seed")
[ "$unoptimised" != "$optimised" ] || exit 0
printf 'without optimisation the same seeds gave:\n%s\n' "$unoptimised"
exit 1
