#!/usr/bin/env bash
# time: a table for people, JSON of exactly the documented form for programs.
. tests/cli/support/harness.sh

number='[0-9.eE+-]+'
form='^\{"step_s":\{"median":N,"min":N,"max":N\},"forward_s":N,"backward_s":N,"update_s":N,"exchange_s":N,"gflops":N,"peak_bytes":\[P\]\}$'
form=${form//N/$number}

# add_up FILE KEY: of an object in a line of JSON, step_s is the sum of the others, none of which is negative.
add_up() {
  grep -oE "\"$2\":\{[^}]*\}" "$1" | sed 's/.*{//; s/}//' | awk -F '[:,]' '
    { for (i = 1; i < NF; i += 2) { if ($i == "\"step_s\"") step = $(i + 1); else { sum += $(i + 1); bad += $(i + 1) < 0 } } }
    END { exit !(NR == 1 && step > 0 && bad == 0 && sum > 0.999999 * step && sum < 1.000001 * step) }'
}

works 1 time models/lenet5.cfg --steps 2 --batch 4
expect 'the table has a median' grep -q 'median' "$folder/out"
works 1 time models/lenet5.cfg --steps 2 --batch 4 --threads 1 --json
expect 'JSON has exactly these keys' grep -qxE "${form/P/[0-9]+}" "$folder/out"
works 4 time models/lenet5.cfg --grid 2x2 --steps 3 --batch 4 --json
expect 'memory is that of each rank' grep -qxE "${form/P/[0-9]+(,[0-9]+)\{3\}}" "$folder/out"
# A network without a loss, of another size; fewer images than ranks.
works 4 time models/yolov2-early.cfg --size 64x96 --grid 2x2 --groups 0-7 --steps 1 --json
works 3 time models/yolov2-early-plain.cfg --size 64x64 --data-parallel-from 0 --batch 2 --steps 1 --json
expect 'it is JSON' valid_json "$folder/out"

# Where the time went: parts that add up, beside what was predicted where a profile says what the devices can do.
works 4 time models/yolov2-early.cfg --size 64x64 --grid 2x2 --steps 2 --parts
expect 'no profile, no prediction' grep -qE '^ +measured, ms$' "$folder/out"
works 4 time models/yolov2-early.cfg --size 64x64 --grid 2x2 --steps 2 --parts --cluster hostfiles/pi3x4.cluster.toml
expect 'the table has both' grep -qE '^exchange of maps( +[0-9.]+){2}$' "$folder/out"
works 4 time models/yolov2-early.cfg --size 64x64 --grid 2x2 --steps 2 --parts --cluster hostfiles/pi3x4.cluster.toml --json
for parts in parts predicted_parts; do
  expect "$parts add up" add_up "$folder/out" $parts
done
# layers_sum FILE: the layers' means of a line of JSON and the update are most of its computing, and the layers no more than that.
layers_sum() {
  awk 'BEGIN { RS = "[{}\\[\\],]" } /"computing_s"/ { sub(/.*:/, ""); computing = $0 } /"update_s"/ { sub(/.*:/, ""); update = $0 }
    prev ~ /"mean":$/ { in_mean = 3 } in_mean > 0 && /_s":/ { v = $0; sub(/.*:/, "", v); sum += v; --in_mean } { prev = $0 }
    END { exit !(sum > 0 && sum <= 1.001 * computing && sum + update > 0.5 * computing) }' "$1"
}
# By layer, exchanges aside.
works 4 time models/yolov2-early.cfg --size 64x64 --batch 2 --grid 2x2 --groups 0-3,4-11 --recompute 0-3 --steps 2 --layers
expect 'a row per layer' test "$(grep -cE '^ +[0-9]+  (convolutional|maxpool)( +[0-9.]+){6}$' "$folder/out")" = 16
works 4 time models/yolov2-early.cfg --size 64x64 --grid 2x2 --steps 2 --layers --cluster hostfiles/pi3x4.cluster.toml
expect 'with predictions' grep -qE '^ +0  convolutional( +[0-9.]+){9}$' "$folder/out"
works 1 time models/yolov2-early.cfg --size 64x64 --steps 2 --layers --parts --json
expect 'it is JSON' valid_json "$folder/out"
expect 'layers are what is computed' layers_sum "$folder/out"
run 4 time models/lenet5.cfg --steps 1 --parts --cluster hostfiles/pi3x2.cluster.toml
expect_refusal 'it describes 2 devices, there are 4 ranks'

# A trace has an event for each action of the plan's schedule, on every rank.
# The trace on one line.
trace_is_json() { tr -d '\n' <"$folder/trace.json" >"$folder/line.json" && valid_json "$folder/line.json"; }
# actions RANK: how many of the trace.
actions() { grep -cE "\"cat\":\"(compute|start|finish)\",\"ph\":\"X\",\"pid\":$1," "$folder/trace.json"; }
works 2 time models/fashion-resnet.cfg --batch 4 --steps 2 --grid 2x1 --trace "$folder/trace.json"
expect 'the trace is JSON' trace_is_json
works 1 plan models/fashion-resnet.cfg --batch 4 --ranks 2 --grid 2x1 --json
planned=$(grep -oE '"section":"(forward|loss|backward|update)"' "$folder/out" | wc -l)
expect 'the plan has actions' test "$planned" -gt 100
for rank in 0 1; do
  expect "all actions of rank $rank are there" test "$(actions "$rank")" = "$planned"
done
expect 'halos are in flight' grep -qE '"name":"feature map [0-9]+","cat":"in flight","ph":"b"' "$folder/trace.json"
# one_after_the_other FILE: actions of a rank do not overlap; times are in microseconds.
one_after_the_other() {
  awk 'match($0, /"pid":[0-9]+/) { pid = substr($0, RSTART, RLENGTH) } !/"ph":"X"/ { next }
    { ts = $0; sub(/.*"ts":/, "", ts); dur = $0; sub(/.*"dur":/, "", dur)
      bad += ts + 0 < end[pid] - 0.01 || dur + 0 < 0; end[pid] = ts + dur; ++count }
    END { exit !(count > 0 && bad == 0) }' "$1"
}
expect 'actions follow each other' one_after_the_other "$folder/trace.json"
expect 'no profile, no prediction' test "$(grep -c predicted_s "$folder/trace.json")" = 0
works 4 time models/yolov2-early.cfg --size 64x64 --grid 2x2 --steps 1 --cluster hostfiles/pi3x4.cluster.toml --trace "$folder/trace.json"
expect 'with a profile, every action has its predicted seconds' test \
  "$(grep -cE '"ph":"X".*"predicted_s":[0-9.e+-]+\}' "$folder/trace.json")" = "$(grep -c '"ph":"X"' "$folder/trace.json")"
expect 'predictions are not 0' grep -qE '"name":"forward 0".*"predicted_s":(0\.0*[1-9]|[1-9])' "$folder/trace.json"
works 1 time models/lenet5.cfg --batch 2 --steps 1 --trace "$folder/trace.json"
expect 'a trace of one rank is JSON' trace_is_json
refused 'cannot be written' time models/lenet5.cfg --steps 1 --trace "$folder/none/trace.json"
