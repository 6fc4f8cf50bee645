# Sourced by the scripts of Java programs: fetches what a program needs and compiles it, once for all cases.
#   build_java HERE TARGET WHAT [OPTION OF MVN...]
# HERE holds pom.xml and src; TARGET gets classpath.txt and classes; WHAT is named when it cannot be had.
# JAVAC_OPTIONS replaces "--release 11". Without Java, Maven or its registry: skip.sh.
. "$(dirname "${BASH_SOURCE[0]}")/skip.sh"
build_java() {
  local here=$1 target=$2 what=$3 newest
  shift 3
  mkdir -p "$target/classes"
  need java "no java on this machine (bin/setup installs it)"
  need mvn "no mvn on this machine (bin/setup installs it)"
  (
    flock 9  # the cases share one build
    if [ ! -f "$target/classpath.txt" ] || [ "$here/pom.xml" -nt "$target/classpath.txt" ]; then
      if ! mvn -q -B -f "$here/pom.xml" "$@" dependency:build-classpath \
        -Dmdep.outputFile="$target/classpath.tmp" >"$target/mvn.log" 2>&1; then
        tail -5 "$target/mvn.log"
        skip "Maven cannot get $what (see $target/mvn.log)" probe_maven
      fi
      mv "$target/classpath.tmp" "$target/classpath.txt"
    fi
    newest=$(find "$here/src" "$here/pom.xml" -newer "$target/classes.stamp" 2>/dev/null | head -1 || true)
    if [ ! -f "$target/classes.stamp" ] || [ -n "$newest" ]; then  # never under another run's feet without need
      # shellcheck disable=SC2086  # a list of options
      find "$here/src" -name '*.java' -print0 |
        xargs -0 javac -nowarn ${JAVAC_OPTIONS:---release 11} -cp "$(cat "$target/classpath.txt")" -d "$target/classes"
      touch "$target/classes.stamp"
    fi
  ) 9>"$target/lock"
}
