#!/usr/bin/env bash
# Trains the ResNet on Fashion-MNIST on one rank and on four, on several seeds, and compares them: see --help.
# shellcheck source-path=SCRIPTDIR/..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bench=bench/fashion_accuracy.sh
# shellcheck source=bench/results.sh
. bench/results.sh

epochs=16
seeds='1 2 3'
program=build/release/tessera
model=models/fashion-resnet.cfg
images=/usr/share/datasets/fashion-mnist
out=runs/fashion.csv
figure=runs/fashion_loss.svg
results=bench/fashion # where --commit-results copies them

show_help() {
  cat <<HELP
Usage: bench/fashion_accuracy.sh [OPTION...] [EPOCHS [SEEDS]]

Trains $model on Fashion-MNIST on one rank (two threads) and on four (2x2 tiles, one thread each), with each seed, and compares test
accuracy and loss. Prints a table, writes a line of CSV for each seed, draws a figure of the losses. Runs are kept in
runs/fashion/RANKS-SEED: finished ones are not repeated, interrupted ones are resumed from their last checkpoint.
Default: $epochs epochs, seeds "$seeds".

  --program FILE        default: $program
  --out CSV             default: $out
  --figure FILE         default: $figure
  --commit-results      also copies CSV, origin and figure to $results.* and updates the tables in the READMEs
  --help                shows this help and exits
HELP
}

take_options 'program out figure' "$@"
[ ${#operands[@]} -le 2 ] || fail 'expected at most EPOCHS and SEEDS: see --help.'
epochs=${operands[0]:-$epochs}
seeds=${operands[1]:-$seeds}
training_pictures=60000
batch=128
epoch_steps=$(((training_pictures + batch - 1) / batch))
last_step=$(((epochs * training_pictures + batch - 1) / batch))

# finished RUN: whether the last thing it did was to test the last step.
finished() {
  [ -f "$1/metrics.jsonl" ] && tail -n 1 "$1/metrics.jsonl" | grep -q "^{\"step\": *$last_step,.*\"accuracy\""
}

# train RANKS THREADS SEED RUN
train() {
  local ranks=$1 seed=$3 run=$4 options=()
  if [ "$ranks" -eq 4 ]; then options+=(--grid 2x2); fi
  # A run of another length has another learning rate at each step: it cannot go on.
  if [ -f "$run/epochs" ] && [ "$(cat "$run/epochs")" = "$epochs" ] && [ -f "$run/checkpoint.safetensors" ]; then
    options+=(--resume "$run/checkpoint.safetensors")
  else
    mkdir -p "$run"
    rm -f "$run/log"
    options+=(--force)
    echo "$epochs" >"$run/epochs"
  fi
  OMP_NUM_THREADS=$2 mpiexec.mpich -n "$ranks" "$program" train "$model" --data "$images" --epochs "$epochs" \
    --schedule-steps $((epochs * epoch_steps)) --seed "$seed" --run "$run" --progress line "${options[@]}" \
    </dev/null >>"$run/log" 2>&1 || {
    tail -5 "$run/log" >&2
    printf '%s failed; its log is %s/log\n' "$run" "$run" >&2
    exit 1
  }
}

[ -x "$program" ] || fail "$program does not exist: run ./quickstart.sh first, or give --program."
printf '%s; %s, %d epochs, batch %d\n' "$(machine)" "$model" "$epochs" "$batch"

runs=()
for seed in $seeds; do
  for ranks in 1 4; do
    run=runs/fashion/$ranks-$seed
    runs+=("$run")
    if finished "$run"; then
      printf '%s: finished before\n' "$run"
    else
      printf '%s: training\n' "$run"
      train "$ranks" $((ranks == 1 ? 2 : 1)) "$seed" "$run"
    fi
  done
done

awk -v csv="$(in_folder "$out")" -f bench/metrics.awk -f bench/training_table.awk "${runs[@]/%//metrics.jsonl}"
if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
  /usr/bin/python3 bench/plot_training.py --out "$(in_folder "$figure")" "${runs[@]}"
else
  say 'no figure: install python3-matplotlib.'
fi
note_origin "$out"
keep_results "$out" "$figure" "$results"
