#!/usr/bin/env bash
# Trains a detector on a composed data set, on four ranks and on one, and compares what was learnt: see --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/detection/run.sh
# shellcheck source=bench/results.sh
. bench/results.sh

steps=
ranks_list='4 1'
seeds=1
threads=2
pictures=8000
test_pictures=500
size=160x160
program=build/release/tessera
model=models/yolov4-tiny-clothes.cfg
cut='--grid 2x2 --data-parallel-from 18'
out=
figure=
results=bench/detection/detection # where --commit-results copies them

show_help() {
  cat <<HELP
Usage: bench/detection/run.sh [OPTION...]

Composes a data set for object detection from Fashion-MNIST (\`tessera make-detection-set\`), and trains $model on it from
random weights: on four ranks with one thread each, whose early layers are 2x2 tiles and whose later layers share the images, and on one
rank. Prints the mean average precision of both on the pictures for testing, and the time that the runs took, processor time
too (four ranks on two processors take turns). Writes a line of CSV for each run, and a figure of loss and precision with the first seed. Runs
are kept in runs/detection/MODEL/RANKS-SEED: finished ones are not repeated, interrupted ones are resumed from their last checkpoint.

  --steps N             of each run (default: the model's max_batches)
  --ranks-list 'N...'   default: '$ranks_list'
  --seeds 'N...'        default: '$seeds'
  --threads N           of the one rank; default: $threads
  --pictures N          for training (default: $pictures)
  --test-pictures N     default: $test_pictures
  --cut OPTIONS         of the four ranks (default: '$cut')
  --model FILE          default: $model
  --program FILE        default: $program
  --out CSV             default: runs/detection-MODEL.csv
  --figure FILE         default: runs/detection-MODEL.svg
  --results NAME        where --commit-results copies them; default: $results
  --commit-results      also copies CSV, origin and figure to NAME.csv, ... and updates the tables in the READMEs
  --help                shows this help and exits
HELP
}

take_only_options 'steps ranks-list seeds threads pictures test-pictures cut model program out figure results' "$@"
[ -x "$program" ] || fail "$program does not exist: run ./quickstart.sh first, or give --program."
[ -f "$model" ] || fail "$model does not exist."
last_step=${steps:-$(sed -n 's/^max_batches *= *//p' "$model")}
data=runs/detection/set-$size-$pictures
name=$(basename "$model" .cfg)
out=${out:-runs/detection-$name.csv}
figure=${figure:-runs/detection-$name.svg}

# value FILE KEY: the last value that a file of JSON lines, or a JSON file, has for a key of a number.
value() { grep -o "\"$2\": *[0-9.e+-]*" "$1" | tail -n 1 | sed 's/.*: *//'; }

finished() { [ -f "$1/processor_s" ] && [ "$(cat "$1/steps" 2>/dev/null)" = "$last_step" ]; }

# train RANKS SEED RUN: adds the seconds, and those of its processes on processors, to RUN/elapsed_s and RUN/processor_s.
train() {
  local ranks=$1 seed=$2 run=$3 options=(--steps "$last_step") count=$threads began=$SECONDS
  if [ "$ranks" -gt 1 ]; then
    count=1
    # shellcheck disable=SC2206 # several options
    options+=($cut)
  fi
  if [ -f "$run/checkpoint.safetensors" ] && [ "$(cat "$run/steps" 2>/dev/null)" = "to $last_step" ]; then
    options+=(--resume "$run/checkpoint.safetensors")
  else
    rm -rf "$run"
    mkdir -p "$run"
    options+=(--force)
    echo "to $last_step" >"$run/steps"
  fi
  {
    TIMEFORMAT='%U %S'
    time OMP_NUM_THREADS=$count mpiexec.mpich -n "$ranks" "$program" train "$model" --data "$data/detection.data" --seed "$seed" \
      --run "$run" --progress line "${options[@]}" </dev/null >>"$run/log" 2>&1 || {
      tail -5 "$run/log" >&2
      printf '%s failed; its log is %s/log\n' "$run" "$run" >&2
      exit 1
    }
  } 2>>"$run/seconds"
  awk '{ sum += $1 + $2 } END { print sum }' "$run/seconds" >"$run/processor_s"
  echo $((SECONDS - began)) >>"$run/elapsed"
  awk '{ sum += $1 } END { print sum }' "$run/elapsed" >"$run/elapsed_s"
  echo "$last_step" >"$run/steps"
}

# row RANKS SEED
row() {
  local run=runs/detection/$name/$1-$2
  printf '%s,%s,%s,%s,%s,%s,%s,%s,%s\n' "$1" "$2" "$last_step" "$(sed -n 's/^batch *= *//p' "$model")" \
    "$(value "$run/evaluation.json" AP50)" "$(value "$run/evaluation.json" AP)" "$(value "$run/metrics.jsonl" test_loss)" \
    "$(cat "$run/elapsed_s")" "$(cat "$run/processor_s")"
}

printf '%s; %s, %s steps\n' "$(machine)" "$model" "$last_step"
[ -f "$data/detection.data" ] ||
  "$program" make-detection-set "$data" --pictures "$pictures" --test-pictures "$test_pictures" --size "$size" --seed 1
runs=()
for seed in $seeds; do
  for ranks in $ranks_list; do
    run=runs/detection/$name/$ranks-$seed
    [ "$seed" != "${seeds%% *}" ] || runs+=("$run")
    if finished "$run"; then
      printf '%s: finished before\n' "$run"
    else
      printf '%s: training\n' "$run"
      train "$ranks" "$seed" "$run"
    fi
  done
done
{
  echo ranks,seed,steps,batch,map50,map,test_loss,elapsed_s,processor_s
  for ranks in $ranks_list; do
    for seed in $seeds; do
      row "$ranks" "$seed"
    done
  done
} >"$(in_folder "$out")"
cat "$out"
if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
  /usr/bin/python3 bench/detection/plot.py --out "$(in_folder "$figure")" "${runs[@]}"
else
  say 'no figure: install python3-matplotlib.'
fi
note_origin "$out"
keep_results "$out" "$figure" "$results"
