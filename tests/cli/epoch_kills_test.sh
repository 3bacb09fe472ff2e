#!/usr/bin/env bash
# Ranks are killed between the writes of a test, of a checkpoint, of a step and of a start. Under a supervisor and resumed by hand, a run has
# the epochs, the best weights, the evaluation, the events and the losses of one that nobody disturbs.
. tests/cli/support/harness.sh
. tests/cli/support/test_points.sh
time_limit=400 # a supervised run starts its ranks fifteen times

digits=$folder/digits
mkdir "$digits"
make_digits "$digits" 24 8
works 1 make-detection-set "$folder/boxes" --pictures 12 --size 32x32 --seed 5
sed -e 's/=48$/=32/' -e 's/^batch=8/batch=4/' tests/cli/support/detector.cfg >"$folder/detector.cfg"

# begin RUN: the next one, with no point to be killed at yet.
begin() {
  run=$folder/$1
  points=()
  rm -f "$TESSERA_TEST_POINTS"/*
}
# at STEP POINT [MORE]: who comes there first after that step is killed with all ranks; a thread, when they have taken MORE steps.
at() {
  local steps="grep -c '\"loss\"' '$run/metrics.jsonl'"
  points+=("$2")
  at_point "$2" "until [ \"\$($steps)\" -ge $(($1 + ${3:-0})) ]; do sleep 0.01; done
echo $2 >>'$run.kills'
read -r _ _ _ parent _ <\"/proc/\$1/stat\"
kill -9 \$(pgrep -P \"\$parent\")" "[ \"\$($steps)\" -ge $1 ]"
}
# left_by RUN: what is the same however often it was killed. A checkpoint is told by a thread of its own, at any moment after it.
left_by() {
  cut -d, -f1-6 "$1/epochs.csv"
  sed -n 's/^\({"step":[0-9]*,"epoch".*"test_loss":[^,]*\),.*/\1/p' "$1/metrics.jsonl"
  losses "$1"
  sed -nE 's/.*("step":[0-9]+).*("kind":"(best|epoch|checkpoint)","text":"[^"]*").*/\1 \2/p' "$1/events.jsonl" | sort
  (cd "$1" && sha256sum evaluation.json ./*.safetensors && find . -name '*-pictures.png' -exec sha256sum {} + | sort)
}
# survived: the run was killed at every point, and shows nothing of it.
survived() {
  local name=${run##*/}
  expect "$name: it ends well" test "$status" -eq 0
  expect "$name: it is killed at every point" diff <(printf '%s\n' "${points[@]}" | sort) <(sort "$run.kills")
  expect "$name: it has what the undisturbed run has" diff <(left_by "$folder/$1") <(left_by "$run")
  expect "$name: no best weights were lost meanwhile" test -z "$(grep 'are lost' "$run/events.jsonl")"
}
# supervised WHOLE ARGUMENT...
supervised() {
  works 1 run -n 2 -- train "${@:2}" --run "$run"
  survived "$1"
}
# resumed WHOLE ARGUMENT...: by hand, whenever it was killed; from the start where no checkpoint was written yet.
resumed() {
  local tries again
  for ((tries = 0; tries < 20; ++tries)); do
    again=(--resume "$run")
    [ -e "$run/checkpoint.safetensors" ] || { again=() && rm -rf "$run"; }
    run 2 train "${@:2}" --run "$run" "${again[@]}"
    [ "$status" -ne 0 ] || break
  done
  survived "$1"
}

# Epochs of three steps, each with a checkpoint and a test.
classifier=("$models/lenet5.cfg" --data "$digits" --batch 8 --grid 1x2 --progress none --monitor off)
begin whole
works 2 train "${classifier[@]}" --steps 30 --run "$run"
begin supervised
at 3 test-made
at 6 test-in-metrics
at 6 events-opened
at 9 test-in-evaluation
at 11 step-in-metrics
at 12 best-written 2
at 15 checkpoint-written 2
at 18 best-saved
at 21 test-in-events
at 21 metrics-opened
at 24 checkpoint-saved
at 27 epoch-told
at 27 epoch-in-table
at 30 checkpoint-told
supervised whole "${classifier[@]}" --steps 30

# Checkpoints that fall between tests, so that tests come again; and those that a thread writes while steps go on.
saved=("${classifier[@]}" --checkpoint-every 4 --steps 34)
begin saved
works 2 train "${saved[@]}" --run "$run"
begin resumed
at 6 test-made
at 9 test-in-metrics
at 12 test-in-evaluation
at 12 metrics-opened
at 14 step-in-metrics
at 15 best-written 1
at 18 best-saved
at 20 checkpoint-written 2
at 24 test-in-events
at 27 epoch-told
at 27 events-opened
at 28 checkpoint-saved
at 30 epoch-in-table
at 32 checkpoint-told
resumed saved "${saved[@]}"

detector=("$folder/detector.cfg" --data "$folder/boxes/detection.data" --grid 1x2 --progress none --monitor off --steps 18)
begin found
works 2 train "${detector[@]}" --run "$run"
begin found-supervised
at 3 test-in-evaluation
at 6 best-written
at 9 test-in-events
at 12 sheet-drawn
at 15 epoch-told
supervised found "${detector[@]}"
begin found-resumed
at 6 best-written 1
at 9 test-in-metrics
at 12 sheet-drawn
at 15 epoch-told
resumed found "${detector[@]}"

# A run whose tests were enough ends there, also where it is killed before it is saved.
sed 's/^learning_rate=.*/learning_rate=0/; /^burn_in=/d' "$models/lenet5.cfg" >"$folder/still.cfg"
still=("$folder/still.cfg" "${classifier[@]:1}" --patience 2 --checkpoint-every 4 --steps 30)
begin patient
works 2 train "${still[@]}" --run "$run"
begin patient-supervised
at 6 test-in-metrics
at 9 epoch-in-table
supervised patient "${still[@]}"
