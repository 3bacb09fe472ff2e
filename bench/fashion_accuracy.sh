#!/usr/bin/env bash
# Trains the ResNet on Fashion-MNIST with 1 rank and with 4 ranks (2x2 tiles), on several seeds, and compares them.
#   bench/fashion_accuracy.sh [EPOCHS [SEEDS]]      default: 16 epochs, seeds "1 2 3"
#
# Runs are kept in runs/fashion/RANKS-SEED: finished ones are not repeated, interrupted ones go on from their last
# checkpoint. 1 rank has 2 threads, 4 ranks have 1 each. Prints a table and draws bench/fashion_loss.svg.
# Needs build/release/tessera (see quickstart.sh), and python3-matplotlib for the figure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

epochs=${1:-16}
seeds=${2:-1 2 3}
program=build/release/tessera
model=models/fashion-resnet.cfg
images=/usr/share/datasets/fashion-mnist
figure=bench/fashion_loss.svg
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

[ -x "$program" ] || { printf '%s is not there: run ./quickstart.sh first\n' "$program" >&2; exit 2; }
printf '%s, %s processors; %s, %d epochs, batch %d\n' \
  "$(sed -n 's/^\(model name\|Model\)[^:]*: *//p' /proc/cpuinfo | head -1)" "$(nproc)" "$model" "$epochs" "$batch"

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

awk -f bench/metrics.awk -f bench/training_table.awk "${runs[@]/%//metrics.jsonl}"
if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
  /usr/bin/python3 bench/plot_training.py --out "$figure" "${runs[@]}"
else
  printf 'No figure: install python3-matplotlib for it.\n'
fi
