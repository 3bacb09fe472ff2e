#!/usr/bin/env bash
# What watching devices during a run costs, and whether its figures are true. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/monitor/run.sh
. bench/results.sh

readonly columns='kind,setting,what,reference,measured,least,most,count'
program=build/release/tessera
out=runs/monitor.csv
results=bench/monitor/monitor # where --commit-results copies them
table=
pairs=10
seconds=5
train_seconds=30
parts='cost truth'
data=/usr/share/datasets/fashion-mnist

show_help() {
  cat <<HELP
Usage: bench/monitor/run.sh [OPTION...]

Cost: processor time of a training step with the monitor and without, in pairs of runs, one after the other, and the time of a step;
LeNet-5 and yolov2-early at 224x224, on one device and on four emulated ones; and the share of a core that the monitor's thread takes.
Truth: what a run has recorded, beside what /usr/bin/time, /proc, the wire of emulated devices and a meter of a known curve say.
Needs root for the emulated devices, and the packages time and dataset-fashion-mnist.

  --pairs N             of runs; default: $pairs
  --seconds S           that a run takes about; default: $seconds
  --train-seconds S     of a training run for the truth; default: $train_seconds
  --parts 'NAME...'     default: $parts
  --program FILE        default: $program
  --out CSV             default: $out
  --table CSV           measures nothing; prints the table of existing measurements
  --commit-results      also copies CSV and origin to $results.* and updates the tables in the READMEs
  --quick               a few short measurements, to see that everything works
  --help                shows this help and exits
HELP
}

be_quick() {
  pairs=2
  seconds=2
  train_seconds=6
  out=runs/monitor-quick.csv
}

read_options() {
  local option name
  take_only_options 'pairs seconds train-seconds parts program out table' "$@"
  for option in pairs seconds train-seconds; do
    name=${option//-/_}
    [[ ${!name} =~ ^[1-9][0-9]{0,4}$ ]] || fail "--$option: expected an integer above 0, not '${!name}'."
  done
}

cluster=
leave() {
  [ -z "$cluster" ] || bench/cluster/cluster --cluster "$cluster" down
  rm -rf "$scratch"
}

# row KIND SETTING WHAT REFERENCE MEASURED LEAST MOST COUNT
row() {
  local IFS=,
  printf '%s\n' "$*" >>"$out"
  say "$2, $3: $4 without or by reference, $5 with or recorded"
}

# middle FILE: median, lower and upper quartile of numbers, one a line, as "MEDIAN,LEAST,MOST".
middle() {
  sort -g "$1" | awk '{ x[NR] = $1 }
    function at(share,    place, below) { place = 1 + share * (NR - 1); below = int(place); return x[below] + (place - below) * (x[below < NR ? below + 1 : NR] - x[below]) }
    END { printf "%.6g,%.6g,%.6g", at(0.5), at(0.25), at(0.75) }'
}

# ---- cost ----

# used_s: processor time of the devices so far.
used_s() {
  bench/cluster/cluster --cluster "$cluster" status --csv |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "cpu_s") c = i; next } { sum += $c } END { print sum }'
}

# take_steps N OPTION...: a line "PROCESSOR_S STEP_S MONITOR_SHARE" of a step, in the setting that is prepared.
take_steps() {
  local steps=$1 before=0 after printed=$scratch/printed
  shift
  if [ -n "$cluster" ]; then
    before=$(used_s)
    bench/cluster/cluster --cluster "$cluster" run --timeout 600 "$program" time "$model" "${size[@]}" --grid 2x2 --batch "$batch" --steps "$steps" --json "$@" \
      >"$printed" || fail "tessera time on the emulated devices ends with an error."
    after=$(used_s)
  else
    OMP_NUM_THREADS=1 /usr/bin/time -f '%U %S' -o "$scratch/used" "$program" time "$model" "${size[@]}" --batch "$batch" --steps "$steps" --json "$@" >"$printed"
    after=$(awk '{ print $1 + $2 }' "$scratch/used")
  fi
  awk -v steps="$steps" -v used="$(awk -v a="$after" -v b="$before" 'BEGIN { print a - b }')" '
    function number(key,    rest) { if (!match($0, "\"" key "\":")) return ""; rest = substr($0, RSTART + RLENGTH); sub(/[^-+.0-9e].*/, "", rest); return rest }
    /^\{/ { print used / steps, number("median"), number("monitor_share") }' "$printed"
}

# measure_cost SETTING MODEL SIZE BATCH
measure_cost() {
  local setting=$1 first second steps pair
  model=$2 batch=$4 size=()
  [ "$3" = own ] || size=(--size "$3")
  : >"$scratch/without" && : >"$scratch/with" && : >"$scratch/ratios" && : >"$scratch/step_ratios" && : >"$scratch/shares"
  steps=$(take_steps 20 | awk -v seconds="$seconds" '{ n = seconds / $2; printf "%d", n < 5 ? 5 : (n > 20000 ? 20000 : n) }')
  for ((pair = 0; pair < pairs; ++pair)); do
    # Which one is first changes from pair to pair.
    if [ $((pair % 2)) -eq 0 ]; then
      first=$(take_steps "$steps") second=$(take_steps "$steps" --monitor)
    else
      second=$(take_steps "$steps" --monitor) first=$(take_steps "$steps")
    fi
    echo "${first%% *}" >>"$scratch/without"
    echo "${second%% *}" >>"$scratch/with"
    echo "$first $second" | awk '{ print $3 / $1 > ratios; print $4 / $2 > steps; print $5 > shares }' \
      ratios="$scratch/ratios.one" steps="$scratch/step_ratios.one" shares="$scratch/shares.one"
    for file in ratios step_ratios shares; do cat "$scratch/$file.one" >>"$scratch/$file"; done
  done
  local reference measured
  reference=$(middle "$scratch/without") measured=$(middle "$scratch/with")
  row cost "$setting" 'processor time of a step (s)' "${reference%%,*}" "${measured%%,*}" '' '' "$pairs"
  row cost "$setting" 'ratio of processor times' 1 "$(middle "$scratch/ratios")" "$pairs"
  row cost "$setting" 'ratio of step times' 1 "$(middle "$scratch/step_ratios")" "$pairs"
  row cost "$setting" "share of a core that the thread takes" 0.01 "$(middle "$scratch/shares")" "$pairs"
}

measure_costs() { # measure_costs DEVICES
  measure_cost "lenet5 on $1" models/lenet5.cfg own 64
  measure_cost "yolov2-early 224x224 on $1" models/yolov2-early.cfg 224x224 1
}

# ---- truth ----

# last RUN RANK KEY
last() { grep "\"rank\":$2," "$1/devices.jsonl" | tail -n 1 | sed "s/.*[{,]\"$3\":\([^,}]*\).*/\1/"; }

# until_training RUN: its devices are recorded.
until_training() {
  local tenths
  for ((tenths = 0; tenths < 1200; ++tenths)); do
    [ ! -s "$1/devices.jsonl" ] || return 0
    sleep 0.1
  done
  fail 'training does not begin.'
}

measure_process() {
  local process run=$scratch/process second
  OMP_NUM_THREADS=1 /usr/bin/time -f '%U %S' -o "$scratch/used" "$program" train models/lenet5.cfg --data "$data" --no-eval --steps 100000000 --run "$run" --progress none \
    >/dev/null 2>&1 &
  process=$!
  until_training "$run"
  process=$(pgrep -P "$process" | head -n 1) # the program below /usr/bin/time
  : >"$scratch/resident"
  for ((second = 0; second < train_seconds; ++second)); do
    sleep 1
    awk '/^VmRSS:/ { print 1024 * $2 }' "/proc/$process/status" >>"$scratch/resident"
  done
  kill -TERM "$process"
  wait || true
  row truth 'lenet5 on one device' 'processor time (s; /usr/bin/time)' "$(tail -n 1 "$scratch/used" | awk '{ print $1 + $2 }')" \
    "$(awk -v a="$(last "$run" 0 cpu_user_s)" -v b="$(last "$run" 0 cpu_system_s)" 'BEGIN { print a + b }')" '' '' 1
  sed -n 's/.*"rss_bytes":\([^,]*\),.*/\1/p' "$run/devices.jsonl" >"$scratch/recorded"
  row truth 'lenet5 on one device' 'resident set at the end (MiB; /proc)' "$(tail -n 1 "$scratch/resident" | mebibytes)" "$(tail -n 1 "$scratch/recorded" | mebibytes)" '' '' 1
}

mebibytes() { awk '{ printf "%.3f\n", $1 / 1048576 }'; }

# Watts rise and fall in a triangle of ten seconds.
measure_energy() {
  local run=$scratch/energy second
  { echo 'period 0.25' && for ((second = 0; second <= 1000; second += 5)); do echo "$second $((second % 10 == 0 ? 2 : 8))"; done; } >"$scratch/curve"
  "$program" train models/lenet5.cfg --data "$data" --no-eval --steps 100000000 --run "$run" --progress none --meter "file:$scratch/curve" >/dev/null 2>&1 &
  until_training "$run"
  sleep "$train_seconds"
  kill -TERM "$!"
  wait || true
  row truth 'lenet5 on one device' 'energy of a known curve (J)' "$(awk -v t="$(last "$run" 0 t_s)" 'BEGIN {
      whole = int(t / 5)
      rest = t - 5 * whole
      from = whole % 2 == 0 ? 2 : 8
      slope = whole % 2 == 0 ? 1.2 : -1.2
      print 25 * whole + from * rest + slope * rest * rest / 2 }')" "$(last "$run" 0 energy_j)" '' '' 1
}

# port_bytes DEVICE: what the switch has got from it and given to it.
port_bytes() { ip -n "tessera-$cluster.switch" -s link show dev "$1" | awk '/RX:/ { getline; rx = $1 } /TX:/ { getline; tx = $1 } END { print rx, tx }'; }

measure_wire() {
  local run=$scratch/wire device rank=0 before=() sent received
  for device in pi1 pi2 pi3 pi4; do before+=("$(port_bytes "$device")"); done
  bench/cluster/cluster --cluster "$cluster" run --timeout $((train_seconds + 60)) -- "$program" train models/lenet5.cfg --data "$data" --batch 64 --no-eval \
    --steps $((40 * train_seconds)) --run "$run" --progress none --grid 2x2 >/dev/null 2>&1 || true
  for device in pi1 pi2 pi3 pi4; do
    read -r sent received < <(echo "${before[rank]} $(port_bytes "$device")" | awk '{ print $3 - $1, $4 - $2 }')
    row truth 'lenet5 on four devices' "bytes sent by $device" "$sent" "$(last "$run" "$rank" tx_bytes)" '' '' 1
    row truth 'lenet5 on four devices' "bytes received by $device" "$received" "$(last "$run" "$rank" rx_bytes)" '' '' 1
    rank=$((rank + 1))
  done
}

report() {
  awk -F, 'NR == 1 { print "| setting | what | without, or reference | with, or recorded | quartiles |\n| --- | --- | ---: | ---: | ---: |"; next }
    { printf "| %s | %s | %s | %s | %s |\n", $2, $3, $4, $5, $6 == "" ? "" : $6 " to " $7 }' "$out"
}

read_options "$@"
scratch=$(mktemp -d)
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if [ -n "$table" ]; then
  out=$table
  report
  exit 0
fi
[ -x "$program" ] || fail "$program does not exist: run ./quickstart.sh first, or give --program."
program=$(realpath "$program")
[ -x /usr/bin/time ] || fail 'there is no /usr/bin/time: apt-get install time.'
[ -d "$data" ] || fail "$data is not there: apt-get install dataset-fashion-mnist."
bench/cluster/cluster check >"$scratch/check" 2>&1 || fail "emulated clusters cannot be made here: $(head -n 1 "$scratch/check")"
echo "$columns" >"$(in_folder "$out")"
for part in $parts; do
  if [ "$part" = cost ]; then measure_costs 'one device'; else measure_process && measure_energy; fi
done
bench/cluster/cluster up --devices 4 --cpu 0.35 --memory 2000 --rate 1000 --name "monitor-$$" >"$scratch/up" || fail 'the emulated devices cannot be made: see above.'
cluster=monitor-$$
for part in $parts; do
  if [ "$part" = cost ]; then measure_costs 'four devices'; else measure_wire; fi
done
note_origin "$out"
report
keep_results "$out" "$results"
