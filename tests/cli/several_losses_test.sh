#!/usr/bin/env bash
# Networks that end in several places: what each branch is judged by adds up, whatever the partition.
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 160 40

# two_branches FILE EARLY LATE: a network that is judged after its first layers, and at its end; EARLY and LATE are the sections
# that the branches end in.
two_branches() {
  cat >"$1" <<MODEL
[net]
height=28
width=28
channels=1
batch=8
learning_rate=0.05
momentum=0.9
max_batches=60

[convolutional]
filters=6
size=5
pad=1
activation=leaky

[maxpool]
size=2
stride=2

[connected]
output=10
activation=linear

$2

[route]
layers=1

[convolutional]
filters=8
size=3
pad=1
batch_normalize=1
activation=leaky

[maxpool]
size=2
stride=2

[connected]
output=10
activation=linear

$3
MODEL
}

# first_loss NAME: of the run in that folder.
first_loss() { sed -n '1s/.*"loss":\([^,]*\),.*/\1/p' "$folder/$1/metrics.jsonl"; }

two_branches "$folder/model.cfg" $'[softmax]\nscale=0.3' '[softmax]'
works 4 check "$folder/model.cfg" --grid 2x2
expect 'tiles compute what one tile computes' grep -qx equal "$folder/out"
works 4 check "$folder/model.cfg" --grid 2x2 --groups 0-1,2-3,4-6 --data-parallel-from 7
expect 'so do images after tiles' grep -qx equal "$folder/out"
two_branches "$folder/errors.cfg" '[cost]' $'[softmax]\n\n[dropout]\n\n[cost]'
works 3 check "$folder/errors.cfg" --grid 3x1 --batch 3
expect 'a squared error beside a cross-entropy, too' grep -qx equal "$folder/out"

works 1 train "$folder/model.cfg" --data "$data" --run "$folder/one" --progress none
works 4 train "$folder/model.cfg" --data "$data" --run "$folder/four" --grid 2x2 --steps 2 --progress none
expect 'ranks add up the losses of their cells' awk -v one="$(first_loss one)" -v four="$(first_loss four)" \
  'BEGIN { exit !(one > 0 && (one - four) ^ 2 < 1e-8 * one ^ 2) }'
works 1 eval "$folder/model.cfg" --data "$data" --weights "$folder/one/checkpoint.safetensors" --json
expect 'the last branch learns' perl -ne '($accuracy) = /"accuracy":([\d.]+)/; exit !($accuracy > 0.6)' "$folder/out"
works 4 eval "$folder/model.cfg" --data "$data" --weights "$folder/one/checkpoint.safetensors" --json --grid 2x2
works 1 predict "$folder/model.cfg" "$data/t10k-images-idx3-ubyte" --weights "$folder/one/checkpoint.safetensors"

# A branch that the last one stands above counts for nothing else: without it, the loss is less by its own.
for scale in 0 0.3 0.6; do
  two_branches "$folder/scaled.cfg" $'[softmax]\nscale='"$scale" '[softmax]'
  works 1 train "$folder/scaled.cfg" --data "$data" --run "$folder/scaled-$scale" --steps 1 --progress none --no-eval
done
expect 'a loss counts as often as its scale says' awk -v none="$(first_loss scaled-0)" -v one="$(first_loss scaled-0.3)" \
  -v two="$(first_loss scaled-0.6)" 'BEGIN { exit !(one > none && (two - none - 2 * (one - none)) ^ 2 < 1e-8) }'

# Each branch has an output for each class.
two_branches "$folder/narrow.cfg" '[softmax]' '[softmax]'
sed -i '0,/output=10/s//output=7/' "$folder/narrow.cfg"
run 1 train "$folder/narrow.cfg" --data "$data" --run "$folder/narrow" --steps 1
expect_refusal 'has 10 classes, .*narrow.cfg gives 7 outputs: set output=10 in layer 2'
