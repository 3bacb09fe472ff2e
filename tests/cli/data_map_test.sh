#!/usr/bin/env bash
# train --data-map: samples move between ranks that have data of their own, and each trains on what lies on it.
. tests/cli/support/harness.sh

# idx RANK TRAIN TEST: that rank's pictures, none like those of another rank.
idx() {
  mkdir -p "$folder/idx-$1"
  perl "$support/make_idx.pl" "$folder/idx-$1" "$2" "$3"
}
idx 0 120 20
idx 1 30 10
cat >"$folder/map.toml" <<'MAP'
samples = [120, 30, 0]
[[move]]
from = 0
to = 1
begin = 70
end = 90
[[move]]
from = 0
to = 2
begin = 90
end = 120
MAP
with_map=(train models/lenet5.cfg --data "$folder/idx-{rank}" --data-map "$folder/map.toml" --batch 20)

works 3 "${with_map[@]}" --run "$folder/moved" --epochs 4
expect 'what moves is said' grep -qx 'moving 50 samples between devices: 38.3 KiB' "$folder/out"
expect 'ranks train on what the map says' grep -qx 'pictures that each rank trains on: 70, 50, 30' "$folder/out"
expect 'the data set is that of all ranks' grep -q '^180 pictures on 3 ranks, 10 classes' "$folder/out"
expect 'the loss falls by half' awk 'NR == 1 { first = $2 } { last = $2 } END { exit !(last < first / 2) }' <(losses "$folder/moved")
expect 'four epochs are as many steps as all samples need' test "$(losses "$folder/moved" | tail -n 1 | cut -d ' ' -f 1)" = 30
expect 'the map is kept with the run' grep -qx 'samples = \[120, 30, 0\]' "$folder/moved/data-map.toml"
expect 'the partition cuts images alone' bash -c "grep -q '^images = \[0, ' '$folder/moved/partition.toml' && ! grep -q '^rows' '$folder/moved/partition.toml'"

works 3 "${with_map[@]}" --run "$folder/moved" --epochs 4 --force
expect 'what has arrived does not travel again' grep -qx 'moving 50 samples between devices, 50 of them are there already: 0 B' "$folder/out"
works 3 "${with_map[@]}" --run "$folder/again" --epochs 4
expect 'another run has the same bits' same_bytes "$folder/moved/checkpoint.safetensors" "$folder/again/checkpoint.safetensors"
works 3 "${with_map[@]}" --run "$folder/seeded" --epochs 4 --seed 2
expect 'with another seed it has not' bash -c "! cmp -s '$folder/moved/checkpoint.safetensors' '$folder/seeded/checkpoint.safetensors'"

# Samples are not written through a link in the run folder, wherever it leads.
mkdir -p "$folder/linked" "$folder/theirs"
ln -s "$folder/theirs" "$folder/linked/samples"
run 3 "${with_map[@]}" --run "$folder/linked" --epochs 1
expect_refusal 'linked/samples: is a symbolic link, through which nothing is written: replace it with a folder'
expect 'nothing is written there' test -z "$(ls "$folder/theirs")"

# Interrupted and resumed it goes on with the same bits.
works 3 "${with_map[@]}" --run "$folder/part" --steps 10 --schedule-steps 30
works 3 "${with_map[@]}" --run "$folder/part" --steps 30 --schedule-steps 30 --resume "$folder/part/checkpoint.safetensors"
works 3 "${with_map[@]}" --run "$folder/whole" --steps 30 --schedule-steps 30
expect 'a resumed run has the same bits' same_bytes "$folder/part/checkpoint.safetensors" "$folder/whole/checkpoint.safetensors"
expect 'the same map is no reason to warn' bash -c "! grep -q 'data map' '$folder/err'"
sed 's/begin = 90/begin = 100/' "$folder/map.toml" >"$folder/other.toml"
works 3 train models/lenet5.cfg --data "$folder/idx-{rank}" --data-map "$folder/other.toml" --batch 20 --run "$folder/other" --steps 40 \
  --schedule-steps 40 --resume "$folder/part/checkpoint.safetensors"
expect 'another map than before is warned of' grep -q 'its run had another data map: pictures are shuffled differently' "$folder/err"

# Steps run while samples move, on those that stay, in an order that depends on the seed alone.
sed 's/^samples = .*/&\nshare_while_moving = 0.2/; s/\[120, 30, 0\]/[100, 50, 30]/; s/end = 120/end = 100/' "$folder/map.toml" >"$folder/meanwhile.toml"
idx 3 100 20
idx 4 50 10
idx 5 30 10
for rank in 0 1 2; do mv "$folder/idx-$((3 + rank))" "$folder/while-$rank"; done
meanwhile=(train models/lenet5.cfg --data "$folder/while-{rank}" --data-map "$folder/meanwhile.toml" --batch 6)
works 3 "${meanwhile[@]}" --run "$folder/meanwhile" --epochs 2 --schedule-steps 60
expect 'steps that run meanwhile are said' grep -qx 'meanwhile up to 5 steps on what stays where it is' "$folder/out"
expect 'and what they were in the end' grep -qE '^[0-5] steps? ran meanwhile, then [0-9.]+ s of waiting$' "$folder/out"
expect 'the move is an event of the run' grep -q '"kind":"move","text":"30 samples (23.0 KiB) moved between devices in' "$folder/meanwhile/events.jsonl"
works 3 "${meanwhile[@]}" --run "$folder/meanwhile-again" --steps 4 --schedule-steps 60
works 3 "${meanwhile[@]}" --run "$folder/meanwhile-again" --steps 60 --schedule-steps 60 --resume "$folder/meanwhile-again/checkpoint.safetensors"
expect 'a run whose samples are there has the same bits' same_bytes "$folder/meanwhile/checkpoint.safetensors" "$folder/meanwhile-again/checkpoint.safetensors"
rm "$folder/meanwhile/samples/rank-1/from-0/"*
works 3 "${meanwhile[@]}" --run "$folder/meanwhile" --steps 1 --force
expect 'a run shorter than the move ends when all is there' test -n "$(ls "$folder/meanwhile/samples/rank-1/from-0")"

# Pictures as files, in folders whose classes not every rank has.
colours() {
  local rank=$1 colour=$2 count=$3 i
  shift 3
  mkdir -p "$folder/photos-$rank/train/$colour" "$folder/photos-$rank/test/$colour"
  for ((i = 0; i < count; ++i)); do
    make_picture "$folder/photos-$rank/train/$colour/$rank-$i.png" "$((12 + i % 5))" "$@"
  done
  make_picture "$folder/photos-$rank/test/$colour/test.png" 13 "$@"
}
colours 0 red 24 220 30 20
colours 1 green 6 20 210 40
make_colours_model "$folder/colours.cfg"
printf 'samples = [24, 6]\n[[move]]\nfrom = 0\nto = 1\nbegin = 14\nend = 24\n' >"$folder/photos.toml"
photos=(train "$folder/colours.cfg" --data "$folder/photos-{rank}" --data-map "$folder/photos.toml" --batch 8 --epochs 6)
works 2 "${photos[@]}" --run "$folder/photos"
expect 'classes are those of all ranks' grep -q '^32 pictures on 2 ranks, 2 classes (green, red), 2 for testing' "$folder/out"
expect 'ten pictures lie with the receiver' test "$(find "$folder/photos/samples/rank-1/from-0/red" -name '*.png' | wc -l)" -eq 10
arrived=$(find "$folder/photos/samples/rank-1/from-0/red" -name '00000014-*.png')
expect 'they are called as they were' test "$(basename "$arrived")" = 00000014-0-21.png
expect 'and have the same bytes' same_bytes "$arrived" "$folder/photos-0/train/red/0-21.png"
expect 'the sender keeps its own' test "$(find "$folder/photos-0/train/red" -name '*.png' | wc -l)" -eq 24
expect 'both classes are learnt' test "$(accuracy "$folder/photos")" = 1.0

# By class: of the samples of a class, not of all.
colours 0 green 4 20 210 40
printf 'samples = [28, 6]\n[[move]]\nfrom = 0\nto = 1\nclass = "red"\nbegin = 20\nend = 24\n[[move]]\nfrom = 0\nto = 1\nclass = "green"\nbegin = 3\nend = 4\n' \
  >"$folder/by-class.toml"
works 2 train "$folder/colours.cfg" --data "$folder/photos-{rank}" --data-map "$folder/by-class.toml" --batch 8 --epochs 1 --run "$folder/by-class"
expect 'samples of each class move as the map says' test \
  "$(cd "$folder/by-class/samples/rank-1/from-0" && find . -name '*.png' | cut -d / -f 2 | sort | uniq -c | tr -s ' \n' ' ')" = ' 1 green 4 red '

# What cannot be, and what to do.
fits=(train models/lenet5.cfg --data "$folder/idx-{rank}" --epochs 1 --run "$folder/refused")
# refused_on RANKS PATTERN ARGUMENT...
refused_on() {
  local ranks=$1 pattern=$2
  shift 2
  run "$ranks" "$@"
  expect_refusal "$pattern"
}
mapped=("${fits[@]}" --data-map "$folder/map.toml")
refused_on 2 'map.toml: the data map is of 3 devices, there are 2 ranks' "${mapped[@]}"
refused_on 3 'missing.toml: ' "${fits[@]}" --data-map "$folder/missing.toml"
refused_on 3 'layers 0 to 0 are cut into tiles, and each rank trains on its own pictures.*--data-parallel-from 0' "${mapped[@]}" --grid 1x3
refused_on 3 'are cut by channels' "${mapped[@]}" --grid 1x1 --filter-parallel-from 2
refused_on 3 'rank 0 reads for all' "${mapped[@]}" --reader 0
refused_on 3 '--augment-variants 2: a variant is drawn by the number of its picture in the whole data set.*leave out --data-map' \
  "${mapped[@]}" --augment-variants 2
refused_on 3 'leave out --partition' "${mapped[@]}" --partition auto
refused_on 3 '--skip-broken: a data map counts samples' "${mapped[@]}" --skip-broken
# Only where there is something to take statistics of.
refused_on 3 'has so few samples that it has none in some batches' train models/fashion-resnet.cfg "${mapped[@]:2}" --batch-norm tile --batch 4
works 3 train models/lenet5.cfg --data "$folder/idx-{rank}" --data-map "$folder/map.toml" --batch 4 --steps 1 --no-eval --batch-norm tile \
  --run "$folder/unnormalised"
sed 's/\[120, 30, 0\]/[119, 30, 0]/; s/end = 120/end = 119/' "$folder/map.toml" >"$folder/short.toml"
refused_on 3 'rank 0 .*has 120 pictures for training, and the data map says 119' "${fits[@]}" --data-map "$folder/short.toml"
refused_on 3 'ranks 0 and 1 on .* would both train on .*idx-0.*\{rank\}' train models/lenet5.cfg --data "$folder/idx-0" \
  --data-map "$folder/map.toml" --batch 20 --epochs 1 --run "$folder/refused"
printf 'samples = [120, 24]\n' >"$folder/mixed.toml"
mkdir "$folder/mixed"
cp -r "$folder/idx-0" "$folder/mixed/0"
cp -r "$folder/photos-0" "$folder/mixed/1"
rm -r "$folder/mixed/1/train/green"
refused_on 2 'rank 1 .* has picture files, rank 0 .* has IDX or CIFAR pictures of 1x28x28' train models/lenet5.cfg \
  --data "$folder/mixed/{rank}" --data-map "$folder/mixed.toml" --batch 20 --epochs 1 --run "$folder/refused"
expect 'a refused run leaves nothing' test ! -e "$folder/refused"

# Some cuts are no contradiction.
works 3 "${with_map[@]}" --epochs 1 --run "$folder/groups" --groups 0-1,2-4 --recompute 0-1 --kernels direct
works 3 "${with_map[@]}" --epochs 1 --run "$folder/half" --gradient-precision half --subdivisions 2
