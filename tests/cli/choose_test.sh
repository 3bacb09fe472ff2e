#!/usr/bin/env bash
# `tessera choose`: which devices to train on, by predictions and by trials that count, for each objective and under limits.
. tests/cli/support/harness.sh

# value KEY INDEX FILE: of a candidate of choice.json, counted from 0; without an index the file's own.
value() { perl "$support/choice_value.pl" "$@"; }
is_true() { awk "BEGIN { exit !(($1) $2 ($3)) }"; } # is_true EXPRESSION OPERATOR EXPRESSION, of numbers
chosen() { value "$1" chosen "$2"; }                # chosen KEY FILE: of the candidate that was chosen
devices() { value devices "$1" "$2" | wc -w; }      # devices INDEX|chosen FILE: how many

# cluster FILE DEVICES FLOPS IDLE BUSY [LATENCY]: equal devices, by watts.
cluster() {
  local device
  {
    printf '[link]\nlatency_s = %s\nbytes_per_s = 1.25e8\n' "${6:-1e-4}"
    for ((device = 0; device < $2; ++device)); do
      printf '\n[[device]]\nnames = ["pi%d"]\nmemory_bytes = 943718400\nmessage_s = 5e-5\n' "$device"
      printf 'memory_bytes_per_s = 2e9\ncopied_bytes_per_s = 1e9\nsend_bytes_per_s = 1.25e8\nreceive_bytes_per_s = 1.25e8\n'
      printf '%s_bytes_per_s = { forward = 8e8, backward = 4e8 }\n' normalize activate pool elementwise
      printf 'direct_flops_per_s = %s\nwinograd_flops_per_s = %s\nupdated_weights_per_s = 1e8\n' "$3" "$3"
      printf '[device.power]\nsource = "made up"\nscope = "device"\nestimated = false\nidle_w = %s\nbusy_w = [%s]\n' "$4" "$5"
    done
  } >"$1"
}
cluster "$folder/slow.toml" 3 2e8 1 3   # computing takes longer than messages
cluster "$folder/fast.toml" 3 1e12 1 3 1e-2 # the other way round
cluster "$folder/idlers.toml" 3 2e8 3 3.1
cluster "$folder/four.toml" 4 2e8 1 3

data=$folder/digits
mkdir "$data"
make_digits "$data" 160 40
choose=(choose models/fashion-resnet.cfg --data "$data" --batch 8 --seed 3)
lenet=(choose models/lenet5.cfg --data "$data" --batch 8 --seed 3)

# By predictions alone.
dry() { works 1 "${choose[@]}" --steps 100 --dry-run --run "$folder/dry" "$@"; }
for objective in time power energy edp; do
  dry --cluster "$folder/slow.toml" --objective "$objective"
  cp "$folder/dry/choice.json" "$folder/$objective.json"
  expect 'the choice is JSON' valid_json "$folder/$objective.json" whole
  expect 'it says what for' test "$(value objective "$folder/$objective.json")" = "$objective"
  expect 'equal devices are as many sets as there are' test "$(value candidates "$folder/$objective.json")" -eq 3
done
expect 'several devices are the fastest' test "$(devices chosen "$folder/time.json")" -gt 1
expect 'less than linear speed-up: one device takes the least energy' test "$(devices chosen "$folder/energy.json")" -eq 1
expect 'and the least power' test "$(devices chosen "$folder/power.json")" -eq 1
expect 'the least energy-delay product is that of several' test "$(devices chosen "$folder/edp.json")" -gt 1
for key in devices partition predicted_step_s measured_step_s time_s power_w energy_j edp_js tried_steps pruned; do
  expect "each candidate has $key" value "$key" 2 "$folder/time.json" >"$folder/value"
done
expect 'nothing was measured' test "$(chosen measured_step_s "$folder/time.json")" = null
expect 'nothing was tried' test "$(chosen tried_steps "$folder/time.json")" -eq 0
time_s=$(chosen time_s "$folder/time.json")
expect 'energy is power times time' is_true "$(chosen energy_j "$folder/time.json") / ($(chosen power_w "$folder/time.json") * $time_s)" '>' 0.999
expect 'the product is energy times time' is_true "$(chosen edp_js "$folder/time.json") / ($(chosen energy_j "$folder/time.json") * $time_s)" '<' 1.001
dry --cluster "$folder/fast.toml" --objective time
expect 'where messages take longer than computing one device is the fastest' test "$(devices chosen "$folder/dry/choice.json")" -eq 1
dry --cluster "$folder/idlers.toml" --objective energy --count-idle
expect 'where idle devices count, several take the least energy' test "$(devices chosen "$folder/dry/choice.json")" -gt 1
works 1 "${choose[@]}" --epochs 2 --dry-run --cluster "$folder/slow.toml" --objective time
expect 'the best is marked' test "$(grep -c '^\*' "$folder/out")" -eq 1
expect 'epochs are steps' grep -q '^best: pi0' "$folder/out"
works 3 "${choose[@]}" --steps 100 --dry-run --cluster "$folder/slow.toml" --objective time
expect 'under mpiexec the ranking is printed once' test "$(grep -c '^\*' "$folder/out")" -eq 1

# Limits.
two_s=$(value time_s 1 "$folder/time.json")
three_s=$(value time_s 0 "$folder/time.json")
deadline=$(awk "BEGIN { print ($two_s + $three_s) / 2 }")
dry --cluster "$folder/slow.toml" --objective energy --deadline "$deadline"
expect 'a deadline leaves out what takes longer' test "$(devices chosen "$folder/dry/choice.json")" -eq 3
expect 'and says so' grep -q 'the deadline is' "$folder/out"
expect 'the limit is written down' grep -q '"deadline_s": [0-9]' "$folder/dry/choice.json"
dry --cluster "$folder/slow.toml" --objective time --power-limit 4
expect 'a limit of power leaves out what takes more' test "$(devices chosen "$folder/dry/choice.json")" -eq 1
run 1 "${choose[@]}" --steps 100 --dry-run --cluster "$folder/slow.toml" --objective time --deadline 0.5
expect_refusal 'no set of devices keeps the limits; pi0, pi1, pi2 comes closest: would take [0-9.]+ s, the deadline is 0.5 s'
run 3 "${choose[@]}" --steps 100 --cluster "$folder/slow.toml" --objective time --deadline 0.01 --run "$folder/none"
expect_refusal 'no set of devices keeps the limits'
expect 'that leaves nothing behind' test ! -e "$folder/none"
run 3 "${choose[@]}" --steps 100 --cluster "$folder/slow.toml" --objective time --power-limit 0.1 --run "$folder/none"
expect_refusal 'pi[0-2] comes closest: would take [0-9.]+ W, the limit is 0.1 W'

# With trials, which are steps of the run: what is learnt is what one device learns.
works 1 train models/lenet5.cfg --data "$data" --batch 8 --seed 3 --steps 60 --run "$folder/alone"
for objective in time edp; do
  run=$folder/$objective
  works 3 "${lenet[@]}" --steps 60 --cluster "$folder/slow.toml" --objective "$objective" --run "$run"
  expect 'all steps are done' test "$(losses "$run" | wc -l)" -eq 60
  expect "they are those of one device, $objective" same_losses "$run" "$folder/alone" 2e-3
  expect 'the test at the end is one of all pictures' test -n "$(accuracy "$run")"
  expect 'the choice is JSON' valid_json "$run/choice.json" whole
  expect 'what was chosen was tried' is_true "$(chosen tried_steps "$run/choice.json")" '>=' 2
  expect 'and measured' is_true "$(chosen measured_step_s "$run/choice.json")" '>' 0
  expect 'and is not pruned' test "$(chosen pruned "$run/choice.json")" = null
  expect 'trials are at most half of the steps' is_true "$(value tried_steps all "$run/choice.json")" '<=' 30
  expect 'an event names it' grep -q '"kind":"choose","text":"pi' "$run/events.jsonl"
  expect 'the run has the partition that was chosen' test "$(chosen partition "$run/choice.json")" = "$(cat "$run/partition.toml")"
  expect 'a run folder as any other' grep -q '"state": "finished"' "$run/run.json"
  works 1 report "$run"
  expect 'the report names the choice' grep -q 'Choice</th><td class="text">pi' "$run/report.html"
  works 1 top --once --ascii "$run"
done
expect 'every rank is monitored' test "$(cut -d, -f 2 "$folder/time/devices.jsonl" | sort -u | wc -l)" -eq 3
works 3 "${lenet[@]}" --epochs 2 --cluster "$folder/fast.toml" --objective energy --run "$folder/epochs"
expect 'energy is estimated from the profile and how long was computed' is_true "$(chosen power_w "$folder/epochs/choice.json")" '>' 0.9

# Power by a meter, of the one machine that all ranks are on.
printf 'period 0.02\n0 5\n' >"$folder/five"
works 3 "${lenet[@]}" --steps 200 --cluster "$folder/slow.toml" --objective energy --run "$folder/meter" --meter "file:$folder/five"
expect 'power is what the meter shows' is_true "$(chosen power_w "$folder/meter/choice.json")" '>' 4.9
expect 'and no more' is_true "$(chosen power_w "$folder/meter/choice.json")" '<' 5.1
works 3 "${lenet[@]}" --steps 200 --cluster "$folder/slow.toml" --objective power --run "$folder/plug" --meter none --meter "cluster=file:$folder/five"
expect 'a meter of all boards shows those that are idle, too: their idle power is taken off' is_true "$(chosen power_w "$folder/plug/choice.json")" '<' 5.01
sed -e '/^\[device.power\]/,/^busy_w/d' -e 's/^updated_weights_per_s.*/&\nboard = "pi3b"/' "$folder/slow.toml" >"$folder/by-table.toml"
works 3 "${lenet[@]}" --steps 200 --cluster "$folder/by-table.toml" --objective power --run "$folder/by-table" --meter "file:$folder/five"
expect 'powers by the table of sets that were not tried are said to be estimates' grep -q '"power_estimated": true' "$folder/by-table/choice.json"
works 3 "${lenet[@]}" --steps 200 --cluster "$folder/slow.toml" --objective power --run "$folder/measured" --meter table:pi5
expect 'measured powers of a profile are better than a table' is_true "$(chosen power_w "$folder/measured/choice.json")" '<' 3.1
expect 'and are no estimates' grep -q '"power_estimated": false' "$folder/measured/choice.json"

# Adam's state goes from plan to plan, too.
sed 's/^\[net\]/[net]\nadam=1/' models/lenet5.cfg >"$folder/adam.cfg"
works 1 train "$folder/adam.cfg" --data "$data" --batch 8 --steps 40 --run "$folder/adam-alone"
works 3 choose "$folder/adam.cfg" --data "$data" --batch 8 --steps 40 --cluster "$folder/slow.toml" --objective time --run "$folder/adam"
expect 'with Adam, too' same_losses "$folder/adam" "$folder/adam-alone" 5e-3

# One rank reads for all: it is in every set.
works 3 "${lenet[@]}" --steps 60 --cluster "$folder/slow.toml" --objective time --reader 2 --run "$folder/reader"
expect 'the reader is in every candidate' test "$(grep -c '"pi2"' "$folder/reader/choice.json")" -eq "$(value candidates "$folder/reader/choice.json")"
expect 'and reads the same' same_losses "$folder/reader" "$folder/time" 2e-3

# Resumed: the choice is read, not made again.
cp -r "$folder/time" "$folder/on"
works 3 "${lenet[@]}" --steps 90 --cluster "$folder/slow.toml" --objective time --run "$folder/on" --resume "$folder/on/checkpoint.safetensors"
expect 'nothing is tried again' test "$(grep -c '^trying' "$folder/out")" -eq 0
expect 'the choice is the same' same_bytes "$folder/on/choice.json" "$folder/time/choice.json"
expect 'and the partition' same_bytes "$folder/on/partition.toml" "$folder/time/partition.toml"
expect 'all steps are done' test "$(losses "$folder/on" | wc -l)" -eq 90
# For something else devices are chosen again, and it says so.
again() { works 3 "${lenet[@]}" --steps 120 --cluster "$folder/slow.toml" --run "$folder/again" --resume "$folder/again/checkpoint.safetensors" "$@"; }
cp -r "$folder/on" "$folder/again"
again --objective energy
expect 'another objective is said to be one' grep -q 'choice.json: it was made for another objective or other limits' "$folder/err"
expect 'and chosen for' test "$(value objective "$folder/again/choice.json")" = energy
rm -r "$folder/again"
cp -r "$folder/on" "$folder/again"
again --objective time --power-limit 100
expect 'another limit likewise' grep -q '^trying' "$folder/out"
expect 'which is written down' grep -q '"power_limit_w": 100' "$folder/again/choice.json"
rm "$folder/on/choice.json"
works 3 "${lenet[@]}" --steps 120 --cluster "$folder/slow.toml" --objective time --run "$folder/on" --resume "$folder/on/checkpoint.safetensors"
expect 'without a choice there are trials' test "$(grep -c '^trying' "$folder/out")" -ge 1

# Stopped in the middle: saved by those who train, and no rank is left.
works 3 "${lenet[@]}" --steps 30 --cluster "$folder/fast.toml" --objective power --run "$folder/power"
expect 'here all but one rest' test "$(devices chosen "$folder/power/choice.json")" -eq 1
command_line='choose, ended by SIGINT'
"$MPIEXEC" -n 3 "$TESSERA" "${lenet[@]}" --steps 1000000 --cluster "$folder/fast.toml" --objective power --run "$folder/stopped" \
  >"$folder/out" 2>"$folder/err" </dev/null &
process=$!
for ((tenths = 0; tenths < 600; ++tenths)); do
  [ -s "$folder/stopped/choice.json" ] && [ "$(losses "$folder/stopped" | wc -l)" -ge 200 ] && break
  sleep 0.1
done
kill -INT "$process"
wait "$process" || true # MPICH's launcher may say 0 of a run that was stopped: the run's record does not
expect 'the exit code is that of the signal' grep -q '"exit_code": 130' "$folder/stopped/run.json"
expect 'it says how to go on' grep -q 'to continue: the same command with --resume' "$folder/err"
expect 'a checkpoint is there' test -s "$folder/stopped/checkpoint.safetensors"
expect 'the run says so' grep -q '"state": "interrupted"' "$folder/stopped/run.json"

# What cannot be.
bad=(--steps 10 --run "$folder/bad")
run 1 "${choose[@]}" "${bad[@]}" --cluster "$folder/slow.toml" --objective time
expect_refusal 'it describes 3 devices, there is 1 rank: choose needs .* mpiexec.mpich -n 3 tessera choose'
run 3 "${choose[@]}" "${bad[@]}" --cluster "$folder/four.toml" --objective time
expect_refusal 'it describes 4 devices, there are 3 ranks: choose needs .* -n 4'
refused 'HOW|objective' "${choose[@]}" "${bad[@]}" --cluster "$folder/slow.toml" --objective speed
refused 'epochs' "${choose[@]}" "${bad[@]}" --epochs 2 --cluster "$folder/slow.toml" --objective time
refused '--cluster is required' "${choose[@]}" "${bad[@]}" --objective time
refused '--objective is required' "${choose[@]}" "${bad[@]}" --cluster "$folder/slow.toml"
refused '--deadline: "-3" is not a number' "${choose[@]}" "${bad[@]}" --cluster "$folder/slow.toml" --objective time --deadline -3
run 3 "${choose[@]}" --steps 10 --cluster "$folder/slow.toml" --objective time
expect_refusal '--run is required, unless'
sed '/^\[link\]/,/^bytes_per_s/d' "$folder/slow.toml" >"$folder/no-links.toml"
run 3 "${choose[@]}" "${bad[@]}" --cluster "$folder/no-links.toml" --objective time
expect_refusal '`link` is missing'
sed '/^\[device.power\]/,/^busy_w/d' "$folder/slow.toml" >"$folder/no-power.toml"
for ranks in 1 3; do
  dry_run=()
  [ "$ranks" -gt 1 ] || dry_run=(--dry-run)
  run "$ranks" "${choose[@]}" "${bad[@]}" "${dry_run[@]}" --cluster "$folder/no-power.toml" --objective energy
  expect_refusal 'the power of pi0 is unknown: .tessera probe --meter. measures it'
done
works 1 "${choose[@]}" --steps 10 --dry-run --cluster "$folder/no-power.toml" --objective time
run 3 "${choose[@]}" "${bad[@]}" --cluster "$folder/missing.toml" --objective time
expect_refusal 'missing.toml'
run 3 choose models/lenet5.cfg --data "$data" --batch 64 "${bad[@]}" --cluster "$folder/slow.toml" --objective time --memory-limit 1
expect_refusal 'no partition was found that fits'
expect 'what is refused leaves nothing behind' test ! -e "$folder/bad"
