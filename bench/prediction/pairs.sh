#!/usr/bin/env bash
# How right predictions are of random networks and partitions, which the model was not tuned on. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/prediction/pairs.sh
. bench/steps/steps.sh

own_options=(part only)
out=runs/prediction-pairs.csv
figure=runs/prediction-pairs.svg
results=bench/prediction/pairs # where --commit-results copies them
part=tuned
only=.
rounds=1
steps=3
probe_seconds=40
python=/usr/bin/python3

show_help() {
  cat <<HELP
Usage: bench/prediction/pairs.sh [OPTION...]

Predicts and measures a step of the pairs of network and partition that bench/prediction/pairs.py draws, on emulated clusters of 1 to 6
devices, and says how many are right within a tenth. The part 'kept' is for one look at the end: nothing is to be tuned on it. Needs root;
the machine should be otherwise idle. All of 'tuned' takes some hours; it goes on where it was interrupted.

  --part tuned|kept|all which pairs; default: $part
  --only REGEX          lines of the list that it is found in; default: all
HELP
  common_help
}

be_quick() {
  only='^random-0[01][[:space:]]'
  steps=1
  probe_seconds=5
  out=runs/prediction-pairs-quick.csv
  figure=runs/prediction-pairs-quick.svg
}

measure_all() {
  local round cluster network size images partition options before=
  drawn=$scratch/models
  "$python" bench/prediction/pairs.py --part "$part" --models "$drawn" --clusters "$scratch/clusters" --tabs |
    { grep -E "$only" || true; } | sort -t $'\t' -k 4,4 -s >"$scratch/list"
  [ -s "$scratch/list" ] || fail "--only $only: no pair is like that."
  for ((round = 1; round <= rounds; ++round)); do
    while IFS=$'\t' read -r network size images cluster partition options _ <&3; do
      if [ "$cluster" != "$cluster_label" ]; then emulate "$cluster" "$scratch/clusters/$cluster.devices"; fi
      if [ "$cluster $network $size $images" != "$before" ]; then setting "$drawn/$network.cfg" "$size" "$images"; fi
      before="$cluster $network $size $images"
      # shellcheck disable=SC2086 # several options
      measure "$partition" "$round" $options
    done 3<"$scratch/list"
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
