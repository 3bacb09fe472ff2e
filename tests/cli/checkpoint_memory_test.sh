#!/usr/bin/env bash
# Writing and reading a checkpoint, or weights, takes no memory that is not planned.
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 12 4

# 50 MiB of weights, by far the most of what is planned.
cat >"$folder/heavy.cfg" <<'MODEL'
[net]
height=256
width=256
channels=1
learning_rate=0.01
[connected]
output=200
activation=leaky
[connected]
output=10
activation=linear
[softmax]
MODEL

# trains NAME RANKS ARGUMENT...: writes checkpoints, and goes on from the last.
trains() {
  local name=$1 ranks=$2
  local train=(train "$folder/heavy.cfg" --data "$data" --run "$folder/$name" --batch 2 --no-eval "${@:3}")
  works "$ranks" "${train[@]}" --steps 2 --checkpoint-every 1 && as_planned "$name"
  works "$ranks" "${train[@]}" --steps 3 --resume "$folder/$name/checkpoint.safetensors" && as_planned "$name"
}

trains one 1
trains tiles 4 --grid 2x2 # the weights are with two ranks that do not write
trains filters 3 --filter-parallel-from 0

works 1 convert "$folder/heavy.cfg" --from "$folder/one/checkpoint.safetensors" --to "$folder/heavy.weights"
works 2 train "$folder/heavy.cfg" --data "$data" --run "$folder/weights" --batch 2 --no-eval --steps 1 --filter-parallel-from 0 \
  --weights "$folder/heavy.weights" && as_planned weights
