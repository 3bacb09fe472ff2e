#!/usr/bin/env bash
# Trains LeNet on Fashion-MNIST on four replicas, tied in each way and by each kind of message: see --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/heterogeneous/synchronisation.sh
# shellcheck source=bench/results.sh
. bench/results.sh

epochs=3
seeds='1 2 3'
replicas=4
program=build/release/tessera
model=models/lenet5.cfg
images=/usr/share/datasets/fashion-mnist
out=runs/synchronisation.csv
results=bench/heterogeneous/synchronisation # where --commit-results copies them
# --sync and --gradient-precision of each run
settings='
every-step exact
every-step half
every-step topk:0.1
every-step topk:0.01
every-step sign
every-step low-rank:2
local:8 exact
local:64 exact
local:8 topk:0.01
local:8 sign
post-local:8 exact
parameter-rank:1 exact
parameter-rank:8 exact
parameter-rank:1 topk:0.01
gossip exact
'

show_help() {
  cat <<HELP
Usage: $bench [OPTION...] [EPOCHS [SEEDS]]

Trains $model on Fashion-MNIST on $replicas replicas of one rank each, with every way to tie them and every kind of compressed message,
with each seed, on as many samples each. Writes a line of CSV for each run: test accuracy after the last epoch, bytes that all ranks sent.
Runs are kept in runs/synchronisation/; finished ones are not repeated. Default: $epochs epochs, seeds "$seeds".

  --program FILE        default: $program
  --out CSV             default: $out
  --commit-results      also copies CSV and origin to $results.* and updates the tables in the READMEs
  --help                shows this help and exits
HELP
}

take_options 'program out' "$@"
[ ${#operands[@]} -le 2 ] || fail 'expected at most EPOCHS and SEEDS: see --help.'
epochs=${operands[0]:-$epochs}
seeds=${operands[1]:-$seeds}
batch=128
steps=$((epochs * 60000 / batch))

# number KEY FILE: of the last line that has it.
number() { sed -n 's/.*"'"$1"'": *\([0-9.eE+-]*\).*/\1/p' "$2" | tail -n 1; }

# train SYNC COMPRESSION SEED RUN
train() {
  OMP_NUM_THREADS=1 mpiexec.mpich -n "$replicas" "$program" train "$model" --data "$images" --steps "$steps" --schedule-steps "$steps" \
    --batch "$batch" --seed "$3" --replicas "$replicas" --sync "$1" --gradient-precision "$2" --run "$4" --force --progress none \
    --monitor off --checkpoint-every "$steps" </dev/null >"$4.log" 2>&1 || {
    tail -5 "$4.log" >&2
    fail "$4 failed; its log is $4.log"
  }
}

[ -x "$program" ] || fail "$program does not exist: run ./quickstart.sh first, or give --program."
printf '%s; %s, %d replicas, %d epochs, batch %d\n' "$(machine)" "$model" "$replicas" "$epochs" "$batch"
echo 'sync,compression,seed,steps,accuracy,sent_bytes' >"$(in_folder "$out").part"
while read -r sync compression; do
  [ -n "$sync" ] || continue
  for seed in $seeds; do
    run=runs/synchronisation/$sync-$compression-$seed-$epochs
    mkdir -p runs/synchronisation
    grep -qs '"state": "finished"' "$run/run.json" || train "$sync" "$compression" "$seed" "$run"
    line=$sync,$compression,$seed,$steps,$(number accuracy "$run/metrics.jsonl"),$(number sent_bytes "$run/run.json")
    printf '%s\n' "$line" | tee -a "$out.part"
  done
done <<<"$settings"
mv "$out.part" "$out"
note_origin "$out"
keep_results "$out" "$results"
