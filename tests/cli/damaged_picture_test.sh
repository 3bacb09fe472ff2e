#!/usr/bin/env bash
# A picture that cannot be decoded is met in the middle of training, by some ranks or by one: all of them end with code 2, and the
# checkpoint of before stays.
. tests/cli/support/harness.sh

data=$folder/colours
make_colours_model "$folder/colours.cfg"
mkdir -p "$data"/{train,test}/{blue,red}
for number in {1..8}; do
  make_picture "$data/train/blue/$number.png" 12 "$number" 0 200
  make_picture "$data/train/red/$number.png" 12 200 "$number" 0
done
make_picture "$data/test/blue/1.png" 12 9 0 200
make_picture "$data/test/red/1.png" 12 200 9 0
training=(train "$folder/colours.cfg" --data "$data")

works 4 "${training[@]}" --steps 20 --run "$folder/good"
expect 'two colours are learnt' test "$(accuracy "$folder/good")" = 1.0

# meets RANKS ARGUMENT...: training ends at the damaged picture and keeps what was learnt before.
meets() {
  local ranks=$1
  shift
  rm -rf "$folder/run"
  run "$ranks" "${training[@]}" --steps 20 --run "$folder/run" "$@"
  expect_refusal 'red/5\.(png|jpg): '
}

# damage FILE: in its middle, which nobody looks at before its turn comes.
damage() { printf 'damage' | dd of="$1" bs=1 seek=100 conv=notrunc status=none; }

damage "$data/train/red/5.png"
meets 1 --seed 1
expect 'it is said how to go on without it' grep -q 'skip-broken leaves such pictures out' "$folder/err"
meets 4 --seed 1
meets 4 --grid 2x2 --reader 0
meets 4 --grid 2x2 --reader 2
# Only the rank that has the picture among its images reads it.
meets 4 --data-parallel-from 0
meets 3 --data-parallel-from 0 --seed 2
meets 4 --data-parallel-from 0 --batch 2
# A seed by which the picture comes late, so that there is something to keep.
for seed in {1..9}; do
  meets 4 --seed "$seed"
  [ "$(losses "$folder/run" | wc -l)" -lt 2 ] || break
done
expect 'the steps before have a checkpoint' test -s "$folder/run/checkpoint.safetensors"
rm "$data/train/red/5.png"
make_picture "$data/train/red/5.png" 12 200 5 0
works 4 "${training[@]}" --steps 20 --seed "$seed" --resume "$folder/run/checkpoint.safetensors" --run "$folder/run"
works 4 "${training[@]}" --steps 20 --seed "$seed" --run "$folder/whole"
expect 'training goes on as if nothing had been' same_bytes "$folder/run/checkpoint.safetensors" "$folder/whole/checkpoint.safetensors"

# Among the pictures for testing, and gone since the list was made.
mv "$data/train/red/5.png" "$data/train/red/5.jpg"
damage "$data/train/red/5.jpg"
meets 4
rm "$data/train/red/5.jpg"
damage "$data/test/red/1.png"
for ranks in 1 4; do
  rm -rf "$folder/run"
  run "$ranks" "${training[@]}" --steps 3 --run "$folder/run"
  expect_refusal 'test/red/1\.png: '
  expect 'the trained weights are kept' test -s "$folder/run/checkpoint.safetensors"
done
