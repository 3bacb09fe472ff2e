#!/usr/bin/env bash
# A run keeps its last two checkpoints, and goes on from the newest that is whole.
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 40 8
training=(train models/lenet5.cfg --data "$data" --batch 8 --no-eval --seed 3 --progress none)
run=$folder/run
latest=$run/checkpoint.safetensors
previous=$run/checkpoint.previous.safetensors

# step_of FILE: the step in a checkpoint's metadata.
step_of() { head -c 100000 "$1" | grep -aoE '"step":"[0-9]+"' | grep -oE '[0-9]+'; }
damage() { printf 'x' | dd of="$1" bs=1 seek=$(($(stat -c %s "$1") - 9)) conv=notrunc status=none; }

works 1 "${training[@]}" --steps 9 --run "$folder/whole"
works 1 "${training[@]}" --steps 6 --checkpoint-every 2 --run "$run"
expect 'the newest is of the last step' test "$(step_of "$latest")" -eq 6
expect 'the one before it is kept' test "$(step_of "$previous")" -eq 4
expect 'nothing else is left' test -z "$(find "$run" -name '*.partial')"

# A file that is damaged is refused, with the other one; a folder is looked through.
damage "$latest"
refused "run/checkpoint\.safetensors: tensor .*; .*run/checkpoint\.previous\.safetensors, after step 4, is intact: resume from it" \
  "${training[@]}" --steps 9 --run "$run" --resume "$latest"
cp -r "$run" "$folder/truncated"
: >"$folder/truncated/checkpoint.safetensors"
refused "truncated/checkpoint\.safetensors: .*; .*previous\.safetensors, after step 4, is intact" \
  "${training[@]}" --steps 9 --run "$folder/truncated" --resume "$folder/truncated/checkpoint.safetensors"
for ranks in 1 3; do
  cp -r "$run" "$folder/run-$ranks"
  works "$ranks" "${training[@]}" --steps 9 --checkpoint-every 100 --run "$folder/run-$ranks" --resume "$folder/run-$ranks"
  expect "$ranks: it is said what was refused" \
    grep -qE '^tessera: warning: .*/checkpoint\.safetensors: tensor .*; going on from .*previous\.safetensors, after step 4' "$folder/err"
  expect "$ranks: each step is there once" test "$(losses "$folder/run-$ranks" | cut -d ' ' -f 1 | paste -sd ' ')" = '1 2 3 4 5 6 7 8 9'
  expect "$ranks: the newest is of the last step" test "$(step_of "$folder/run-$ranks/checkpoint.safetensors")" -eq 9
  if [ "$ranks" -eq 1 ]; then
    expect 'the same weights as in one go' same_bytes "$folder/whole/checkpoint.safetensors" "$folder/run-1/checkpoint.safetensors"
  fi
done
expect 'a damaged checkpoint does not take the place of the one that was intact' \
  test "$(step_of "$folder/run-1/checkpoint.previous.safetensors")" -eq 4

damage "$previous"
refused 'run: has no intact checkpoint: .*/checkpoint\.safetensors: .*; .*/checkpoint\.previous\.safetensors: ' \
  "${training[@]}" --steps 9 --run "$run" --resume "$run"
mkdir "$folder/empty"
refused 'empty: has no checkpoint\.safetensors' "${training[@]}" --steps 9 --run "$run" --resume "$folder/empty"
