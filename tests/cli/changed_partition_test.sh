#!/usr/bin/env bash
# A supervised run whose partition changes while it trains: trials of `choose`, of different sets of devices. Ranks are killed at
# moments between; what they keep is laid out by each partition anew, and each step is done once.
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 160 40
{
  printf '[link]\nlatency_s = 1e-5\nbytes_per_s = 1e10\n'
  for device in 0 1 2; do
    printf '\n[[device]]\nnames = ["pi%d"]\nmemory_bytes = 1000000000\nmessage_s = 1e-6\nmemory_bytes_per_s = 1e10\ncopied_bytes_per_s = 1e10\n' "$device"
    printf 'send_bytes_per_s = 1e10\nreceive_bytes_per_s = 1e10\ndirect_flops_per_s = 2e10\nwinograd_flops_per_s = 4e10\nupdated_weights_per_s = 1e9\n'
    for pass in normalize activate pool elementwise; do printf '%s_bytes_per_s = { forward = 4e9, backward = 2e9 }\n' "$pass"; done
  done
} >"$folder/cluster.toml"
steps=400
training=(models/lenet5.cfg --data "$data" --batch 30 --steps "$steps" --no-eval --seed 3 --progress none)
works 1 train "${training[@]}" --run "$folder/one"

export TESSERA_TEST=$folder
ranks_of_run() {
  local pid
  for pid in $(pgrep -f "^$TESSERA choose"); do
    [[ $(tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null) == *"TESSERA_TEST=$folder"* ]] && echo "$pid"
  done
  return 0
}
steps_done() { losses "$folder/run" | wc -l; } 2>/dev/null
# at_step STEP: once that step is done.
at_step() {
  local end=$((SECONDS + 60))
  until [ "$(steps_done)" -ge "$1" ]; do
    [ "$SECONDS" -lt "$end" ] || { fail "step $1 was not reached"; return 1; }
    sleep 0.01
  done
}
# kill_a_rank STEP: whichever the step draws; where those of before are gone, once there are others.
kill_a_rank() {
  local end=$((SECONDS + 60)) rank=
  until rank=$(ranks_of_run | shuf -n 1 --random-source=<(yes "$1")) && [ -n "$rank" ] && kill -9 "$rank" 2>/dev/null; do
    [ "$SECONDS" -lt "$end" ] && kill -0 "$supervised" 2>/dev/null || return 1
    sleep 0.01
  done
}
command_line='tessera run -n 3 -- choose ...'
timeout -k 5 240 "$TESSERA" run -n 3 -- choose "${training[@]}" --run "$folder/run" --cluster "$folder/cluster.toml" --objective time --try-all \
  --checkpoint-every 100000 >"$folder/out" 2>"$folder/err" </dev/null &
supervised=$!
kills=0
for step in 4 8 13 19 26 34 60; do
  at_step "$step" || break
  kill_a_rank "$step" && kills=$((kills + 1))
done
status=0
wait "$supervised" || status=$?
expect 'it ends well' test "$status" -eq 0
expect 'partitions were tried' test "$(grep -c '"kind":"choose"' "$folder/run/events.jsonl")" -ge 1
expect 'ranks were killed meanwhile' test "$kills" -ge 5
expect 'no more than one step was repeated at a time' test -z "$(grep '"kind":"recovery"' "$folder/run/events.jsonl" | grep -v '"repeated_steps":[01]}')"
expect 'each step is there once, with the loss of one device' same_losses "$folder/one" "$folder/run" 0.01
