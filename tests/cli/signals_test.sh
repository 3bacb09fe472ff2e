#!/usr/bin/env bash
# Ctrl-C, SIGTERM and SIGHUP, to a lone program, to a rank, to mpiexec: the step is finished, saved, and what was
# learnt can be gone on with; a second signal ends it at once.
. tests/cli/support/harness.sh
. tests/cli/support/processes.sh
. tests/cli/support/test_points.sh

declare -A codes=([INT]=130 [TERM]=143 [HUP]=129)

# stopped_well SIGNAL: the run ended as it should, with what it learnt saved, and says how to continue. MPICH's launcher may say 0
# of a run that was stopped: the run's record does not.
stopped_well() {
  local said
  expect "exit code of SIG$1" grep -q "\"exit_code\": ${codes[$1]}\b" "$folder/run/run.json"
  expect 'what was learnt is saved' test -s "$folder/run/checkpoint.safetensors"
  said=$(grep -c "^tessera: SIG$1 after step [0-9]*: saved in .*; to continue: the same command with --resume $folder/run/checkpoint.safetensors$" "$folder/err")
  expect 'one line says where it is and how to continue' test "$said" -eq 1
  expect 'nothing else is said' test "$(grep -vc '^tessera: ' "$folder/err")" -eq 0
  nothing_left "SIG$1"
}

# A lone program; a signal that its parent has it ignore is not ignored, but for SIGHUP under nohup.
for signal in INT TERM HUP; do
  start 1
  kill -"$signal" "$started_process"
  ended
  expect "a lone program ends with the code of SIG$signal" test "$status" -eq "${codes[$signal]}"
  stopped_well "$signal"
done

# What is said works, and goes on from the step that it names.
step=$(sed -n 's/.* after step \([0-9]*\): saved.*/\1/p' "$folder/err")
read -ra resume < <(sed -n 's/.*to continue: the same command with //p' "$folder/err")
works 1 train models/lenet5.cfg --data "$data" --batch 8 --steps "$((step + 2))" --run "$folder/run" --no-eval "${resume[@]}"
expect 'it goes on from there' test "$(losses "$folder/run" | tail -n 1 | cut -d ' ' -f 1)" -eq "$((step + 2))"

# To one rank: all stop after the same step.
for signal in INT TERM HUP; do
  start 4
  kill -"$signal" "$(rank "$([ "$signal" = INT ] && echo 0 || echo 1)")"
  ended
  stopped_well "$signal"
done

# To mpiexec, which passes these on. Its options are part of the command that the run's record has.
launcher_options=(-hosts localhost:4)
for signal in INT TERM; do
  start 4
  kill -"$signal" "$started_process"
  ended
  stopped_well "$signal"
  expect 'the command has options of mpiexec' grep -q "\"command\": \"$MPIEXEC -hosts localhost:4 -n 4 $program train" "$folder/run/run.json"
done

# Twice: at once, in a step that is not over before. Two signals in a tenth of a second would be one that came twice.
start 1
at_point step-in-metrics 'kill -INT "$1"; sleep 0.3; kill -INT "$1"'
ended
expect 'a second interrupt ends it' test "$status" -eq 130
expect 'without saving' test ! -e "$folder/run/checkpoint.safetensors"
nothing_left 'two interrupts'

# nohup: a terminal that closes does not end it.
(trap '' HUP; exec "$program" train models/lenet5.cfg --data "$data" --batch 8 --steps 40 --run "$folder/nohup" --no-eval \
  >"$folder/out" 2>"$folder/err" </dev/null) &
started_process=$!
command_line='nohup tessera train'
wait_until 'training should start' test -s "$folder/nohup/metrics.jsonl"
kill -HUP "$started_process"
ended
expect 'nohup keeps it' test "$status" -eq 0

# Before there is anything to save: while a network is read, cut or probed.
"$program" probe --seconds 100 --out "$folder/profile.toml" >"$folder/out" 2>"$folder/err" </dev/null &
started_process=$!
command_line='tessera probe, stopped'
wait_until 'the probe should start' a_rank_runs
sleep 0.5 # the program starts itself anew once, which no signal is to meet
kill -TERM "$started_process"
ended
expect 'what saves nothing ends at once' test "$status" -eq 143
nothing_left 'a probe'
