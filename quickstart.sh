#!/usr/bin/env bash
# From a fresh Debian 12 or 13 (Raspberry Pi OS 12 or 13) to a network trained on four ranks: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=.ci/machine.sh
. .ci/machine.sh

model=models/fashion-resnet.cfg
images=/usr/share/datasets/fashion-mnist
program=build/release/tessera
tiled_run=runs/quickstart
single_run=runs/quickstart-one-rank
epochs=2
schedule_steps=938 # two epochs: the learning rate falls to 0 by then, in both runs alike
compared_steps=60

show_help() {
  cat <<HELP
Usage: ./quickstart.sh [--yes] [--report]

Installs what is missing from the distribution's packages (it asks first), builds the program
with MPICH, trains $model on Fashion-MNIST for $epochs epochs, its feature maps cut into
2x2 tiles over 4 ranks, and then $compared_steps steps of the same training on one rank. Shows the test accuracy,
the memory of each rank, and both losses side by side.

  --yes     install without asking
  --report  only show the result of the last run
  --help    shows this help and exits

It writes into build/ and runs/ only, and can be started from any folder.
HELP
}

# report TILED_RUN SINGLE_RUN: what came out of two run folders.
report() {
  local file
  for file in "$1/metrics.jsonl" "$1/memory.json" "$2/metrics.jsonl" "$2/memory.json"; do
    [ -s "$file" ] || fail "$file does not exist: run ./quickstart.sh first."
  done
  printf '\nTest accuracy after each epoch (4 ranks):\n'
  sed -n 's/.*"accuracy": *\([0-9.eE+-]*\).*/\1/p' "$1/metrics.jsonl" |
    awk '{ printf "  epoch %d: %.2f %%\n", NR, 100 * $1 } END { if (NR == 0) print "  none was measured" }'
  printf '\nMemory of each rank at its peak, and of one rank that does it all alone:\n'
  awk -f bench/memory_table.awk "$1/memory.json" "$2/memory.json"
  printf '\nThe same model and pictures on one rank; losses by step:\n'
  awk -v show="1 2 5 10 20 40 $compared_steps" -v name_a='4 ranks' -v name_b='1 rank' \
    -f bench/metrics.awk -f bench/compare_losses.awk "$1/metrics.jsonl" "$2/metrics.jsonl"
}

build_program() {
  local jobs
  jobs=$(build_jobs)
  printf 'Building the program, %s compilers at a time: about 5 minutes of processor time on an x86 server, several times that on a Raspberry Pi.\n' "$jobs"
  configure release
  cmake --build build/release --target tessera -j "$jobs" ||
    fail 'the program could not be built (the message of the compiler is above).'
}

# train RANKS THREADS_PER_RANK RUN OPTION...: a new run of the model.
train() {
  local ranks=$1 run=$3
  export OMP_NUM_THREADS=$2
  shift 3
  rm -rf "$run"
  # The launcher hides the terminal from the ranks, so they are told of it.
  local progress=line
  [ ! -t 1 ] || progress=bar
  "$mpich_launcher" -n "$ranks" "$program" train "$model" --data "$images" --run "$run" \
    --schedule-steps "$schedule_steps" --progress "$progress" "$@" </dev/null || fail "training on $ranks ranks failed (its message is above)."
}

# threads_per_rank RANKS: the processors shared among the ranks, one at least.
threads_per_rank() {
  local threads=$(($(nproc) / $1))
  if [ "$threads" -ge 1 ]; then echo "$threads"; else echo 1; fi
}

consent=ask
only_report=no
for argument in "$@"; do
  case $argument in
    --yes | -y) consent=yes ;;
    --report) only_report=yes ;;
    --help | -h) show_help || true; exit 0 ;;
    *) fail "unknown option '$argument'." 'See ./quickstart.sh --help.' ;;
  esac
done

if [ "$only_report" = no ]; then
  install_packages "$consent" "${program_packages[@]}"
  build_program
  printf '\nTraining %s: 4 ranks, 2x2 tiles, %s epochs.\n' "$model" "$epochs"
  train 4 "$(threads_per_rank 4)" "$tiled_run" --grid 2x2 --epochs "$epochs"
  printf '\nThe same on one rank, %s steps.\n' "$compared_steps"
  train 1 "$(threads_per_rank 1)" "$single_run" --steps "$compared_steps" --no-eval
fi
report "$tiled_run" "$single_run"
[ "$only_report" = yes ] ||
  printf '\nDone in %d min %02d s. The trained weights are in %s/checkpoint.safetensors.\n' \
    $((SECONDS / 60)) $((SECONDS % 60)) "$tiled_run"
