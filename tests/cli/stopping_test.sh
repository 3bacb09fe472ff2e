#!/usr/bin/env bash
# Nothing is left running: when a rank is killed, when mpiexec is interrupted, with a closed standard input.
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 60 20
# Its path is what the processes of this test are known by.
program=$folder/tessera-under-test
cp "$TESSERA" "$program"
trap 'kill -9 $(ranks_running) 2>/dev/null; finish' EXIT

# The process numbers of this test's ranks.
ranks_running() {
  local process
  for process in /proc/[0-9]*; do
    [ ! "$process/exe" -ef "$program" ] || printf '%s\n' "${process#/proc/}"
  done
}

# wait_until WHAT COMMAND...: looks for it ten times a second, a minute at most.
wait_until() {
  local what=$1 tenths
  shift
  for ((tenths = 0; tenths < 600; ++tenths)); do
    "$@" && return
    sleep 0.1
  done
  fail "$what"
}
all_are_gone() { [ -z "$(ranks_running)" ]; }
steps_are_done() { [ "$(wc -l <"$folder/run/metrics.jsonl")" -ge 3 ]; } 2>/dev/null

# start: training on 4 ranks, long enough to be stopped; returns when it is under way. Sets mpiexec_process.
start() {
  rm -rf "$folder/run"
  command_line="mpiexec.mpich -n 4 tessera train, stopped"
  "$MPIEXEC" -n 4 "$program" train models/lenet5.cfg --data "$data" --batch 8 --steps 1000000 --run "$folder/run" --no-eval \
    >"$folder/out" 2>"$folder/err" </dev/null &
  mpiexec_process=$!
  wait_until 'training should start' steps_are_done
}
# ended: waits for mpiexec and sets status.
ended() { status=0; wait "$mpiexec_process" || status=$?; }

start
kill -9 "$(ranks_running | sed -n 3p)"
ended
expect 'mpiexec tells of a killed rank' test "$status" -ne 0
wait_until 'no rank outlives a killed one' all_are_gone

start
kill -INT "$mpiexec_process"
ended  # with a status of the launcher's own, which is not always the same
wait_until 'an interrupt ends all ranks' all_are_gone

start
kill -TERM "$mpiexec_process"
ended
wait_until 'ending mpiexec ends all ranks' all_are_gone

# What was written before is whole.
expect 'the metrics have whole lines' valid_json <(sed '$d' "$folder/run/metrics.jsonl")

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
expect 'a pipe that closes is no hang' grep -q '^model' "$folder/out"
wait_until 'nothing is left running' all_are_gone
