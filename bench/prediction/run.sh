#!/usr/bin/env bash
# How right predictions are: many partitions on emulated clusters, predicted and measured. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/prediction/run.sh
. bench/steps/steps.sh

own_options=(clusters workloads group-sizes)
out=runs/prediction.csv
figure=runs/prediction.svg
results=bench/prediction/prediction # where --commit-results copies them
clusters='2 4 6 mixed'
workloads='models/yolov2-early.cfg@416x416@1 models/fashion-resnet.cfg@112x112@8'
group_sizes='1 2 4 16'
rounds=1

show_help() {
  cat <<HELP
Usage: bench/prediction/run.sh [OPTION...]

Emulates clusters one after the other, measures each with \`tessera probe\`, then predicts and measures a step of many partitions:
grids, images shared out from some layer on, output channels, several groupings, and what --partition auto finds. Writes a line of CSV
for each measurement, prints the errors of predicted times, the rank correlation, and planned beside measured memory; draws a figure.
Needs root. With the defaults it takes about an hour; the machine should be otherwise idle.

  --clusters 'WHAT...'  numbers of emulated Raspberry Pi 3, or descriptions in bench/cluster; default: $clusters
  --workloads 'MODEL@HxW@BATCH...'
                        default: $workloads
  --group-sizes 'N...'  layers per group; default: $group_sizes

HELP
  common_help
}

be_quick() {
  clusters=2
  workloads='models/yolov2-early.cfg@96x96@1'
  group_sizes='1 16'
  steps=2
  probe_seconds=10
  out=runs/prediction-quick.csv
  figure=runs/prediction-quick.svg
}

# grids DEVICES: "1x6 2x3 3x2 6x1".
grids() {
  local rows
  for ((rows = 1; rows <= $1; ++rows)); do
    if (($1 % rows == 0)); then printf '%sx%s ' "$rows" "$(($1 / rows))"; fi
  done
}

# measure_partitions ROUND
measure_partitions() {
  local round=$1 grid layers fused
  for grid in $(grids "$devices"); do
    plan layers --grid "$grid" || continue
    layers=$(tiled_layers)
    for fused in $group_sizes; do
      measure "$grid by $fused" "$round" --grid "$grid" --groups "$(equal_groups "$fused" "$layers")"
    done
    measure "$grid then images" "$round" --grid "$grid" --data-parallel-from $((layers / 2))
  done
  measure images "$round" --data-parallel-from 0
  measure "channels from $((layers / 2))" "$round" --filter-parallel-from $((layers / 2))
  measure auto "$round" --partition auto
}

measure_all() {
  local which workload words round
  for which in $clusters; do
    if [[ $which =~ ^[0-9]+$ ]]; then emulate "pi3x$which" --devices "$which"; else emulate "$which" "$which"; fi
    for workload in $workloads; do
      IFS=@ read -ra words <<<"$workload"
      [ "${#words[@]}" -eq 3 ] || fail "--workloads: expected MODEL@HxW@BATCH, not '$workload'."
      setting "${words[@]}"
      for ((round = 1; round <= rounds; ++round)); do
        measure_partitions "$round"
      done
    done
  done
}

report() {
  print_table bench/prediction/table.awk
  draw prediction "$out"
}

read_options "$@"
prepare
may_emulate
measure_all
print_machine
finish
