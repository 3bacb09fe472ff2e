#!/usr/bin/env bash
# Fine-tunes the last layers for other classes on frozen ones, beside training all of them: see --help.
# shellcheck source-path=SCRIPTDIR/..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bench=bench/fine_tuning.sh
# shellcheck source=bench/results.sh
. bench/results.sh

epochs=4
freeze='5 7'
seeds='1 2 3'
program=build/release/tessera
model=models/fashion-resnet.cfg
images=/usr/share/datasets/fashion-mnist
pictures=30000
out=runs/fine_tuning.csv
results=bench/fine_tuning # where --commit-results copies them

show_help() {
  cat <<HELP
Usage: bench/fine_tuning.sh [OPTION...]

Trains $model on classes 0 to 4 of Fashion-MNIST; then for classes 5 to 9, on one rank with one thread: all of it from random weights
("full"), and only the layers behind a frozen trunk, which has the first training's weights. Compares test accuracy, processor time of
the training and memory. Writes a line of CSV for each run. Runs are kept in runs/fine_tuning/VARIANT-SEED; finished ones are not
repeated. Needs Debian's dataset-fashion-mnist and python3-numpy.

  --epochs N            of each run (default: $epochs)
  --freeze 'LAYER...'   last frozen layers to try (default: '$freeze')
  --seeds 'SEED...'     default: '$seeds'
  --pictures N          of each half to learn from, at most (default: $pictures)
  --program FILE        default: $program
  --out CSV             default: $out
  --commit-results      also copies CSV and origin to $results.*
  --help                shows this help and exits
HELP
}

# train RUN HALF SEED ARGUMENT...: notes the processor time that it took.
train() {
  local run=$1 half=$2 seed=$3
  shift 3
  if [ -f "$run/processor_s" ] && [ "$(cat "$run/settings")" = "$epochs $pictures" ]; then
    printf '%s: finished before\n' "$run"
    return
  fi
  printf '%s: training\n' "$run"
  mkdir -p "$run"
  rm -f "$run/processor_s"
  {
    TIMEFORMAT='%U %S'
    time OMP_NUM_THREADS=1 "$program" train "$five" --data "$data/$half" --run "$run" --force --epochs "$epochs" \
      --schedule-steps "$schedule_steps" --seed "$seed" --no-eval --progress none "$@" </dev/null >"$run/log" 2>&1 || {
      tail -5 "$run/log" >&2
      exit 1
    }
  } 2>"$run/seconds"
  printf '%s %s\n' "$epochs" "$pictures" >"$run/settings"
  awk 'END { print $1 + $2 }' "$run/seconds" >"$run/processor_s"
}

# accuracy RUN HALF: of its last weights on the pictures for testing.
accuracy() {
  OMP_NUM_THREADS=1 "$program" eval "$five" --data "$data/$2" --weights "$1/checkpoint.safetensors" --json 2>/dev/null |
    sed 's/.*"accuracy": *\([0-9.e-]*\).*/\1/'
}

# bytes RUN KIND...: what rank 0 took of these kinds of memory.
bytes() {
  local file=$1/memory.json
  shift
  # shellcheck disable=SC2016 # the $ are perl's
  perl -0777 -ne 'BEGIN { @kinds = splice(@ARGV, 0, -1) } my ($measured) = /"measured": \{(.*?)\}/s or exit 1;
    my $sum = 0; for (@kinds) { $sum += $1 if $measured =~ /"$_": (\d+)/ } print $sum' "$@" "$file"
}

# row VARIANT FROZEN SEED HALF
row() {
  local run=runs/fine_tuning/$1-$3
  printf '%s,%s,%s,%s,%s,%s,%s,%s,%s\n' "$1" "$2" "$3" "$epochs" "$(grep -c '"step_s"' "$run/metrics.jsonl")" \
    "$(accuracy "$run" "$4")" "$(cat "$run/processor_s")" \
    "$(bytes "$run" weights gradients optimizer activations workspace messages)" "$(bytes "$run" peak_resident)"
}

take_only_options 'epochs freeze seeds pictures program out' "$@"
[ -x "$program" ] || fail "$program does not exist: run ./quickstart.sh first, or give --program."
data=runs/fine_tuning/data-$pictures
five=runs/fine_tuning/five.cfg
batch=$(sed -n 's/^batch=//p' "$model")
mkdir -p runs/fine_tuning
[ -f "$data/second/labels.txt" ] || /usr/bin/python3 bench/fashion_halves.py "$data" --pictures "$pictures" --images "$images"
sed 's/^output=10$/output=5/' "$model" >"$five"
count=$(($(stat -c %s "$data/second/train-labels-idx1-ubyte") - 8))
schedule_steps=$(((epochs * count + batch - 1) / batch))
printf '%s; %s, %d epochs of %d pictures, batch %d\n' "$(machine)" "$model" "$epochs" "$count" "$batch"

for seed in $seeds; do
  trunk=runs/fine_tuning/trunk-$seed
  train "$trunk" first "$seed"
  train "runs/fine_tuning/full-$seed" second "$seed"
  for layer in $freeze; do
    train "runs/fine_tuning/frozen$layer-$seed" second "$seed" --weights "$trunk/checkpoint.safetensors" --freeze "$layer"
  done
done
{
  echo variant,frozen,seed,epochs,steps,accuracy,processor_s,network_bytes,peak_resident_bytes
  for seed in $seeds; do
    row trunk '' "$seed" first
    row full '' "$seed" second
    for layer in $freeze; do
      row "frozen$layer" "$layer" "$seed" second
    done
  done
} >"$(in_folder "$out")"
cat "$out"
note_origin "$out"
keep_results "$out" "$results"
