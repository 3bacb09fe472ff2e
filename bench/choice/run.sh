#!/usr/bin/env bash
# Whether --partition auto chooses well: what it finds against rivals, measured. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/choice/run.sh
. bench/steps/steps.sh

own_options=(settings group-sizes near)
out=runs/choice.csv
figure=runs/choice.svg
results=bench/choice/choice # where --commit-results copies them
rounds=3
settings=bench/choice/settings
group_sizes='1 2 4'
near=1.15

show_help() {
  cat <<HELP
Usage: bench/choice/run.sh [OPTION...]

In each setting of a list: what --partition auto finds for the emulated cluster, and its rivals, which are all that \`plan --explain\`
compares (the next best of the search, a group for each layer, one group for all, a plain grid, images shared out), and grids of all
shapes with groups of several sizes. Predicted and measured; how many times as long the chosen one takes as the fastest measured. All are
measured once; those that come near the fastest, and the chosen one, in all further rounds. What is planned not to fit into memory is not run.
Needs root. An hour or two as it is; the machine should have nothing else to do.

  --settings FILE       a line each, LABEL MODEL HxW BATCH CLUSTER_OPTION..., where the last are what \`bench/cluster/cluster up\`
                        takes; default: $settings
  --group-sizes 'N...'  layers of a group, for grids; default: $group_sizes
  --near X              further rounds are for what took at most X times as long as the fastest in the first; default: $near

HELP
  common_help
}

be_quick() {
  settings=bench/choice/quick.settings
  rounds=1
  steps=2
  probe_seconds=10
  out=runs/choice-quick.csv
  figure=runs/choice-quick.svg
}

# grids_of DEVICES: all that use every device.
grids_of() { awk -v n="$1" 'BEGIN { for (rows = 1; rows <= n; ++rows) if (n % rows == 0) print rows "x" n / rows }'; }

# find_rivals: a file each in $scratch/rivals; what the search finds is chosen.toml.
find_rivals() {
  rm -rf "$scratch/rivals"
  plan auto --partition auto --explain --save-rivals "$scratch/rivals" || fail "$cluster_label: nothing to compare."
}

# contends NAME ROUND: in the first round all do, then those that were near the fastest in it.
contends() {
  [ "$2" -eq 1 ] || [ "$1" = auto ] ||
    awk -F, -v key="$(row_key '')" -v name="$1" -v near="$near" '
      index($0, key) == 1 && $10 == 1 && $12 != "" {
        if ($8 == name) own = $12
        if (least == "" || $12 + 0 < least + 0) least = $12
      }
      END { exit !(own != "" && own <= near * least) }' "$out"
}

# try NAME ROUND PLAN_OPTION...
try() { if contends "$1" "$2"; then measure "$@"; fi; }

measure_rivals() {
  local round=$1 rival grid count layers
  try auto "$round" --partition "$scratch/rivals/chosen.toml"
  for rival in "$scratch"/rivals/*.toml; do
    # What is the same partition is no rival, whatever else it is called.
    cmp -s "$rival" "$scratch/rivals/chosen.toml" || try "$(basename "$rival" .toml)" "$round" --partition "$rival"
  done
  for grid in $(grids_of "$devices"); do
    plan layers --grid "$grid" 2>/dev/null || continue
    layers=$(tiled_layers)
    for count in $group_sizes; do
      try "$grid by $count" "$round" --grid "$grid" --groups "$(equal_groups "$count" "$layers")"
    done
  done
}

measure_all() {
  local label words round
  while read -r -u 3 label words; do
    case $label in '' | '#'*) continue ;; esac
    read -ra words <<<"$words"
    [ "${#words[@]}" -ge 4 ] || fail "$settings, $label: a setting is LABEL MODEL HxW BATCH CLUSTER_OPTION..."
    emulate "$label" "${words[@]:3}"
    setting "${words[@]:0:3}"
    find_rivals
    for ((round = 1; round <= rounds; ++round)); do
      measure_rivals "$round"
    done
  done 3<"$settings"
}

report() {
  print_table bench/choice/table.awk
  draw choice "$out"
}

read_options "$@"
[ -r "$settings" ] || fail "$settings cannot be read: give a list of settings with --settings."
prepare
may_emulate
measure_all
print_machine
finish
