#!/usr/bin/env bash
# Ranks that are killed at any moment, many times, go on from the state that they have kept in memory: each step is in the metrics
# once, with the loss of a run that nobody disturbs, and no checkpoint is needed.
. tests/cli/support/harness.sh
. tests/cli/support/processes.sh
. tests/cli/support/test_points.sh

sed 's/^\[net\]/[net]\nadam=1\nema_decay=0.999/' models/lenet5.cfg >"$folder/adam.cfg"
steps=600
tests_of() { sed -n 's/^{"step":\([0-9]*\),"epoch".*"test_loss":\([^,]*\),.*/\1 \2/p' "$1/metrics.jsonl"; }

# attempt RANKS RUN AGAIN ARGUMENT...: in the background; AGAIN is empty at the first start. Sets started_process.
attempt() {
  local ranks=$1 run=$2 again=$3
  shift 3
  command_line="TESSERA_STATE_DIR=$folder/state mpiexec -n $ranks tessera train $*"
  TESSERA_STATE_DIR=$folder/state TESSERA_STARTED_AGAIN=$again "$MPIEXEC" -n "$ranks" "$program" train "$@" --run "$folder/$run" \
    >"$folder/out" 2>"$folder/err" </dev/null &
  started_process=$!
}
# has_ended RUN: the last attempt came to the end. mpiexec of MPICH 4.2 may exit with 0 where a rank was killed.
has_ended() { [ "$status" -eq 0 ] && grep -q '"exit_code": 0' "$folder/$1/run.json"; }
# kept_files: how many.
kept_files() { find "$folder/state" -name '*.kept' | wc -l; }

# kill_soon RUN STEP KILLS: while they start, or when some more steps are done, one of the ranks or all of them, some hundredths of a
# second later. Every second time the rank that came there waits for it, so that no run is too fast to be killed. It adds a line to
# RUN.kills.
kill_soon() {
  local point=step-in-metrics when="[ \"\$(grep -c '\"loss\"' '$1/metrics.jsonl')\" -gt $(($2 + RANDOM % 30)) ]" whom=cat meanwhile=''
  [ $((RANDOM % 3)) -gt 0 ] || { point=rank_begins when=true; }
  [ $((RANDOM % 2)) -gt 0 ] || whom='shuf -n 1'
  [ $(($3 % 2)) -eq 0 ] || meanwhile='&'
  rm -f "$TESSERA_TEST_POINTS"/*
  at_point "$point" "read -r _ _ _ parent _ <\"/proc/\$1/stat\"
{ sleep 0.0$((RANDOM % 5))$((RANDOM % 10))
  victims=\$(pgrep -P \"\$parent\" | $whom) && [ -n \"\$victims\" ] && echo $point >>'$1.kills'
  kill -9 \$victims; } $meanwhile" "$when"
}
kills() { wc -l <"$1.kills"; } 2>/dev/null

# disturbed NAME RANKS SEED ARGUMENT...: the same as NAME without disturbance, killed at random moments until it ends by itself.
disturbed() {
  local name=$1 ranks=$2 again='' before tries cut=$folder/cut-$1
  RANDOM=$3
  shift 3
  works "$ranks" train "$@" --steps "$steps" --run "$folder/$name" || return
  rm -rf "$folder/state"
  mkdir -m 700 "$folder/state"
  : >"$cut.kills"
  for ((tries = 0; tries < 40; ++tries)); do
    before=$(losses "$cut" 2>/dev/null | tail -n 1 | cut -d ' ' -f 1)
    [ "$(kills "$cut")" -ge 6 ] || kill_soon "$cut" "${before:-0}" "$(kills "$cut")"
    attempt "$ranks" "cut-$name" "$again" "$@" --steps "$steps"
    ended
    wait_until 'ranks should be gone' all_are_gone
    ! has_ended "cut-$name" || break
    again=1
  done
  expect "$name: it was killed" test "$(kills "$cut")" -ge 3
  expect "$name: it ends" has_ended "cut-$name"
  expect "$name: each step is there once, with the loss of the undisturbed run" same_losses "$folder/$name" "$folder/cut-$name" 0
  expect "$name: the weights are those, too" same_bytes "$folder/$name/checkpoint.safetensors" "$folder/cut-$name/checkpoint.safetensors"
  expect "$name: each test is there once" test "$(tests_of "$folder/$name")" = "$(tests_of "$folder/cut-$name")"
  expect "$name: nothing is kept of a run that has ended" test "$(kept_files)" -eq 0
}
# past RUN STEP: a later step is done, or the run is over.
past() { [ "$(losses "$1" | tail -n 1 | cut -d ' ' -f 1)" -gt "$2" ] || ! kill -0 "$started_process"; } 2>/dev/null

training=(models/lenet5.cfg --data "$data" --batch 8 --progress none)
seldom=(--no-eval --checkpoint-every 1000000) # no checkpoint but the last
disturbed momentum 2 1 "${training[@]}" --grid 1x2 "${seldom[@]}"
disturbed tested 3 2 "${training[@]}" --grid 3x1
disturbed adam 4 3 "$folder/adam.cfg" "${training[@]:1}" --grid 2x2 "${seldom[@]}"
disturbed half 2 4 "${training[@]}" --gradient-precision half "${seldom[@]}"
disturbed topk 3 5 "${training[@]}" --gradient-precision topk:0.1 "${seldom[@]}"
disturbed local 2 6 "${training[@]}" --replicas 2 --sync local:3 "${seldom[@]}"
disturbed gossip 4 7 "${training[@]}" --replicas 2 --grid 1x2 --sync gossip "${seldom[@]}"

# cut_off RUN RANKS STEP ARGUMENT...: starts a run and kills it when that step is done; once more where it was over by then.
cut_off() {
  local run=$1 ranks=$2 step=$3 tries victims
  shift 3
  for ((tries = 0; tries < 10; ++tries)); do
    rm -rf "$folder/state" "${folder:?}/$run"
    mkdir -m 700 "$folder/state"
    attempt "$ranks" "$run" '' "$@"
    soon past "$folder/$run" "$step"
    mapfile -t victims < <(ranks_running)
    kill -9 "${victims[@]}" 2>/dev/null
    ended
    wait_until 'ranks should be gone' all_are_gone
    has_ended "$run" || return
  done
  fail 'it should be cut off'
}
# continued RUN RANKS ARGUMENT...
continued() {
  local run=$1 ranks=$2
  shift 2
  attempt "$ranks" "$run" 1 "$@"
  ended
  [ "$status" -eq 0 ] || fail 'it should go on'
}

more=1200
works 2 train "${training[@]}" --grid 1x2 "${seldom[@]}" --steps "$more" --run "$folder/longer"

# On other ranks, by another partition: to rounding. What happened meanwhile is in the events.
cut_off other 4 150 "${training[@]}" --grid 2x2 "${seldom[@]}" --steps "$more"
expect 'no checkpoint is there' test ! -e "$folder/other/checkpoint.safetensors"
# What a disk has lost of the metrics is known from memory.
head -n -2 "$folder/other/metrics.jsonl" >"$folder/torn"
printf '{"step":1' | cat "$folder/torn" - >"$folder/other/metrics.jsonl"
export TESSERA_FAULTS=$folder/faults.jsonl
printf '{"unix_s":%s,"text":"pi3 vanished","device":"pi3"}\n' "$(date +%s)" >"$TESSERA_FAULTS"
continued other 3 "${training[@]}" --grid 3x1 "${seldom[@]}" --steps "$more"
expect 'another partition goes on with the same losses' same_losses "$folder/longer" "$folder/other" 0.02
expect 'the fault is an event' grep -q '"kind":"fault","text":"pi3 vanished","device":"pi3"' "$folder/other/events.jsonl"
expect 'and so is what it has cost' grep -qE '"kind":"recovery",.*"lost_s":[0-9.]+,"repeated_steps":[01]}' "$folder/other/events.jsonl"
expect 'faults are told once' test ! -e "$TESSERA_FAULTS"
unset TESSERA_FAULTS

# Where what was kept is gone or damaged, a run goes on from its checkpoint, and without one from the start.
cut_off checkpoint 2 150 "${training[@]}" --grid 1x2 --no-eval --checkpoint-every 100 --steps "$more"
for file in "$folder"/state/*.kept; do
  printf 'garbage' | dd of="$file" bs=1 seek=300 conv=notrunc status=none
  printf 'garbage' | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") / 2 + 300)) conv=notrunc status=none
done
continued checkpoint 2 "${training[@]}" --grid 1x2 --no-eval --checkpoint-every 100 --steps "$more"
expect 'the checkpoint goes on with the same losses' same_losses "$folder/longer" "$folder/checkpoint" 0
cut_off start 2 50 "${training[@]}" --grid 1x2 "${seldom[@]}" --steps "$more"
rm "$folder"/state/*.kept
continued start 2 "${training[@]}" --grid 1x2 "${seldom[@]}" --steps "$more"
expect 'a run that has nothing begins again' same_losses "$folder/longer" "$folder/start" 0

# What was cut off when its last step was done has no checkpoint of it yet.
cut_off last 2 150 "${training[@]}" --grid 1x2 "${seldom[@]}" --steps "$more"
last=0
for file in "$folder"/state/own-*.kept; do
  for at in 0 $(($(stat -c %s "$file") / 2)); do
    step=$(od -An -t u8 -j $((at + 8)) -N 8 "$file" | tr -d ' ')
    [ "$step" -le "$last" ] || last=$step
  done
done
continued last 2 "${training[@]}" --grid 1x2 "${seldom[@]}" --steps "$last"
expect 'the last checkpoint is written then' test -s "$folder/last/checkpoint.safetensors"
works 2 train "${training[@]}" --grid 1x2 "${seldom[@]}" --steps "$(losses "$folder/last" | wc -l)" --run "$folder/as-long"
expect 'it has the weights of the last step' same_bytes "$folder/as-long/checkpoint.safetensors" "$folder/last/checkpoint.safetensors"

# An agent that asks for a pause gets it at the end of a step: no checkpoint, its own exit code, and the next start goes on.
rm -rf "$folder/state"
mkdir -m 700 "$folder/state"
command_line='tessera train, paused by its agent'
status=0
TESSERA_STATE_DIR=$folder/state perl "$support/pause_rank.pl" 20 "$program" train "${training[@]}" "${seldom[@]}" --steps 100000 --run "$folder/paused" \
  >"$folder/out" 2>"$folder/err" || status=$?
expect 'the rank tells its agent how it is, and pauses' test "$status" -eq 0
expect 'a pause writes no checkpoint' test ! -e "$folder/paused/checkpoint.safetensors"
paused_at=$(losses "$folder/paused" | wc -l)
continued paused 1 "${training[@]}" "${seldom[@]}" --steps "$more"
works 1 train "${training[@]}" "${seldom[@]}" --steps "$more" --run "$folder/alone"
expect 'it had taken steps' test "$paused_at" -ge 20
expect 'no step is lost by a pause' same_losses "$folder/alone" "$folder/paused" 0
