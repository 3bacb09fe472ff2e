# Predicts and measures training steps: for benches, which source this file. Start them from the project's folder.
#
# A bench says where (emulate, or choose_place), then what (setting), then calls measure for each partition. A row of $out is
# written as soon as it is measured; what is there already is not measured again, so that a bench that was interrupted goes
# on when it is started anew. README.md lists the columns.
# shellcheck shell=bash

# shellcheck source=bench/results.sh
. bench/results.sh

readonly step_columns='cluster,devices,rate_mbit,dilation,model,size,batch,name,groups,round,predicted_s,measured_s,least_s,most_s,computing_s,maps_s,statistics_s,sums_s,idle_s,messages,bytes,busiest_bytes,redundant,work_bound,planned_bytes,peak_bytes,limited_by,recomputed,settings,load'

# What every bench takes, with defaults that it may change before it reads its options.
common_options=(program model size batch rounds steps timeout out figure table probe-seconds vectors dilate slow-by)
program=build/release/tessera
model=models/yolov2-early.cfg
size=224x224
batch=1
rounds=3
steps=5
timeout=1800
out=
figure=
table=
probe_seconds=40
vectors=generic
dilate=1.2
slow_by=pace

columns=$step_columns # of $out
own_settings=() # those of a bench's own_options that change what it measures and that no other column of a row tells

common_help() {
  cat <<HELP
  --rounds N            measurements of each partition, in turn; default: $rounds
  --steps N             steps per measurement, of which the median counts; default: $steps
HELP
  emulation_help
  results_help
}

# emulation_help: of the options of all benches on emulated clusters.
emulation_help() {
  cat <<HELP
  --timeout S           time limit of a measurement; default: $timeout
  --vectors KIND        vector width of emulated devices (TESSERA_VECTORS; bench/cluster/README.md says why); default: $vectors
  --dilate K            emulated devices and links are K times as fast as real ones, and times are multiplied by K; a smaller K
                        takes longer and leaves more of this machine idle; default: $dilate
  --slow-by quota|pace  how emulated devices keep to their share of a processor; default: $slow_by
  --probe-seconds S     duration of \`tessera probe\`, once for each cluster and model; default: $probe_seconds
  --program FILE        default: $program
HELP
}

# shellcheck disable=SC2154 # `results` is set by the script that sources this
# results_help: of the options of all benches that say what happens to results.
results_help() {
  cat <<HELP
  --out CSV             where measurements are written; existing rows are kept and not measured again; default: $out
  --figure FILE         default: $figure
  --table CSV           measures nothing; prints the table and draws the figure of existing measurements
  --commit-results      also copies CSV, origin and figure to $results.* and updates the tables in the READMEs
  --quick               a few small measurements, to see that everything works; options after it still count
  --help                shows this help and exits
HELP
}

# read_options ARGUMENT...: all common_options and the bench's own_options, see take_options.
read_options() {
  take_only_options "${common_options[*]} ${own_options[*]-}" "$@"
  expect_numbers whole batch rounds steps
  expect_numbers positive timeout probe-seconds
  [ "$dilate" = max ] || expect_numbers positive dilate
}

# expect_numbers whole|positive|list OPTION...: that their values are a whole number, any number, or whole numbers with spaces between
# them, all above 0.
expect_numbers() {
  local kind=$1 option name pattern wanted
  shift
  case $kind in
    whole) pattern='^[1-9][0-9]{0,8}$' wanted='an integer above 0' ;;
    positive) pattern='^[0-9]*([1-9][0-9]*[.]?[0-9]*|[.][0-9]*[1-9][0-9]*)$' wanted='a number above 0' ;;
    list) pattern='^ *([1-9][0-9]{0,8}( +|$))*$' wanted='integers above 0, separated by spaces' ;;
  esac
  for option in "$@"; do
    name=${option//-/_}
    [[ ${!name} =~ $pattern ]] || fail "--$option: expected $wanted, not '${!name}'."
  done
}

# ---- where ----

launch=()      # starts a program on all devices
launch_each=() # starts it on each by itself, all at once; prints what the first prints, then the second, ...
devices=0      # of them
rate_mbit=     # of each device's link, where it is known
dilation=1     # of the times that are measured
cluster_label= # in the CSV
made_with=     # what makes it another cluster of the same label
warm=no        # whether anything has trained there: what comes first takes up to a third longer
made_cluster=  # to be taken down
running=       # process of what is being measured

# emulate LABEL UP_OPTION...: an emulated cluster (bench/cluster/cluster up) in place of the one before.
emulate() {
  local label=$1
  shift
  leave_cluster
  # Set before it is up: an interrupted `up` takes down what it made, and `down` does nothing then.
  made_cluster=bench-$$
  bench/cluster/cluster up "$@" --name "$made_cluster" --vectors "$vectors" --dilate "$dilate" --slow-by "$slow_by" --program "$program" >"$scratch/up" || {
    made_cluster=
    fail "the cluster $label cannot be made: see above."
  }
  use_cluster "$made_cluster"
  cluster_label=$label
  made_with="up $*; vectors ${vectors:-widest}; slow-by $slow_by"
  warm=no
}

# use_cluster NAME: one that is up.
use_cluster() {
  launch=(bench/cluster/cluster --cluster "$1" run --timeout "$timeout")
  launch_each=("${launch[@]}" --each)
  bench/cluster/cluster --cluster "$1" status --json >"$scratch/status.json" || exit 2
  devices=$(grep -c '"device"' "$scratch/status.json")
  rate_mbit=$(bench/cluster/cluster --cluster "$1" status --csv |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "rate_mbit") c = i; next }
      !seen[$c]++ { rates = rates (rates == "" ? "" : " ") $c } END { print rates }')
  dilation=$(flat_json <"$scratch/status.json" | value dilation)
  cluster_label=$1
  made_with=
}

# use_hostfile FILE: real machines, a rank for each line of MPICH's host file.
use_hostfile() {
  [ -r "$1" ] || fail "$1 cannot be read: give MPICH's host file."
  launch=(timeout "$timeout" mpiexec.mpich -f "$1" -bind-to none)
  devices=$(sed 's/#.*//' "$1" | awk 'NF { split($1, part, ":"); ranks += part[2] > 0 ? part[2] : 1 } END { print ranks + 0 }')
  cluster_label=$(basename "$1")
  made_with="hostfile $1"
}

# use_this_machine RANKS
use_this_machine() {
  [[ $1 =~ ^[1-9][0-9]*$ ]] || fail '--local: expected a number of ranks.'
  launch=(timeout "$timeout" env OMP_NUM_THREADS=1 mpiexec.mpich -n "$1")
  devices=$1
  cluster_label=local-$1
  made_with=
}

leave_cluster() {
  [ -z "$made_cluster" ] || bench/cluster/cluster --cluster "$made_cluster" down
  made_cluster=
}

# leave: whatever happens, nothing stays behind.
leave() {
  if [ -n "$running" ]; then
    kill -TERM "$running" 2>/dev/null || true
    wait "$running" 2>/dev/null || true
  fi
  leave_cluster
  rm -rf "$scratch"
}

# report_before: with --table, reports what was measured before and ends.
report_before() {
  [ -n "$table" ] || return 0
  [ -r "$table" ] || fail "$table cannot be read: --table expects a CSV of earlier measurements."
  out=$table
  report
  keep_results "$out" "$figure" "$results"
  exit 0
}

need_program() { [ -x "$program" ] || fail "$program does not exist: run ./quickstart.sh first, or give --program."; }

# prepare: what all benches that measure need, once their options are read.
prepare() {
  report_before
  need_program
  command -v mpiexec.mpich >/dev/null || fail 'mpiexec.mpich is not installed: apt-get install mpich.'
  scratch=$(mktemp -d)
  trap leave EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
  : >>"$(in_folder "$out")"
  if [ ! -s "$out" ]; then
    echo "$columns" >"$out"
  elif [ "$(head -n 1 "$out")" != "$columns" ]; then
    fail "$out has other columns than this bench writes: give another file with --out, or delete it."
  fi
}

# may_emulate: clusters are made by root only.
may_emulate() {
  bench/cluster/cluster check >"$scratch/check" 2>&1 || fail "emulated clusters cannot be made here: $(grep -m 1 -v "there$" "$scratch/check")"
}

# ---- what ----

# flat_json: of the JSON on the standard input, a line "PATH VALUE" for each value; value PATH: one of them.
flat_json() { awk -f bench/steps/flat_json.awk; }
value() { awk -v path="$1" '$1 == path { print substr($0, length($1) + 2); exit }'; }

# run COMMAND...: in the background, so that this script can be interrupted; prints what it prints.
run() {
  local code=0
  "$@" >"$scratch/printed" 2>"$scratch/log" </dev/null &
  running=$!
  wait "$running" || code=$?
  running=
  return "$code"
}

last_complaint() { grep -v '^$' "$scratch/log" | tail -n 1; }

# settings_of_rows: what a measurement depends on beside the columns before its name.
settings_of_rows() {
  local option name text="program $program; steps $steps${made_with:+; $made_with}"
  for option in "${own_settings[@]}"; do
    name=${option//-/_}
    [ -z "${!name}" ] || text+="; $option ${!name}"
  done
  tr , ' ' <<<"$text"
}

# expect_same_settings: what is in $out already is not measured again, and so must have been measured like what is still to come.
expect_same_settings() {
  local before
  before=$(awk -F, -v key="$(row_key '')" -v settings="$row_settings" '
    NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "settings") column = i; next }
    index($0, key) == 1 && $column != settings { print $column; exit }' "$out")
  [ -z "$before" ] ||
    fail "$out has rows of $cluster_label, $model_name, $size, batch $batch with other settings ($before) than these ($row_settings): give another file with --out, or delete those rows."
}

# setting MODEL SIZE BATCH: what the next measurements are of; "own" is the model's size. Probes the cluster once for each.
setting() {
  local probed_with
  model=$1 size=$2 batch=$3
  model_name=$(basename "$model" .cfg)
  sized=()
  [ "$size" = own ] || sized=(--size "$size")
  row_settings=$(settings_of_rows)
  expect_same_settings
  profile=$(in_folder "runs/profiles/$cluster_label-$dilation-$model_name-$size.cluster.toml")
  probed_with="program $program; probe-seconds $probe_seconds${made_with:+; $made_with}"
  if [ ! -s "$profile" ] || [ "$program" -nt "$profile" ] || [ "$(cat "$profile.settings" 2>/dev/null)" != "$probed_with" ]; then
    say "probing $cluster_label for $model_name, $size"
    run "${launch[@]}" "$program" probe "$model" "${sized[@]}" --seconds "$probe_seconds" --out "$profile" --force ||
      fail "tessera probe: $(last_complaint)"
    echo "$probed_with" >"$profile.settings"
  fi
}

# plan NAME PLAN_OPTION...: leaves the plan in $scratch/plan, flat, and the partition in a file for `time`; also of what does not fit
# (exit code 3), as its prediction says.
plan() {
  local name=$1 ranks=${ranks:-$devices}
  shift
  partition=$scratch/$name.toml
  run "$program" plan "$model" "${sized[@]}" --batch "$batch" --ranks "$ranks" --cluster "$profile" --json --save "$partition" "$@" || [ $? -eq 3 ] || {
    say "$name: $(last_complaint)"
    return 1
  }
  flat_json <"$scratch/printed" >"$scratch/plan"
}

planned() { value "$1" <"$scratch/plan"; }

# row_key NAME: the first columns of a row.
row_key() { printf '%s,%s,%s,%s,%s,%s,%s,%s' "$cluster_label" "$devices" "$rate_mbit" "$dilation" "$model_name" "$size" "$batch" "$1"; }

# is_measured NAME ROUND
is_measured() {
  awk -F, -v key="$(row_key "$1")" -v round="$2" 'index($0, key ",") == 1 && $10 == round { found = 1; exit } END { exit !found }' "$out"
}

# write_row NAME ROUND LIMITED_BY: of the flat $scratch/plan and $scratch/measured.
write_row() {
  local load
  read -r load _ </proc/loadavg
  awk -v key="$(row_key "$1")" -v round="$2" -v limited_by="$3" -v dilation="$dilation" -v settings="$row_settings" -v load="$load" \
    -f bench/steps/row.awk "$scratch/plan" "$scratch/measured" >>"$out"
}

# time_step STEPS: of the partition of the last plan.
time_step() { run "${launch[@]}" "$program" time "$model" "${sized[@]}" --batch "$batch" --steps "$1" --partition "$partition" --parts --json; }

# warm_up: a step that is not counted, if it is the first.
warm_up() {
  [ "$warm" = yes ] || time_step 1 || true
  warm=yes
}

# measure NAME ROUND PLAN_OPTION...: a row. Without a time where the plan does not fit into memory, or the run failed.
measure() {
  local name=$1 round=$2 limited_by line
  shift 2
  if is_measured "$name" "$round"; then return 0; fi
  plan "$name" "$@" || return 0
  limited_by=$(planned prediction.limited_by)
  : >"$scratch/measured"
  if [ "$(planned prediction.fits)" = false ]; then
    limited_by=memory
  elif warm_up && time_step "$steps"; then
    while read -r line; do flat_json <<<"$line"; done <"$scratch/printed" |
      awk -f bench/median.awk -f bench/steps/measured.awk >"$scratch/measured"
  else
    say "$name: $(last_complaint)"
  fi
  write_row "$name" "$round" "$limited_by"
  say "$(tail -n 1 "$out" | awk -F, '{ printf "%s, %s, %s, batch %s, %s: predicted %.3g s, measured %s", $1, $5, $6, $7, $8, $11, $12 == "" ? "nothing" : sprintf("%.3g s", $12) }')"
}

# measure_each ROUND: a row called "each", of a device that trains alone while all others do the same. That is what several devices
# are to be compared with: emulated ones that are busy at the same time slow each other down, which real ones do not.
measure_each() {
  local ranks=1 launch=("${launch_each[@]}")
  measure each "$1" --partition auto
}

# equal_groups LAYERS_A_GROUP LAYERS: "0-1,2-3,4" of 2 and 5.
equal_groups() {
  awk -v size="$1" -v layers="$2" 'BEGIN {
    for (first = 0; first < layers; first += size) {
      last = first + size > layers ? layers - 1 : first + size - 1
      printf "%s%s", (first ? "," : ""), (last > first ? first "-" last : first)
    }
  }'
}

# tiled_layers: of the plan in $scratch/plan, the layers before the first that is not cut into rows or columns.
tiled_layers() { awk -f bench/steps/tiled_layers.awk "$scratch/plan"; }

# ---- what came out ----

# print_table AWK_FILE: of $out, with the functions and medians of rows.awk.
print_table() { awk -f bench/median.awk -f bench/steps/rows.awk -f "$1" "$out"; }

# shellcheck disable=SC2154 # `results` is set by the script that sources this
# finish: what a bench does once all is measured.
finish() {
  note_origin "$out"
  report
  keep_results "$out" "$figure" "$results"
}

# draw KIND FILE...: the figure, if there is matplotlib to draw it with.
draw() {
  if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
    /usr/bin/python3 bench/plot_steps.py "$1" --out "$(in_folder "$figure")" "${@:2}"
  else
    say 'no figure: install python3-matplotlib.'
  fi
}

print_machine() {
  printf '%s, load average %s; %s vectors, dilation %s, slow by %s\n\n' \
    "$(machine)" "$(cut -d ' ' -f 1-3 /proc/loadavg)" "${vectors:-widest}" "$dilation" "$slow_by"
}
