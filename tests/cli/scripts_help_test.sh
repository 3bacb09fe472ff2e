#!/usr/bin/env bash
# The help of the project's scripts: there for each, also where nobody reads it to its end, as under `| head`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
  printf 'FAILED: %s\n' "$1"
  cat "$folder/err"
  failures=$((failures + 1))
}

# into_closed_pipe COMMAND...: with a standard output that nobody reads any more.
into_closed_pipe() { perl -e 'pipe my $read, my $write or die; close $read; open STDOUT, ">&", $write or die; exec @ARGV' "$@"; }

for script in quickstart.sh tests/run.sh tests/arm/run.sh tests/arm/inner_loops.sh tests/cluster/run.sh tests/packages/run.sh .ci/packages.sh bench/planner/scale.sh \
  bench/{accuracy,fashion_accuracy,fine_tuning,report_pictures}.sh bench/cluster/cluster bench/heterogeneous/{synchronisation,balance/against_cbc}.sh bench/choice/simulated.sh bench/{choice,group_size,memory,monitor,peers,pictures,prediction,speed}/run.sh bench/speed/detectors.sh bench/recovery/readiness.sh bench/pi/{inner_loops,cache_misses}.sh; do
  "./$script" --help >"$folder/out" 2>"$folder/err" </dev/null || fail "$script --help ends with exit code $?"
  [ "$(head -c 6 "$folder/out")" = Usage: ] || fail "$script --help does not begin with its usage"
  into_closed_pipe "./$script" --help 2>"$folder/err" </dev/null || fail "$script --help, unread, ends with exit code $?"
  [ ! -s "$folder/err" ] || fail "$script --help, unread, complains"
done
[ "$failures" -eq 0 ] || { printf '%d failed\n' "$failures"; exit 1; }
