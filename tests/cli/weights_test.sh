#!/usr/bin/env bash
# From training to use: checkpoint, Darknet's weights, eval and predict agree with each other.
# shellcheck disable=SC2016 # the $ are those of sed, awk and perl
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 200 50
model=$folder/model.cfg
sed "s/burn_in=100/burn_in=5/" models/fashion-resnet.cfg >"$model"
works 4 train "$model" --data "$data" --run "$folder/run" --batch 20 --epochs 3 --schedule-steps 60 --grid 2x2
checkpoint=$folder/run/checkpoint.safetensors

# evaluated RANKS WEIGHTS ARGUMENT...: the accuracy of these weights, in JSON.
evaluated() {
  local ranks=$1 weights=$2
  shift 2
  works "$ranks" eval "$model" --data "$data" --weights "$weights" --json "$@"
  sed -n 's/.*"accuracy":\([^,]*\),.*/\1/p' "$folder/out"
}
last=$(accuracy "$folder/run")
expect 'something is learnt' awk -v accuracy="$last" 'BEGIN { exit !(accuracy > 0.3) }'
expect 'eval gives the last accuracy of training' test "$(evaluated 1 "$checkpoint")" = "$last"
expect 'eval prints JSON of these keys' grep -qE '^\{"accuracy":[^,]*,"loss":[^,]*,"pictures":50,"top5":[^,]*,"classes":\[.*\],"confusion":\[.*\]\}$' "$folder/out"
expect 'eval does so on tiles' test "$(evaluated 4 "$checkpoint" --grid 2x2 --batch 7)" = "$last"
works 1 eval "$model" --data "$data" --weights "$checkpoint"
expect 'eval tells people' grep -qE '^accuracy [0-9.]+ %, loss [0-9.]+, 50 pictures$' "$folder/out"

# To Darknet's format and back.
works 1 convert "$model" --from "$checkpoint" --to "$folder/trained.weights"
expect "Darknet's weights have the same accuracy" test "$(evaluated 1 "$folder/trained.weights")" = "$last"
works 1 convert "$model" --from "$folder/trained.weights" --to "$folder/back.safetensors"
expect 'so have they after the way back' test "$(evaluated 3 "$folder/back.safetensors")" = "$last"
works 2 convert "$model" --from "$folder/back.safetensors" --to "$folder/again.weights"
expect 'and then they are the same bytes' same_bytes "$folder/trained.weights" "$folder/again.weights"
works 2 train "$model" --data "$data" --run "$folder/on" --batch 20 --steps 2 --weights "$folder/trained.weights"

# By Darknet's own rule of batch normalisation the same weights are the same network, and nothing in them is converted.
sed 's/^\[net\]$/&\nbatch_norm_rule=darknet/' "$model" >"$folder/darknet.cfg"
works 3 eval "$folder/darknet.cfg" --data "$data" --weights "$folder/trained.weights" --json --grid 1x3
expect "Darknet's rule has the same accuracy" grep -qF "\"accuracy\":$last," "$folder/out"
works 1 convert "$folder/darknet.cfg" --from "$folder/trained.weights" --to "$folder/as-is.safetensors"
works 1 convert "$folder/darknet.cfg" --from "$folder/as-is.safetensors" --to "$folder/as-is.weights"
expect 'its files are the same bytes on the way there and back' same_bytes "$folder/trained.weights" "$folder/as-is.weights"
expect 'other variances than those of the other rule are kept' \
  test -n "$(perl "$support/compare_tensors.pl" "$folder/as-is.safetensors" "$folder/back.safetensors" 1e-7 'variance$')"
works 4 train "$folder/darknet.cfg" --data "$data" --run "$folder/darknet" --batch 20 --steps 2 --weights "$folder/trained.weights" --grid 2x2 --no-eval
works 1 train "$model" --data "$data" --run "$folder/darknet" --steps 3 --no-eval --resume "$folder/darknet/checkpoint.safetensors"
expect 'going on by another rule is reported' grep -q 'batch_norm_rule' "$folder/err"

# Pictures: the ten best by name, of an IDX file; the same on tiles.
printf '%s\n' 'T-shirt/top' Trouser Pullover Dress Coat Sandal Shirt Sneaker Bag 'Ankle boot' >"$folder/names.txt"
predict=(predict "$model" "$data/t10k-images-idx3-ubyte" --weights "$checkpoint" --names "$folder/names.txt" --top 3)
works 1 "${predict[@]}"
cp "$folder/out" "$folder/predictions"
expect 'each picture has a line and three classes' test "$(wc -l <"$folder/predictions")" -eq 200
expect 'classes have names' grep -qE '^ +[0-9.]+ %  Ankle boot$' "$folder/predictions"
works 4 "${predict[@]}" --grid 2x2
expect 'tiles predict the same' same_bytes "$folder/predictions" "$folder/out"
works 1 "${predict[@]}" --json
expect 'predictions are JSON' valid_json "$folder/out"
expect 'with these keys' test "$(grep -cE '^\{"picture":"[^"]*","predictions":\[(\{"class":[0-9]+,"name":"[^"]+","value":[^}]+\},?){3}\]\}$' "$folder/out")" -eq 50
# What predict puts first is what eval counts.
right=$(paste -d ' ' <(od -An -v -tu1 -w1 -j8 "$data/t10k-labels-idx1-ubyte") <(sed 's/.*"predictions":\[{"class":\([0-9]*\),.*/\1/' "$folder/out") |
  awk '$1 == $2 { right++ } END { print right / NR }')
expect 'predict and eval agree' awk -v a="$right" -v b="$last" 'BEGIN { exit a != b }'

# A colour picture for a grey network, and a folder of pictures.
mkdir "$folder/pictures"
make_picture "$folder/pictures/one.png" 40 200 10 10
make_picture "$folder/pictures/two.png" 28 10 200 10
works 2 predict "$model" "$folder/pictures" --weights "$checkpoint" --top 1
expect 'a folder of pictures' test "$(grep -c '\.png$' "$folder/out")" -eq 2
expect 'without names classes have numbers' grep -qE '%  class [0-9]$' "$folder/out"

# The real data, where it is installed.
fashion=/usr/share/datasets/fashion-mnist
if [ -d "$fashion" ]; then
  works 4 train "$model" --data "$fashion" --run "$folder/fashion" --batch 32 --steps 30 --schedule-steps 1000 --grid 2x2 --no-eval
  expect 'the loss falls' awk 'NR == 1 { first = $2 } NR > 25 { last += $2 } END { exit !(last / 5 < 0.8 * first) }' <(losses "$folder/fashion")
else
  echo "Fashion-MNIST is not in $fashion: that part is left out"
fi

# Fine-tuning: the layers that fit come from the file, the others start from scratch and are named; what only tests wants all of them.
sed 's/^output=10$/output=4/' models/lenet5.cfg >"$folder/four.cfg"
works 2 train models/lenet5.cfg --data "$data" --run "$folder/ten" --batch 8 --steps 2 --no-eval
works 1 convert models/lenet5.cfg --from "$folder/ten/checkpoint.safetensors" --to "$folder/ten.weights"
# A data set of four classes.
for class in 0 1 2 3; do
  for part in train test; do
    mkdir -p "$folder/classes/$part/$class"
    for i in 1 2 3; do make_picture "$folder/classes/$part/$class/$i.png" 28 $((60 * class)) $((20 * i)) 50; done
  done
done
fine=(train "$folder/four.cfg" --data "$folder/classes" --batch 4 --steps 1 --no-eval --progress none --force --run "$folder/fine")
for weights in ten/checkpoint.safetensors ten.weights; do
  works 1 "${fine[@]}" --weights "$folder/$weights"
  expect "$weights: one layer starts from scratch, which is said" test "$(grep -c 'starts from scratch' "$folder/err")" -eq 1
  expect "$weights: it is the last one" grep -qE 'warning: .*: layer [0-9]+ \(connected\) starts from scratch: .*(10|4)' "$folder/err"
  cp "$folder/fine/checkpoint.safetensors" "$folder/fine-one.safetensors"
  works 3 "${fine[@]}" --weights "$folder/$weights" --filter-parallel-from 2
  expect "$weights: three ranks start with the same" perl "$support/compare_tensors.pl" "$folder/fine-one.safetensors" \
    "$folder/fine/checkpoint.safetensors" 1e-3
  refused ': ' eval "$folder/four.cfg" --data "$folder/classes" --weights "$folder/$weights"
done
# As `darknet partial` cuts it after the first layer, under the names that Darknet's users give such files.
bytes=$((20 + 4 * $(perl -ne '/^filters=(\d+)/ and $f = $1; /^size=(\d+)/ and print($f * (1 + $1 * $1)) and exit' models/lenet5.cfg)))
head -c "$bytes" "$folder/ten.weights" >"$folder/lenet.conv.1"
works 2 "${fine[@]}" --weights "$folder/lenet.conv.1"
expect 'the layers that a partial file lacks start from scratch' grep -qE \
  'lenet\.conv\.1: layers 2 to 6 start from scratch: the file ends before layer 2 \(convolutional\)$' "$folder/err"
expect 'the others are named, too' grep -q '^taken from .*/lenet\.conv\.1: layer 0$' "$folder/out"
refused 'lenet\.conv\.1: ends in layer' eval models/lenet5.cfg --data "$data" --weights "$folder/lenet.conv.1"
# Cut out here, it is that file but for the images that it has seen, none; what the file has can be frozen by that.
works 1 convert models/lenet5.cfg --from "$folder/ten.weights" --to "$folder/cut.conv.1" --layers 1
expect 'convert --layers cuts as that' cmp <(tail -c +21 "$folder/lenet.conv.1") <(tail -c +21 "$folder/cut.conv.1")
works 3 "${fine[@]}" --weights "$folder/cut.conv.1" --freeze weights
expect 'what the file has is frozen' grep -q 'layers 0-1 frozen' "$folder/out"
works 1 convert models/lenet5.cfg --from "$folder/ten.weights" --to "$folder/ten.safetensors"
expect 'it did not change' perl "$support/compare_tensors.pl" "$folder/ten.safetensors" "$folder/fine/checkpoint.safetensors" 0 '^layers\.0\.'
works 1 "${fine[@]}" --weights "$folder/ten.safetensors" --freeze weights
expect 'all but the last layer are frozen, which fits no longer' grep -q 'layers 0-5 frozen' "$folder/out"
refused 'freeze weights: .*nothing is left to learn' train models/lenet5.cfg --data "$data" --run "$folder/no" --steps 1 --weights "$folder/ten.weights" --freeze weights
refused 'freeze weights needs --weights' "${fine[@]}" --freeze weights
refused 'freeze weights needs --weights' "${fine[@]}" --freeze weights --resume "$folder/ten/checkpoint.safetensors"
# Neither one byte less nor another model's.
head -c "$((bytes - 4))" "$folder/ten.weights" >"$folder/less.conv.1"
refused "less\.conv\.1: ends in layer 0 \(convolutional\), at byte $((bytes - 4)): the layer's parameters are bytes 20 to $bytes" \
  "${fine[@]}" --weights "$folder/less.conv.1"
sed 's/^filters=16$/filters=15/' models/lenet5.cfg >"$folder/fifteen.cfg"
refused 'ten\.weights: continues after the last layer: the parameters of layer 6 \(connected\) end at byte [0-9]+, the file at byte [0-9]+; .*convert --layers' \
  train "$folder/fifteen.cfg" --data "$data" --run "$folder/no" --steps 1 --weights "$folder/ten.weights"
refused 'layers 99: .* has 8 layers' convert models/lenet5.cfg --from "$folder/ten.weights" --to "$folder/cut.conv.99" --layers 99
refused "such as NAME\.conv\.N" convert models/lenet5.cfg --from "$folder/ten.weights" --to "$folder/cut.safetensors" --layers 1
head -c 20 "$folder/ten.weights" >"$folder/nothing.conv"
refused 'nothing\.conv: has no layer that fits' "${fine[@]}" --weights "$folder/nothing.conv"
