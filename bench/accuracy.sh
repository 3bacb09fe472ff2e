#!/usr/bin/env bash
# Does training reach the same accuracy with something faster? Trains with and without it, on several seeds: see --help.
# shellcheck source-path=SCRIPTDIR/..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bench=bench/accuracy.sh
# shellcheck source=bench/results.sh
. bench/results.sh

what=
epochs=8
seeds='1 2 3'
wanted='fashion coloured'
program=${TESSERA:-build/release/tessera}
out=

show_help() {
  cat <<HELP
Usage: bench/accuracy.sh [OPTION...] kernels [EPOCHS [SEEDS [DATA]]]
       bench/accuracy.sh [OPTION...] gradient-precision [EPOCHS [SEEDS]]

Trains with something faster and without it, on several seeds, and prints a table of the test accuracies.

  kernels   Winograd kernels, F(4x4, 3x3) in all three passes, against direct ones: models/fashion-resnet.cfg on Fashion-MNIST
            ("fashion") and models/small-vgg.cfg on colour pictures that bench/coloured_fashion.py makes of it ("coloured"), on one rank
  gradient-precision
            gradient reduction in 16 bits against exact reduction: models/lenet5.cfg on Fashion-MNIST, data-parallel on four ranks

Runs are kept in runs/accuracy/WHAT-DATA-VARIANT-SEED; finished ones are not repeated. Needs Debian's dataset-fashion-mnist and, for
colour pictures, python3-numpy. Default: $epochs epochs, seeds "$seeds", data "$wanted".

  --program FILE        default: $program
  --out CSV             default: runs/accuracy_WHAT.csv
  --commit-results      also copies CSV and origin to bench/accuracy_WHAT.* and updates the tables in the READMEs
  --help                shows this help and exits
HELP
}

take_options 'program out' "$@"
[[ ${#operands[@]} -ge 1 && ${#operands[@]} -le 4 ]] || fail 'expected kernels or gradient-precision, then EPOCHS, SEEDS and DATA: see --help.'
what=${operands[0]}
epochs=${operands[1]:-$epochs}
seeds=${operands[2]:-$seeds}
wanted=${operands[3]:-$wanted}
out=${out:-runs/accuracy_$what.csv}
fashion=/usr/share/datasets/fashion-mnist
coloured=runs/coloured

# describe DATA: sets what is trained on it: model, pictures, batch, count (of training pictures), launcher, options.
describe() {
  launcher=() options=()
  case $what-$1 in
    kernels-fashion) model=models/fashion-resnet.cfg pictures=$fashion batch=128 count=60000 ;;
    kernels-coloured) model=models/small-vgg.cfg pictures=$coloured batch=100 count=20000 ;;
    gradient-precision-fashion)
      model=models/lenet5.cfg pictures=$fashion batch=64 count=60000
      launcher=(env OMP_NUM_THREADS=1 mpiexec.mpich -n 4)
      options=(--data-parallel-from 0)
      ;;
    *) fail "unknown data '$1': expected fashion or coloured." ;;
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
    say "$run failed; its log is $run/log"
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
    printf '%s,%s,%s\n' "$data" "$seed" "${line/ /,}" >>"$out"
    awk -v data="$data" -v seed="$seed" '{ printf "| %s | %s | %s %% | %s %% | %+.2f |\n", data, seed, $1, $2, $2 - $1 }' <<<"$line"
  done
  printf '%s' "$lines" | awk -v data="$data" '{ a += $1; b += $2 }
    END { printf "| %s | mean | %.2f %% | %.2f %% | %+.2f |\n", data, a / NR, b / NR, (b - a) / NR }'
}

# print_header PLAIN FASTER: of the table, and of the CSV.
print_header() {
  printf 'data,seed,%s,%s\n' "$@" >"$(in_folder "$out")"
  printf '| pictures | seed | %s | %s | difference |\n| --- | ---: | ---: | ---: | ---: |\n' "$@"
}

[ -x "$program" ] || fail "$program does not exist: run ./quickstart.sh first, or give --program."
case $what in
  kernels)
    [ -f "$coloured/test_batch.bin" ] || /usr/bin/python3 bench/coloured_fashion.py "$coloured"
    print_header direct winograd
    for data in $wanted; do compare "$data" direct winograd; done
    ;;
  gradient-precision)
    print_header exact half
    compare fashion exact half
    ;;
  *) fail "expected kernels or gradient-precision, not '$what': see --help." ;;
esac
note_origin "$out"
keep_results "$out" "bench/accuracy_$what"
