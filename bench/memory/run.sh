#!/usr/bin/env bash
# Memory of each device when several train, beside one device and other programs. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/memory/run.sh
. bench/steps/steps.sh

own_options=(count batches)
out=runs/memory.csv
figure=runs/memory.svg
results=bench/memory/memory # where --commit-results copies them
size=608x608
count=6
batches='1 8'
rounds=1
steps=1
vectors=
dilate=1
python=/usr/bin/python3

show_help() {
  cat <<HELP
Usage: bench/memory/run.sh [OPTION...]

Peak resident memory of each process in a training step: on several emulated devices, with the partitions of least time and of least
memory that --partition auto finds; on one device; in PyTorch and in Debian's Darknet, where these are installed. Times mean nothing
here, since the devices share this machine's processors. Writes a line of CSV for each measurement, prints a Markdown table of planned
and measured memory, draws a figure. Needs root for the emulated devices. With the defaults it takes a quarter of an hour.

  --model FILE, --size HxW | own
                        default: $model, $size
  --count N             devices; default: $count
  --batches 'N...'      default: $batches

HELP
  common_help
}

be_quick() {
  size=96x96
  count=2
  batches=1
  probe_seconds=10
  out=runs/memory-quick.csv
  figure=runs/memory-quick.svg
}

# measure_peer NAME COMMAND...: a row without a plan.
measure_peer() {
  local name=$1
  shift
  if is_measured "$name" 1; then return 0; fi
  run "$@" "$model" "${sized[@]}" --batch "$batch" --steps "$steps" --json || {
    say "$name: $(last_complaint)"
    return 0
  }
  : >"$scratch/plan"
  flat_json <"$scratch/printed" | sed 's/^peak_bytes /peak_bytes.0 /' >"$scratch/measured"
  write_row "$name" 1 ''
}

measure_peers() {
  measure_peer torch "$python" bench/peers/torch_step.py
  measure_peer torch-channels-last "$python" bench/peers/torch_step.py --channels-last
  if [ -e /usr/lib/darknet/libdarknet.so ]; then measure_peer darknet "$python" bench/peers/darknet_step.py; fi
}

# measure_batches FUNCTION: for each number of images, on the cluster that is up.
measure_batches() {
  local images
  for images in $batches; do
    setting "$model" "$size" "$images"
    "$1"
  done
}

measure_auto() {
  measure tessera 1 --partition auto
  if [ "$devices" -gt 1 ]; then measure tessera-least 1 --partition auto --objective memory; fi
}

measure_all() {
  local share
  share=$(awk -v processors="$(processors)" -v count="$count" 'BEGIN { print 0.9 * processors / count }')
  use_this_machine 1
  measure_batches measure_auto
  measure_batches measure_peers
  emulate "memory-x$count" --devices "$count" --cpu "$share" --memory 4000 --rate 1000
  measure_batches measure_auto
}

report() {
  print_table bench/memory/table.awk
  draw memory "$out"
}

read_options "$@"
prepare
may_emulate
"$python" -c 'import torch' 2>/dev/null || say 'PyTorch is left out: install python3-torch.'
measure_all
print_machine
finish
