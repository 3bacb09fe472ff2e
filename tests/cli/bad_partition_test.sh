#!/usr/bin/env bash
# Grids, groups and partition files that fit neither model nor ranks are refused; strange ones that make sense work.
# shellcheck disable=SC2016 # the $ are those of sed, awk and perl
. tests/cli/support/harness.sh

model=models/lenet5.cfg

for grid in 0x2 2x 2 x2 2x2x2 -1x2 2X2 'two by two' 99999999999x1 ''; do
  refused '^tessera: --grid: ' check "$model" "--grid=$grid"
done
refused '^tessera: --grid: 100x100 needs 10000 ranks, there are [14]: .*mpiexec\.mpich -n 10000' check "$model" --grid 100x100
run 3 check "$model" --grid 2x2
expect_refusal '^tessera: --grid: 2x2 needs 4 ranks, there are 3'
for groups in 0-3,5-7 1-3 3-0 0-99 a-b '0-3,' 0-4; do
  refused '^tessera: --groups: ' check "$model" --groups "$groups" --grid 1x1 --data-parallel-from 4
done
for groups in 0-1 9 a-b all,0 '0-3,'; do
  refused '^tessera: --recompute: ' check "$model" --groups 0-3 --recompute "$groups" --grid 1x1
done
refused '^tessera: --data-parallel-from: ' check "$model" --data-parallel-from 9
refused '^tessera: --filter-parallel-from: ' check "$model" --filter-parallel-from 9
refused '^tessera: --filter-parallel-from: ' check "$model" --filter-parallel-from 4 --data-parallel-from 4
for reader in 4 -1 x ''; do
  refused '^tessera: --reader' check "$model" "--reader=$reader"
done
refused '^tessera: --size: .*224x224' check "$model" --size 28
refused '^tessera: --size 3x3: layer 2 \(convolutional\): ' check "$model" --size 3x3

# Partition files.
partition=$folder/partition.toml
works 1 plan "$model" --grid 2x2 --save "$partition"
works 4 check "$model" --partition "$partition"
run 1 check "$model" --partition "$partition"
expect_refusal 'partition\.toml: .*4 ranks, there are 1: .*mpiexec\.mpich -n 4'
run 3 check "$model" --partition "$partition"
expect_refusal 'partition\.toml: .*4 ranks, there are 3'
refused 'partition\.toml: .*another network' check models/fashion-resnet.cfg --partition "$partition"
refused 'missing\.toml: ' check "$model" --partition "$folder/missing.toml"
refused 'models: ' check "$model" --partition models
refused 'excludes' check "$model" --partition "$partition" --grid 2x2

# edited SED: the partition file after an edit by hand.
edited() { sed "$1" "$partition" >"$folder/edited.toml"; }
for edit in 's/^network = .*/network = = 1/' 's/^ranks = 4/ranks = four/' 's/^ranks = 4$/ranks = -4/' 's/^\[\[group\]\]/[group]/' 's/^rows/rosw/' \
  's/^rows = 2/rows = 3/' 's/^layers = \[0, 0\]/layers = [0, 99]/' 's/^layers = \[1, 1\]/layers = [1]/' 's/ranks = \[0, 1, 2, 3\]/ranks = [0, 1, 2, 2]/' \
  's/ranks = \[0, 1, 2, 3\]/ranks = [0, 1, 2, 9]/' 's/^rows = 2/rows = [0, 14, 29]/' 's/^rows = 2/rows = [0, 20, 10, 28]/' '/^network/d' '$d'; do
  edited "$edit"
  refused 'edited\.toml:?[0-9]*: ' check "$model" --partition "$folder/edited.toml"
done
head -c 1000 /dev/urandom >"$folder/edited.toml"
refused 'edited\.toml:?[0-9]*: ' check "$model" --partition "$folder/edited.toml"
: >"$folder/edited.toml"
refused 'edited\.toml:?[0-9]*: ' check "$model" --partition "$folder/edited.toml"

# More tiles than rows: some are empty.
works 5 check "$model" --grid 5x1 --groups 0-3
works 7 check "$model" --grid 7x1 --groups 0-3 --data-parallel-from 4 --batch 3
expect 'the two agree' grep -q '^equal$' "$folder/out"

# More ranks and layers than a plan is made for are refused at once, by number.
time_limit=30
sed 's/^ranks = 4$/ranks = 10000/' "$partition" >"$folder/edited.toml"
refused_alone 'edited\.toml: .*10000 ranks|10000 ranks' plan "$model" --partition "$folder/edited.toml"
sed 's/^ranks = 4$/ranks = 1000000/' "$partition" >"$folder/edited.toml"
refused_alone 'edited\.toml:[0-9]+: `ranks` is 1000000, expected 1 to 10000' plan "$model" --partition "$folder/edited.toml"
refused_alone '10000 ranks would take minutes' plan "$model" --grid 100x100 --ranks 10000
{ sed -n '1,/^ranks/p' "$partition"; perl -e 'print "[[group]]\nlayers = [$_, $_]\nranks = [0]\n" for 0 .. 19999'; } >"$folder/edited.toml"
refused_alone 'edited\.toml: ' plan "$model" --partition "$folder/edited.toml"
{ sed -n '1,/^ranks/p' "$partition"; perl -e 'print "[[group]]\nlayers = [0, 7]\nranks = [", join(", ", 0 .. 99999), "]\n"'; } >"$folder/edited.toml"
refused_alone 'edited\.toml: ' plan "$model" --partition "$folder/edited.toml"
layers() { printf '[net]\nheight=8\nwidth=8\nchannels=4\n'; perl -e 'print "[convolutional]\nfilters=4\n"; print "$ARGV[1]\n" x $ARGV[0]' "$@"; }
for section in '[convolutional]' $'[shortcut]\nfrom=0' $'[route]\nlayers=0'; do
  layers 20000 "$section" >"$folder/deep.cfg"
  refused_alone 'deep\.cfg:[0-9]+: .*5000 layers' plan "$folder/deep.cfg"
done
layers 2000 '[convolutional]' >"$folder/deep.cfg"
works 1 plan "$folder/deep.cfg"
refused_alone 'expected at most 1500 layers' plan "$folder/deep.cfg" --partition auto --ranks 2
printf '[net]\nheight=400000\nwidth=400000\nchannels=3\nbatch=1048576\n[convolutional]\nfilters=3\n' >"$folder/large.cfg"
refused_alone 'more than any machine' plan "$folder/large.cfg"

# Numbers of a profile beyond any machine are refused with the range.
for edit in 's/^memory_bytes = .*/memory_bytes = 9223372036854775807/' 's/^memory_bytes = .*/memory_bytes = -1/' 's/^direct_flops_per_s = .*/direct_flops_per_s = 1e308/' \
  's/^send_bytes_per_s = .*/send_bytes_per_s = nan/' 's/^send_bytes_per_s = .*/send_bytes_per_s = -inf/' 's/^message_s = .*/message_s = 1e308/' \
  's/^program_bytes = .*/program_bytes = 9223372036854775807/' 's/^updated_weights_per_s = .*/updated_weights_per_s = 9223372036854775807/'; do
  sed "$edit" hostfiles/pi3x2.cluster.toml >"$folder/profile.toml"
  refused_alone 'profile\.toml:[0-9]+: `.*` is .*, expected [0-9]' plan "$model" --partition auto --cluster "$folder/profile.toml"
done
