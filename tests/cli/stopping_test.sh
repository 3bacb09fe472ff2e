#!/usr/bin/env bash
# Nothing is left running: when a rank is killed, when one cannot start, with a closed standard input.
. tests/cli/support/harness.sh
. tests/cli/support/processes.sh

start 4
kill -9 "$(rank 2)"
ended
expect 'mpiexec tells of a killed rank' test "$status" -ne 0
nothing_left 'a rank is killed'

start 4
{ kill -9 "$started_process"; ended; } 2>/dev/null # bash tells of it
nothing_left 'mpiexec is killed'

# What was written before is whole.
expect 'the metrics have whole lines' valid_json <(sed '$d' "$folder/run/metrics.jsonl")

# start_with_other RANKS PROGRAM [first]: a rank of this program beside one that is none, or another MPI program.
start_with_other() {
  local ours=(-n 1 "$program" train models/lenet5.cfg --data "$data" --batch 8 --steps 2 --run "$folder/other")
  local other=(-n 1 "$1")
  command_line="mpiexec.mpich, a rank of tessera and $* as the other"
  if [ "${2:-}" = first ]; then set -- "${other[@]}" : "${ours[@]}"; else set -- "${ours[@]}" : "${other[@]}"; fi
  status=0
  TESSERA_START_TIMEOUT=2 timeout 60 "$MPIEXEC" "$@" >"$folder/out" 2>"$folder/err" </dev/null || status=$?
  expect 'a rank that does not start ends the others' test "$status" -ne 0 -a "$status" -ne 124
  expect 'one line says so' test "$(grep -c '^tessera: .*not all 2 ranks have started' "$folder/err")" -eq 1
  nothing_left 'a rank does not start'
}
for other in /nonexistent/tessera /bin/true; do
  start_with_other "$other"
  start_with_other "$other" first
done

# Standard input closed, as under cron or nohup.
status=0
timeout 60 "$MPIEXEC" -n 4 "$program" train models/lenet5.cfg --data "$data" --batch 8 --steps 2 --run "$folder/closed" --no-eval \
  >"$folder/out" 2>"$folder/err" <&- || status=$?
expect 'training works without a standard input' test "$status" -eq 0
status=0
timeout 60 "$program" check models/lenet5.cfg >"$folder/out" 2>"$folder/err" <&- || status=$?
expect 'so does one rank' test "$status" -eq 0
# A reader that closes early, as `head` does, ends it without a hang.
timeout 60 "$program" plan models/lenet5.cfg --grid 2x2 2>"$folder/err" | head -n 1 >"$folder/out"
expect 'a pipe that closes is no hang' grep -q '^Fits: ' "$folder/out"
nothing_left 'all of this'
