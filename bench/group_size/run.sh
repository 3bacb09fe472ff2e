#!/usr/bin/env bash
# Which layers to join into groups: predicts and measures a step for each grouping. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/group_size/run.sh
. bench/steps/steps.sh

own_options=(grid data-parallel-from equal longest within most up cluster hostfile local kernels)
own_settings=(grid data-parallel-from kernels)
out=runs/group_size.csv
figure=runs/group_size.svg
grid=
data_parallel_from=
equal='1 2 3 4 6 8'
longest=8
within=1.1
most=24
up=
cluster=
hostfile=
local=
kernels=
all=no
groupings=()

show_help() {
  cat <<HELP
Usage: bench/group_size/run.sh [OPTION...]

The group-size tuner. For each grouping of the tiled layers: predicted and measured time of a step, bytes and messages it sends,
the share of computing that is redundant, memory of the fullest device as planned and as measured. What --partition auto finds is
measured beside them. Writes a line of CSV for each measurement, prints a Markdown table with the best first, draws a figure.

Where, one of:
  --up 'WHAT'           an emulated cluster, made for this and taken down again: what \`bench/cluster/cluster up\` takes, as in
                        --up pi3x4 or --up '--devices 6 --rate 20' (needs root)
  --cluster NAME        an emulated cluster that is up
  --hostfile FILE       real machines, MPICH's host file; start this on the first of them
  --local N             N ranks on this machine

What:
  --model FILE, --size HxW | own, --batch N, --grid RxC, --data-parallel-from LAYER
                        default: $model, $size, batch $batch, a grid as square as can be
  --kernels HOW         as for \`tessera plan\`

Which groupings, all of these together; each layer that is not named is a group of its own:
  --groups A-B,...      this one; can be repeated
  --equal 'N...'        groups of so many layers each; default: $equal; '' for none
  --all                 all with groups of up to --longest layers ($longest) that are predicted to take at most --within
                        ($within) times as long as the best of them; of these the --most ($most) that are predicted the fastest

HELP
  common_help
}

be_quick() {
  rounds=1
  steps=2
  size=96x96
  equal='1 4'
  probe_seconds=10
  out=runs/group_size-quick.csv
  figure=runs/group_size-quick.svg
}

own_flag() {
  case $1 in
    --all) all=yes taken=1 ;;
    --groups)
      [ $# -ge 2 ] || fail '--groups wants a value: see --help.'
      groupings+=("$2") taken=2
      ;;
  esac
}

# expect_choices: that what says which groupings can be understood, before anything takes time.
expect_choices() {
  local groups
  expect_numbers whole longest most
  expect_numbers positive within
  expect_numbers list equal
  for groups in "${groupings[@]}"; do
    [[ $groups =~ ^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$ ]] || fail "--groups wants layers as in 0-3,4-7, not '$groups'."
  done
}

choose_place() {
  [ $((${up:+1} + ${cluster:+1} + ${hostfile:+1} + ${local:+1} + 0)) -eq 1 ] || fail 'say where, with one of --up, --cluster, --hostfile, --local.'
  if [ -n "$up" ]; then
    may_emulate
    # shellcheck disable=SC2086 # words as the user gave them
    emulate "$(tr -s ' ' '_' <<<"${up//--/}")" $up
  elif [ -n "$cluster" ]; then
    use_cluster "$cluster"
  elif [ -n "$hostfile" ]; then
    use_hostfile "$hostfile"
  else
    use_this_machine "$local"
  fi
}

# predicted_s GROUPS: of a step with these groups; nothing where the network does not allow them.
predicted_s() {
  plan grouping "${cut[@]}" --groups "$1" 2>/dev/null || return 0
  planned prediction.step_s
}

# all_groupings LAYERS: what joining each run of layers gains by itself, and all groupings that are good enough by their sum.
all_groupings() {
  local layers=$1 first last
  say "predicting groups of up to $longest of $layers layers"
  {
    echo "single $(predicted_s "$(equal_groups 1 "$layers")")"
    for ((first = 0; first < layers; ++first)); do
      for ((last = first + 1; last < layers && last - first < longest; ++last)); do
        echo "$first $last $(predicted_s "$first-$last")"
      done
    done
  } >"$scratch/joined"
  awk -v layers="$layers" -v within="$within" -f bench/group_size/groupings.awk "$scratch/joined" | sort -g | head -n "$most" | cut -d ' ' -f 2
}

# choose_groupings: fills `groupings`, which has those that were named.
choose_groupings() {
  local layers count groups
  plan single "${cut[@]}" || fail 'this model cannot be cut so: see above.'
  layers=$(tiled_layers)
  [ "$layers" -gt 0 ] || fail 'this grid cuts no layer into tiles: give another one with --grid.'
  for groups in "${groupings[@]}"; do
    plan "groups $groups" "${cut[@]}" --groups "$groups" || fail 'such groups cannot be measured: see above.'
  done
  for count in $equal; do
    groupings+=("$(equal_groups "$count" "$layers")")
  done
  if [ "$all" = yes ]; then mapfile -t -O "${#groupings[@]}" groupings < <(all_groupings "$layers"); fi
}

measure_all() {
  local round groups
  declare -A done_before
  for ((round = 1; round <= rounds; ++round)); do
    done_before=()
    for groups in "${groupings[@]}"; do
      [ -z "${done_before[$groups]-}" ] || continue
      done_before[$groups]=yes
      measure "${groups//,/ }" "$round" "${cut[@]}" --groups "$groups"
    done
    measure auto "$round" --partition auto "${kernel_choice[@]}"
  done
}

report() {
  print_table bench/group_size/table.awk
  draw groupings "$out"
}

read_options "$@"
expect_choices
prepare
choose_place
setting "$model" "$size" "$batch"
kernel_choice=(${kernels:+--kernels "$kernels"})
cut=(${grid:+--grid "$grid"} ${data_parallel_from:+--data-parallel-from "$data_parallel_from"} "${kernel_choice[@]}")
choose_groupings
measure_all
print_machine
report
