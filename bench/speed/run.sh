#!/usr/bin/env bash
# How much faster several devices train than one. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/speed/run.sh
. bench/steps/steps.sh

own_options=(counts rates batches speed partitions)
out=runs/speed.csv
figure=runs/speed.svg
results=bench/speed/speed # where --commit-results copies them
counts='1 2 4 6'
rates='100 20 5'
batches='1 2 4 8'
speed=4.5
partitions='each auto auto-half layers one-group'
rounds=1

show_help() {
  cat <<HELP
Usage: bench/speed/run.sh [OPTION...]

A training step on emulated Raspberry Pi 3: on several of them with what --partition auto finds, with a grid and a group for each layer,
and with a grid and all tiled layers in one group; on each of them by itself while the others do the same, which is the baseline of
speed-ups; and on one alone. Writes a line of CSV for each measurement; prints speed-ups and their bounds (how evenly the work divides,
and what the busiest link has to carry); draws a figure. Needs root. With the defaults it takes hours; the machine should be otherwise
idle.

  --model FILE, --size HxW | own
                        default: $model, $size
  --counts 'N...'       numbers of devices; default: $counts
  --rates 'MBIT...'     rates of links; default: $rates
  --batches 'N...'      default: $batches
  --speed GFLOPS        of a device in a step of that model and size; default: $speed
  --partitions 'NAME...'
                        of several devices: each (every device by itself), auto, auto-half (gradients and parameters sent in 16 bits),
                        layers, one-group; default: $partitions

HELP
  common_help
}

be_quick() {
  counts='1 2'
  rates=100
  batches=1
  size=96x96
  steps=2
  probe_seconds=10
  out=runs/speed-quick.csv
  figure=runs/speed-quick.svg
}

wants() { [[ " $partitions " == *" $1 "* ]]; }

# measure_partitions ROUND: one device has one way only.
measure_partitions() {
  local layers
  if [ "$devices" -eq 1 ] || wants auto; then measure auto "$1" --partition auto; fi
  if [ "$devices" -eq 1 ]; then return 0; fi
  if wants auto-half; then measure auto-half "$1" --partition auto --gradient-precision half; fi
  if wants layers; then measure layers "$1"; fi
  if ! wants one-group || ! plan layers; then return 0; fi
  layers=$(tiled_layers)
  measure one-group "$1" --groups "$(equal_groups "$layers" "$layers")"
}

# measure_cluster RATE: all batches, on the cluster that is up. A device by itself needs no link, so one rate will do.
measure_cluster() {
  local images round
  for images in $batches; do
    setting "$model" "$size" "$images"
    for ((round = 1; round <= rounds; ++round)); do
      if [ "$devices" -gt 1 ] && wants each && [ "$1" = "${rates%% *}" ]; then measure_each "$round"; fi
      measure_partitions "$round"
    done
  done
}

measure_all() {
  local count rate kind=pi3
  local as_fast_with=(--model "$model")
  [ "$size" = own ] || as_fast_with+=(--size "$size")
  [ "$speed" = 4.5 ] || kind=${speed}gflops
  for count in $counts; do
    for rate in $rates; do
      if [ "$count" -eq 1 ] && [ "$rate" != "${rates%% *}" ]; then continue; fi
      emulate "${kind}x$count-$rate" --devices "$count" --rate "$rate" --speed "$speed" "${as_fast_with[@]}"
      measure_cluster "$rate"
    done
  done
}

report() {
  print_table bench/speed/table.awk
  draw speed "$out"
}

read_options "$@"
prepare
may_emulate
measure_all
print_machine
finish
