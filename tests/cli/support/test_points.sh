# For tests that act on a process between two of its writes, at the named moments of a program that was built with tests
# (engine/system/test_point.h). Source after harness.sh.
# shellcheck shell=bash disable=SC2154 # variables of harness.sh

export TESSERA_TEST_POINTS=$folder/points
mkdir "$TESSERA_TEST_POINTS"

# at_point NAME COMMANDS [WHEN]: the first process that comes to that moment while the commands WHEN succeed waits for COMMANDS,
# for which $1 is its process. They have a session of their own, so that it may be killed meanwhile.
at_point() {
  local script=$TESSERA_TEST_POINTS/$1
  printf '#!/usr/bin/env -S setsid -w bash\n%s || exit\nmv "$0" "$0.taken" 2>/dev/null || exit\n%s\n' "${3:-true}" "$2" >"$script.new"
  chmod +x "$script.new"
  mv "$script.new" "$script"
}
