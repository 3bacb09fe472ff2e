#!/usr/bin/env bash
# train --resume: goes on bit for bit under the same partition, to rounding under another.
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 100 20
sed 's/^policy=poly/adam=1\n&/; s/^learning_rate=.*/learning_rate=0.001/' models/lenet5.cfg >"$folder/adam.cfg"

# train RANKS MODEL RUN ARGUMENT...
train() {
  local ranks=$1 model=$2 run=$3
  shift 3
  works "$ranks" train "$model" --data "$data" --run "$folder/$run" --batch 12 --checkpoint-every 5 --no-eval "$@"
}

# resumes NAME MODEL RANKS ARGUMENT...: 20 steps are 10 and 10 more.
resumes() {
  local name=$1 model=$2 ranks=$3
  shift 3
  train "$ranks" "$model" "$name-whole" --steps 20 --seed 3 "$@"
  train "$ranks" "$model" "$name" --steps 10 --seed 3 "$@"
  train "$ranks" "$model" "$name" --steps 20 --resume "$folder/$name/checkpoint.safetensors" "$@"
  expect "$name: the same checkpoint" same_bytes "$folder/$name-whole/checkpoint.safetensors" "$folder/$name/checkpoint.safetensors"
  expect "$name: the same losses, of all steps" same_losses "$folder/$name-whole" "$folder/$name" 0
}

resumes one models/lenet5.cfg 1
resumes tiles models/lenet5.cfg 4 --grid 2x2 --groups 0-3
resumes adam "$folder/adam.cfg" 2 --grid 1x2
resumes batch-norm models/fashion-resnet.cfg 3 --grid 3x1 --groups 0-4
resumes filters models/lenet5.cfg 3 --filter-parallel-from 2
resumes half-gradients models/lenet5.cfg 4 --grid 2x2 --gradient-precision half

# Under another partition, and into another folder: only the new steps are there.
train 1 models/lenet5.cfg half --steps 10 --seed 3
train 3 models/lenet5.cfg other --steps 20 --resume "$folder/half/checkpoint.safetensors" --grid 1x3
expect 'the steps are those that were left' test "$(losses "$folder/other" | cut -d ' ' -f 1 | paste -s -d ' ')" = '11 12 13 14 15 16 17 18 19 20'
cat "$folder/half/metrics.jsonl" >>"$folder/other/metrics.jsonl"
sort -t : -k 2n "$folder/other/metrics.jsonl" -o "$folder/other/metrics.jsonl"
expect 'their losses are those of one rank' same_losses "$folder/one-whole" "$folder/other" 1e-4
expect 'the weights are those of one rank' perl "$support/compare_tensors.pl" "$folder/one-whole/checkpoint.safetensors" \
  "$folder/other/checkpoint.safetensors" 1e-4

# A run goes on from a step that it has passed: the lines after it are replaced.
cp "$folder/half/checkpoint.safetensors" "$folder/one/half.safetensors"
train 1 models/lenet5.cfg one --steps 15 --resume "$folder/one/half.safetensors"
rm "$folder/one/half.safetensors"
expect 'no step is there twice' test "$(losses "$folder/one" | wc -l)" -eq 15
# Another seed is another order of pictures.
train 1 models/lenet5.cfg half --steps 12 --resume "$folder/half/checkpoint.safetensors" --seed 4
expect 'another seed is warned of' grep -q 'warning: .*--seed 3.*--seed 4' "$folder/err"

# only_its_own NAME MODEL PATTERN: a run does not go on with a model file that asks for the other optimizer, and all that
# is in its folder stays as it was.
only_its_own() {
  local name=$1 model=$2 pattern=$3
  cp -r "$folder/$name" "$folder/before"
  refused "$pattern" train "$model" --data "$data" --run "$folder/$name" --batch 12 --steps 30 \
    --resume "$folder/$name/checkpoint.safetensors"
  expect "$name: the folder is as it was" diff -r "$folder/before" "$folder/$name"
  rm -r "$folder/before"
}

only_its_own one "$folder/adam.cfg" \
  'one/checkpoint\.safetensors: .*state is that of momentum, the model file asks for Adam: .*adam=.*--weights'
only_its_own adam models/lenet5.cfg \
  'adam/checkpoint\.safetensors: .*state is that of Adam, the model file asks for momentum: .*adam=.*--weights'
# From its weights it goes on.
train 1 "$folder/adam.cfg" anew --steps 2 --weights "$folder/one/checkpoint.safetensors"

# Without batch normalisation its modes are one, for the run, for one that resumes it and for parts of a data set.
works 2 train models/lenet5.cfg --data "$data" --batch 4 --steps 2 --run "$folder/unnormalised" --batch-norm tile --no-eval
works 2 train models/lenet5.cfg --data "$data" --batch 4 --steps 3 --run "$folder/unnormalised" --batch-norm sync --no-eval \
  --resume "$folder/unnormalised/checkpoint.safetensors"
expect 'no mode of batch normalisation has changed' test "$(grep -c 'batch-norm' "$folder/err")" -eq 0
