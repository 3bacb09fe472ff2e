#!/usr/bin/env bash
# A rank that is stopped: the others end after --stall-timeout, say which one it is and how to continue; one that goes
# on in time changes nothing.
. tests/cli/support/harness.sh
. tests/cli/support/processes.sh

# stalled RANK...: the run ended because of these.
stalled() {
  expect 'exit code of a run that others have left' test "$status" -eq 75
  expect 'one line says who' test "$(grep -c 'not answered for' "$folder/err")" -eq 1
  local number
  for number in "$@"; do
    expect "it names rank $number" grep -q "^tessera: .*$(hostname) (rank $number).* not answered for 3 s$" "$folder/err"
  done
  expect 'it names nobody else' test "$(grep 'not answered for' "$folder/err" | grep -o '(rank' | wc -l)" -eq $#
  nothing_left "rank $* is stopped"
}

# Before any checkpoint, and the first rank.
start 4 --stall-timeout 3
kill -STOP "$(rank 0)"
ended
stalled 0
expect 'there was nothing to continue from' grep -q 'no checkpoint yet' "$folder/err"

# The lowest of those that are left is the one that reports. Where it is stopped, too, before it finds out, another one does.
start 4 --stall-timeout 3
kill -STOP "$(rank 1)"
sleep 2 # less than the others take to find out
kill -STOP "$(rank 0)"
ended
expect 'exit code of a run whose first rank cannot report' test "$status" -eq 75
expect 'another rank says who' test "$(grep -c '(rank 1).* not answered for 3 s$' "$folder/err")" -eq 1
nothing_left 'two ranks are stopped one after the other'

# Two of four, with a checkpoint.
start 4 --stall-timeout 3 --checkpoint-every 2
wait_until 'a checkpoint should be written' test -s "$folder/run/checkpoint.safetensors"
stopped=$(ranks_running | sed -n '2p;4p')
# shellcheck disable=SC2086 # two process numbers
kill -STOP $stopped
ended
stalled 1 3
expect 'the last checkpoint is named' grep -q "the last checkpoint is $folder/run/checkpoint.safetensors, after step [0-9]*; to continue" "$folder/err"
# What is said works on the ranks that are left; a checkpoint that was just being written may be there, too.
step=$(sed -n 's/.* after step \([0-9]*\); to continue.*/\1/p' "$folder/err")
read -ra launcher < <(sed -n 's/.*to continue[^:]*: with \([^,]*,[^,]*\), .*/\1/p' "$folder/err")
read -r option file < <(sed -n 's/.*the same command with \(--resume [^,]*\),.*/\1/p' "$folder/err")
expect 'it is for as many as are left' test "${launcher[*]}" = "mpiexec.mpich -n 2 -hosts $(hostname),$(hostname)"
command_line="${launcher[*]} tessera train $option $file"
status=0
timeout 60 "${launcher[@]}" "$program" train models/lenet5.cfg --data "$data" --batch 8 --steps "$((step + 20))" --run "$folder/run" \
  --no-eval "$option" "$file" --partition auto >"$folder/out" 2>"$folder/err" </dev/null || status=$?
expect 'what is said works' test "$status" -eq 0

# A rank that is stopped for less than the limit: the same bits as without.
arguments=(train models/lenet5.cfg --data "$data" --batch 8 --steps 1500 --no-eval --stall-timeout 20)
works 4 "${arguments[@]}" --run "$folder/undisturbed"
command_line='the same, with a rank that stands still for a while'
timeout 60 "$MPIEXEC" -n 4 "$program" "${arguments[@]}" --run "$folder/run2" >"$folder/out" 2>"$folder/err" </dev/null &
started_process=$!
wait_until 'training should start' test -s "$folder/run2/metrics.jsonl"
one=$(rank 2)
expect 'there is a rank to stop' test -n "$one"
kill -STOP "$one"
sleep 1
kill -CONT "$one"
ended
expect 'a rank that goes on in time ends nothing' test "$status" -eq 0
expect 'it changes nothing' same_losses "$folder/undisturbed" "$folder/run2" 0
expect 'nor the weights' same_bytes "$folder/undisturbed/checkpoint.safetensors" "$folder/run2/checkpoint.safetensors"
nothing_left 'a rank stood still'

# Other commands.
"$MPIEXEC" -n 2 "$program" time models/lenet5.cfg --batch 8 --steps 1000000 --stall-timeout 3 >"$folder/out" 2>"$folder/err" </dev/null &
started_process=$!
command_line='mpiexec.mpich -n 2 tessera time, a rank stopped'
# Once they have heard each other; before, they wait for a rank that has not started.
both_listen() { [ "$(cat /proc/"$(rank 0)"/task/*/comm /proc/"$(rank 1)"/task/*/comm | grep -c '^heartbeats$')" -eq 2 ]; } 2>/dev/null
wait_until 'two ranks should hear each other' both_listen
kill -STOP "$(rank 1)"
ended
stalled 1
