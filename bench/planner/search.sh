#!/usr/bin/env bash
# How long searches for the best partition take among many devices. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/planner/search.sh
# shellcheck source=bench/results.sh
. bench/results.sh

program=build/release/tessera
before=
models='models/yolov2-early.cfg@608 models/yolov2-early.cfg@8192 /usr/share/darknet/cfg/yolov2.cfg@608'
clusters='1024x1 1024x8 64x64'
batch=16
seconds=600
out=runs/planner-search.csv
results=bench/planner/search # where --commit-results copies them

show_help() {
  cat <<HELP
Usage: bench/planner/search.sh [OPTION...]

The processor time that \`tessera plan --partition auto\` takes, its peak memory and the step that it predicts, for clusters of many
devices. Devices are Raspberry Pi 3 of several speeds, from as it is to twice as fast, on links of 100 Mbit/s. Writes a line of CSV for
each. Debian's package darknet has YOLOv2's model file.

  --models 'FILE@SIDE...'   default: $models
  --clusters 'NxK...'       N devices of K kinds; default: $clusters
  --batch N                 images per step; default: $batch
  --seconds S               the longest that a search may take; default: $seconds
  --program FILE            default: $program
  --before FILE             another program, which is measured as well
  --out CSV                 default: $out
  --commit-results          also copies CSV and origin to $results.* and updates the tables in the READMEs
  --help                    shows this help and exits
HELP
}

# describe DEVICES KINDS: a cluster profile.
describe() {
  awk -v devices="$1" -v kinds="$2" 'BEGIN {
    print "[link]\nlatency_s = 0.00015\nbytes_per_s = 11800000"
    for (kind = 0; kind < kinds; ++kind) {
      faster = kinds > 1 ? 1 + kind / (kinds - 1) : 1
      printf "\n[[device]]\nnames = ["
      first = int(kind * devices / kinds)
      end = int((kind + 1) * devices / kinds)
      for (i = first; i < end; ++i) printf "%s\"pi%d\"", (i > first ? ", " : ""), i
      print "]\nmemory_bytes = 901775360\nprogram_bytes = 24117248\nmessage_s = 5e-05"
      print "memory_bytes_per_s = 2240000000\ncopied_bytes_per_s = 1120000000\nsend_bytes_per_s = 11800000\nreceive_bytes_per_s = 11800000"
      printf "direct_flops_per_s = %.0f\nwinograd_flops_per_s = %.0f\nupdated_weights_per_s = 112000000\n", 11.8e9 * faster, 32.1e9 * faster
      printf "normalize_bytes_per_s = { forward = %.0f, backward = %.0f }\n", 747e6 * faster, 448e6 * faster
      printf "activate_bytes_per_s = { forward = %.0f, backward = %.0f }\n", 747e6 * faster, 747e6 * faster
      print "pool_bytes_per_s = { forward = 2240000000, backward = 1120000000 }"
      print "elementwise_bytes_per_s = { forward = 2240000000, backward = 1120000000 }"
    }
  }'
}

# search NAME PROGRAM MODEL SIDE CLUSTER: adds a row; without numbers where the program refuses or takes too long.
search() {
  local name=$1 binary=$2 model=$3 side=$4 cluster=$5 seconds_taken= peak= step=
  if taskset -c 0 timeout "$seconds" /usr/bin/time -o "$scratch/time" -f '%U %S %M' "$binary" plan "$model" --size "${side}x$side" \
    --batch "$batch" --partition auto --cluster "$scratch/$cluster.toml" --json >"$scratch/plan.json" 2>"$scratch/log"; then
    read -r seconds_taken peak < <(awk '{ print $1 + $2, $3 }' "$scratch/time")
    step=$(sed -n 's/.*"step_s": *\([0-9.e+-]*\).*/\1/p' "$scratch/plan.json" | head -n 1)
  else
    say "$name, $model, $side, $cluster: $(grep -v '^$' "$scratch/log" | tail -n 1)"
  fi
  printf '%s,%s,%s,%s,%s,%s,%s,%s,%s\n' "$name" "$(basename "$model" .cfg)" "$side" "${cluster%x*}" "${cluster#*x}" "$batch" \
    "$seconds_taken" "$peak" "$step" | tee -a "$out" >&2
}

take_only_options 'models clusters batch seconds program before out' "$@"
[ -x "$program" ] || fail "$program does not exist: run ./quickstart.sh first, or give --program."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo program,model,pixels,devices,kinds,batch,seconds,peak_kib,step_s >"$(in_folder "$out")"
for cluster in $clusters; do
  describe "${cluster%x*}" "${cluster#*x}" >"$scratch/$cluster.toml"
  for model in $models; do
    [ -z "$before" ] || search before "$before" "${model%@*}" "${model#*@}" "$cluster"
    search now "$program" "${model%@*}" "${model#*@}" "$cluster"
  done
done
note_origin "$out"
keep_results "$out" "$results"
