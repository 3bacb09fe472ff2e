#!/usr/bin/env bash
# train --cache: pictures are decoded once on a machine, and whatever is kept where, training has the bits of a run that keeps nothing.
. tests/cli/support/harness.sh
. tests/cli/support/processes.sh

digits=$data
data=$folder/pictures # also that of runs that are killed
mkdir -p "$data"/{train,test}/{dark,light}
for number in 1 2 3 4 5 6; do
  make_picture "$data/train/dark/$number.png" $((40 + number)) 40 "$number" 60
  make_picture "$data/train/light/$number.png" $((60 - number)) 200 $((220 + number)) 190
done
make_picture "$data/test/dark/1.png" 50 45 9 66
make_picture "$data/test/light/1.png" 30 210 225 180
pictures=14
make_colours_model "$folder/plain.cfg"
sed 's/^\[net\]/[net]\nflip=1\nangle=15\nhue=0.1\nsaturation=1.5\nexposure=1.5\nmax_crop=18/' "$folder/plain.cfg" >"$folder/m.cfg"

# train RANKS RUN ARGUMENT...: three epochs.
train() {
  local ranks=$1 run=$2
  shift 2
  works "$ranks" train "$folder/m.cfg" --data "$data" --run "$folder/$run" --epochs 3 --progress none "$@"
}
# cache_of RUN KEY: what its run.json says of the cache.
cache_of() { sed -n '/"cache": {/,/}/s/^ *"'"$2"'": "*\([^",]*\)"*,*$/\1/p' "$folder/$1/run.json"; }
# memory_of RUN WHICH: of rank 0 for the cache.
memory_of() {
  awk -v which="\"$2\":" '$1 == which { inside = 1 }
    inside && $1 == "\"cache\":" { sub(/,/, "", $2); print $2; exit }' "$folder/$1/memory.json"
}
# same_training RUN RUN
same_training() {
  same_bytes "$folder/$1/checkpoint.safetensors" "$folder/$2/checkpoint.safetensors" && same_losses "$folder/$1" "$folder/$2" 0 &&
    test "$(accuracy "$folder/$1")" = "$(accuracy "$folder/$2")"
}

cuts=('1' '3 --grid 1x3' '4 --grid 2x2' '4 --data-parallel-from 0' '3 --grid 3x1 --reader 1')
for number in "${!cuts[@]}"; do
  read -ra cut <<<"${cuts[number]}"
  name="${cuts[number]}"
  train "${cut[0]}" "off-$number" "${cut[@]:1}" --cache off
  train "${cut[0]}" "memory-$number" "${cut[@]:1}" --cache memory
  expect "$name: pictures in memory have the bits of those that are not kept" same_training "off-$number" "memory-$number"
  train "${cut[0]}" "folder-$number" "${cut[@]:1}" --cache "$folder/kept-$number"
  expect "$name: so have those in a folder" same_training "off-$number" "folder-$number"
  for place in memory folder; do
    expect "$name, $place: each is decoded once by all ranks" test "$(cache_of "$place-$number" decoded)" -eq "$pictures"
    expect "$name, $place: and kept" test "$(cache_of "$place-$number" bytes)" -gt 0
  done
  train "${cut[0]}" "again-$number" "${cut[@]:1}" --cache "$folder/kept-$number"
  expect "$name: a later run has the same bits from the folder" same_training "off-$number" "again-$number"
  expect "$name: and decodes nothing" test "$(cache_of "again-$number" decoded)" -eq 0
  expect "$name: a file for each picture" test "$(find "$folder/kept-$number" -type f | wc -l)" -eq "$pictures"
done
expect 'what is not kept is said' grep -qx 'off' <(cache_of off-0 place)
expect 'without a cache there is no memory for it' test "$(memory_of off-2 planned)" -eq 0
expect 'its memory is planned' test "$(memory_of memory-2 planned)" -ge "$(memory_of memory-2 measured)"
expect 'and measured' test "$(memory_of memory-2 measured)" -gt 0

train 1 usual
expect 'memory is the default' grep -qx memory <(cache_of usual place)
expect 'that is said' grep -q '^pictures are decoded once and kept in memory: ' "$folder/out"
expect 'it has the same bits' same_training off-0 usual
works 1 report "$folder/usual"
expect 'the report says what was decoded' grep -q 'decoded once, in memory, [^<]*: decoded 14 times, found decoded [0-9]* times' "$folder/usual/report.html"

# Where memory does not suffice for all, they are kept in the run's folder as long as it goes on.
perl "$support/make_odd_pictures.pl" "$folder"
mkdir -p "$folder/photos"/train/{a,b}
for number in {1..10}; do cp "$folder/photo.jpg" "$folder/photos/train/a/$number.jpg"; done
for number in {1..6}; do cp "$folder/turned.png" "$folder/photos/train/b/$number.png"; done
sed 's/^max_crop=.*/max_crop=700/' "$folder/m.cfg" >"$folder/large.cfg"
photos=(train "$folder/large.cfg" --data "$folder/photos" --progress none --no-eval --partition auto)
works 1 "${photos[@]}" --epochs 2 --run "$folder/limit-off" --cache off
total=$(grep -m 1 '"total":' "$folder/limit-off/memory.json" | tr -dc 0-9)
# Partitions are searched for a program of the usual size, 2 MiB more than that; the pictures take 6.
limit=$(((total >> 20) + 4))
works 1 "${photos[@]}" --epochs 2 --run "$folder/limited" --memory-limit "$limit"
expect 'pictures that the limit leaves no memory for are in the folder of the run' grep -qx "$folder/limited/pictures" <(cache_of limited place)
expect 'it is said that they take more than the files' grep -q 'reduced pictures take .* in .*limited/pictures, more than their files' "$folder/err"
expect 'they take no memory' test "$(memory_of limited planned)" -lt 100000
expect 'they are found there' test "$(cache_of limited kept)" -gt 0
expect 'they are gone when it is finished' test ! -e "$folder/limited/pictures"
expect 'they have the bits of those that are not kept' same_training limit-off limited
run 1 "${photos[@]}" --epochs 2 --run "$folder/refused" --memory-limit "$limit" --cache memory
expect_refusal '--cache memory: reduced pictures take .* and --memory-limit leaves .*: give --cache a folder'

works 1 train models/lenet5.cfg --data "$digits" --run "$folder/digits-run" --steps 2 --progress none --no-eval
expect 'what needs no decoding is not kept' grep -q '"cache": null' "$folder/digits-run/run.json"

touch "$folder/file"
refused 'file/x: cannot be written .*choose a writable folder' train "$folder/m.cfg" --data "$data" --run "$folder/refused" --cache "$folder/file/x"
expect 'nothing was begun' test ! -e "$folder/refused"

# A picture that was kept and then changes is not trained on.
cp -r "$data" "$folder/changing"
works 1 train "$folder/m.cfg" --data "$folder/changing" --run "$folder/before" --epochs 1 --progress none --cache "$folder/kept-0"
make_picture "$folder/changing/train/dark/1.png" 41 90 90 90
works 1 train "$folder/m.cfg" --data "$folder/changing" --run "$folder/after" --epochs 1 --progress none --cache "$folder/kept-0"
expect 'another picture under the same name is decoded' test "$(cache_of after decoded)" -eq 1

# Killed at any time, nothing is left, and what was kept holds.
for cache in memory "$folder/kept-killed"; do
  for ranks in 1 4; do
    start "$ranks" --cache "$cache"
    # shellcheck disable=SC2046 # one number each
    kill -9 $(ranks_running)
    ended
    nothing_left "$ranks ranks killed, $cache"
  done
done
train 4 killed --grid 2x2 --cache "$folder/kept-killed"
expect 'a run with what a killed one kept has the same bits' same_training off-2 killed
