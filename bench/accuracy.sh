#!/usr/bin/env bash
# Does training end as well with something faster as without? Trains with both on several seeds; prints a table.
#   bench/accuracy.sh kernels [EPOCHS [SEEDS [DATA]]]      Winograd's kernels beside direct ones
#   bench/accuracy.sh sums [EPOCHS [SEEDS]]                sums of gradients in 16 bits beside exact ones
# EPOCHS: 8 if not given; SEEDS: "1 2 3"; DATA: "fashion coloured"
#
# kernels: models/fashion-resnet.cfg on Fashion-MNIST and models/small-vgg.cfg on pictures in colour that
# bench/coloured_fashion.py makes of it, one rank. F(4x4,3x3) computes all three passes of every convolution that it can.
# sums: models/lenet5.cfg on Fashion-MNIST, four ranks that share out images: all gradients and new values travel.
#
# Runs are kept in runs/accuracy/WHAT-DATA-VARIANT-SEED; those that have ended are not repeated.
# Needs build/release/tessera, Debian's dataset-fashion-mnist and, for pictures in colour, python3-numpy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

what=${1-}
epochs=${2:-8}
seeds=${3:-1 2 3}
wanted=${4:-fashion coloured}
program=${TESSERA:-build/release/tessera}
fashion=/usr/share/datasets/fashion-mnist
coloured=runs/coloured

# describe DATA: sets what is trained on it: model, pictures, batch, count (of training pictures), launcher, options.
describe() {
  launcher=() options=()
  case $what-$1 in
    kernels-fashion) model=models/fashion-resnet.cfg pictures=$fashion batch=128 count=60000 ;;
    kernels-coloured) model=models/small-vgg.cfg pictures=$coloured batch=100 count=20000 ;;
    sums-fashion)
      model=models/lenet5.cfg pictures=$fashion batch=64 count=60000
      launcher=(env OMP_NUM_THREADS=1 mpiexec.mpich -n 4)
      options=(--data-parallel-from 0)
      ;;
    *) printf 'no pictures are called %s here\n' "$1" >&2 && exit 2 ;;
  esac
}

# train DATA VARIANT SEED: unless it was done before, in as many epochs.
train() {
  local data=$1 variant=$2 seed=$3 run=runs/accuracy/$what-$1-$2-$3 steps
  describe "$data"
  steps=$((epochs * count / batch))
  if [ -f "$run/steps" ] && [ "$(cat "$run/steps")" = "$steps" ]; then
    return
  fi
  mkdir -p "$run"
  rm -f "$run/steps"
  "${launcher[@]}" "$program" train "$model" --data "$pictures" --batch "$batch" --steps "$steps" --schedule-steps "$steps" --seed "$seed" \
    --run "$run" --force "--$what" "$variant" --progress line "${options[@]}" </dev/null >"$run/log" 2>&1 || {
    tail -5 "$run/log" >&2
    printf '%s failed; its log is %s/log\n' "$run" "$run" >&2
    exit 1
  }
  echo "$steps" >"$run/steps"
}

# accuracy DATA VARIANT SEED: of the run's last test, in percent.
accuracy() {
  sed -n 's/.*"accuracy": *\([0-9.]*\).*/\1/p' "runs/accuracy/$what-$1-$2-$3/metrics.jsonl" | tail -n 1 | awk '{ printf "%.2f", 100 * $1 }'
}

# compare DATA PLAIN FASTER: trains with both, prints a row for each seed and one for their means.
compare() {
  local data=$1 seed line lines=
  for seed in $seeds; do
    train "$data" "$2" "$seed"
    train "$data" "$3" "$seed"
    line="$(accuracy "$data" "$2" "$seed") $(accuracy "$data" "$3" "$seed")"
    lines+="$line"$'\n'
    awk -v data="$data" -v seed="$seed" '{ printf "| %s | %s | %s %% | %s %% | %+.2f |\n", data, seed, $1, $2, $2 - $1 }' <<<"$line"
  done
  printf '%s' "$lines" | awk -v data="$data" '{ a += $1; b += $2 }
    END { printf "| %s | mean | %.2f %% | %.2f %% | %+.2f |\n", data, a / NR, b / NR, (b - a) / NR }'
}

print_header() { printf '| pictures | seed | %s | %s | difference |\n| --- | ---: | ---: | ---: | ---: |\n' "$@"; }

[ -x "$program" ] || { printf '%s is not there: run ./quickstart.sh first\n' "$program" >&2; exit 2; }
case $what in
  kernels)
    [ -f "$coloured/test_batch.bin" ] || /usr/bin/python3 bench/coloured_fashion.py "$coloured"
    print_header direct winograd
    for data in $wanted; do compare "$data" direct winograd; done
    ;;
  sums)
    print_header exact half
    compare fashion exact half
    ;;
  *)
    sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
