#!/usr/bin/env bash
# Which layers to fuse into groups: predicts and measures a step for each grouping. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/group_size/run.sh
. bench/steps/steps.sh

own_options=(grid data-parallel-from equal longest within most up cluster hostfile local rates layers kernels)
own_settings=(grid tiled data-parallel-from kernels)
out=runs/group_size.csv
figure=runs/group_size.svg
results=bench/group_size/group_size # where --commit-results copies them
batch=4
grid=
data_parallel_from=
equal=
longest=8
within=1.1
most=24
up=
cluster=
hostfile=
local=
rates='100 20 5'
layers=
kernels=
all=no
groupings=()
default_layers=8
default_equal='1 2 4 8'

show_help() {
  cat <<HELP
Usage: bench/group_size/run.sh [OPTION...]

Which layers to fuse into groups, for a given cut, link rate and batch. For each grouping of the tiled layers: predicted and measured
step time, what a mean device spends it on (computing, redundant computing, exchange of maps, batch statistics, gradient reduction,
idling), bytes and messages, memory. What --partition auto finds, however it cuts, is measured beside them. Writes a line of CSV for
each measurement, prints a Markdown table and a sentence for each setting, the best first, and draws a figure.

Where, one of:
  --up 'OPTIONS'        an emulated cluster, made for this bench and taken down again; OPTIONS of \`bench/cluster/cluster up\`, for
                        example --up pi3x4 or --up '--devices 6 --rate 20' (needs root)
  --cluster NAME        an emulated cluster that is already up
  --hostfile FILE       real machines, from MPICH's host file; start the bench on the first of them
  --local N             N ranks on this machine
  --rates 'MBIT...'     four emulated Raspberry Pi 3, with links of each of these rates in turn (needs root); default: $rates

What:
  --model FILE          default: $model, the first $default_layers layers of it
  --layers N            the first N layers of the model; otherwise all of it
  --size HxW | own, --batch N, --grid RxC, --data-parallel-from LAYER
                        default: $size, batch $batch, the squarest grid, tiles up to the first layer that cannot be tiled
  --kernels HOW         as for \`tessera plan\`

Which groupings; these options add up, and each layer that is not named is a group of its own. Default: groups of 1, 2, 4 and 8
layers, and the first half of the layers as one group:
  --groups A-B,...      this grouping; can be repeated
  --equal 'N...'        groups of N layers each
  --all                 all groupings with groups of up to --longest layers ($longest) whose predicted time is at most --within
                        ($within) times that of the best one; of these the --most ($most) fastest by prediction

HELP
  common_help
}

be_quick() {
  rounds=1
  steps=2
  size=96x96
  rates=20
  default_equal='1 8'
  probe_seconds=10
  out=runs/group_size-quick.csv
  figure=runs/group_size-quick.svg
}

own_flag() {
  case $1 in
    --all) all=yes taken=1 ;;
    --groups)
      [ $# -ge 2 ] || fail '--groups needs a value: see --help.'
      groupings+=("$2") taken=2
      ;;
  esac
}

# expect_choices: that what says which groupings can be understood, before anything takes time.
expect_choices() {
  local groups
  expect_numbers whole longest most
  expect_numbers positive within
  expect_numbers list equal rates
  [ -z "$layers" ] || expect_numbers whole layers
  for groups in "${groupings[@]}"; do
    [[ $groups =~ ^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$ ]] || fail "--groups: expected layers as in 0-3,4-7, not '$groups'."
  done
}

# expect_place: at most one is named.
expect_place() {
  [ $((${up:+1} + ${cluster:+1} + ${hostfile:+1} + ${local:+1} + 0)) -le 1 ] || fail 'give only one of --up, --cluster, --hostfile and --local.'
}

# choose_place RATE: where the next measurements are made. RATE counts where no place was named.
choose_place() {
  if [ -z "$cluster$hostfile$local" ]; then may_emulate; fi
  if [ -n "$up" ]; then
    # shellcheck disable=SC2086 # words as the user gave them
    emulate "$(tr -s ' ' '_' <<<"${up//--/}")" $up
  elif [ -n "$cluster" ]; then
    use_cluster "$cluster"
  elif [ -n "$hostfile" ]; then
    use_hostfile "$hostfile"
  elif [ -n "$local" ]; then
    use_this_machine "$local"
  else
    emulate "pi3x4-$1" --devices 4 --rate "$1"
  fi
}

# choose_model: the first layers of it, where only these are wanted, as a model of their own.
choose_model() {
  local whole=$model
  [ -n "$layers" ] || [ "$model" != "$default_model" ] || layers=$default_layers
  [ -n "$layers" ] || return 0
  [ -r "$whole" ] || fail "$whole cannot be read: give a model with --model."
  model=$(in_folder "runs/models/$(basename "$whole" .cfg)-first-$layers.cfg")
  awk -v sections="$((layers + 1))" '/^\[/ { ++count } count <= sections' "$whole" >"$model"
}

# choose_cut: the grid where none was given, and how many layers it tiles; a plan for equal devices says so without a profile.
choose_cut() {
  local sized=()
  [ "$size" = own ] || sized=(--size "$size")
  [ -n "$grid" ] || grid=$(awk -v n="$devices" 'BEGIN { for (rows = int(sqrt(n)); n % rows; --rows); print rows "x" n / rows }')
  kernel_choice=(${kernels:+--kernels "$kernels"})
  cut=(--grid "$grid" ${data_parallel_from:+--data-parallel-from "$data_parallel_from"} "${kernel_choice[@]}")
  run "$program" plan "$model" "${sized[@]}" --batch "$batch" --ranks "$devices" --json "${cut[@]}" || fail "this model cannot be cut like this: $(last_complaint)"
  flat_json <"$scratch/printed" >"$scratch/plan"
  tiled=$(tiled_layers)
  [ "$tiled" -gt 0 ] || fail 'this grid cuts no layer into tiles: give another one with --grid.'
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

# choose_groupings: fills `chosen`, those that were named first.
choose_groupings() {
  local count groups half
  for groups in "${groupings[@]}"; do
    plan "groups $groups" "${cut[@]}" --groups "$groups" || fail 'these groups cannot be measured: see above.'
  done
  chosen=("${groupings[@]}")
  for count in $equal; do
    chosen+=("$(equal_groups "$count" "$tiled")")
  done
  if [ "$all" = yes ]; then mapfile -t -O "${#chosen[@]}" chosen < <(all_groupings "$tiled"); fi
  [ "${#chosen[@]}" -eq 0 ] || return 0
  for count in $default_equal; do
    chosen+=("$(equal_groups "$count" "$tiled")")
  done
  half=$((tiled / 2))
  [ "$half" -lt 2 ] || chosen+=("0-$((half - 1))")
}

# name_of GROUPS: in words, without commas.
name_of() { awk -v groups="$1" -v layers="$tiled" -f bench/group_size/name.awk; }

measure_all() {
  local round groups
  declare -A done_before
  for ((round = 1; round <= rounds; ++round)); do
    done_before=()
    for groups in "${chosen[@]}"; do
      [ -z "${done_before[$groups]-}" ] || continue
      done_before[$groups]=yes
      measure "$(name_of "$groups")" "$round" "${cut[@]}" --groups "$groups"
    done
    measure auto "$round" --partition auto "${kernel_choice[@]}"
  done
}

# measure_place RATE
measure_place() {
  choose_place "$1"
  choose_cut
  setting "$model" "$size" "$batch"
  choose_groupings
  measure_all
}

# of_settings AWK_FILE
of_settings() { awk -f bench/median.awk -f bench/steps/rows.awk -f bench/group_size/settings.awk -f "bench/group_size/$1" "$out"; }

report() {
  local words
  words=$(mktemp)
  of_settings verdict.awk
  of_settings table.awk
  of_settings conclusion.awk >"$words"
  [ ! -s "${out%.csv}.origin" ] || awk '{ printf "%s%s", (NR > 1 ? "; " : ""), $0 } END { print "." }' "${out%.csv}.origin" >>"$words"
  printf '\n'
  cat "$words"
  draw groupings "$out" --caption "$words"
  rm "$words"
}

default_model=$model
read_options "$@"
expect_choices
expect_place
choose_model
prepare
if [ -n "$up$cluster$hostfile$local" ]; then rates=; fi
for rate in ${rates:-none}; do
  measure_place "$rate"
done
finish
