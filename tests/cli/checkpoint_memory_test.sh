#!/usr/bin/env bash
# Writing and reading a checkpoint, or weights, takes no memory that is not planned.
# shellcheck disable=SC2016 # the $ are those of perl
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

# as_planned NAME: what the kernel counted on each rank is what was planned, within 5 % and a few MiB; or no more than a process
# takes for a moment while MPI starts.
as_planned() {
  expect "$1: no more memory than planned" perl -0777 -ne '
    while (/"planned": \{.*?"total": (\d+).*?"peak_resident": (\d+)/gs) {
      $ranks++;
      next if $2 < 40 << 20 || $2 < 1.05 * $1 + (4 << 20);
      printf "  planned %.1f MiB, took %.1f\n", $1 / 2**20, $2 / 2**20;
      $bad = 1;
    }
    exit($bad || !$ranks)' "$folder/$1/memory.json"
}

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
