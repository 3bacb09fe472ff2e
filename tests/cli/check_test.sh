#!/usr/bin/env bash
# check: any partition computes what one tile computes; where it does not, the exit code is 1.
. tests/cli/support/harness.sh

# equal RANKS ARGUMENT...: check passes, and says so.
equal() {
  local ranks=$1
  shift
  works "$ranks" check "$@"
  expect 'the partition is equal to one tile' grep -qx equal "$folder/out"
}

equal 1 models/lenet5.cfg
equal 3 models/lenet5.cfg --grid 1x3
equal 3 models/lenet5.cfg --grid 3x1 --groups 0-3,4-7 --data-parallel-from 4
equal 4 models/lenet5.cfg --grid 2x2 --groups 0-1,2-3 --reader 1
equal 4 models/lenet5.cfg --filter-parallel-from 2
equal 5 models/lenet5.cfg --grid 2x2 --batch 3 --seed 7
equal 1 models/lenet5.cfg --grid 1x1 --groups 0-1,2-3,4-7 --recompute all
equal 4 models/fashion-resnet.cfg --grid 2x2 --groups 0-4,5-8 --data-parallel-from 9 --recompute 0-4,5-8
equal 4 models/lenet5.cfg --grid 2x2 --size 29x31

# Rounded gradients are not what one tile computes, and nobody is told that they are.
works 1 plan models/lenet5.cfg --grid 2x2 --gradient-precision half --save "$folder/half.toml"
run 4 check models/lenet5.cfg --partition "$folder/half.toml"
expect_refusal 'compares exact numbers, but the partition reduces gradients in half precision'

equal 2 models/fashion-resnet.cfg --grid 2x1
equal 4 models/fashion-resnet.cfg --grid 2x2 --groups 0-4,5-7
equal 4 models/fashion-resnet.cfg --grid 2x2 --groups 0-4,5-8 --data-parallel-from 9
equal 3 models/fashion-resnet.cfg --data-parallel-from 0 --batch 2
equal 6 models/yolov2-early.cfg --size 96x96 --grid 2x3 --groups 0-3,4-7,8-15 --batch 1
equal 4 models/yolov2-early.cfg --size 96x96 --grid 2x2 --groups 0-3,4-7,8-15 --batch 1 --kernels winograd
equal 2 models/lenet5.cfg --grid 1x2 --batch 1 --kernels reference
# Depthwise convolutions, and shifts whose gradient is nothing but rounding: the next normalisation takes them out again.
equal 4 models/mobilenetv2.cfg --size 64x64 --grid 2x2
equal 4 models/yolov2-early-plain.cfg --size 64x64 --grid 2x2 --groups 0-7,8-15 --batch 1

# beyond_bounds RANKS ARGUMENT...: check finds a difference, says where, and ends with code 1.
beyond_bounds() {
  run "$1" check "${@:2}"
  expect 'a difference ends with exit code 1' test "$status" -eq 1
  expect 'the partition is not equal to one tile' grep -qx 'NOT EQUAL: beyond the bounds' "$folder/out"
  expect 'a tensor is named that differs' grep -qE '^  (layers\.[0-9]|output|input).* BEYOND BOUNDS$' "$folder/out"
}

# The gradient of the first layer's bias is zero but for rounding: the normalisation takes the bias out again.
cat >"$folder/zero-gradient.cfg" <<'MODEL'
[net]
height=89
width=1
channels=3

[convolutional]
filters=33
size=3
stride=3
pad=1
activation=linear

[avgpool]

[connected]
output=13
activation=swish
batch_normalize=1

[softmax]
MODEL
for seed in 1 2 3 4 5 6; do
  equal 4 "$folder/zero-gradient.cfg" --grid 2x2 --seed "$seed"
done

# Sums in a different order differ by 1e-16 of the mean; where a map varies by 1e-9 of it alone, and nothing is added to the
# variance, that is no rounding any more.
cat >"$folder/unstable.cfg" <<'MODEL'
[net]
height=16
width=14
channels=3
batch_norm_epsilon=1e-30

[upsample]
stride=1
scale=1e-9

[convolutional]
filters=8
activation=logistic

[convolutional]
batch_normalize=1
filters=8
activation=linear
MODEL
sed '/^scale=/d' "$folder/unstable.cfg" >"$folder/stable.cfg"
equal 1 "$folder/unstable.cfg"
equal 4 "$folder/stable.cfg" --grid 2x2
beyond_bounds 2 "$folder/unstable.cfg" --grid 2x1
beyond_bounds 4 "$folder/unstable.cfg" --grid 2x2 --seed 3
