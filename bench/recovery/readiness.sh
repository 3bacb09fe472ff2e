#!/usr/bin/env bash
# What keeping the state of each step costs where no fault happens: see --help.
# shellcheck source-path=SCRIPTDIR
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

show_help() {
  cat <<HELP
Usage: sudo bench/recovery/readiness.sh [--devices N] [--pairs N] [--steps N] [--model FILE] [--data DATA] [--size HxW] [--program FILE]
       [-- OPTION...]

Trains on an emulated cluster of Raspberry Pi 3 (default: 6; needs root, see bench/cluster), with and without a folder for the
state of each step, in turns (default: 3 pairs of 12 steps), and prints the median time of a step of each run and the ratio of
the pair, then the median of the ratios. The folder is what \`tessera run\` gives its ranks. Default: models/lenet5.cfg.
What follows -- are further options of \`tessera train\` (default: --partition auto).
HELP
}

devices=6 pairs=3 steps=12 model=models/lenet5.cfg data= size= program=build/release/tessera
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) show_help || true; exit 0 ;;
    --devices | --pairs | --steps | --model | --data | --size | --program)
      [ $# -ge 2 ] || { echo "readiness.sh: $1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift 2 ;;
    --) shift; break ;;
    *) echo "readiness.sh: unknown option '$1' (see --help)" >&2; exit 2 ;;
  esac
done
[ $# -gt 0 ] || set -- --partition auto
more=("$@")
program=$(realpath "$program")
folder=$(mktemp -d)
cluster() { bench/cluster/cluster --cluster readiness "$@"; }
trap 'cluster down >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
if [ -z "$data" ]; then
  data=$folder/digits
  mkdir "$data"
  perl tests/cli/support/make_idx.pl "$data" 240 10 >/dev/null
fi
bench/cluster/cluster up --devices "$devices" --name readiness --program "$program" >/dev/null

# step_ms NAME STATE: median of a run's steps, without the first two.
step_ms() {
  local state=()
  if [ -n "$2" ]; then
    for device in $(seq "$devices"); do cluster exec "pi$device" mkdir -m 700 -p "$2"; done
    state=(env "TESSERA_STATE_DIR=$2")
  fi
  cluster run "${state[@]}" "$program" train "$model" --data "$data" ${size:+--size "$size"} --batch 8 --steps "$steps" --no-eval \
    "${more[@]}" --run "$folder/$1" --checkpoint-every "$steps" --progress none --reader 0 >"$folder/$1.out" 2>&1 ||
    { cat "$folder/$1.out" >&2; exit 1; }
  sed -n 's/.*"step_s":\([0-9.e-]*\).*/\1/p' "$folder/$1/metrics.jsonl" | tail -n +3 | sort -g |
    awk '{ v[NR] = $1 } END { printf "%.3f\n", 1e3 * (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

echo 'pair,without_ms,with_ms,ratio'
for pair in $(seq "$pairs"); do
  without=$(step_ms "without-$pair" '')
  with=$(step_ms "with-$pair" "/dev/shm/tessera-readiness-$pair")
  echo "$pair,$without,$with,$(awk -v a="$with" -v b="$without" 'BEGIN { printf "%.4f", a / b }')"
done | tee "$folder/pairs"
tail -n +1 "$folder/pairs" | cut -d, -f4 | sort -g | awk '{ v[NR] = $1 } END { print "median ratio " (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
