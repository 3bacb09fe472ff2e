#!/usr/bin/env bash
# Whether --partition auto chooses well: what it finds against baselines, measured. See --help.
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

In each setting of a list: what --partition auto finds for the emulated cluster, and the baselines: the partitions that
\`plan --explain\` compares (the next best of the search, a group for each layer, one group for all layers, a plain grid, images shared
out) and grids of all shapes with groups of several sizes. Predicted and measured step times, and how many times as long the chosen
partition takes as the fastest one. Every partition is measured once; those near the fastest, and the chosen one, in all further rounds.
Partitions that do not fit into memory by their plans are not run. Needs root. With the defaults it takes an hour or two; the machine
should be otherwise idle.

  --settings FILE       a setting per line, LABEL MODEL HxW BATCH CLUSTER_OPTION...; the last are options of
                        \`bench/cluster/cluster up\`; default: $settings
  --group-sizes 'N...'  layers per group, for grids; default: $group_sizes
  --near X              further rounds measure what took at most X times as long as the fastest in the first; default: $near

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

# find_baselines: a file each in $scratch/baselines; what the search finds is chosen.toml.
find_baselines() {
  rm -rf "$scratch/baselines"
  plan auto --partition auto --explain --save-baselines "$scratch/baselines" || fail "$cluster_label: nothing to compare."
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

measure_baselines() {
  local round=$1 baseline grid count layers
  try auto "$round" --partition "$scratch/baselines/chosen.toml"
  for baseline in "$scratch"/baselines/*.toml; do
    # The chosen partition under another name is left out.
    cmp -s "$baseline" "$scratch/baselines/chosen.toml" || try "$(basename "$baseline" .toml)" "$round" --partition "$baseline"
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
    find_baselines
    for ((round = 1; round <= rounds; ++round)); do
      measure_baselines "$round"
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
