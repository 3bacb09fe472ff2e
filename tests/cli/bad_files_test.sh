#!/usr/bin/env bash
# Weights, checkpoints and data sets that cannot be used are refused on all ranks, and nothing is left behind or lost.
. tests/cli/support/harness.sh

model=models/lenet5.cfg
data=$folder/digits
mkdir "$data"
make_digits "$data" 60 20

# Into a run folder that must not appear when this is refused.
training=(train "$model" --data "$data" --run "$folder/run" --batch 8 --steps 2)
works 1 "${training[@]}" || exit
mv "$folder/run" "$folder/good"
good=$folder/good/checkpoint.safetensors
works 1 convert "$model" --from "$good" --to "$folder/good.weights"
works 1 train models/fashion-resnet.cfg --data "$data" --run "$folder/other" --batch 8 --steps 1
other=$folder/other/checkpoint.safetensors

# Darknet's weights.
refused 'missing\.weights: ' "${training[@]}" --weights "$folder/missing.weights"
head -c 1000 "$folder/good.weights" >"$folder/short.weights"
refused 'short\.weights: ' "${training[@]}" --weights "$folder/short.weights"
cat "$folder/good.weights" "$folder/good.weights" >"$folder/long.weights"
refused 'long\.weights: ' "${training[@]}" --weights "$folder/long.weights"
: >"$folder/empty.weights"
refused 'empty\.weights: ' "${training[@]}" --weights "$folder/empty.weights"
refused 'good\.weights: ' eval models/fashion-resnet.cfg --data "$data" --weights "$folder/good.weights"

# Checkpoints.
refused 'missing\.safetensors: ' "${training[@]}" --resume "$folder/missing.safetensors"
head -c 100000 "$good" >"$folder/short.safetensors"
refused 'short\.safetensors: ' "${training[@]}" --resume "$folder/short.safetensors"
head -c 50 "$good" >"$folder/stub.safetensors"
refused 'stub\.safetensors: ' "${training[@]}" --resume "$folder/stub.safetensors"
printf '\377\377\377\377\377\377\377\177{}' >"$folder/lying.safetensors"
refused 'lying\.safetensors: ' "${training[@]}" --resume "$folder/lying.safetensors"
refused 'checkpoint\.safetensors: .*model' "${training[@]}" --resume "$other"
refused 'checkpoint\.safetensors: ' eval "$model" --data "$data" --weights "$other"
refused 'good\.weights: ' "${training[@]}" --resume "$folder/good.weights"
refused 'has no checkpoint\.safetensors' "${training[@]}" --resume "$data"
refused 'checkpoint\.safetensors: already at step 2' "${training[@]}" --resume "$good"

# Data sets. IDX files that lie or end early:
copy_data() { rm -rf "$folder/bad"; cp -r "$data" "$folder/bad"; }
bad_data=(train "$model" --data "$folder/bad" --run "$folder/run" --batch 8 --steps 2)
copy_data
head -c 5000 "$data/train-images-idx3-ubyte" >"$folder/bad/train-images-idx3-ubyte"
refused 'train-images-idx3-ubyte: ' "${bad_data[@]}"
copy_data
head -c 10 "$data/train-images-idx3-ubyte" >"$folder/bad/train-images-idx3-ubyte"
refused 'train-images-idx3-ubyte: ' "${bad_data[@]}"
copy_data
printf 'wrong magic number' >"$folder/bad/train-labels-idx1-ubyte"
refused 'train-labels-idx1-ubyte: ' "${bad_data[@]}"
copy_data
cp "$data/t10k-labels-idx1-ubyte" "$folder/bad/train-labels-idx1-ubyte"
refused 'train-labels-idx1-ubyte: .*20' "${bad_data[@]}"
copy_data
rm "$folder/bad/t10k-labels-idx1-ubyte"
refused 't10k-labels-idx1-ubyte' "${bad_data[@]}"
copy_data
gzip "$folder/bad/train-images-idx3-ubyte"
head -c 2000 "$folder/bad/train-images-idx3-ubyte.gz" >"$folder/short.gz"
mv "$folder/short.gz" "$folder/bad/train-images-idx3-ubyte.gz"
refused 'train-images-idx3-ubyte\.gz: ' "${bad_data[@]}"
# A header that promises more pictures than memory holds.
copy_data
printf '\000\000\010\003\177\377\377\377\000\000\377\377\000\000\377\377' >"$folder/bad/train-images-idx3-ubyte"
refused 'train-images-idx3-ubyte: ' "${bad_data[@]}"

# Folders without a data set, or with another one than the model is for:
rm -rf "$folder/bad"
refused "$folder/bad: " "${bad_data[@]}"
mkdir "$folder/bad"
refused "$folder/bad: " "${bad_data[@]}"
mkdir -p "$folder/bad/train/cat" "$folder/bad/test/cat"
refused "$folder/bad/train" "${bad_data[@]}"
refused 'lenet5\.cfg: ' train "$model" --data "$model" --run "$folder/run" --steps 2
sed 's/output=10$/output=4/' "$model" >"$folder/four.cfg"
# 6 * 85 fewer values than the ten classes have.
head -c $(($(stat -c %s "$folder/good.weights") - 4 * 6 * 85)) "$folder/good.weights" >"$folder/four.weights"
refused 'digits: .*10 classes.* 4 outputs' train "$folder/four.cfg" --data "$data" --run "$folder/run" --steps 2
works 1 convert "$folder/four.cfg" --from "$folder/four.weights" --to "$folder/four.safetensors"
refused 'digits: .*10 classes.* 4 outputs' eval "$folder/four.cfg" --data "$data" --weights "$folder/four.weights"
printf 'classes = 2\ntrain = missing.list\nnames = missing.names\n' >"$folder/bad.data"
refused 'missing\.' train "$model" --data "$folder/bad.data" --run "$folder/run" --steps 2

expect 'a refused run leaves no folder behind' test ! -e "$folder/run"

# Pictures and names for predict.
refused 'nothing\.png: ' predict "$model" "$folder/nothing.png" --weights "$good"
printf 'no picture' >"$folder/text.png"
refused 'text\.png: ' predict "$model" "$folder/text.png" --weights "$good"
refused 'names\.txt: ' predict "$model" "$data/t10k-images-idx3-ubyte" --weights "$good" --names "$folder/names.txt"

# Files for gradients and convert.
refused 'missing\.safetensors: ' gradients "$model" --in "$folder/missing.safetensors" --out "$folder/out.safetensors"
refused 'checkpoint\.safetensors: .*input' gradients "$model" --in "$good" --out "$folder/out.safetensors"
refused_alone 'no/such/folder' convert "$model" --from "$good" --to "$folder/no/such/folder/good.weights"
refused_alone 'good\.txt: ' convert "$model" --from "$good" --to "$folder/good.txt"
