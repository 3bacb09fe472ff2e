#!/usr/bin/env bash
# Model files that cannot be used are refused on all ranks, with file and line.
. tests/cli/support/harness.sh

# make_model: standard input behind a [net] of 28x28 grey pictures, as model.cfg; its first line is line 6.
make_model() { { printf '[net]\nheight=28\nwidth=28\nchannels=1\nbatch=4\n'; cat; } >"$folder/model.cfg"; }

refused 'missing\.cfg: .*(no such|not there)' check "$folder/missing.cfg"
refused 'folder' check models

: >"$folder/empty.cfg"
refused 'empty\.cfg' check "$folder/empty.cfg"

head -c 300 models/lenet5.cfg >"$folder/truncated.cfg"
refused 'truncated\.cfg:[0-9]+: ' check "$folder/truncated.cfg"

head -c 4000 /dev/urandom >"$folder/noise.cfg"
refused 'noise\.cfg:[0-9]*:? ' check "$folder/noise.cfg"

printf '[net]\nheight=28\nwidth=28\nchannels=1\n' >"$folder/model.cfg"
refused 'model\.cfg:1: .*layers' check "$folder/model.cfg"

printf '[convolutional]\nfilters=4\n' >"$folder/model.cfg"
refused 'model\.cfg:1: .*\[net\]' check "$folder/model.cfg"

make_model <<<$'[convolutional]\nfilters=-4\nsize=3'
refused 'model\.cfg:[67]: .*filters=-4' check "$folder/model.cfg"

make_model <<<$'[convolutional]\nfilters=four\nsize=3'
refused 'model\.cfg:7: ' check "$folder/model.cfg"

make_model <<<$'[convolutional]\nfilters=4\nsize=99999999999999999999'
refused 'model\.cfg:8: ' check "$folder/model.cfg"

# More weights than any machine holds.
make_model <<<$'[convolutional]\nfilters=2000000000\nsize=28'
refused 'model\.cfg:[67]: ' check "$folder/model.cfg"

# A window that lies wholly outside the picture.
make_model <<<$'[convolutional]\nfilters=4\nsize=31\npadding=0\nactivation=linear'
refused 'model\.cfg:6: ' check "$folder/model.cfg"

make_model <<<$'[convolutional]\nfilters=4\nsize=1\npadding=2\nactivation=linear'
refused 'model\.cfg:6: .*wholly' check "$folder/model.cfg"

make_model <<<$'[convolutional]\nfilters=4\nsize=3\nactivation=wobbly'
refused 'model\.cfg:9: .*wobbly' check "$folder/model.cfg"

make_model <<<$'[wobble]\nfilters=4'
refused 'model\.cfg:6: .*wobble' check "$folder/model.cfg"

make_model <<<$'[convolutional]\nfilters=4\n[shortcut]\nfrom=-7'
refused 'model\.cfg:[89]: ' check "$folder/model.cfg"

make_model <<<$'[convolutional]\nfilters=4\n[route]\nlayers=1'
refused 'model\.cfg:[89]: ' check "$folder/model.cfg"

# Nothing to train by.
make_model <<<$'[convolutional]\nfilters=4\nactivation=linear'
make_digits "$folder" 20 10
refused 'model\.cfg: .*loss' train "$folder/model.cfg" --data "$folder" --run "$folder/run" --steps 2
expect 'a refused run leaves no folder behind' test ! -e "$folder/run"

# A length is wanted: here or in the model.
make_model <<<$'[connected]\noutput=10\nactivation=linear\n[softmax]'
refused 'model\.cfg: .*--steps' train "$folder/model.cfg" --data "$folder" --run "$folder/run"

# An output for each class: the layer to change is named.
make_model <<<$'[convolutional]\nfilters=10\nsize=3\nstride=2\nactivation=linear\n[softmax]'
refused 'has 10 classes, .*model\.cfg gives 10x13x13 = 1690 outputs: put an \[avgpool\] before layer 1 \(\[softmax\], line 11\)' \
  train "$folder/model.cfg" --data "$folder" --run "$folder/run" --steps 2
make_model <<<$'[convolutional]\nfilters=4\nsize=3\nactivation=linear\n[dropout]\n[softmax]'
refused 'gives 4x26x26 = 2704 outputs: set filters=10 in layer 0 \(\[convolutional\], line 6\), and put an \[avgpool\]' \
  train "$folder/model.cfg" --data "$folder" --run "$folder/run" --steps 2
make_model <<<$'[connected]\noutput=9\nactivation=linear\n[softmax]\n[cost]'
refused 'gives 9 outputs: set output=10 in layer 0 \(\[connected\], line 6\)' \
  train "$folder/model.cfg" --data "$folder" --run "$folder/run" --steps 2
# Outputs to spare may be meant.
make_model <<<$'[connected]\noutput=12\nactivation=linear\n[softmax]\n[cost]'
works 2 train "$folder/model.cfg" --data "$folder" --run "$folder/run" --steps 2 --no-eval
expect 'outputs to spare are said' test "$(grep -c 'warning: .*has 10 classes, .* gives 12 outputs: set output=10 in layer 0 (\[connected\], line 6)' "$folder/err")" -eq 1
works 1 check-data "$folder" --model "$folder/model.cfg"
expect 'and found by check-data' grep -q 'gives 12 outputs: set output=10' "$folder/out"
rm -r "$folder/run"

# Steps past the end of the schedule learn nothing, which is said.
{ printf '[net]\nheight=28\nwidth=28\nchannels=1\nbatch=4\npolicy=poly\nmax_batches=3\n[connected]\noutput=10\nactivation=linear\n[softmax]\n'; } >"$folder/poly.cfg"
works 2 train "$folder/poly.cfg" --data "$folder" --run "$folder/run" --steps 5 --no-eval
expect 'a rate of 0 is said' test "$(grep -c 'warning: .*poly\.cfg: the learning rate is 0 from step 3 to the last, 5' "$folder/err")" -eq 1
works 1 train "$folder/poly.cfg" --data "$folder" --run "$folder/on-time" --steps 3 --no-eval
expect 'but not within the schedule' test "$(grep -c 'learning rate' "$folder/err")" -eq 0
rm -r "$folder/run" "$folder/on-time"

# Keys of Darknet that are not supported: refused where they would change what is computed, or training.
for key in share_index=2 antialiasing=1 batch_normalize=2 binary=1; do
  make_model <<<$'[convolutional]\nfilters=4\n'$key
  refused "model\\.cfg:8: .*$key" check "$folder/model.cfg"
done
make_model <<<$'[dropout]\ndropblock=1'
refused 'model\.cfg:7: .*dropblock=1: not supported' check "$folder/model.cfg"
for key in cutmix=1 mosaic=1 label_smooth_eps=0.1; do
  printf '[net]\nheight=8\nwidth=8\nchannels=1\n%s\n[convolutional]\n' "$key" >"$folder/model.cfg"
  refused "model\\.cfg:5: \\[net\\] $key: not supported, and it changes training" plan "$folder/model.cfg"
done
printf '[net]\nheight=8\nwidth=8\nchannels=1\ncutmix=0\nlearning_rat=3\n[convolutional]\nFilters=3\n' >"$folder/model.cfg"
works 1 plan "$folder/model.cfg"
for warning in ':6: \[net\] learning_rat: unknown .*did you mean `learning_rate`' ':8: .* Filters: unknown .*did you mean `filters`'; do
  expect "it warns of $warning" grep -q "warning: .*$warning" "$folder/err"
done
make_model <<<'[convolution]'
refused 'model\.cfg:6: \[convolution\] .*did you mean `convolutional`' check "$folder/model.cfg"
make_model <<<'[lstm]'
refused 'model\.cfg:6: \[lstm\] is a layer of Darknet that this program does not train' check "$folder/model.cfg"

# Unknown keys are warned of once, with file and line.
make_model <<<$'[convolutional]\nfilters=4\nwobble=1\nactivation=linear'
works 4 check "$folder/model.cfg"
expect 'one warning of an unknown key' test "$(grep -c 'warning: .*model.cfg:8: .*wobble' "$folder/err")" -eq 1

# The other commands read the same file in the same way.
for command in plan time; do
  run 1 "$command" "$folder/missing.cfg"
  expect_refusal 'missing\.cfg: '
done
