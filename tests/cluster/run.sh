#!/usr/bin/env bash
# Tests the emulated cluster of bench/cluster on this machine: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

show_help() {
  cat <<'HELP'
Usage: tests/cluster/run.sh [PATTERN]

Makes emulated clusters, measures whether they keep what they promise, and takes them down; a quarter of an hour.
Only the tests whose names match PATTERN, if one is given, such as 'link*'.
Needs root and the kernel features that `bench/cluster/cluster check` lists; where one is missing it says so and
passes. Names of its clusters begin with "test-": others are not touched.
HELP
}

# The support for the cases, then a file of cases for each subject; a case is a function called test_*.
. tests/cluster/support.sh
for cases in tests/cluster/*_cases.sh; do
  # shellcheck source=/dev/null
  . "$cases"
done

make_cluster() {
  take_all_down
  "$cluster_command" up --devices 3 --cpu 0.4 --memory 100 --rate 100 --name test-one >/dev/null
}

run_case() {
  local name=$1 started=$SECONDS log
  log=$(mktemp)
  # Not in a condition, where `set -e` would not count.
  set +e
  (
    set -e
    "test_$name"
  ) >"$log" 2>&1 </dev/null
  local code=$?
  set -e
  if [ "$code" -eq 0 ]; then
    printf 'passed  %3d s  %s\n' $((SECONDS - started)) "$name"
    passed=$((passed + 1))
  elif [ "$code" -eq 77 ]; then
    printf 'skipped        %s: %s\n' "$name" "$(tail -n 1 "$log")"
  else
    printf 'FAILED  %3d s  %s\n%s\n' $((SECONDS - started)) "$name" "$(cat "$log")"
    failed=$((failed + 1))
    make_cluster # the next case is not to suffer for this one
  fi
  rm -f "$log"
}

pattern=${1:-*}
case $pattern in --help | -h) show_help || true; exit 0 ;; esac
if ! missing=$("$cluster_command" check); then
  printf 'skipped: %s\n' "$(grep -v ' there$' <<<"$missing" | head -n 1)"
  exit 0
fi

passed=0
failed=0
folder=$(mktemp -d)
trap 'take_all_down; rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
make_cluster
for name in $(compgen -A function test_ | sed 's/^test_//'); do
  # shellcheck disable=SC2053 # a pattern is meant
  [[ $name != $pattern ]] || run_case "$name"
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
