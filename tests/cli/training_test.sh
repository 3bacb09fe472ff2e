#!/usr/bin/env bash
# train: the loss falls, and is the same however the network is cut and whoever reads the pictures.
# shellcheck disable=SC2016 # the $ are those of sed, awk and perl
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 200 50

# train RANKS RUN MODEL ARGUMENT...
train() {
  local ranks=$1 run=$2 model=$3
  shift 3
  works "$ranks" train "$model" --data "$data" --run "$folder/$run" --batch 20 --no-eval "$@"
}

# lenet NAME RANKS ARGUMENT...: 50 steps with these arguments have the losses of one rank.
lenet() {
  local run=$1 ranks=$2
  shift 2
  train "$ranks" "$run" models/lenet5.cfg --steps 50 --schedule-steps 200 "$@" &&
    expect "$run has the losses of one rank" same_losses "$folder/one" "$folder/$run" 1e-3
}

works 1 train models/lenet5.cfg --data "$data" --run "$folder/one" --batch 20 --steps 50 --schedule-steps 200
expect 'there is a loss for each step' test "$(losses "$folder/one" | wc -l)" -eq 50
expect 'the loss falls by half' awk 'NR == 1 { first = $2 } { last = $2 } END { exit !(last < first / 2) }' <(losses "$folder/one")
expect 'what is learnt holds for other pictures' awk -v accuracy="$(accuracy "$folder/one")" 'BEGIN { exit !(accuracy > 0.5) }'
expect 'there is a line for each step and evaluation' test "$(grep -c '^step\|^epoch' "$folder/out")" -eq 55
expect 'the metrics are JSON' valid_json "$folder/one/metrics.jsonl"
for key in step loss learning_rate step_s images_per_s; do
  expect "each step has $key" test "$(grep -c "\"$key\":" "$folder/one/metrics.jsonl")" -ge 50
done

# Figures: an epoch that ends within a step, and what was sent.
works 4 train models/lenet5.cfg --data "$data" --run "$folder/figures" --batch 30 --steps 16 --grid 2x2
expect 'epochs are whole' test "$(sed -n 's/^\(epoch .*\): test .*/\1/p' "$folder/out" | paste -sd ,)" = 'epoch 1 (7 steps),epoch 2 (14 steps),epoch 3 (16 steps)'
expect 'so they are in the table' test "$(sed 1d "$folder/figures/epochs.csv" | cut -d, -f1,2 | paste -sd ' ')" = '1,7 2,14 3,16'
expect 'a speed says of how many steps it is' grep -qE '^step +16/16 .* images/s \(16 steps\)' "$folder/out"
said=$(sed -n 's/^messages sent: //p' "$folder/out")
expect 'what was sent is said at the end' grep -qE '^[0-9.]+ MiB in 16 steps by 4 ranks: [0-9.]+ [KM]iB per step, at most [0-9.]+ [KM]iB of it by one rank$' <<<"$said"
works 1 report "$folder/figures"
expect 'and in the report alike' grep -qF "<td class=\"text\">$said</td>" "$folder/figures/report.html"
works 1 train models/lenet5.cfg --data "$data" --run "$folder/alone" --batch 30 --steps 2 --no-eval
expect 'a rank alone sends nothing, and nothing is said' test "$(grep -c '^messages sent' "$folder/out")" -eq 0
expect 'memory.json is JSON' valid_json "$folder/one/memory.json" whole

lenet again 1
expect 'the same again gives the same checkpoint' same_bytes "$folder/one/checkpoint.safetensors" "$folder/again/checkpoint.safetensors"
lenet grid-2x2 4 --grid 2x2
lenet grid-2x2-again 4 --grid 2x2
expect 'so do tiles' same_bytes "$folder/grid-2x2/checkpoint.safetensors" "$folder/grid-2x2-again/checkpoint.safetensors"
lenet grid-1x3 3 --grid 1x3 --groups 0-3
lenet grid-3x1 3 --grid 3x1 --groups 0-1,2-3
lenet data-parallel 3 --data-parallel-from 0
lenet data-parallel-tail 4 --grid 2x2 --data-parallel-from 2
lenet filter-parallel 4 --filter-parallel-from 2
lenet reader-0 4 --grid 2x2 --reader 0
lenet reader-2 4 --grid 2x2 --reader 2
expect 'who reads changes nothing' same_bytes "$folder/reader-0/checkpoint.safetensors" "$folder/grid-2x2/checkpoint.safetensors"
lenet subdivisions 4 --grid 2x2 --subdivisions 2
lenet idle 5 --grid 2x2
expect 'idle ranks are warned of' grep -q 'warning: 1 of 5 ranks have no tile' "$folder/err"

# Pictures that are mirrored by chance are mirrored in the same way in however many passes.
sed 's/^flip=0/flip=1/' models/lenet5.cfg >"$folder/mirrored.cfg"
train 1 mirrored "$folder/mirrored.cfg" --steps 10
train 2 mirrored-passes "$folder/mirrored.cfg" --steps 10 --subdivisions 5
expect 'they have the losses of one pass' same_losses "$folder/mirrored" "$folder/mirrored-passes" 1e-4
train 1 upright models/lenet5.cfg --steps 10
expect 'and others than pictures that are not mirrored' bash -c "! cmp -s <(cut -d, -f2 '$folder/mirrored/metrics.jsonl') <(cut -d, -f2 '$folder/upright/metrics.jsonl')"

# Gradients and values that travel rounded: other losses, and as good ones.
train 4 half models/lenet5.cfg --steps 50 --schedule-steps 200 --grid 2x2 --gradient-precision half
expect 'rounded gradients have nearly the losses of one rank' same_losses "$folder/one" "$folder/half" 2e-2
expect 'the run keeps how gradients are reduced' grep -qx 'precision = "half"' "$folder/half/partition.toml"
train 1 half-alone models/lenet5.cfg --steps 50 --schedule-steps 200 --gradient-precision half
expect 'one rank rounds nothing' same_bytes "$folder/one/checkpoint.safetensors" "$folder/half-alone/checkpoint.safetensors"

# Fewer images than ranks.
few=(train models/lenet5.cfg --data "$data" --batch 2 --steps 10 --no-eval)
works 1 "${few[@]}" --run "$folder/few-one"
works 4 "${few[@]}" --run "$folder/few-four" --data-parallel-from 0
expect 'two images on four ranks have the losses of one rank' same_losses "$folder/few-one" "$folder/few-four" 1e-3

# Cuts that a person wrote: gradients summed inside a group, uneven tiles, one of them empty.
works 1 plan models/fashion-resnet.cfg --grid 2x2 --groups 0-4,5-7 --batch 20 --save "$folder/saved.toml"
sed -e 's/^layers = \[0, 4\]/&\ncollapse = [1, 3]/' -e '0,/^rows = 2/s//rows = [0, 5, 14]/' -e '0,/^cols = 2/s//cols = [0, 14, 14]/' \
  "$folder/saved.toml" >"$folder/edited.toml"
averaging=$folder/averaging.cfg
sed 's/^channels=1$/&\nema_alpha=0.9/' models/fashion-resnet.cfg >"$averaging"
train 1 resnet-one "$averaging" --steps 15
train 4 resnet-edited models/fashion-resnet.cfg --steps 15 --partition "$folder/edited.toml"
expect 'an edited partition has the losses of one rank' same_losses "$folder/resnet-one" "$folder/resnet-edited" 1e-3
expect 'the run keeps the partition' grep -q '^collapse = \[1, 3\]' "$folder/resnet-edited/partition.toml"
works 4 train "$averaging" --data "$data" --run "$folder/resnet-2x2" --batch 20 --steps 15 --grid 2x2 --reader 1
expect 'so does 2x2' same_losses "$folder/resnet-one" "$folder/resnet-2x2" 1e-3

# Averages over steps, which change no loss, are alike, and what is tested and used.
averages() { perl "$support/compare_tensors.pl" "$folder/$1/checkpoint.safetensors" "$folder/$2/checkpoint.safetensors" "$3" '^ema\.layers\.'; }
expect 'averages of four ranks are those of one' averages resnet-one resnet-2x2 1e-3
works 1 eval "$averaging" --data "$data" --weights "$folder/resnet-2x2/checkpoint.safetensors" --json
expect 'eval finds what the test in training did' test \
  "$(grep -oE '"loss":[0-9]+\.[0-9]{0,4}' "$folder/out")" = "$(sed -n 's/.*"test_loss":\([0-9]*\.[0-9]\{0,4\}\).*/"loss":\1/p' "$folder/resnet-2x2/metrics.jsonl" | tail -n 1)"
tested=$(grep -oE '"loss":[0-9.]{0,6}' "$folder/out")
works 1 eval "$averaging" --data "$data" --weights "$folder/resnet-edited/checkpoint.safetensors" --json
expect 'and something else of the weights themselves' test "$(grep -oE '"loss":[0-9.]{0,6}' "$folder/out")" != "$tested"

# Memory is as it was planned: what the network takes within 5 %. The program itself takes more or less with the MPI library
# and how it communicates; its plan is within 10 % and 5 MiB of that.
UCX_TLS=tcp,self train 4 without-shared-memory models/lenet5.cfg --steps 2 --grid 2x2
for run in one grid-2x2 half data-parallel filter-parallel resnet-edited resnet-2x2 without-shared-memory; do
  expect "the memory of $run is as planned" perl -0777 -ne '
    while (/"planned": \{.*?"program": (\d+).*?"total": (\d+).*?"measured": \{.*?"program": (\d+).*?"total": (\d+)/gs) {
      $ranks++;
      $bad = 1 if abs(($2 - $1) - ($4 - $3)) > 0.05 * ($2 - $1) || $3 > 1.1 * $1 || $1 > $3 + (5 << 20);
    }
    exit($bad || !$ranks)' "$folder/$run/memory.json"
done

# Steps past the schedule's end, where the learning rate is 0, are warned of before the first.
sed '/^burn_in=/d' models/lenet5.cfg >"$folder/cold.cfg"
short=(train "$folder/cold.cfg" --data "$data" --batch 20 --no-eval --progress none)
works 2 "${short[@]}" --steps 12 --schedule-steps 8 --run "$folder/past"
expect 'steps without a rate are warned of' grep -qE \
  'warning: .*cold\.cfg: the learning rate is 0 from step 8 to the last, 12: .*--schedule-steps 12' "$folder/err"
works 1 "${short[@]}" --steps 8 --schedule-steps 8 --run "$folder/until"
expect 'the end of the schedule itself is not' test ! -s "$folder/err"
