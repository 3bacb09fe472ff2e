#!/usr/bin/env bash
# Does training with Winograd's kernels end as well as with direct ones? Trains two models on several seeds with each.
#   bench/winograd_accuracy.sh [EPOCHS [SEEDS]]      default: 8 epochs, seeds "1 2 3"
#
# The models are models/fashion-resnet.cfg on Fashion-MNIST and models/small-vgg.cfg on pictures in colour that
# bench/coloured_fashion.py makes of it. Winograd's F(4x4,3x3) computes all three passes of every convolution that it
# can. Runs are kept in runs/winograd/DATA-KERNELS-SEED; those that have ended are not repeated. Prints a table.
# Needs build/release/tessera, Debian's dataset-fashion-mnist and python3-numpy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

epochs=${1:-8}
seeds=${2:-1 2 3}
program=${TESSERA:-build/release/tessera}
fashion=/usr/share/datasets/fashion-mnist
coloured=runs/coloured

# train DATA PICTURES KERNELS SEED: unless it was done before, in as many epochs.
train() {
  local data=$1 pictures=$2 kernels=$3 seed=$4 model=models/small-vgg.cfg batch=100 count=20000 run
  if [ "$data" = fashion ]; then
    model=models/fashion-resnet.cfg batch=128 count=60000
  fi
  run=runs/winograd/$data-$kernels-$seed
  local steps=$((epochs * count / batch))
  if [ -f "$run/steps" ] && [ "$(cat "$run/steps")" = "$steps" ]; then
    return
  fi
  mkdir -p "$run"
  rm -f "$run/steps"
  "$program" train "$model" --data "$pictures" --steps "$steps" --schedule-steps "$steps" --seed "$seed" --run "$run" \
    --kernels "$kernels" --progress line </dev/null >"$run/log" 2>&1 || {
    tail -5 "$run/log" >&2
    printf '%s failed; its log is %s/log\n' "$run" "$run" >&2
    exit 1
  }
  echo "$steps" >"$run/steps"
}

# accuracy RUN: of its last test, in percent.
accuracy() {
  sed -n 's/.*"accuracy": *\([0-9.]*\).*/\1/p' "$1/metrics.jsonl" | tail -n 1 | awk '{ printf "%.2f", 100 * $1 }'
}

[ -x "$program" ] || { printf '%s is not there: run ./quickstart.sh first\n' "$program" >&2; exit 2; }
[ -f "$coloured/test_batch.bin" ] || /usr/bin/python3 bench/coloured_fashion.py "$coloured"
printf '| pictures | seed | direct | winograd | difference |\n| --- | ---: | ---: | ---: | ---: |\n'
for data in fashion coloured; do
  pictures=$fashion
  [ "$data" = fashion ] || pictures=$coloured
  sums=
  for seed in $seeds; do
    train "$data" "$pictures" direct "$seed"
    train "$data" "$pictures" winograd "$seed"
    line="$(accuracy "runs/winograd/$data-direct-$seed") $(accuracy "runs/winograd/$data-winograd-$seed")"
    sums+="$line"$'\n'
    awk -v data="$data" -v seed="$seed" '{ printf "| %s | %s | %s %% | %s %% | %+.2f |\n", data, seed, $1, $2, $2 - $1 }' <<<"$line"
  done
  printf '%s' "$sums" | awk -v data="$data" '{ a += $1; b += $2 }
    END { printf "| %s | mean | %.2f %% | %.2f %% | %+.2f |\n", data, a / NR, b / NR, (b - a) / NR }'
done
