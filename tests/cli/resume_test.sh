#!/usr/bin/env bash
# train --resume: goes on bit for bit under the same partition, to rounding under another.
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 100 20
sed 's/^policy=.*/policy=yolox\nnesterov=1\nema_decay=0.9998/; s/^burn_in=.*/warmup_epochs=1/; s/^max_batches=.*/max_batches=30/; s/^power=.*/flat_epochs=1/' \
  models/fashion-resnet.cfg >"$folder/yolox.cfg"
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
resumes yolox "$folder/yolox.cfg" 3 --grid 3x1 --groups 0-4
resumes filters models/lenet5.cfg 3 --filter-parallel-from 2
resumes half-gradients models/lenet5.cfg 4 --grid 2x2 --gradient-precision half

# checkpoints_change_nothing NAME RANKS ARGUMENT...: a run learns the same, however often it is saved, and when it is resumed.
checkpoints_change_nothing() {
  local name=$1 ranks=$2 every
  shift 2
  local run=(train models/lenet5.cfg --data "$data" --batch 12 --seed 3 --no-eval "$@")
  works "$ranks" "${run[@]}" --steps 8 --run "$folder/$name"
  for every in 1 3; do
    works "$ranks" "${run[@]}" --steps 8 --run "$folder/$name-$every" --checkpoint-every "$every"
  done
  works "$ranks" "${run[@]}" --steps 4 --run "$folder/$name-resumed"
  works "$ranks" "${run[@]}" --steps 8 --run "$folder/$name-resumed" \
    --resume "$folder/$name-resumed/checkpoint.safetensors"
  for run in "$name"-{1,3,resumed}; do
    expect "$run: the same losses" same_losses "$folder/$name" "$folder/$run" 0
    [[ $run == *resumed ]] || expect "$run: the same checkpoint" same_bytes "$folder/$name/checkpoint.safetensors" "$folder/$run/checkpoint.safetensors"
  done
}

checkpoints_change_nothing every-half 4 --grid 2x2 --gradient-precision half
checkpoints_change_nothing every-topk 4 --grid 2x2 --gradient-precision topk:0.1
checkpoints_change_nothing every-replicas 4 --replicas 2 --sync parameter-rank:2 --gradient-precision half

# What compression has left is of one partition: it is said that it is dropped.
train 2 models/lenet5.cfg every-half-1 --steps 10 --resume "$folder/every-half-1/checkpoint.safetensors" \
  --grid 1x2 --gradient-precision half
expect 'what is dropped is said' grep -q 'warning: .*what compressed messages had left out, is of another partition and is dropped' "$folder/err"

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

# Variants of pictures: a run that goes on has as many as before, and they are the same.
sed 's/^momentum=.*/&\nangle=7/; s/^flip=.*/flip=1/' models/lenet5.cfg >"$folder/varied.cfg"
train 1 "$folder/varied.cfg" variants-whole --steps 20 --seed 3 --augment-variants 2
train 4 "$folder/varied.cfg" variants-tiles --steps 20 --seed 3 --augment-variants 2 --grid 2x2
expect 'variants: the losses are those of one rank' same_losses "$folder/variants-whole" "$folder/variants-tiles" 1e-4
train 1 "$folder/varied.cfg" variants --steps 10 --seed 3 --augment-variants 2
train 1 "$folder/varied.cfg" variants --steps 20 --resume "$folder/variants/checkpoint.safetensors"
expect 'variants: the same checkpoint' same_bytes "$folder/variants-whole/checkpoint.safetensors" "$folder/variants/checkpoint.safetensors"
expect 'variants: the checkpoint has their number' grep -qa '\\"augment_variants\\":2' "$folder/variants/checkpoint.safetensors"
expect 'variants: so has run.json' grep -q '"augment_variants": 2' "$folder/variants/run.json"
train 1 "$folder/varied.cfg" variants --steps 25 --resume "$folder/variants/checkpoint.safetensors" --augment-variants 1
expect 'another number of variants is said' grep -q 'warning: .*was trained with --augment-variants 2, now it is 1$' "$folder/err"
expect 'and nothing else' test "$(grep -c 'warning: .*was trained' "$folder/err")" -eq 1
for none in 0 -1 1.5; do
  refused "^tessera: --augment-variants: \"$none\" is not an integer from 1" train models/lenet5.cfg --data "$data" --run "$folder/none" --augment-variants "$none"
done
train 1 "$folder/varied.cfg" each-anew --steps 20 --seed 3
expect 'without variants others are shown' test "$(losses "$folder/each-anew")" != "$(losses "$folder/variants-whole")"
expect 'without variants nothing says so' test "$(cat "$folder/each-anew/run.json" "$folder/each-anew/checkpoint.safetensors" | grep -ca augment_variants)" -eq 0

# Half a last line, as a power cut leaves it, is left out, and that is said once and kept as an event.
train 2 models/lenet5.cfg cut --steps 6 --grid 1x2
truncate -s -9 "$folder/cut/metrics.jsonl"
train 2 models/lenet5.cfg cut --steps 9 --grid 1x2 --resume "$folder/cut/checkpoint.safetensors"
expect 'what is lost is said, once' test "$(grep -c 'warning: .*cut/metrics.jsonl: 1 damaged line is left out; step 6 has no line$' "$folder/err")" -eq 1
expect 'the log keeps it' grep -q '"kind":"warning","text":".*metrics.jsonl: 1 damaged line is left out; step 6' "$folder/cut/events.jsonl"
expect 'the lines are whole' valid_json "$folder/cut/metrics.jsonl"
expect 'the other steps are there' test "$(losses "$folder/cut" | cut -d ' ' -f 1 | paste -s -d ' ')" = '1 2 3 4 5 7 8 9'
train 2 models/lenet5.cfg cut --steps 11 --grid 1x2 --resume "$folder/cut/checkpoint.safetensors"
expect 'later it is no damage, but a gap' grep -q 'warning: .*cut/metrics.jsonl: step 6 has no line$' "$folder/err"

# What a model file says otherwise than before is said, in one line; --subdivisions is taken over.
sed 's/^momentum=.*/&\nangle=7/; s/^decay=.*/decay=0.25/' models/lenet5.cfg >"$folder/other.cfg"
train 1 models/lenet5.cfg keys --steps 3 --subdivisions 3
train 1 "$folder/other.cfg" keys --steps 6 --resume "$folder/keys/checkpoint.safetensors"
expect 'other keys are said' grep -q 'warning: .*was trained with angle=0, decay=[0-9.]*, now the model file has angle=7, decay=0.25$' "$folder/err"
expect 'and nothing else' test "$(grep -c 'warning: .*was trained' "$folder/err")" -eq 1
train 1 "$folder/other.cfg" keys --steps 9 --resume "$folder/keys/checkpoint.safetensors" --subdivisions 1
expect 'other passes are said' grep -q 'warning: .*was trained with --subdivisions 3, now it is 1' "$folder/err"

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
