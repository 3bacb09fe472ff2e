#!/usr/bin/env bash
# balance: which samples to move between devices before training.
. tests/cli/support/harness.sh

cat >"$folder/two.cluster.toml" <<'PROFILE'
[link]
latency_s = 0
bytes_per_s = 1000
[[device]]
names = ["left", "right"]
memory_bytes = 1000000000
program_bytes = 1000000
message_s = 0
memory_bytes_per_s = inf
copied_bytes_per_s = inf
send_bytes_per_s = 1000
receive_bytes_per_s = 1000
direct_flops_per_s = 1000000000
winograd_flops_per_s = 1000000000
updated_weights_per_s = inf
normalize_bytes_per_s = { forward = inf, backward = inf }
activate_bytes_per_s = { forward = inf, backward = inf }
pool_bytes_per_s = { forward = inf, backward = inf }
elementwise_bytes_per_s = { forward = inf, backward = inf }
PROFILE
cluster=(--cluster "$folder/two.cluster.toml")

# json KEY: a number of the JSON that was printed.
json() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$folder/out"; }

# 100 samples of 10 bytes on one of two equal devices, 0.1 s each: half of them move in 0.5 s.
works 1 balance "${cluster[@]}" --samples 100,0 --sample-bytes 10 --epochs 4 --seconds-per-sample 0.1,0.1 --json
expect 'half of the samples move' grep -q '"moves":\[\[0,1,50\]\]' "$folder/out"
expect 'moving takes what the link takes' test "$(json t_move_s)" = 0.5
expect 'an epoch takes what a device takes for its samples' test "$(json t_epoch_s)" = 5.0
expect 'the total is of moving and all epochs' test "$(json total_s)" = 20.5
expect 'nothing is better' test "$(json lower_bound_s)" = 20.5

works 1 balance "${cluster[@]}" --samples 100,0 --sample-bytes 10 --epochs 4 --seconds-per-sample 0.1,0.1 --json --method greedy
expect 'greedy finds it, too' test "$(json total_s)" = 20.5

# By the speed of the model: equal devices share equally.
works 1 balance models/lenet5.cfg "${cluster[@]}" --samples 90,10 --sample-bytes 1 --epochs 100 --out "$folder/map.toml"
expect 'both methods are compared' test "$(grep -cE '^(exact|greedy|no moves) ' "$folder/out")" -eq 3
expect 'moves are named by device' grep -qx 'left -> right: 40 samples' "$folder/out"
expect 'the map has the last samples' test "$(grep -E '^(samples|from|to|begin|end) ' "$folder/map.toml" | tr '\n' ';')" = \
  'samples = [90, 10];from = 0;to = 1;begin = 50;end = 90;'

works 1 balance "${cluster[@]}" --samples 100,0 --sample-bytes 10 --epochs 4 --seconds-per-sample 0.1,0.1 --capacity 100,20 --json
expect 'a device holds no more than it can' grep -q '"moves":\[\[0,1,20\]\]' "$folder/out"

works 1 balance "${cluster[@]}" --samples 0,0 --sample-bytes 10 --epochs 4 --seconds-per-sample 1,1
works 1 balance "${cluster[@]}" --samples 0,0 --sample-bytes 10 --epochs 4 --seconds-per-sample 1,1 --json
expect 'without samples nothing moves' grep -q '"moves":\[\]' "$folder/out"

# Whole shards: of 110 samples two shards of 40 could move, and one is better.
works 1 balance "${cluster[@]}" --samples 110,0 --sample-bytes 10 --epochs 4 --seconds-per-sample 0.1,0.1 --shard-size 40 --json
expect 'whole shards move' grep -q '"moves":\[\[0,1,40\]\]' "$folder/out"
expect 'and are the best there is' test "$(json lower_bound_s)" = "$(json total_s)"

# Classes: each device gets of each class what it is of all samples.
printf 'device,cat,dog\nleft,100,0\nright,0,100\n' >"$folder/classes.csv"
by_class=(balance "${cluster[@]}" --sample-bytes 10 --epochs 4 --seconds-per-sample 0.1,0.1 --classes "$folder/classes.csv")
run 1 "${by_class[@]}" --class-tolerance 0 --json --out "$folder/classes.toml"
if grep -q 'Clp, which solves' "$folder/err"; then
  echo 'without Clp: --classes is not tested'
else
  expect 'classes can be balanced' test "$status" -eq 0
  expect 'classes are exchanged' grep -q '"moves":\[\[0,1,50\],\[1,0,50\]\]' "$folder/out"
  expect 'and named' grep -q '"class_moves":\[\[0,1,"cat",50\],\[1,0,"dog",50\]\]' "$folder/out"
  expect 'what that costs is said' test "$(json total_without_classes_s)" = 40.0
  expect 'the map has classes' test "$(grep -E '^(samples|from|to|class|begin|end) ' "$folder/classes.toml" | tr '\n' ';')" = \
    'samples = [100, 100];from = 0;to = 1;class = "cat";begin = 50;end = 100;from = 1;to = 0;class = "dog";begin = 50;end = 100;'
  works 1 "${by_class[@]}" --class-tolerance 0
  expect 'shares of classes are said' grep -qx 'shares of classes differ from those of all samples by up to 100 % now, 0 % when moved' "$folder/out"
  refused '--method greedy knows nothing of classes' "${by_class[@]}" --method greedy
fi
refused 'classes.csv' balance "${cluster[@]}" --sample-bytes 10 --epochs 4 --seconds-per-sample 1,1 --classes "$folder/missing-classes.csv"
refused '--samples: other numbers than --classes has' "${by_class[@]}" --samples 99,100
printf 'device,cat\nmiddle,1\n' >"$folder/wrong.csv"
refused 'wrong.csv:2: there is no device middle' balance "${cluster[@]}" --sample-bytes 10 --epochs 4 --seconds-per-sample 1,1 --classes "$folder/wrong.csv"
refused '--classes' "${by_class[@]}" --shard-size 10

given=(balance "${cluster[@]}" --sample-bytes 10 --epochs 4)
refused 'give --samples, or --classes' "${given[@]}" --seconds-per-sample 1,1
refused 'give either MODEL, whose training time is predicted, or --seconds-per-sample' "${given[@]}" --samples 1,2
refused 'give either MODEL' "${given[@]}" --samples 1,2 --seconds-per-sample 1,1 models/lenet5.cfg
refused '--samples: 3 numbers, and the cluster has 2 devices' "${given[@]}" --samples 1,2,3 --seconds-per-sample 1,1
refused '--seconds-per-sample: 1 numbers, and the cluster has 2 devices' "${given[@]}" --samples 1,2 --seconds-per-sample 1
refused 'the devices can hold 5 samples together, and there are 10' "${given[@]}" --samples 10,0 --seconds-per-sample 1,1 --capacity 2,3
refused '"-1" is not an integer from 0' "${given[@]}" --samples=-1,2 --seconds-per-sample 1,1
refused '"0" is not a number from' "${given[@]}" --samples 1,2 --seconds-per-sample 0,1
refused 'is not a number from' balance "${cluster[@]}" --sample-bytes nan --epochs 4 --samples 1,2 --seconds-per-sample 1,1
refused 'missing.toml: ' balance --cluster missing.toml --sample-bytes 1 --epochs 4 --samples 1,2 --seconds-per-sample 1,1
refused 'nowhere' "${given[@]}" --samples 1,2 --seconds-per-sample 1,1 --out "$folder/nowhere/map.toml"
