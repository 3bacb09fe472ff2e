#!/usr/bin/env bash
# Whether --partition auto chooses well: what it finds against rivals, measured. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/choice/run.sh
. bench/steps/steps.sh

own_options=(settings)
out=runs/choice.csv
figure=bench/choice/choice.svg
rounds=3
settings=bench/choice/settings

show_help() {
  cat <<HELP
Usage: bench/choice/run.sh [OPTION...]

In each setting of a list: what --partition auto finds for the emulated cluster, and its rivals, which are all that \`plan --explain\`
compares (the next best of the search, a group for each layer, one group for all, a plain grid, images shared out), the other grids,
and grids with groups of 2 and of 4 layers. Predicted and measured; how many times as long the chosen one takes as the fastest measured.
What is planned not to fit into memory is not run. Needs root. About an hour as it is; the machine should have nothing else to do.

  --settings FILE       a line each, LABEL MODEL HxW BATCH CLUSTER_OPTION..., where the last are what \`bench/cluster/cluster up\`
                        takes; default: $settings

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

measure_rivals() {
  local round=$1 rival grid count layers
  measure auto "$round" --partition "$scratch/rivals/chosen.toml"
  for rival in "$scratch"/rivals/*.toml; do
    [ "$(basename "$rival")" = chosen.toml ] || measure "$(basename "$rival" .toml)" "$round" --partition "$rival"
  done
  for grid in $(grids_of "$devices"); do
    plan layers --grid "$grid" 2>/dev/null || continue
    layers=$(tiled_layers)
    for count in 1 2 4; do
      measure "$grid by $count" "$round" --grid "$grid" --groups "$(equal_groups "$count" "$layers")"
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
report
