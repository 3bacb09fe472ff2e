#!/usr/bin/env bash
# train --rebalance: another partition, while training goes on, where devices are not as fast as their profile says.
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 160 40

# cluster SLOWNESS...: a profile of devices that compute so many times as long as the first, on fast links.
cluster() {
  local device=0 slowness
  printf '[link]\nlatency_s = 1e-5\nbytes_per_s = 1e10\n'
  for slowness in "$@"; do
    printf '\n[[device]]\nnames = ["pi%d"]\nmemory_bytes = 1000000000\nmessage_s = 1e-6\n' "$device"
    awk -v s="$slowness" 'BEGIN {
      printf "memory_bytes_per_s = %g\ncopied_bytes_per_s = 1e10\nsend_bytes_per_s = 1e10\nreceive_bytes_per_s = 1e10\ndirect_flops_per_s = %g\nwinograd_flops_per_s = %g\nupdated_weights_per_s = %g\n",
        1e10 / s, 2e10 / s, 4e10 / s, 1e9 / s
      split("normalize activate pool elementwise", passes)
      for (i = 1; i in passes; ++i) printf "%s_bytes_per_s = { forward = %g, backward = %g }\n", passes[i], 4e9 / s, 2e9 / s
    }'
    device=$((device + 1))
  done
}

steps=3000
train=(train models/lenet5.cfg --data "$data" --batch 30 --steps "$steps" --no-eval --seed 3 --progress none)
balanced=(--partition auto --rebalance --rebalance-every 1)

# The second device of the profile is said to be four times as slow as the first; here both are alike.
cluster 1 4 >"$folder/wrong.toml"
works 2 "${train[@]}" --run "$folder/run" --cluster "$folder/wrong.toml" "${balanced[@]}"
expect 'it says why it goes on by another partition' grep -q 'another partition: pi[01] takes .* times as long as profiled' "$folder/out"
expect 'which is an event' grep -q '"kind":"rebalance"' "$folder/run/events.jsonl"
expect 'every step was done once' test "$(grep -c '"loss"' "$folder/run/metrics.jsonl")" -eq "$steps"
cp "$folder/run/partition.toml" "$folder/after.toml"
works 1 plan models/lenet5.cfg --partition auto --cluster "$folder/wrong.toml" --batch 30 --save "$folder/before.toml"
different() { ! cmp -s "$1" "$2"; }
expect 'the run keeps the partition that it ended with' different "$folder/before.toml" "$folder/after.toml"
works 1 "${train[@]}" --run "$folder/one"
# losses RUN: of its first 200 steps.
losses() { sed -n 's/.*"step":\([0-9]*\),.*"loss":\([0-9.e-]*\).*/\1 \2/p' "$1/metrics.jsonl" | head -200; }
same_losses() {
  paste <(losses "$1") <(losses "$2") | awk '{ d = $2 - $4; if ($1 != $3 || d > 1e-3 || d < -1e-3) bad = 1 } END { exit bad || NR != 200 }'
}
expect 'and learns what one device learns' same_losses "$folder/run" "$folder/one"

# What cannot be.
run 2 "${train[@]}" --run "$folder/no" --grid 1x2 --rebalance
expect_refusal '--rebalance finds partitions as --partition auto does: give that, too'
run 2 "${train[@]}" --run "$folder/no" --partition auto --rebalance-every 5
expect_refusal '--rebalance'
