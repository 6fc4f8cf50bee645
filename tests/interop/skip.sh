# Sourced by the scripts of clients: when a client cannot be had, says so and ends the script.
#   skip WHY PROBE...     PROBE asks the client's registry for something else. It fails: exit 77 (ctest: skipped), for that
#                         is no fault of ours. It answers: exit 1, for a client that is there must be tried.
#   need TOOL WHY         without the tool: exit 77, but 1 where CI says that it must be there (CI=true).
skip() {
  local why=$1
  shift
  if "$@" >/dev/null 2>&1; then
    echo "FAILED: $why, and its registry answers"
    exit 1
  fi
  echo "skipped: $why, and its registry does not answer"
  exit 77
}
need() {
  command -v "$1" >/dev/null && return 0
  echo "skipped: $2"
  [ "${CI:-}" != true ] || exit 1
  exit 77
}
# In an empty repository, so that what was fetched before is no answer.
probe_maven() {
  local empty code=0
  empty=$(mktemp -d)
  timeout 180 mvn -q -B -Dmaven.repo.local="$empty" dependency:get -Dartifact=org.hamcrest:hamcrest:2.2 -Dtransitive=false || code=$?
  rm -rf "$empty"
  return $code
}
