#!/usr/bin/env bash
# Multi-scale training (`random` of a head, --multi-scale): the same on any ranks and after resuming, tested at the configured size, planned for
# the largest one; what has one size only is refused.
. tests/cli/support/harness.sh

cd "$folder" || exit
works 1 make-detection-set set --pictures 40 --size 64x64 --seed 5
cat >m.cfg <<'EOM'
[net]
height=48
width=48
channels=3
batch=8
subdivisions=2
learning_rate=0.002
[convolutional]
batch_normalize=1
filters=8
size=3
stride=4
pad=1
activation=leaky
[maxpool]
size=2
stride=2
[convolutional]
filters=16
size=3
pad=1
activation=leaky
[upsample]
stride=2
[route]
layers=-1,0
[convolutional]
filters=30
size=1
activation=linear
[yolo]
mask=0,1
anchors=10,14, 25,23
classes=10
num=2
iou_thresh=.3
random=1
EOM
sizes() { grep -oE '^\{"step":[0-9]+,"loss"|"size":"[0-9x]+"' "$1/metrics.jsonl" | paste -sd ' ' | sed 's/{"step":/\n/g' | sed 's/,"loss"//' | awk 'NF'; }

train() {
  local ranks=$1 run=$2
  shift 2
  works "$ranks" train m.cfg --data set/detection.data --run "$run" --seed 3 --monitor off --checkpoint-every 5 "$@"
}

train 1 one --steps 60
expect 'sizes are said' grep -qE '^multi-scale: inputs from 40x40 to 72x72 \([0-9]+ sizes\), another one every 10 steps; up to .* of memory on rank 0$' out
expect 'nothing is ignored' test "$(grep -c 'random' err)" -eq 0
sizes one >of-one
expect 'the first ten steps are the largest' test "$(head -10 of-one | grep -c '"size":"72x72"')" -eq 10
expect 'other sizes follow' test "$(grep -oE '"size":"[0-9x]+"' of-one | sort -u | wc -l)" -ge 3
expect 'a size lasts for ten steps' test "$(awk '{print int(($1 - 1) / 10), $2}' of-one | sort -u | wc -l)" -eq 6
same_memory() {
  python3 - "$1" <<'PY'
import json, sys
use = json.load(open(sys.argv[1] + "/memory.json"))
for rank in use["ranks"]:
    planned, measured = rank["planned"], rank["measured"]
    for what in ("activations", "weights"):
        assert planned[what] == measured[what], (what, planned, measured)
PY
}

# Any partition, one truth.
train 3 three --steps 60 --grid 3x1 --groups 0-1
train 4 four --steps 60 --grid 2x2 --reader 0
train 4 copies --steps 60 --replicas 2 --grid 1x2
for run in three four copies; do
  sizes "$run" >of-run
  expect "$run: the same sizes" same_bytes of-one of-run
  expect "$run: the same losses" same_losses one "$run" 2e-3
done

# Bit for bit, also where a size has begun.
train 4 resumed --steps 25 --grid 2x2 --reader 0
train 4 resumed --steps 60 --resume resumed/checkpoint.safetensors --grid 2x2 --reader 0
expect 'resumed: the same losses' same_losses four resumed 0
expect 'resumed: the same checkpoint' same_bytes four/checkpoint.safetensors resumed/checkpoint.safetensors
for how in memory off "$folder/kept"; do
  train 2 "cached-${how##*/}" --steps 30 --grid 1x2 --cache "$how" --force
done
for how in off kept; do
  expect "--cache $how: the same losses" same_losses cached-memory "cached-$how" 0
done

# What is tested is of the configured size: eval says the same.
map50() { grep -oE '"map50":[0-9.e-]+' "$1" | tail -1; }
works 1 eval m.cfg --data set/detection.data --weights one/checkpoint.safetensors --json
expect 'eval agrees with the test in training' test "$(map50 out | cut -c 1-14)" = "$(map50 one/metrics.jsonl | cut -c 1-14)"
works 1 report one
works 1 top --once one

# Off; a factor; and what a run to resume had.
train 1 off --steps 20 --multi-scale off
expect 'off: one size' test "$(grep -c '"size"' off/metrics.jsonl)" -eq 0
sed '/^random/d' m.cfg >plain.cfg
works 1 train plain.cfg --data set/detection.data --run plain --seed 3 --monitor off --steps 20
expect 'off: as without the key' same_losses off plain 0
works 1 train plain.cfg --data set/detection.data --run factor --seed 3 --monitor off --steps 20 --multi-scale 1.2
expect 'a factor counts without the key' grep -q '^multi-scale: inputs from 48x48 to 64x64' out
works 1 train plain.cfg --data set/detection.data --run factor --seed 3 --monitor off --steps 40 --resume factor/checkpoint.safetensors
expect 'that is said' grep -q 'was trained with --multi-scale 1.2, plain.cfg says random=0: it goes on with 1.2' err
expect 'a run that goes on keeps it' grep -q '^multi-scale: inputs from 48x48 to 64x64' out
works 1 train plain.cfg --data set/detection.data --run factor --monitor off --steps 45 --resume factor/checkpoint.safetensors --multi-scale off
expect 'another factor is warned of' grep -q 'was trained with --multi-scale 1.2, now it is off' err
refused_alone '--multi-scale' train m.cfg --data set/detection.data --run bad --steps 2 --multi-scale 0.5
sed 's/^width=48/&\nresize_step=24/' m.cfg >coarse.cfg
works 1 plan coarse.cfg
expect 'sides are multiples of resize_step' grep -q '^multi-scale: inputs from 48x48 to 96x96' out

# Plans.
works 1 plan m.cfg --grid 2x2
expect 'a plan says the largest' grep -qE '^multi-scale: inputs from 40x40 to 72x72 .* up to .* of memory on rank [0-3], about [0-9.]+ m?s for a step on average .predicted.$' out
works 1 plan m.cfg --partition auto --ranks 4 --json
expect 'so does its JSON' grep -qE '"multi_scale":\{"factor":1.4,"sizes":\["40x40",.*"72x72"\],"memory_bytes":\[[0-9]+,[0-9]+,[0-9]+,[0-9]+\],"mean_step_s":[0-9.e-]+\}' out

# What cannot be had.
python3 - <<'PY'
text = open("m.cfg").read()
begin, end = text.index("[upsample]"), text.index("[convolutional]\nfilters=30")
open("dense.cfg", "w").write(text[:begin] + "[local]\nfilters=30\nsize=1\nactivation=leaky\n" + text[end:])
PY
refused_alone 'layer 3 \(local): it has weights for each place of its input' train dense.cfg --data set/detection.data --run bad --steps 2
works 1 train dense.cfg --data set/detection.data --run dense --steps 2 --monitor off --multi-scale off
run 4 train m.cfg --data set/detection.data --run bad --steps 20 --grid 4x1 --multi-scale 6
expect_refusal 'multi-scale training at 16x16: .* are empty .*--multi-scale off'
run 1 plan m.cfg --partition auto --ranks 2 --memory-limit 1
expect 'a plan that does not fit says so' test "$status" -eq 3
expect 'and at which size' grep -q 'the largest of multi-scale training' <<<"$(tr -s '\n ' ' ' <out)"
run 2 train m.cfg --data set/detection.data --run bad --steps 20 --partition auto --rebalance
expect_refusal '--rebalance compares the time of steps'
refused_alone '--multi-scale is for detectors' train "$models/lenet5.cfg" --data set/detection.data --run bad --steps 2 --multi-scale 1.4
for run in one four; do
  expect "$run: memory is planned for the largest" same_memory "$run"
done
