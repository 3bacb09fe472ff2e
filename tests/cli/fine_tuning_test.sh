#!/usr/bin/env bash
# train --freeze: layers that stay as they are cost no gradients, and a run that goes on keeps them. --patience ends a run in order.
# shellcheck disable=SC2016 # the $ are those of sed, awk and perl
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 60 20
resnet=models/fashion-resnet.cfg
training=(--data "$data" --batch 10 --progress none)

# tensors FILE: the names of what it holds.
tensors() { perl -0777 -ne 'print "$1\n" while /"([^"]+)":\{"dtype"/g' "$1"; }
# same_tensors FILE FILE TOLERANCE PATTERN
same_tensors() { perl "$support/compare_tensors.pl" "$@"; }

# A trunk, then what learns behind it: the trunk's weights and statistics are the same bits, and there is no state of it.
works 1 train "$resnet" "${training[@]}" --steps 6 --no-eval --run "$folder/trunk"
trunk=$folder/trunk/checkpoint.safetensors
for ranks in 1 4; do
  works "$ranks" train "$resnet" "${training[@]}" --steps 6 --weights "$trunk" --freeze 4 --run "$folder/fine-$ranks" --no-eval
  tuned=$folder/fine-$ranks/checkpoint.safetensors
  expect "$ranks: frozen layers are as they were" same_tensors "$trunk" "$tuned" 0 '^layers\.[0-4]\.'
  expect "$ranks: the others are not" bash -c "! perl '$support/compare_tensors.pl' '$trunk' '$tuned' 0 '^layers\.5\.' >/dev/null"
  expect "$ranks: there is no optimizer state of frozen layers" bash -c "! grep -q '^optimizer\.layers\.[0-4]\.' <<<'$(tensors "$tuned")'"
  expect "$ranks: there is some of the others" grep -qx 'optimizer\.layers\.5\.weight\.first' <<<"$(tensors "$tuned")"
  expect "$ranks: what is frozen is said" grep -q 'layers 0-4 frozen' "$folder/out"
done
expect 'four ranks learn what one does' same_tensors "$folder/fine-1/checkpoint.safetensors" "$folder/fine-4/checkpoint.safetensors" 1e-3 ''
works 1 train models/lenet5.cfg "${training[@]}" --steps 1 --no-eval --freeze 0 --run "$folder/chance"
expect 'frozen weights that nothing has given are warned of' grep -q 'warning: frozen layers keep their random initial weights' "$folder/err"
sed 's/^filters=6$/filters=7/' models/lenet5.cfg >"$folder/seven.cfg"
works 1 train "$folder/seven.cfg" "${training[@]}" --steps 1 --no-eval --freeze 0 --weights "$folder/chance/checkpoint.safetensors" --run "$folder/seven"
expect 'so are those that do not fit' grep -q 'warning: .*layer 0 (convolutional) is frozen and starts from scratch: .*6.*7' "$folder/err"

# The schedule has nothing of them but the forward pass, and memory follows.
works 1 plan "$resnet" --grid 2x2 --freeze 4 --json
expect 'no backward action of a frozen layer' perl -ne '
  my @actions = /(\{"section":[^{}]*\})/g;
  for (@actions) { $bad = 1 if /"section":"backward"/ && /"layer":([0-9]+)/ && $1 <= 4; $forward++ if /"section":"forward"/ && /"layer":[0-4],/ }
  exit($bad || !$forward)' "$folder/out"
expect 'no gradient of a frozen map travels' perl -ne '
  for (/(\{"kind":"map gradient"[^{}]*)/g) { $bad = 1 if /"map":(-?[0-9]+)/ && $1 <= 4 } exit $bad' "$folder/out"
expect 'which layers are frozen' test "$(grep -o '"frozen":true' "$folder/out" | wc -l)" -eq 5
optimizer_bytes() { perl -ne '/"optimizer":(\d+)/ and print $1' "$folder/out"; }
frozen_bytes=$(optimizer_bytes)
works 1 plan "$resnet" --grid 2x2 --json
expect 'less optimizer state' test "$frozen_bytes" -lt "$(optimizer_bytes)"
works 1 plan "$resnet" --grid 2x2 --freeze 4
expect 'the plan says it' grep -qE '^frozen +layers 0-4' "$folder/out"
works 4 check "$resnet" --grid 2x2 --freeze 4
works 4 time "$resnet" --grid 2x2 --freeze 4 --batch 4 --steps 1

# Maps of frozen layers are computed once for each variant of a picture, and no bit is another one: in tiles, by images, from a folder.
kept=("${training[@]}" --steps 20 --weights "$trunk" --freeze 4 --augment-variants 2 --seed 3)
for cut in '--grid 2x2' '--data-parallel-from 0'; do
  # shellcheck disable=SC2086 # several options
  works 4 train "$resnet" "${kept[@]}" --run "$folder/computed" --force --trunk-cache off $cut
  places=(memory)
  [ "$cut" = '--grid 2x2' ] || places+=("$folder/maps" "$folder/maps")
  for how in "${places[@]}"; do
    # shellcheck disable=SC2086 # several options
    works 4 train "$resnet" "${kept[@]}" --run "$folder/kept" --force --trunk-cache "$how" $cut
    expect "$cut, $how: what is kept is said" grep -qE "^maps of the frozen layers are computed once for each picture, in 2 variants, and kept in .*on one rank" "$folder/out"
    for file in checkpoint.safetensors best.safetensors evaluation.json; do
      expect "$cut, $how: the same $file" same_bytes "$folder/computed/$file" "$folder/kept/$file"
    done
  done
done
works 1 train "$resnet" "${training[@]}" --steps 1 --no-eval --weights "$trunk" --freeze 4 --trunk-cache memory --run "$folder/anew"
expect 'what it would gain is said' grep -qE 'frozen layers are computed for every step, since .*--augment-variants N .*times as fast' "$folder/out"
expect 'that it is not used is a warning' grep -q 'warning: --trunk-cache is not used: each epoch shows' "$folder/err"
works 1 plan "$resnet" --grid 2x2 --freeze 4 --pictures 60 --augment-variants 2 --json --cluster hostfiles/pi3x4.cluster.toml
expect 'the plan has what maps take and gain' perl -ne '
  exit !(/"trunk_cache":\{"last_layer":4,"pictures":60,"variants":2,"bytes":\[(?:\d+,?){4}\],"step_s":[^,]+,"given_step_s":[^,]+,"times":(\S+?)\}/ && $1 > 1)' "$folder/out"

# In the model file.
sed '0,/^filters=64$/s//&\nstopbackward=1/' "$resnet" >"$folder/stop.cfg"
works 1 plan "$folder/stop.cfg"
expect 'stopbackward=1 freezes its layer and all before' grep -qE '^frozen +layers 0-5' "$folder/out"
works 1 plan "$folder/stop.cfg" --freeze none
expect '--freeze none undoes it' bash -c "! grep -q '^frozen' '$folder/out'"

# What cannot be frozen.
for command in train plan time check; do
  arguments=()
  [ "$command" != train ] || arguments=(--data "$data" --run "$folder/refused")
  refuse=refused
  [ "$command" != plan ] || refuse=refused_alone
  "$refuse" '--freeze 9: with all layers up to 9 frozen nothing is left to learn: freeze layer 8 at most' "$command" "$resnet" --freeze 9 "${arguments[@]}"
done
refused_alone '--freeze: "conv" is not a layer: .*from 0 to 10.*none' plan "$resnet" --freeze conv
refused_alone '--freeze: "maxpol" is not a layer: .* \(maxpool: 1\)' plan "$resnet" --freeze maxpol
refused_alone '--freeze: "11" is not a layer' plan "$resnet" --freeze 11
refused_alone '--freeze: "-1" is not a layer' plan "$resnet" --freeze=-1

# A run that goes on has the same layers frozen, and is the same bit for bit.
fine=("${training[@]}" --no-eval --seed 5)
works 2 train "$resnet" "${fine[@]}" --steps 8 --weights "$trunk" --freeze 4 --run "$folder/whole"
works 2 train "$resnet" "${fine[@]}" --steps 4 --weights "$trunk" --freeze layers.4 --run "$folder/parts" --schedule-steps 7504
works 2 train "$resnet" "${fine[@]}" --steps 8 --resume "$folder/parts/checkpoint.safetensors" --run "$folder/parts"
expect 'what differs from the model file is said' grep -q 'warning: .*was trained with layers 0 to 4 frozen, .*fashion-resnet.cfg is with no layer frozen: it goes on with layers 0 to 4 frozen' "$folder/err"
expect 'the same checkpoint' same_bytes "$folder/whole/checkpoint.safetensors" "$folder/parts/checkpoint.safetensors"
works 2 train "$resnet" "${fine[@]}" --steps 9 --schedule-steps 7504 --resume "$folder/parts/checkpoint.safetensors" --freeze 4 --run "$folder/parts"
expect 'the same layers are nothing to talk about' test ! -s "$folder/err"
refused 'parts/checkpoint\.safetensors: was trained with layers 0 to 4 frozen, --freeze 2 with layers 0 to 2 frozen: leave out --freeze, or start over .*--weights' \
  train "$resnet" "${fine[@]}" --steps 12 --resume "$folder/parts/checkpoint.safetensors" --freeze 2 --run "$folder/parts"
refused 'trunk/checkpoint\.safetensors: was trained with no layer frozen, --freeze 0 with layer 0 frozen' \
  train "$resnet" "${fine[@]}" --steps 12 --resume "$trunk" --freeze 0 --run "$folder/trunk"

# In the first steps, by the model file.
sed '0,/^filters=64$/s//&\nstopbackward=3/' "$resnet" >"$folder/at-first.cfg"
works 1 plan "$folder/at-first.cfg" --grid 1x2
expect 'the plan says what they take' grep -qE '^steps 1 to 3 of a run: layers 0-5 frozen, about [0-9.]+ m?s for a step .predicted., up to .* of memory' "$folder/out"
cached_bytes() { perl -ne '/"cache":(\d+)/ and print $1' "$folder/out"; }
works 1 plan "$folder/at-first.cfg" --grid 1x2 --freeze 2 --pictures 60 --json
plain_bytes=$(cached_bytes)
works 1 plan "$folder/at-first.cfg" --grid 1x2 --freeze 2 --pictures 60 --augment-variants 50 --json
expect 'no maps are planned to be kept then' test "$plain_bytes" -eq "$(cached_bytes)"
works 2 train "$folder/at-first.cfg" "${fine[@]}" --steps 5 --grid 1x2 --run "$folder/at-first"
expect 'it is said once' test "$(grep -c 'at-first.cfg: stopbackward: layers 0 to 5 frozen in the first 3 steps' "$folder/err")" -eq 1
expect 'and when more layers learn' grep -q 'learning from step 4 on, too: layers 0-5' "$folder/out"
expect 'which is an event' grep -q '"step":3,.*"kind":"unfreeze"' "$folder/at-first/events.jsonl"
expect 'they have learnt' bash -c "grep -q 'optimizer.layers.0.weight.first' '$folder/at-first/checkpoint.safetensors'"
refused 'was trained with layers 0 to 5 frozen in the first 3 steps, --freeze none with no layer frozen: leave out --freeze' \
  train "$folder/at-first.cfg" "${fine[@]}" --steps 9 --resume "$folder/at-first/checkpoint.safetensors" --freeze none --run "$folder/at-first"

# Patience: with a rate of 0 nothing gets better.
sed 's/^learning_rate=.*/learning_rate=0/; /^burn_in=/d' models/lenet5.cfg >"$folder/still.cfg"
patient=(train "$folder/still.cfg" "${training[@]}" --epochs 20 --run "$folder/patient")
for ranks in 1 3; do
  works "$ranks" "${patient[@]}" --force --patience 2 --checkpoint-every 4
  expect "$ranks: three tests, the first the best" test "$(grep -c '"accuracy"' "$folder/patient/metrics.jsonl")" -eq 3
  expect "$ranks: why it ended is said" grep -q 'ended after step 18: the last 2 tests without a better accuracy (--patience)' "$folder/out"
  expect "$ranks: the last weights are saved" grep -q '"step":"18"' "$folder/patient/checkpoint.safetensors"
  expect "$ranks: the best are those of the first test" grep -q '"step":"6"' "$folder/patient/best.safetensors"
done
# A run that goes on remembers how long it has been waiting.
works 1 train "$folder/still.cfg" "${training[@]}" --epochs 3 --run "$folder/waiting"
works 1 train "$folder/still.cfg" "${training[@]}" --epochs 20 --run "$folder/waiting" --patience 3 --resume "$folder/waiting/checkpoint.safetensors"
expect 'one more test was enough' test "$(grep -c '"accuracy"' "$folder/waiting/metrics.jsonl")" -eq 4
refused 'patience.*no-eval|no-eval.*patience' "${patient[@]}" --force --patience 2 --no-eval

# A row per epoch; an evaluation as `eval` has it.
works 2 train models/lenet5.cfg "${training[@]}" --epochs 3 --run "$folder/epochs" --force --grid 1x2
rows() { sed -n '2,$p' "$folder/epochs/epochs.csv"; }
expect 'three rows below their titles' test "$(rows | wc -l)" -eq 3
expect 'titles' grep -qx 'epoch,step,learning_rate,training_loss,test_loss,test_accuracy,seconds,images_per_s,energy_j' "$folder/epochs/epochs.csv"
expect 'the steps are those of the epochs' test "$(rows | cut -d, -f1,2 | paste -sd ' ')" = '1,6 2,12 3,18'
expect 'the loss is the mean of its steps' awk -F '[ ,]' '
  FNR == NR { sum[int(($1 - 1) / 6)] += $2 / 6; next }
  FNR > 1 { if (($4 - sum[FNR - 2])^2 > 1e-10) bad = 1 }
  END { exit bad }' <(losses "$folder/epochs") "$folder/epochs/epochs.csv"
expect 'the accuracy is that of the tests' test "$(rows | tail -n 1 | cut -d, -f6)" = "$(accuracy "$folder/epochs")"
expect 'evaluation.json is JSON' valid_json "$folder/epochs/evaluation.json"
works 1 eval models/lenet5.cfg --data "$data" --weights "$folder/epochs/checkpoint.safetensors" --json
expect 'it begins with when it was' grep -q '^{"step":18,"epoch":3.0,"accuracy":' "$folder/epochs/evaluation.json"
expect 'and goes on as eval does' test "$(grep -o '"confusion":.*' "$folder/epochs/evaluation.json")" = "$(grep -o '"confusion":.*' "$folder/out")"
# Gone on from an earlier step: later rows and the evaluation are dropped.
works 1 train models/lenet5.cfg "${training[@]}" --epochs 1 --run "$folder/again"
cp "$folder/again/checkpoint.safetensors" "$folder/early.safetensors"
works 1 train models/lenet5.cfg "${training[@]}" --epochs 2 --run "$folder/again" --resume "$folder/again/checkpoint.safetensors"
cp "$folder/early.safetensors" "$folder/again/checkpoint.safetensors"
works 1 train models/lenet5.cfg "${training[@]}" --epochs 2 --no-eval --run "$folder/again" --resume "$folder/again/checkpoint.safetensors"
expect 'one row per epoch' test "$(sed -n '2,$p' "$folder/again/epochs.csv" | cut -d, -f1,2 | paste -sd ' ')" = '1,6 2,12'
expect 'the new one without a test' test "$(tail -n 1 "$folder/again/epochs.csv" | cut -d, -f5,6)" = ,
expect 'no evaluation of a step that is to come again' test ! -e "$folder/again/evaluation.json"
