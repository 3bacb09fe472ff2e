#!/usr/bin/env bash
# Training steps of whole detectors on several devices, beside one. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/speed/detectors.sh
. bench/steps/steps.sh

own_options=(models count rate speed)
out=runs/detectors.csv
results=bench/speed/detectors # where --commit-results copies them
models=/usr/share/darknet/cfg/yolov2.cfg
count=6
rate=100
speed=4.5
size=own
rounds=1
steps=1
dilate=1
timeout=7200

show_help() {
  cat <<HELP
Usage: bench/speed/detectors.sh [OPTION...]

A training step of whole detectors, heads and loss included, on emulated Raspberry Pi 3: on all of them with what --partition auto finds,
and on each by itself while the others do the same, where a device has the memory for it. Writes a line of CSV for each measurement;
prints time and memory, predicted and measured. Needs root. A step of YOLOv2 at 608x608 is about 190 GFLOP: it takes minutes, and
the whole bench half an hour for each model. The machine should be otherwise idle.

  --models 'FILE...'    model files; default: $models, of Debian's package darknet
  --size HxW | own      default: $size
  --count N             devices; default: $count
  --rate MBIT           of their links; default: $rate
  --speed GFLOPS        of a device in a step of models/yolov2-early.cfg; default: $speed

HELP
  common_help
}

be_quick() {
  models=models/yolov2-early.cfg
  size=96x96
  count=2
  probe_seconds=10
  timeout=600
  out=runs/detectors-quick.csv
}

# measure_one ROUND: with a search for what fits, or else as it is, for what it would take.
measure_one() {
  local ranks=1 launch=("${launch_each[@]}")
  measure each "$1" --partition auto
  if ! is_measured each "$1"; then measure each "$1" --grid 1x1; fi
}

measure_all() {
  local file round wanted=$size images=$batch
  emulate "pi3x$count-$rate" --devices "$count" --rate "$rate" --speed "$speed"
  for file in $models; do
    [ -r "$file" ] || fail "$file cannot be read: give model files with --models."
    setting "$file" "$wanted" "$images"
    for ((round = 1; round <= rounds; ++round)); do
      measure_one "$round"
      measure auto "$round" --partition auto
    done
  done
}

report() { print_table bench/speed/detectors.awk; }

read_options "$@"
expect_numbers whole count
expect_numbers positive rate speed
prepare
may_emulate
measure_all
print_machine
finish
