#!/usr/bin/env bash
# Results have the same bits whatever the cache that kernels work for: outputs and gradients of layers that are larger than its parts, on
# one thread and on three.
. tests/cli/support/harness.sh

cat >"$folder/net.cfg" <<'EOM'
[net]
height=96
width=88
channels=3
[convolutional]
batch_normalize=1
filters=48
size=3
pad=1
activation=leaky
[convolutional]
batch_normalize=1
filters=64
size=3
pad=1
activation=leaky
[convolutional]
filters=40
size=1
activation=leaky
[convolutional]
filters=24
size=5
stride=2
pad=1
activation=leaky
EOM
perl "$support/make_tensors.pl" "$folder/in.safetensors" input:2,3,96,88 output_gradient:2,24,48,44 layers.0.weight:48,3,3,3 layers.0.bias:48 \
  layers.0.bn.scale:48 layers.0.bn.mean:48 layers.0.bn.variance:48 layers.1.weight:64,48,3,3 layers.1.bias:64 layers.1.bn.scale:64 \
  layers.1.bn.mean:64 layers.1.bn.variance:64 layers.2.weight:40,64,1,1 layers.2.bias:40 layers.3.weight:24,40,5,5 layers.3.bias:24

# gradients VECTORS THREADS
gradients() {
  export TESSERA_VECTORS=$1 OMP_NUM_THREADS=$2
  works 1 gradients "$folder/net.cfg" --in "$folder/in.safetensors" --out "$folder/$1-$2.safetensors"
}

gradients generic 1
for threads in 1 3; do
  gradients cortex-a53 "$threads"
  expect "with blocks for a Cortex-A53 on $threads threads bits differ" cmp -s "$folder/generic-1.safetensors" "$folder/cortex-a53-$threads.safetensors"
done
works 1 plan "$folder/net.cfg"
expect 'one of the layers is computed by Winograd' grep -q 'winograd4 for layer' "$folder/out"
