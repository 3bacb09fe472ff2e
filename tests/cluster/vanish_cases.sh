# Devices that vanish in the midst of training, and come back.
# shellcheck shell=bash disable=SC2154 # variables of run.sh and support.sh

vanishing_program=$(realpath -m "${TESSERA:-build/release/tessera}")

# train_on_all SECONDS FOLDER STEPS: on the three devices, with that --stall-timeout; in the background. Sets training.
train_on_all() {
  [ -x "$vanishing_program" ] || skip "$vanishing_program is not there"
  [ -d "$folder/digits" ] || { mkdir "$folder/digits" && perl tests/cli/support/make_idx.pl "$folder/digits" 60 20; }
  one run --timeout 240 "$vanishing_program" train models/lenet5.cfg --data "$folder/digits" --batch 8 --steps "$3" --no-eval \
    --checkpoint-every 2 --stall-timeout "$1" --run "$2" >"$2.out" 2>"$2.err" &
  training=$!
}

# has_steps FOLDER NUMBER
has_steps() { [ -s "$1/metrics.jsonl" ] && [ "$(wc -l <"$1/metrics.jsonl")" -ge "$2" ]; }
has_checkpoint() { [ -s "$1/checkpoint.safetensors" ]; }
nobody_trains() { [ "$(pgrep -fc "^$vanishing_program" || true)" -eq 0 ]; }

# expect_end_without TEXT FOLDER: training ended because of what the text says, and nothing of it is left.
expect_end_without() {
  local code=0
  wait "$training" || code=$?
  expect_text "$(cat "$2.err")" "$1 not answered for 5 s"
  # shellcheck disable=SC2016 # no command is meant
  expect_text "$(cat "$2.err")" 'to continue with the devices that are left (`tessera run` does so by itself): with mpiexec.mpich -n 2 -hosts '
  # mpiexec kills ranks that end later than the first, and then tells of these.
  expect_between "$code" 1 123
  wait_until nobody_trains
}

test_vanished_cable_ends_training() {
  train_on_all 5 "$folder/cable" 100000
  wait_until has_checkpoint "$folder/cable"
  one link pi3 down
  expect_end_without 'pi3 (rank 2) has' "$folder/cable"
  one link pi3 up
}

test_vanished_power_ends_training() {
  train_on_all 5 "$folder/power" 100000
  wait_until has_checkpoint "$folder/power"
  one poweroff pi2
  expect_end_without 'pi2 (rank 1) has' "$folder/power"
  one poweron pi2
}

test_cable_that_comes_back_changes_nothing() {
  train_on_all 60 "$folder/uncut" 20
  wait "$training"
  train_on_all 60 "$folder/cut" 20
  wait_until has_steps "$folder/cut" 3
  one link pi2 down
  sleep 9
  one link pi2 up
  wait "$training"
  expect_text "$(cat "$folder/cut.err")" 'warning: pi2 (rank 1) answers again after '
  expect_text "$(cat "$folder/cut/events.jsonl")" 'pi2 (rank 1) answers again after '
  cmp "$folder/uncut/checkpoint.safetensors" "$folder/cut/checkpoint.safetensors"
}
