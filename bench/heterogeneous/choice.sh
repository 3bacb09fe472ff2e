#!/usr/bin/env bash
# Whether `tessera choose` chooses the best devices: what it chooses against all sets of devices, measured. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/heterogeneous/choice.sh
. bench/steps/steps.sh
. bench/heterogeneous/models.sh

own_options=(models clusters objectives data hours)
out=runs/heterogeneous/choice.csv
results=bench/heterogeneous/choice # where --commit-results copies them
rounds=2
dilate=1
models='lenet5:64 fashion-resnet:32 mobilenetv2-96:4 yolov2-tiny-160:4 yolov2-early-224:2'
clusters=bench/heterogeneous/choice.clusters
objectives='time power energy edp'
data=/usr/share/datasets/fashion-mnist
hours=1

show_help() {
  cat <<HELP
Usage: bench/heterogeneous/choice.sh [OPTION...]

For each model on each of several mixed clusters of emulated devices: tries all sets of devices once (\`tessera choose --try-all\`), which
says what is best for each objective; then lets \`tessera choose\` choose for each objective, in a run of an hour that ends with the
choice. A line of CSV for each: which set is the best and which was chosen, how much worse it is, and what trials took of the hour. Power
is that of the boards by the table, and of how long each device computed. Needs root. With the defaults it takes about three hours; the
machine should be otherwise idle. An interrupted bench goes on when it is started again.

  --models 'NAME:BATCH...'
                        default: $models
  --clusters FILE       a cluster per line, LABEL DESCRIPTION BOARD...; default: $clusters
  --objectives 'NAME...'
                        default: $objectives
  --hours H             length of the runs that devices are chosen for; default: $hours
  --data FOLDER         default: $data
  --rounds N            how often all sets are tried, of which medians count; default: $rounds
  --probe-seconds S     duration of \`tessera probe\`, once for each cluster and model; default: $probe_seconds
  --dilate K, --vectors KIND, --slow-by quota|pace, --timeout S, --program FILE
                        as in bench/choice; defaults: $dilate, $vectors, $slow_by, $timeout, $program
HELP
  results_help | grep -v -e --figure
}

be_quick() {
  models='lenet5:64'
  objectives='time energy'
  rounds=1
  probe_seconds=10
  hours=0.05
  out=runs/heterogeneous/choice-quick.csv
}

# with_boards BOARD...: the profile with the board of each device, by which plans know its power. Devices that measure alike share a
# description, so they are of one board.
with_boards() {
  awk -v boards="$*" '
    BEGIN { split(boards, board, " ") }
    { print }
    /^names = \[/ { split($0, part, "\""); sub(/^pi/, "", part[2]); name = board[part[2]] }
    /^elementwise_bytes_per_s/ { printf "board = \"%s\"\n", name }' "$profile" >"$scratch/profile.toml"
}

# describe LABEL DESCRIPTION BOARD...: leaves $kept/LABEL.devices, the description with the board of each device, by which choice_rows.py knows like ones.
describe() {
  local label=$1 description=$2
  shift 2
  [ -f "$description" ] || description=bench/cluster/$description.devices
  awk -v boards="$*" '
    BEGIN { split(boards, board, " ") }
    { sub(/#.*/, "") }
    NF { print $0, "board=" board[++devices] }' "$description" >"$kept/$label.devices"
}

# choose RUN_NAME CHOOSE_OPTION...: leaves $kept/RUN_NAME.json and, in RUN_NAME.seconds, the time until the choice. Training ends with it.
choose() {
  local name=$1 folder=$scratch/run
  shift
  [ ! -s "$kept/$name.json" ] || return 0
  rm -rf "$folder"
  "${launch[@]}" "$program" choose "$model_file" --data "$data" --batch "$batch" --cluster "$scratch/profile.toml" --no-eval --progress none \
    --meter none --run "$folder" "$@" >"$scratch/printed" 2>"$scratch/log" </dev/null &
  running=$!
  while kill -0 "$running" 2>/dev/null && [ ! -s "$folder/choice.json" ]; do sleep 0.2; done
  kill -TERM "$running" 2>/dev/null || true
  wait "$running" 2>/dev/null || true
  running=
  [ -s "$folder/choice.json" ] || {
    say "$name: $(last_complaint)"
    return 1
  }
  awk -F'[:,]' '/"kind":"choose"/ { print $2 }' "$folder/events.jsonl" >"$kept/$name.seconds"
  cp "$folder/choice.json" "$kept/$name.json"
  say "$name: $(grep '^chosen: ' "$scratch/printed" | cut -d ' ' -f 2-)"
}

# least_step_s FILE...: of all sets that were measured.
least_step_s() { cat "$@" | awk -F'[:,]' '/"measured_step_s": [0-9]/ && (least == "" || $2 < least) { least = $2 } END { print least + 0 }'; }

measure_model() { # NAME BATCH BOARD...
  local name=$1 images=$2 round objective length key
  shift 2
  model_file=$scratch/$name.cfg
  made_model "$name" >"$model_file" || fail "--models: there is no '$name'."
  setting "$model_file" own "$images"
  with_boards "$@"
  key=$cluster_label@$name # labels and names may have hyphens
  for ((round = 1; round <= rounds; ++round)); do
    choose "$key@all@$round" --objective energy --try-all --steps 1000000 || return 0
  done
  length=$(awk -v step="$(least_step_s "$kept/$key"@all@*.json)" -v hours="$hours" 'BEGIN { printf "%d", 3600 * hours / step }')
  for objective in $objectives; do
    choose "$key@$objective" --objective "$objective" --steps "$length" || true
  done
}

measure_all() {
  local label description boards entry
  while read -r -u 3 label description boards; do
    case $label in '' | '#'*) continue ;; esac
    emulate "$label" "$description"
    # shellcheck disable=SC2086 # a list
    describe "$label" "$description" $boards
    for entry in $models; do
      # shellcheck disable=SC2086 # a list
      measure_model "${entry%%:*}" "${entry##*:}" $boards
    done
  done 3<"$clusters"
}

report() { awk -f bench/heterogeneous/choice_table.awk "$out"; }

read_options "$@"
report_before
need_program
[ "$(id -u)" -eq 0 ] || fail 'emulated clusters are made by root only.'
scratch=$(mktemp -d)
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
kept=${out%.csv}.runs
mkdir -p "$kept"
touch "$out"
may_emulate
measure_all
/usr/bin/python3 bench/heterogeneous/choice_rows.py "$kept" --hours "$hours" >"$out.part"
mv "$out.part" "$out"
print_machine
finish
