#!/usr/bin/env bash
# --partition auto: a partition found by a search, for plan and for everything that runs under mpiexec.
. tests/cli/support/harness.sh

# cluster FILE DEVICES MEBIBYTES: a profile of devices of which the first is twice as fast as the others.
cluster() {
  local device
  {
    printf '[link]\nlatency_s = 1e-4\nbytes_per_s = 1.25e7\n'
    for ((device = 0; device < $2; ++device)); do
      printf '\n[[device]]\nnames = ["pi%d"]\nmemory_bytes = %d\nmessage_s = 5e-5\n' "$device" $(($3 * 1048576))
      printf 'memory_bytes_per_s = 2e9\ncopied_bytes_per_s = 1e9\nsend_bytes_per_s = 1.25e7\nreceive_bytes_per_s = 1.25e7\n'
      printf '%s_bytes_per_s = { forward = 8e8, backward = 4e8 }\n' normalize activate pool elementwise
      printf 'direct_flops_per_s = %de9\nwinograd_flops_per_s = 9e9\nupdated_weights_per_s = 1e8\n' $((device == 0 ? 8 : 4))
    done
  } >"$1"
}
cluster "$folder/three.toml" 3 900
cluster "$folder/small.toml" 3 40

# total FILE: the most that a rank takes, of plan's JSON.
total() { grep -o '"total":[0-9]*' "$1" | cut -d : -f 2 | sort -n | tail -n 1; }

works 1 plan models/yolov2-early.cfg --partition auto --cluster "$folder/three.toml" --batch 2 --save "$folder/found.toml" --json
expect 'there are as many ranks as the profile has devices' grep -qF '"ranks":3' "$folder/out"
expect 'nothing is assumed' test ! -s "$folder/err"
cp "$folder/out" "$folder/plan.json"
# workspace FILE: the most that a rank takes, of plan's JSON.
workspace() { grep -o '"workspace":[0-9]*' "$1" | cut -d : -f 2 | sort -n | tail -n 1; }
works 1 plan models/yolov2-early.cfg --size 304x304 --partition auto --cluster "$folder/three.toml" --batch 2 --json
expect 'kernels take more scratch than 3 MiB, where they may' test "$(workspace "$folder/out")" -gt $((3 << 20))
works 1 plan models/yolov2-early.cfg --size 304x304 --partition auto --cluster "$folder/three.toml" --batch 2 --json --workspace 3
expect 'they keep to a limit' test "$(workspace "$folder/out")" -le $((3 << 20))
works 1 plan models/yolov2-early.cfg --partition auto --cluster "$folder/three.toml" --batch 2 --save "$folder/again.toml"
expect 'a search finds the same again' same_bytes "$folder/found.toml" "$folder/again.toml"
works 1 plan models/yolov2-early.cfg --partition "$folder/found.toml" --cluster "$folder/three.toml" --batch 2 --json
expect 'what was saved is what was found' same_bytes "$folder/plan.json" "$folder/out"
works 1 plan models/yolov2-early.cfg --partition auto --cluster "$folder/three.toml" --ranks 2 --batch 2 --json
expect 'the first devices of the profile' grep -qF '"ranks":2' "$folder/out"

# A host file with a profile beside it.
printf 'localhost:4\n' >"$folder/hosts"
cp "$folder/three.toml" "$folder/hosts.cluster.toml"
HYDRA_HOST_FILE="$folder/hosts" works 1 plan models/yolov2-early.cfg --partition auto --batch 2 --json
expect 'the profile beside the host file' same_bytes "$folder/plan.json" "$folder/out"

# A thousand devices: what is decided, without the whole plan.
works 1 plan models/yolov2-early.cfg --size 96x96 --partition auto --ranks 1000 --json --save "$folder/thousand.toml"
expect 'it is JSON' valid_json "$folder/out" whole
expect 'memory of each device is estimated' test "$(grep -o '"memory_bytes":\[[^]]*' "$folder/out" | tr , '\n' | wc -l)" -eq 1000
expect 'a step is predicted' grep -qE '"step_s":[0-9]' "$folder/out"
expect 'the partition is saved' grep -q '^ranks = 1000' "$folder/thousand.toml"
works 1 plan models/yolov2-early.cfg --size 96x96 --partition auto --ranks 1000
expect 'it says what it leaves out' grep -q 'memory is estimated' "$folder/out"
refused_alone '1000 ranks would take minutes' plan models/yolov2-early.cfg --size 96x96 --partition auto --ranks 1000 --explain

# Memory: what is planned stays below the limit, and the least is less than the fastest takes.
works 1 plan models/yolov2-early.cfg --partition auto --ranks 4 --batch 2 --json
expect 'it says what it assumes' grep -q 'warning: no cluster profile: equal devices assumed' "$folder/err"
free=$(total "$folder/out")
works 1 plan models/yolov2-early.cfg --partition auto --ranks 4 --batch 2 --objective memory --json
least=$(total "$folder/out")
expect 'the least memory is less than the fastest takes' test "$least" -lt "$free"
limit=$(((free + least) / 2 / 1048576))
works 1 plan models/yolov2-early.cfg --partition auto --ranks 4 --batch 2 --memory-limit "$limit" --json
expect 'a plan under a limit stays below it' test "$(total "$folder/out")" -le $((limit * 1048576))

# Nothing fits: how much is missing, and what would help. The exit code says it where devices or a limit are given.
# misfit PATTERN PLAN_OPTION...: a plan that does not fit, and what its answer says, as one line.
misfit() {
  local pattern=$1
  shift
  run 1 plan models/yolov2-early.cfg "$@"
  expect 'what does not fit has an exit code of its own' test "$status" -eq 3
  expect "the answer says: $pattern" grep -qE -e "$pattern" <<<"$(tr -s '\n ' ' ' <"$folder/out")"
}
misfit '^Fits: no, pi[0-2] \(rank [0-2]\) needs [0-9.]+ MiB, [0-9.]+ MiB more than its 40.0 MiB Planned memory of 40.0 MiB each: pi0 [0-9.]+ MiB, pi1' \
  --cluster "$folder/small.toml" --batch 4
expect 'a search was asked for by the profile alone' grep -q '^Advice: no partition was found that fits into the memory of 3 devices:' "$folder/out"
expect 'and says what would help' grep -qE '(it would fit|neither)' "$folder/out"
misfit 'it would fit with --subdivisions [248] \([1-4] images? per pass\)' --partition auto --ranks 2 --batch 8 \
  --memory-limit $((least * 3 / 2 / 1048576))
misfit '^Fits: no, device[01] .* more than its 30.0 MiB .*Advice: a device has too little memory' --grid 1x2 --memory-limit 30
misfit '"assumed_devices":true' --grid 1x2 --memory-limit 30 --json
expect 'JSON says how much' grep -qE '"fits":false,.*"tightest_rank":[01],"devices":\[\{"name":"device0","needed_bytes":[0-9]+,"limit_bytes":31457280\}' "$folder/out"
expect 'and standard error that it does not fit' grep -q '^tessera: models/yolov2-early.cfg: does not fit' "$folder/err"
works 1 plan models/lenet5.cfg --grid 1x2 --memory-limit 300
expect 'what fits says that, too' grep -q '^Fits: yes, the tightest, device[01] (rank [01]), needs .* MiB of its 300.0 MiB$' "$folder/out"
works 1 plan models/yolov2-early.cfg --grid 1x2 --batch 64
expect 'devices that nobody has described are no error' grep -q '^Fits: no, device' "$folder/out"
expect 'it says which they are' grep -q '^Assumed: 2 devices, each with 860.0 MiB of memory, as fast as a Raspberry Pi 3' "$folder/out"
run 1 plan models/lenet5.cfg --grid 2x2 --objective memory
expect_refusal 'they need --partition auto'
run 1 plan models/lenet5.cfg --partition auto
expect_refusal 'for how many devices\? Give --ranks N'
run 1 plan models/lenet5.cfg --partition auto --ranks 4 --cluster "$folder/three.toml"
expect_refusal 'it describes 3 devices, there are 4 ranks'
run 1 plan models/lenet5.cfg --partition auto --cluster "$folder/missing.toml"
expect_refusal 'missing.toml'
run 1 plan models/lenet5.cfg --partition auto --grid 2x2 --ranks 4
expect 'a grid is no search' test "$status" -eq 2

# Everything that runs on several ranks.
works 3 check models/fashion-resnet.cfg --partition auto --cluster "$folder/three.toml" --batch 4
expect 'what is found computes what one tile does' grep -qx equal "$folder/out"
works 3 time models/fashion-resnet.cfg --partition auto --batch 4 --steps 1
mkdir "$folder/digits"
make_digits "$folder/digits" 40 20
works 3 train models/lenet5.cfg --data "$folder/digits" --partition auto --cluster "$folder/three.toml" --steps 3 --batch 8 --run "$folder/run"
expect 'the prediction stands beside what was measured' grep -qE '^step: predicted [0-9.e-]+ s, measured [0-9.e-]+ s \(median of 3\)$' "$folder/out"
expect 'the run folder has the partition' grep -q '^ranks = 3' "$folder/run/partition.toml"
works 1 plan models/lenet5.cfg --partition auto --cluster "$folder/three.toml" --batch 8 --save "$folder/lenet.toml"
expect 'it is the one that plan finds' same_bytes "$folder/lenet.toml" "$folder/run/partition.toml"
works 3 train models/lenet5.cfg --data "$folder/digits" --partition "$folder/run/partition.toml" --steps 3 --batch 8 --run "$folder/same"
expect 'without a profile there is none' test "$(grep -c predicted "$folder/out")" -eq 0
expect 'its partition gives the same bits again' same_bytes "$folder/run/checkpoint.safetensors" "$folder/same/checkpoint.safetensors"
works 3 eval models/lenet5.cfg --data "$folder/digits" --weights "$folder/run/checkpoint.safetensors" --partition auto --batch 4
run 3 train models/lenet5.cfg --data "$folder/digits" --partition auto --memory-limit 1 --steps 3 --batch 64 --run "$folder/none"
expect_refusal 'no partition was found that fits'

# Why: beside other partitions, and with other numbers of devices.
works 1 plan models/yolov2-early.cfg --partition auto --cluster "$folder/three.toml" --batch 4 --explain
for word in 'chosen' 'next best' 'gradient reduction' 'of which waiting' 'speed-up' 'limited by'; do
  expect "the explanation says '$word'" grep -q -e "$word" "$folder/out"
done
expect 'no line is longer than 100 columns' test "$(sed -n '/Predicted seconds/,$p' "$folder/out" | wc -L)" -le 100
for sync in local:4 parameter-rank:0 gossip; do
  works 1 plan models/lenet5.cfg --ranks 4 --batch 64 --replicas 2 --sync "$sync" --explain
done
works 1 plan models/lenet5.cfg --ranks 4 --batch 64 --explain --json
expect 'synchronising less often is an alternative that is not exact' grep -q '"name":"replicas, --sync local:8",[^}]*"exact":false' "$folder/out"
works 1 plan models/yolov2-early.cfg --grid 1x3 --batch 4 --explain --json
expect 'a grid is explained too, as JSON' valid_json "$folder/out" whole
expect 'it names the baselines' grep -q '"explanation":{"plans":\[{"name":"chosen",.*"name":"next best"' "$folder/out"
expect 'and the numbers of devices' grep -q '"devices":\[{"devices":1,"best":{"step_s"' "$folder/out"
expect 'what is assumed is said once' test "$(grep -c 'equal devices assumed' "$folder/err")" -eq 1

# What is predicted for a partition, however it was chosen.
works 1 plan models/yolov2-early.cfg --grid 1x3 --groups 0-3,4-7 --cluster "$folder/three.toml" --batch 2
expect 'a known cluster has a predicted step' grep -qE '^Predicted step: about [0-9.]+ s, limited by [a-z ]+; [0-9.]+ % of computing redundant$' "$folder/out"
expect 'and what is sent' grep -qE '^Sent in a step: [0-9.]+ [KM]iB in [0-9]+ messages, [0-9.]+ [KM]iB by or to the busiest device$' "$folder/out"
expect 'and how many times faster than one device' grep -qE '^Worth it: yes, about [0-9.]+ times as fast as the best device \(pi0\) alone: about [0-9.]+ s for a step$' "$folder/out"
expect 'on one screen' test "$(wc -l <"$folder/out")" -le 24
works 1 plan models/yolov2-early.cfg --grid 1x3 --groups 0-3,4-7 --cluster "$folder/three.toml" --batch 2 --json
expect 'it is JSON' valid_json "$folder/out" whole
expect 'with messages and bytes' grep -qE '"prediction":\{"step_s":[0-9.e-]+,.*"messages":[1-9][0-9]*,"bytes":[1-9][0-9]*,"busiest_bytes":[1-9]' "$folder/out"
works 1 plan models/yolov2-early.cfg --ranks 2 --partition auto --json 2>/dev/null
prediction() { grep -o '"prediction":{"step_s":[^,]*' "$folder/out"; }
assumed=$(prediction)
works 1 plan models/yolov2-early.cfg --cluster hostfiles/pi3x2.cluster.toml --json
expect 'without a cluster devices are those of hostfiles/' test "$(prediction)" = "$assumed"
works 1 plan models/yolov2-early.cfg --partition auto --cluster "$folder/three.toml" --batch 2 --explain --save-baselines "$folder/baselines"
expect 'each partition that is compared has a file' test "$(cd "$folder/baselines" && echo *)" = 'chosen.toml grid.toml images.toml next-best.toml no-joins.toml one-group.toml'
expect 'the chosen one is the one that was found' same_bytes "$folder/baselines/chosen.toml" "$folder/found.toml"
works 1 plan models/yolov2-early.cfg --partition "$folder/baselines/next-best.toml" --batch 2
run 1 plan models/yolov2-early.cfg --grid 1x3 --save-rivals "$folder/baselines"
expect 'baselines are those of an explanation' test "$status" -eq 2

works 1 plan models/yolov2-early.cfg --scale 8 --batch 4
expect 'a row for each power of two' test "$(grep -cE '^ *[1248] +[0-9.]+ ' "$folder/out")" -eq 4
works 1 plan models/yolov2-early.cfg --scale 4 --size 2048x2048 --batch 4 --json
expect 'an object per line' test "$(grep -cE '^\{"devices":[124],"step_s":.*"planning_s":' "$folder/out")" -eq 3
