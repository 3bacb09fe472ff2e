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

train=(train models/lenet5.cfg --data "$data" --batch 30 --no-eval --seed 3 --progress none)
without_end=("${train[@]}" --steps 10000000 --checkpoint-every 100000)
balanced=(--rebalance --rebalance-every 1)

# These ask about the run in $folder/$name.
steps_done() { losses "$folder/$name" | wc -l; } 2>/dev/null
more_steps_than() { [ "$(steps_done)" -gt "$1" ]; }
has_changed() { grep -q '"kind":"rebalance"' "$folder/$name/events.jsonl"; } 2>/dev/null

# begins NAME COMMAND...: in the background, a run without end in $folder/NAME. ends: tells it to stop, and sets status.
begins() {
  name=$1
  shift
  command_line=$*
  timeout -k 5 400 "$@" --run "$folder/$name" --cluster "$folder/wrong.toml" "${balanced[@]}" >"$folder/out" 2>"$folder/err" </dev/null &
  running=$!
}
ends() {
  status=0
  kill -TERM "$running"
  wait "$running" || status=$?
}
# changes NAME OPTION...: trains on two ranks until the partition has changed, and somewhat longer.
changes() {
  local new_name=$1
  shift
  begins "$new_name" "$MPIEXEC" -n 2 "$TESSERA" "${without_end[@]}" "$@"
  soon has_changed
  soon more_steps_than "$(($(steps_done) + 200))"
  ends
}

# The second device of the profile is said to be four times as slow as the first; here both are alike.
cluster 1 4 >"$folder/wrong.toml"
changes run --partition auto
expect 'it says why it goes on by another partition' grep -q 'another partition: pi[01] takes .* times as long as profiled' "$folder/out"
expect 'which is an event' grep -q '"kind":"rebalance"' "$folder/run/events.jsonl"
expect 'every step was done once' each_step_once "$folder/run"
cp "$folder/run/partition.toml" "$folder/after.toml"
works 1 plan models/lenet5.cfg --partition auto --cluster "$folder/wrong.toml" --batch 30 --save "$folder/before.toml"
different() { ! cmp -s "$1" "$2"; }
expect 'the run keeps the partition that it ended with' different "$folder/before.toml" "$folder/after.toml"
works 1 "${train[@]}" --steps 200 --run "$folder/one"
# learns_the_same RUN: in its first 200 steps, as one device.
learns_the_same() { first_steps 200 "$folder/$1" "$folder/first-of-$1" && same_losses "$folder/first-of-$1" "$folder/one" 1e-3; }
expect 'and learns what one device learns' learns_the_same run

# From a partition file, as a supervised run does on the devices that are left: only rank 0 reads, in any partition that follows.
works 1 plan models/lenet5.cfg --partition auto --cluster "$folder/wrong.toml" --batch 30 --reader 0 --save "$folder/file.toml"
changes from-file --partition "$folder/file.toml"
expect 'a run goes on from the partition of a file' grep -q 'another partition: pi[01] takes .* times as long as profiled' "$folder/out"
expect 'and rank 0 still reads for all' grep -q '^reader = 0' "$folder/from-file/partition.toml"
expect 'and learns what one device learns' learns_the_same from-file

# Under a supervisor: ranks are killed as soon as the partition has changed, and again later. What they keep is laid out by each
# partition anew, so they go on from the last finished step.
export TESSERA_TEST=$folder
ranks_of_run() {
  local pid
  for pid in $(pgrep -f "^$TESSERA train"); do
    [[ $(tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null) == *"TESSERA_TEST=$folder"* ]] && echo "$pid"
  done
  return 0
}
begins supervised "$TESSERA" run -n 2 -- "${without_end[@]}" --partition auto
soon has_changed && kill -9 "$(ranks_of_run | tail -n 1)"
soon more_steps_than "$(($(steps_done) + 50))" && kill -9 "$(ranks_of_run | head -n 1)"
soon more_steps_than "$(($(steps_done) + 200))"
ends
expect 'a supervised run whose partition changes stops when it is told to' test "$status" -eq 143
expect 'its ranks were killed' test "$(grep -c '"kind":"fault"' "$folder/supervised/events.jsonl")" -eq 2
expect 'each step was done once' each_step_once "$folder/supervised"
expect 'and at most one was repeated at a time' test -z "$(grep '"kind":"recovery"' "$folder/supervised/events.jsonl" | grep -v '"repeated_steps":[01]}')"
expect 'it learns what one device learns' learns_the_same supervised

# `tessera run` asks for it by itself, for several devices whose profile a search has cut by. A device that cannot be reached is told
# of the run before that is found out.
cat >"$folder/shell" <<SHELL
#!/bin/sh
head -n 1 >"$folder/hello"
exit 255
SHELL
chmod +x "$folder/shell"
printf 'localhost\n192.0.2.77\n' >"$folder/hosts"
# begun_with HOW OPTION...: what the ranks would train that such a command starts, in $folder/hello; HOW is an option of run, or empty.
begun_with() {
  local how=$1
  shift
  rm -f "$folder/hello"
  run 1 run --hostfile "$folder/hosts" --remote-shell "$folder/shell" ${how:+"$how"} -- "${train[@]}" --steps 9 --run "$folder/no" "$@"
  expect_refusal '192\.0\.2\.77 cannot be reached'
}
rebalances() { grep -q "\"rebalance_window_s\":$1[.,]" "$folder/hello"; } # SECONDS
keeps_partition() { rebalances null; }
begun_with '' --partition auto --cluster "$folder/wrong.toml"
expect 'a run on several devices follows their speed' rebalances 30
begun_with '' --partition auto --cluster "$folder/wrong.toml" --rebalance --rebalance-every 5
expect 'who asks for it is asked once' rebalances 5
begun_with --keep-partition --partition auto --cluster "$folder/wrong.toml"
expect 'not where the partition is to be kept' keeps_partition
begun_with '' --partition auto
expect 'not where nothing is known of the devices' keeps_partition
begun_with '' --grid 1x2 --cluster "$folder/wrong.toml"
expect 'not where the command says how to cut' keeps_partition

# What cannot be.
run 2 "${train[@]}" --steps 9 --run "$folder/no" --grid 1x2 --rebalance
expect_refusal '--rebalance finds partitions as --partition auto does: give that, too, or a partition file'
works 1 plan models/lenet5.cfg --ranks 2 --replicas 2 --batch 30 --save "$folder/replicas.toml"
run 2 "${train[@]}" --steps 9 --run "$folder/no" --partition "$folder/replicas.toml" --rebalance
expect_refusal '--rebalance cannot go on from a partition file with .replicas.'
run 2 "${train[@]}" --steps 9 --run "$folder/no" --partition auto --rebalance-every 5
expect_refusal '--rebalance'
