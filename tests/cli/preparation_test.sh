#!/usr/bin/env bash
# How pictures are prepared and what classes are called belongs to the weights: eval, predict, --resume and --weights take it
# from the checkpoint, and refuse or say what is otherwise.
. tests/cli/support/harness.sh

# pictures FOLDER CLASS...: six pictures of each class, in both halves; the class gives the colour.
pictures() {
  local where=$1 class part i red green blue
  shift
  for class in "$@"; do
    case $class in
      ant) red=150 green=30 blue=30 ;;
      bee) red=30 green=150 blue=30 ;;
      *) red=30 green=30 blue=150 ;;
    esac
    for part in train test; do
      mkdir -p "$where/$part/$class"
      for i in 1 2 3 4 5 6; do
        make_picture "$where/$part/$class/$i.png" 16 $((red + 5 * i)) $((green + 3 * i)) $((blue + 4 * i))
      done
    done
  done
}
pictures "$folder/data" ant bee
pictures "$folder/swapped" ant bee
for part in train test; do # the same pictures, but the first class comes second
  mv "$folder/swapped/$part/ant" "$folder/swapped/$part/cat"
done
model=$folder/model.cfg
cat >"$model" <<'CFG'
[net]
batch=8
height=16
width=16
channels=3
learning_rate=0.01
max_batches=60
flip=0

[convolutional]
batch_normalize=1
filters=8
size=3
stride=2
pad=1
activation=leaky

[convolutional]
filters=2
size=1
activation=linear

[avgpool]

[softmax]
CFG
sed 's/^filters=2$/filters=3/' "$model" >"$folder/three.cfg"
training=(train "$model" --data "$folder/data" --no-eval --progress none)
works 2 "${training[@]}" --run "$folder/run" --steps 40 --mean 0.5 --std 0.05
checkpoint=$folder/run/checkpoint.safetensors

# evaluated RANKS ARGUMENT...: what eval prints of the checkpoint.
evaluated() {
  local ranks=$1
  shift
  works "$ranks" eval "$model" --data "$folder/data" --weights "$checkpoint" --json "$@"
  cat "$folder/out"
}
given=$(evaluated 1 --mean 0.5 --std 0.05)
expect 'values that are the same are not remarked upon' test ! -s "$folder/err"
expect 'eval takes mean and deviation from the checkpoint' test "$(evaluated 1)" = "$given"
expect 'silently' test ! -s "$folder/err"
expect 'so do tiles, of which one rank reads' test "$(evaluated 3 --grid 1x3 --reader 2 | cut -c 1-14)" = "${given:0:14}"
other=$(evaluated 1 --mean 0.4)
expect 'another value is used' test "$other" != "$given"
expect 'and warned of' grep -qE 'warning: .*/run/checkpoint\.safetensors was trained with mean 0\.5, now there is mean 0\.4$' "$folder/err"

# Classes in a different order would be another accuracy.
refused 'swapped: .*run/checkpoint\.safetensors was trained with "ant" as class 0, in the data set it is "bee"' \
  eval "$model" --data "$folder/swapped" --weights "$checkpoint"

works 1 predict "$model" "$folder/data/test/bee/1.png" --weights "$checkpoint" --top 1
expect 'predict names classes as the checkpoint does' grep -qE '%  bee$' "$folder/out"
printf 'first\nsecond\n' >"$folder/names"
works 1 predict "$model" "$folder/data/test/bee/1.png" --weights "$checkpoint" --top 1 --names "$folder/names"
expect 'but --names has the last word' grep -qE '%  second$' "$folder/out"

# Going on: nothing may differ.
refused 'run/checkpoint\.safetensors: was trained with mean 0\.5, now there is mean 0\.4: leave out --mean and --std' \
  "${training[@]}" --run "$folder/on" --steps 50 --resume "$checkpoint" --mean 0.4
refused 'run/checkpoint\.safetensors: was trained with "ant" as class 0' \
  train "$model" --data "$folder/swapped" --no-eval --run "$folder/on" --steps 50 --resume "$checkpoint"
works 1 "${training[@]}" --run "$folder/on" --steps 42 --resume "$checkpoint"
expect 'a resumed run keeps what the checkpoint says' grep -qaF '\"mean\":[0.5,0.5,0.5]' "$folder/on/checkpoint.safetensors"

# Fine-tuning: other values and classes are said, and then those of this run are kept.
works 1 "${training[@]}" --run "$folder/fine" --steps 2 --weights "$checkpoint"
expect 'fine-tuning takes the values over' grep -qaF '\"mean\":[0.5,0.5,0.5]' "$folder/fine/checkpoint.safetensors"
expect 'silently' test ! -s "$folder/err"
works 1 train "$model" --data "$folder/swapped" --no-eval --progress none --run "$folder/fine2" --steps 2 --weights "$checkpoint" --std 0.1
expect 'another value is said' grep -qE 'warning: .*was trained with standard deviation 0\.05, now there is standard deviation 0\.1$' "$folder/err"
expect 'other classes are said' grep -qE 'warning: .*was trained with "ant" as class 0, in the data set it is "bee": training continues' "$folder/err"
expect 'in a line each' test "$(wc -l <"$folder/err")" -eq 2

# Files that cannot keep it.
works 1 convert "$model" --from "$checkpoint" --to "$folder/copy.safetensors"
expect 'a copy keeps it' grep -qaF '\"mean\":[0.5,0.5,0.5]' "$folder/copy.safetensors"
works 1 convert "$model" --from "$checkpoint" --to "$folder/run.weights"
expect "Darknet's format cannot, which is said" grep -qE 'warning: .*run\.weights cannot hold .*--mean 0\.5.* --std 0\.05.*--names' "$folder/err"
expect 'it has the images seen, of 40 steps of 8' test "$(od -A n -t d8 -j 12 -N 8 "$folder/run.weights" | tr -d ' ')" = 320
works 1 eval "$model" --data "$folder/data" --weights "$folder/run.weights" --json --mean 0.5 --std 0.05
expect 'with the values it is the same accuracy' test "$(cut -c 1-14 "$folder/out")" = "${given:0:14}"
