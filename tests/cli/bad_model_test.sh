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

# Unknown keys are warned of once, with file and line.
make_model <<<$'[convolutional]\nfilters=4\nwobble=1\nactivation=linear'
works 4 check "$folder/model.cfg"
expect 'one warning of an unknown key' test "$(grep -c 'warning: .*model.cfg:8: .*wobble' "$folder/err")" -eq 1

# The other commands read the same file in the same way.
for command in plan time; do
  run 1 "$command" "$folder/missing.cfg"
  expect_refusal 'missing\.cfg: '
done
