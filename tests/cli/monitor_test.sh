#!/usr/bin/env bash
# What a run records of its devices: lines with all keys from every rank, energy by a meter whose curve is known, meters that
# fail, runs that end in every way and go on.
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 60 20
training=(train models/lenet5.cfg --data "$data" --batch 8 --no-eval)
trap 'kill $(jobs -p) 2>/dev/null; finish' EXIT

# value KEY LINE: "" where the line has no such key.
value() { sed -n "s/.*[{,]\"$1\":\([^,}]*\).*/\1/p" <<<"$2"; }
lines_of() { grep "\"rank\":$2," "$1/devices.jsonl"; } # lines_of RUN RANK
last_of() { lines_of "$1" "$2" | tail -n 1; }
is_true() { awk "BEGIN { exit !(($1) $2 ($3)) }"; } # is_true EXPRESSION OPERATOR EXPRESSION, of numbers
warnings() { grep -c '^tessera: warning: ' "$folder/err"; }

n='(-?[0-9.]+|null)'
form="^\{\"t_s\":[0-9.]+,\"rank\":[0-9]+,\"host\":\"[^\"]+\",\"step\":[0-9]+,\"cpu_user_s\":$n,\"cpu_system_s\":$n,\"wait_s\":$n"
form+=",\"rss_bytes\":$n,\"free_bytes\":$n,\"rx_bytes\":$n,\"tx_bytes\":$n,\"temperature_c\":$n,\"clock_hz\":$n,\"throttled\":$n"
form+=",\"power_w\":$n,\"power_source\":(\"[^\"]+\"|null),\"rx_packets\":$n,\"tx_packets\":$n,\"energy_j\":$n\}\$"

# Every rank has lines, the last one of the last step. Steps enough for a tick of the clock by which the kernel counts processor time.
for ranks in 1 3; do
  run=$folder/lines-$ranks
  works "$ranks" "${training[@]}" --steps 300 --run "$run"
  expect "all lines have all keys in their order, $ranks ranks" test "$(grep -cvE "$form" "$run/devices.jsonl")" -eq 0
  for ((rank = 0; rank < ranks; ++rank)); do
    last=$(last_of "$run" "$rank")
    expect "rank $rank of $ranks has its last step" test "$(value step "$last")" = 300
    expect 'its memory is known' is_true "$(value rss_bytes "$last")" '>' 1000000
    expect 'it has used the processor' is_true "$(value cpu_user_s "$last")" '>' 0
    expect 'it has not waited longer than it was there' is_true "$(value wait_s "$last")" '<=' "$(value t_s "$last") + 0.001"
  done
done
expect 'one that waits for others says so' is_true "$(value wait_s "$(last_of "$folder/lines-3" 1)")" '>' 0

works 1 "${training[@]}" --steps 3 --run "$folder/lines-1" --force --monitor off
expect 'without the monitor there are no lines, nor earlier ones' test ! -e "$folder/lines-1/devices.jsonl"
expect 'nor energy' test "$(tail -n 1 "$folder/lines-1/metrics.jsonl" | grep -c '"energy_j":null')" -eq 1

# Energy of 5 W.
printf 'period 0.02\n0 5\n' >"$folder/five"
works 2 train models/lenet5.cfg --data "$data" --batch 8 --steps 600 --run "$folder/energy" --meter "file:$folder/five"
last=$(last_of "$folder/energy" 0)
energy=$(value energy_j "$last")
time=$(value t_s "$last")
expect 'energy is power times time' is_true "$energy" '>' "0.95 * 5 * ($time - 0.1)"
expect 'and no more' is_true "$energy" '<' "1.05 * 5 * ($time + 0.1)"
expect 'the closing lines have it' grep -qE '^energy of the run: [0-9.]+ k?J \(file\)' "$folder/out"
steps=$(sed -n 's/^{"step":[0-9]*,"loss".*"energy_j":\([0-9.]*\).*/\1/p' "$folder/energy/metrics.jsonl" | awk '{ sum += $1 } END { print sum }')
expect 'that of steps adds up to it' is_true "$steps" '<=' "$energy + 0.1"
expect 'that of steps is something' is_true "$steps" '>' 0
evaluation=$(grep '"accuracy"' "$folder/energy/metrics.jsonl" | tail -n 1)
expect 'an evaluation knows that of the run' is_true "$(value run_energy_j "$evaluation")" '>=' "$(value energy_j "$evaluation")"
expect 'and of each device' grep -qE '"run_energy_by_rank_j":\[[0-9.]+,null\]' <<<"$evaluation"
works 1 "${training[@]}" --steps 3 --run "$folder/none" --meter none
expect 'without a meter nothing is said of energy' test "$(grep -c energy "$folder/out")" -eq 0

# A meter of all boards together counts once.
works 2 "${training[@]}" --steps 5 --run "$folder/plug" --meter "cluster=file:$folder/five" --meter "file:$folder/five"
expect 'a meter of the whole cluster is named' grep -q '^energy of the run: .*(file of the whole cluster)' "$folder/out"
expect 'its lines say both' grep -q '"cluster_energy_j"' "$folder/plug/devices.jsonl"
works 2 "${training[@]}" --steps 5 --run "$folder/plug" --force --meter none --meter "cluster=file:$folder/five"
expect 'alone it is the power of rank 0' grep -q '"rank":0,.*"power_w":5\.0,"power_source":"file (cluster)"' "$folder/plug/devices.jsonl"

# A meter that fails in the middle.
printf 'period 0.02\n0 5\n0.3 fail\n' >"$folder/failing"
for ranks in 1 2; do
  run=$folder/failing-$ranks
  works "$ranks" "${training[@]}" --steps 1500 --run "$run" --force --meter "file:$folder/failing"
  expect 'one warning' test "$(warnings)" -eq 1
  expect 'which says what and where' grep -q '^tessera: warning: .*file: .*failing.*; power is unknown while that lasts' "$folder/err"
  expect 'power is unknown then' test "$(value power_w "$(last_of "$run" 0)")" = null
  expect 'energy until then is kept' is_true "$(value energy_j "$(last_of "$run" 0)")" '>' 0
done

# What cannot be: one line, on all ranks.
refused '"nonsense": there is no such kind of meter' "${training[@]}" --steps 1 --run "$folder/bad" --meter nonsense
refused "$folder/missing: " "${training[@]}" --steps 1 --run "$folder/bad" --meter "file:$folder/missing"
refused 'no rank runs on a machine called "pi99"' "${training[@]}" --steps 1 --run "$folder/bad" --meter pi99=rapl
refused 'a second meter of the same place' "${training[@]}" --steps 1 --run "$folder/bad" --meter rapl --meter hwmon
refused '--meter .*--monitor' "${training[@]}" --steps 1 --run "$folder/bad" --meter none --monitor off
expect 'that leaves nothing behind' test ! -e "$folder/bad"

# A run that goes on: time and energy go on, lines of steps that are done again are gone.
works 1 "${training[@]}" --steps 20 --checkpoint-every 10 --run "$folder/on" --meter "file:$folder/five"
before=$(last_of "$folder/on" 0)
works 1 "${training[@]}" --steps 40 --run "$folder/on" --resume "$folder/on/checkpoint.safetensors" --meter "file:$folder/five"
after=$(last_of "$folder/on" 0)
expect 'time goes on' is_true "$(value t_s "$after")" '>' "$(value t_s "$before")"
expect 'energy goes on' is_true "$(value energy_j "$after")" '>' "$(value energy_j "$before")"
expect 'the earlier lines are there' grep -qF "$before" "$folder/on/devices.jsonl"
expect 'time never goes back' awk -F'[:,]' '{ if ($2 < last) exit 1; last = $2 }' "$folder/on/devices.jsonl"
sed -i '$s/"step":40/"step":41/' "$folder/on/devices.jsonl"
works 1 "${training[@]}" --steps 45 --run "$folder/on" --resume "$folder/on/checkpoint.safetensors" --monitor off
expect 'also without a monitor lines of later steps go' test "$(grep -c '"step":41,' "$folder/on/devices.jsonl")" -eq 0

# Ends of every kind leave whole lines.
wait_for_lines() { # RUN: until there are lines of two seconds
  for ((tenths = 0; tenths < 600; ++tenths)); do
    [ "$(cat "$1"/devices.jsonl 2>/dev/null | grep -c '"rank":0,')" -ge 3 ] && return
    sleep 0.1
  done
  fail 'a run should write lines while it goes on'
}
for signal in INT TERM KILL; do
  for ranks in 1 3; do
    run=$folder/$signal-$ranks
    launcher=()
    [ "$ranks" -eq 1 ] || launcher=("$MPIEXEC" -n "$ranks")
    command_line="tessera train on $ranks ranks, ended by SIG$signal"
    "${launcher[@]}" "$TESSERA" "${training[@]}" --steps 1000000 --run "$run" >"$folder/out" 2>"$folder/err" </dev/null &
    process=$!
    wait_for_lines "$run"
    kill -s "$signal" "$process"
    status=0
    wait "$process" 2>/dev/null || status=$?
    expect "SIG$signal leaves whole lines, $ranks ranks" test "$(grep -cvE "$form" "$run/devices.jsonl")" -eq 0
    expect 'of every rank' test "$(cut -d, -f 2 "$run/devices.jsonl" | sort -u | wc -l)" -eq "$ranks"
    if [ "$signal" != KILL ]; then
      step=$(tail -n 1 "$run/metrics.jsonl" | sed 's/^{"step":\([0-9]*\).*/\1/')
      expect 'and of the last step' test "$(value step "$(last_of "$run" $((ranks - 1)))")" = "$step"
    fi
  done
done
