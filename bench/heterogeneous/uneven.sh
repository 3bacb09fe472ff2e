#!/usr/bin/env bash
# Two devices of unequal speed: how much of the sum of their speeds they reach together. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/heterogeneous/uneven.sh
. bench/steps/steps.sh

own_options=(ratios workloads speed rate)
out=runs/uneven.csv
figure=runs/uneven.svg
results=bench/heterogeneous/uneven # where --commit-results copies them
ratios='1 2 4 10'
workloads='608x608:1 224x224:16'
speed=4.5
rate=100
rounds=1
steps=3
dilate=2
probe_seconds=30

show_help() {
  cat <<HELP
Usage: bench/heterogeneous/uneven.sh [OPTION...]

Two emulated devices, the second slower than the first by each ratio of a list. A training step on each by itself, while the other trains by
itself as well, and on both with what --partition auto finds after \`tessera probe\`; predicted and measured, and as a share of the sum of
the two speeds. Writes a line of CSV for each measurement, prints a table, draws a figure. Needs root. With the defaults it takes half an
hour or more; the machine should be otherwise idle.

  --model FILE          default: $model
  --ratios 'N...'       of the speeds; default: $ratios
  --workloads 'HxW:N...'
                        input size and images per step; default: $workloads
  --speed GFLOPS        of the faster device; default: $speed
  --rate MBIT           of the links; default: $rate

HELP
  common_help
}

be_quick() {
  ratios='1 4'
  workloads=224x224:2
  steps=1
  probe_seconds=10
  out=runs/uneven-quick.csv
  figure=runs/uneven-quick.svg
}

# describe RATIO: a file with the two devices; always the same one, since rows tell what the cluster was made from.
describe() {
  local file=runs/uneven/$1-to-1-$speed-$rate.devices
  mkdir -p runs/uneven
  awk -v ratio="$1" -v speed="$speed" -v rate="$rate" 'BEGIN {
    print "pi1 speed=" speed " rate=" rate
    print "pi2 speed=" speed / ratio " rate=" rate
  }' >"$file"
  printf '%s' "$file"
}

# plan_alone NAME: "fast" or "slow", which is the first device or the second; the same partition of one tile for both.
plan_alone() {
  local ranks=1
  plan "$1" --partition auto || return 1
  [ "$1" = slow ] || return 0
  sed 's/^ranks = 1$/ranks = 2/; s/^ranks = \[0\]$/ranks = [1]/' "$partition" >"$scratch/second.toml"
  ranks=2
  plan "$1" --partition "$scratch/second.toml"
}

# time_alone RATIO: on each device by itself, a line of JSON each. The faster one takes as many more steps as it is faster, so that
# the other one is not left alone.
time_alone() {
  local faster_steps
  faster_steps=$(awk -v ratio="$1" 'BEGIN { printf "%d", 2 * ratio - 0.5 }')
  # shellcheck disable=SC2016 # for the shell on the device
  run "${launch_each[@]}" sh -c 'case $(hostname) in pi1) steps=$1 ;; *) steps=1 ;; esac; shift; exec "$@" --steps "$steps"' sh "$faster_steps" \
    "$program" time "$model" "${sized[@]}" --batch "$batch" --partition "$scratch/fast.toml" --parts --json
}

# measure_alone ROUND RATIO: a row for each device.
measure_alone() {
  local name line=0
  if is_measured fast "$1" && is_measured slow "$1"; then return 0; fi
  plan_alone fast || return 0
  time_alone "$2" || fail "a device by itself: $(last_complaint)"
  grep '^{' "$scratch/printed" >"$scratch/alone"
  for name in fast slow; do
    line=$((line + 1))
    plan_alone "$name" || return 0
    sed -n "${line}p" "$scratch/alone" | flat_json | awk -f bench/median.awk -f bench/steps/measured.awk >"$scratch/measured"
    is_measured "$name" "$1" || write_row "$name" "$1" "$(planned prediction.limited_by)"
  done
  say "$cluster_label, $size, batch $batch: each by itself $(tail -n 2 "$out" | cut -d , -f 12 | xargs) s"
}

measure_all() {
  local ratio workload round
  for ratio in $ratios; do
    emulate "$ratio:1" "$(describe "$ratio")"
    for workload in $workloads; do
      setting "$model" "${workload%:*}" "${workload#*:}"
      for ((round = 1; round <= rounds; ++round)); do
        measure_alone "$round" "$ratio"
        measure both "$round" --partition auto
      done
    done
  done
}

report() {
  print_table bench/heterogeneous/uneven.awk
  if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
    /usr/bin/python3 bench/heterogeneous/uneven_figure.py "$out" --out "$(in_folder "$figure")"
  else
    say 'no figure: install python3-matplotlib.'
  fi
}

expect_workloads() {
  local workload
  for workload in $workloads; do
    [[ $workload =~ ^[1-9][0-9]*x[1-9][0-9]*:[1-9][0-9]*$ ]] || fail "--workloads: expected input size and batch, as in 224x224:16, not '$workload'."
  done
  [ -n "${workloads// /}" ] || fail '--workloads: expected at least one.'
  [ -n "${ratios// /}" ] || fail '--ratios: expected at least one.'
}

read_options "$@"
expect_numbers list ratios
expect_numbers positive speed rate
expect_workloads
prepare
may_emulate
measure_all
print_machine
finish
