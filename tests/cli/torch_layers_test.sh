#!/usr/bin/env bash
# The layers of bench/torch_layers.py, by which benches build networks in PyTorch, compute what this program does; left out where
# python3-torch is not installed.
. tests/cli/support/harness.sh

/usr/bin/python3 -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' || exit 77
torch_step=bench/peers/torch_step.py

# torch ARGUMENT...: sets status; what it prints is in $folder/out and $folder/err.
torch() {
  command_line="$torch_step $*"
  status=0
  timeout "$time_limit" /usr/bin/python3 "$torch_step" "$@" >"$folder/out" 2>"$folder/err" </dev/null || status=$?
}

torch models/yolox-nano.cfg --size 64x64 --batch 2 --check "$TESSERA"
expect 'a detector with three heads is the same' test "$status" -eq 0
expect 'it has as many parameters' grep -q ' 912159 parameters$' "$folder/out"

# Every kind and key that is not in that one.
cat >"$folder/kinds.cfg" <<'END'
[net]
height=24
width=30
channels=4
batch_norm_epsilon=1e-2
batch_norm_rate=0.3
[convolutional]
batch_normalize=1
filters=8
size_y=3
size_x=5
stride_x=2
padding_y=2
padding_x=0
padding_end_y=1
padding_end_x=3
activation=mish
[convolutional]
filters=8
size=3
pad=1
dilation=3
groups=2
activation=tanh
[shortcut]
from=-2
alpha=0.5
beta=2
activation=leaky
[maxpool]
size=3
stride_x=2
stride_y=1
padding_y=3
padding_x=1
[deconvolutional]
batch_normalize=1
filters=6
size_y=4
size_x=3
stride=3
padding_y=2
padding_x=0
padding_end_y=0
padding_end_x=-1
activation=elu
[deconvolutional]
filters=6
size=3
stride=2
padding=1
padding_end=2
activation=ramp
[convolutional]
filters=4
size=5
stride=5
activation=hard_sigmoid
[maxpool]
maxpool_depth=1
out_channels=3
[avgpool]
[convolutional]
filters=3
[scale_channels]
from=-3
activation=relu6
[sam]
from=-1
activation=hard_mish
[convolutional]
filters=18
activation=hard_swish
[shortcut]
from=6
activation=silu
[reorg]
reverse=1
stride=3
[route]
layers=-1,-1
groups=2
group_id=1
[upsample]
stride=3
mode=bilinear
scale=1.5
[channel_shuffle]
[reorg]
stride=1
[maxpool]
size=2
stride=2
[dropout]
[connected]
output=10
batch_normalize=1
activation=gelu
[connected]
output=5
activation=relu
[softmax]
END
torch "$folder/kinds.cfg" --batch 5 --check "$TESSERA"
expect 'all kinds of layers are the same' test "$status" -eq 0

printf '[net]\nheight=8\nwidth=8\nchannels=3\n[local]\nfilters=2\n' >"$folder/other.cfg"
torch "$folder/other.cfg" --check "$TESSERA"
expect 'a kind that is not there is refused' grep -qxF '[local] is not supported here' "$folder/err"
