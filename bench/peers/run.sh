#!/usr/bin/env bash
# Measures a training step of the same models in Tessera, PyTorch and Darknet, in turn: see --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/peers/run.sh

models=models/yolov2-early.cfg
sizes='416x416 608x608'
batches='1 4'
threads='1 2'
rounds=5
steps=5
darknet_rounds=1
program=build/release/tessera
out=runs/peers.csv
python=/usr/bin/python3
any_blas=no
torch_root=

figure=runs/peers.svg
table=
results=bench/peers/peers # where --commit-results copies them
figure_of=$results        # results that are kept with a figure
# shellcheck source=bench/results.sh
. bench/results.sh
# shellcheck source=bench/peers/inside.sh
. bench/peers/inside.sh

show_help() {
  cat <<HELP
Usage: bench/peers/run.sh [OPTION...]

A training step of the same model in Tessera, PyTorch and Darknet, measured in turn for each model, size, batch and number of threads:
Tessera with its default kernels and with those that \`tessera plan --kernels measured\` chooses; PyTorch with both memory formats, each
with glibc's default allocator settings and with tuned ones; Debian's Darknet, where it is installed and supports the model (one thread
only). Writes a line of CSV for each measurement, prints a Markdown table, draws a figure. With the defaults it takes an hour or more on
two cores; the machine should be otherwise idle.

  --models 'FILE...'    default: $models
  --sizes 'HxW...'      default: $sizes; own: the model's input size
  --batches 'N...'      default: $batches
  --threads 'N...'      default: $threads
  --rounds N            default: $rounds
  --steps N             steps per round, of which the median counts; default: $steps
  --darknet-rounds N    rounds with Darknet, one step each, since it is slow; 0: none; default: $darknet_rounds
  --torch-root DIR      also PyTorch of the Debian that bench/peers/torch_root.sh installed in DIR; needs root
  --any-blas            run even if PyTorch would use the reference BLAS, which is many times slower than others
  --program FILE        default: $program
  --out CSV             where measurements are written; default: $out
  --figure FILE         default: $figure
  --table CSV           measures nothing; prints the table and draws the figure of existing measurements
  --commit-results      also copies CSV, origin and figure to $results.* and updates the tables in the READMEs
  --results NAME        copies CSV and origin to NAME.* instead
  --quick               one size (the first), batch 1, one thread, 3 rounds of 3 steps; options after it still count
  --help                shows this help and exits
HELP
}

be_quick() {
  sizes=${sizes%% *}
  batches=1
  threads=1
  rounds=3
  steps=3
  out=runs/peers-quick.csv
  figure=runs/peers-quick.svg
}

own_flag() {
  if [ "$1" = --any-blas ]; then
    any_blas=yes
    taken=1
  fi
}

# choose_kernels MODEL BATCH THREADS [--size HxW]: those that are the fastest here, into the file $partition.
choose_kernels() {
  local model=$1 batch=$2 count=$3
  shift 3
  OMP_NUM_THREADS=$count "$program" plan "$model" --batch "$batch" --grid 1x1 --kernels measured --save "$partition" "$@" >/dev/null
}

# step PEER MODEL BATCH THREADS [--size HxW]: prints a line of JSON. In a shell of its own: exports.
step() {
  local peer=$1 model=$2 batch=$3 count=$4
  shift 4
  local torch=("$python" bench/peers/torch_step.py) options=(--batch "$batch" --threads "$count" --steps "$steps" --json "$@")
  export OMP_NUM_THREADS=$count
  if [[ $peer == torch-root* ]]; then
    cp "$model" "$scratch"
    model=$scratch/$(basename "$model")
    torch=(in_root "$torch_root" python3 bench/peers/torch_step.py)
  fi
  [[ $peer != *-channels-last* ]] || options+=(--channels-last)
  if [[ $peer == *-tuned ]]; then # an allocator that keeps what a step frees
    export MALLOC_MMAP_THRESHOLD_=8589934592 MALLOC_TRIM_THRESHOLD_=8589934592 MALLOC_TOP_PAD_=67108864
  fi
  case $peer in
    tessera) "$program" time "$model" "${options[@]}" ;;
    tessera-measured) "$program" time "$model" --partition "$partition" "${options[@]}" ;;
    torch*) "${torch[@]}" "$model" "${options[@]}" ;;
    darknet) "$python" bench/peers/darknet_step.py "$model" --batch "$batch" --steps 1 --json "$@" ;;
  esac
}

# value KEY: of the JSON on the standard input, or of its first element.
value() { sed -n "s/.*\"$1\": *\[\{0,1\}\([0-9.eE+-]*\).*/\1/p"; }

# measure ROUND PEER MODEL SIZE BATCH THREADS: adds a line to the CSV, or says why not.
measure() {
  local round=$1 peer=$2 model=$3 size=$4 batch=$5 count=$6 json load options=()
  [ "$size" = own ] || options=(--size "$size")
  read -r load _ </proc/loadavg
  if ! json=$(step "$peer" "$model" "$batch" "$count" "${options[@]}" 2>"$log" </dev/null); then
    printf '%s, %s, %s, batch %s, %s threads: %s\n' "$peer" "$model" "$size" "$batch" "$count" "$(tail -n 1 "$log")" >&2
    return 1
  fi
  printf '%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n' "$model" "$size" "$batch" "$count" "$peer" "$round" \
    "$(value median <<<"$json")" "$(value min <<<"$json")" "$(value max <<<"$json")" "$(value peak_bytes <<<"$json")" "$load" >>"$out"
}

# measure_setting MODEL SIZE BATCH THREADS: all peers, round by round; those that cannot are not asked again.
measure_setting() {
  local round peer able options=()
  local peers=(tessera tessera-measured torch{,-channels-last}{,-tuned})
  [ -z "$torch_root" ] || peers+=(torch-root{,-channels-last}{,-tuned})
  if [ "$4" -eq 1 ] && [ -e /usr/lib/darknet/libdarknet.so ]; then peers+=(darknet); fi
  printf '%s, %s, batch %s, %s threads\n' "$@" >&2
  [ "$2" = own ] || options=(--size "$2")
  choose_kernels "$1" "$3" "$4" "${options[@]}"
  for ((round = 1; round <= rounds; ++round)); do
    able=()
    for peer in "${peers[@]}"; do
      if [ "$peer" = darknet ] && [ "$round" -gt "$darknet_rounds" ]; then continue; fi
      if measure "$round" "$peer" "$@"; then able+=("$peer"); fi
    done
    peers=("${able[@]}")
  done
}

# report: the table, and the figure if there is matplotlib to draw it with.
report() {
  awk -f bench/median.awk -f bench/peers/peers_table.awk "$out"
  if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
    /usr/bin/python3 bench/peers/plot_peers.py --out "$(in_folder "$figure")" "$out"
  else
    say 'no figure: install python3-matplotlib.'
  fi
  if [ "$results" = "$figure_of" ]; then keep_results "$out" "$figure" "$results"; else keep_results "$out" "$results"; fi
}

take_only_options 'models sizes batches threads rounds steps darknet-rounds torch-root program out figure table results' "$@"
if [ -n "$table" ]; then
  [ -r "$table" ] || fail "$table cannot be read: --table expects a CSV of earlier measurements."
  out=$table
  report
  exit 0
fi
[ -x "$program" ] || fail "$program does not exist: run ./quickstart.sh first, or give --program."
about_torch=$("$python" bench/peers/torch_step.py --about 2>/dev/null) || fail 'PyTorch is not installed: install python3-torch.'
case $about_torch in
  *reference) [ "$any_blas" = yes ] || fail 'PyTorch would use the reference BLAS, which is not a fair comparison: install libopenblas0 (or give --any-blas).' ;;
esac
# Idle threads of all peers spin alike, as briefly as Tessera's do by themselves; spinning longer than the scheduler's
# time slice ruins whoever shares a processor.
[ -n "${GOMP_SPINCOUNT-}${OMP_WAIT_POLICY-}" ] || export GOMP_SPINCOUNT=10000
mkdir -p "$(dirname "$out")" runs
scratch=$(mktemp -d -p runs) # seen from $torch_root, too
log=$scratch/log
partition=$scratch/partition.toml
trap 'rm -rf "$scratch"' EXIT
if [ -n "$torch_root" ]; then
  about_torch+="; $(in_root "$torch_root" python3 bench/peers/torch_step.py --about)" || fail "$torch_root: PyTorch does not start there."
fi

echo model,size,batch,threads,peer,round,step_s,step_min_s,step_max_s,peak_bytes,load >"$out"
printf '%s, load average %s; %s\n\n' "$(machine)" "$(cut -d ' ' -f 1-3 /proc/loadavg)" "$about_torch"
for model in $models; do
  for size in $sizes; do
    for batch in $batches; do
      for count in $threads; do
        measure_setting "$model" "$size" "$batch" "$count"
      done
    done
  done
done
note_origin "$out"
printf 'note: %s\n' "$about_torch" >>"${out%.csv}.origin"
report
