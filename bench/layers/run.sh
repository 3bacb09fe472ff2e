#!/usr/bin/env bash
# Times the layers of layers.csv one by one beside PyTorch's: see --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/layers/run.sh

batches='1 8'
rounds=9
seconds=1
only=.
program=build/bench/tessera
driver=build/bench/bench/layers/layer_steps
out=runs/layers.csv
python=/usr/bin/python3
torch_root=
results=bench/layers/times # where --commit-results copies them
# shellcheck source=bench/results.sh
. bench/results.sh
# shellcheck source=bench/peers/inside.sh
. bench/peers/inside.sh

show_help() {
  cat <<HELP
Usage: bench/layers/run.sh [OPTION...]

Forward and backward passes of single layers, with batch normalisation and activation, on one thread, in turn with PyTorch. What both
compute is compared first. Writes a line of CSV for each layer and batch. With the defaults it takes three quarters of an hour.

  --batches 'N...'      default: $batches
  --rounds N            turns that each program gets; default: $rounds
  --seconds N           for each layer, about; default: $seconds
  --only REGEX          the layers to measure: lines of layers.csv that it is found in
  --program FILE        default: $program
  --driver FILE         default: $driver
  --torch-root DIR      beside PyTorch of the Debian that bench/peers/torch_root.sh installed in DIR; needs root
  --out CSV             where measurements are written; default: $out
  --commit-results      also copies CSV and origin to $results.* and updates the tables in the READMEs
  --help                shows this help and exits
HELP
}

take_only_options 'batches rounds seconds only program driver torch-root out' "$@"
for file in "$program" "$driver"; do
  [ -x "$file" ] || fail "$file does not exist: cmake --preset bench && cmake --build build/bench --target layer_steps tessera"
done
torch=("$python")
if [ -n "$torch_root" ]; then
  torch=(in_root "$torch_root" python3)
  mkdir -p runs
  scratch=$(mktemp -d -p runs)
  trap 'rm -rf "$scratch"' EXIT
  outside "$program" "$scratch/program"
  outside "$driver" "$scratch/driver"
  program=$scratch/program
  driver=$scratch/driver
  export TMPDIR=$PWD/$scratch
fi
about_torch=$("${torch[@]}" bench/peers/torch_step.py --about 2>/dev/null) || fail 'PyTorch is not installed: install python3-torch.'
case $about_torch in
  *reference) fail 'PyTorch would use the reference BLAS, which is not a fair comparison: install libopenblas0.' ;;
esac
mkdir -p "$(dirname "$out")"
printf '%s, load average %s; %s\n\n' "$(machine)" "$(cut -d ' ' -f 1-3 /proc/loadavg)" "$about_torch" >&2
read -ra list <<<"$batches"
roofline=$("${torch[@]}" bench/layers/layers.py --batches "${list[@]}" --rounds "$rounds" --seconds "$seconds" --only "$only" --program "$program" \
  --driver "$driver" --out "$out")
note_origin "$out"
printf 'note: %s\nnote: %s\n' "$about_torch" "$roofline" >>"${out%.csv}.origin"
keep_results "$out" "$results"
