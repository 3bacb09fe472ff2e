#!/usr/bin/env bash
# gradients: the vector-Jacobian product from file to file is the same under any partition and in both precisions.
. tests/cli/support/harness.sh

cat >"$folder/net.cfg" <<'EOM'
[net]
height=12
width=10
channels=3
[convolutional]
batch_normalize=1
filters=8
size=3
pad=1
activation=leaky
[maxpool]
size=2
stride=2
padding=0
[convolutional]
filters=6
size=3
stride=2
pad=1
groups=2
activation=tanh
[connected]
output=5
activation=linear
[softmax]
EOM
perl "$support/make_tensors.pl" "$folder/in.safetensors" input:4,3,12,10 output_gradient:4,5,1,1 layers.0.weight:8,3,3,3 layers.0.bias:8 \
  layers.0.bn.scale:8 layers.0.bn.mean:8 layers.0.bn.variance:8 layers.2.weight:6,4,3,3 layers.2.bias:6 layers.3.weight:5,54 layers.3.bias:5
gradients=(gradients "$folder/net.cfg" --in "$folder/in.safetensors")

# same NAME NAME TOLERANCE
same() { perl "$support/compare_tensors.pl" "$folder/$1.safetensors" "$folder/$2.safetensors" "$3"; }

for precision in single double; do
  for mode in sync frozen; do
    case $precision in single) bound=1e-5 ;; double) bound=1e-12 ;; esac
    both=(--precision "$precision" --batch-norm "$mode")
    works 1 "${gradients[@]}" "${both[@]}" --out "$folder/one.safetensors"
    works 4 "${gradients[@]}" "${both[@]}" --out "$folder/tiles.safetensors" --grid 2x2
    expect "2x2 tiles give the gradients of one tile ($precision, $mode)" same one tiles "$bound"
    works 3 "${gradients[@]}" "${both[@]}" --out "$folder/tiles.safetensors" --grid 3x1 --groups 0-2,3
    expect "fused 3x1 tiles do ($precision, $mode)" same one tiles "$bound"
    works 3 "${gradients[@]}" "${both[@]}" --out "$folder/tiles.safetensors" --data-parallel-from 0
    expect "shared-out images do ($precision, $mode)" same one tiles "$bound"
    cp "$folder/one.safetensors" "$folder/$precision-$mode.safetensors"
  done
done
expect 'single precision is near double' same single-sync double-sync 1e-4
expect 'frozen statistics are another function' test "$(same double-sync double-frozen 1e-3 | wc -l)" -gt 3

# Every tensor that belongs there, under its own name.
header=$(head -c 2000 "$folder/double-sync.safetensors" | tr -d '\0')
for name in output input_gradient layers.0.weight layers.0.bias layers.0.bn.scale layers.0.bn.mean layers.0.bn.variance layers.2.weight \
  layers.2.bias layers.3.weight layers.3.bias; do
  expect "there is $name" grep -aq "\"$name\"" <<<"$header"
done

# Without --grid it is one tile, whatever the ranks.
works 4 "${gradients[@]}" --precision double --out "$folder/idle.safetensors"
expect 'idle ranks are warned of' grep -q 'warning: 3 of 4 ranks' "$folder/err"
expect 'one tile among idle ranks' same_bytes "$folder/idle.safetensors" "$folder/double-sync.safetensors"

refused 'no/such/out\.safetensors: ' "${gradients[@]}" --out "$folder/no/such/out.safetensors"
perl "$support/make_tensors.pl" "$folder/bad.safetensors" input:4,3,12,11 output_gradient:4,5,1,1
refused "bad\.safetensors: tensor 'input' has shape \(4, 3, 12, 11\)" gradients "$folder/net.cfg" --in "$folder/bad.safetensors" \
  --out "$folder/out.safetensors"
perl "$support/make_tensors.pl" "$folder/bad.safetensors" input:4,3,12,10 output_gradient:4,5,1,1
refused "bad\.safetensors: tensor 'layers\.0\.[a-z.]*' is missing" gradients "$folder/net.cfg" --in "$folder/bad.safetensors" \
  --out "$folder/out.safetensors"
expect 'nothing is written where it is refused' test ! -e "$folder/out.safetensors"

# Of a network with several ends, without a gradient for them, the maps of all: nothing else.
cat >"$folder/ends.cfg" <<'EOM'
[net]
height=12
width=10
channels=3
[convolutional]
filters=4
activation=linear
[convolutional]
filters=2
activation=linear
[route]
layers=0
[convolutional]
filters=3
stride=2
activation=relu
EOM
perl "$support/make_tensors.pl" "$folder/ends.safetensors" input:2,3,12,10 layers.0.weight:4,3,1,1 layers.0.bias:4 layers.1.weight:2,4,1,1 \
  layers.1.bias:2 layers.3.weight:3,4,1,1 layers.3.bias:3
works 1 gradients "$folder/ends.cfg" --in "$folder/ends.safetensors" --out "$folder/one.safetensors"
works 4 gradients "$folder/ends.cfg" --in "$folder/ends.safetensors" --out "$folder/tiles.safetensors" --grid 2x2
expect 'outputs are those of one tile' same one tiles 1e-5
names=$(head -c 1000 "$folder/one.safetensors" | grep -aoE '"(output|input|layers)[^"\\]*":' | sort | tr -d '\n')
expect "each end has its output ($names)" test "$names" = '"output.1":"output.3":'
