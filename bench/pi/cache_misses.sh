#!/usr/bin/env bash
# Counts cache misses of convolutions with blocks for a large cache and for a Raspberry Pi 3's: see --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/pi/cache_misses.sh

size=608x608
layers='0 2 4 5 8 9 12 13'
program=build/bench/bench/kernels/kernels_bench
out=runs/cache_misses.csv
results=bench/pi/cache_misses # where --commit-results copies it
model=models/yolov2-early.cfg
# shellcheck source=bench/results.sh
. bench/results.sh

show_help() {
  cat <<HELP
Usage: bench/pi/cache_misses.sh [OPTION...]

Lets valgrind's cachegrind count what convolutions of $model miss in the caches of a Raspberry Pi 3: each layer and pass
by the kernel that bench/pi/step_times.csv has for it, with vectors of four floats. Once with the blocks for a Cortex-A53
(TESSERA_VECTORS=cortex-a53): four cores go through a map as the one thread does that runs here, with 32 KiB and 512 KiB. Once with those
that this machine chooses (TESSERA_VECTORS=generic), where its cores have caches of their own: each core of a Pi would work on a part of
its own, and have a quarter of the 512 KiB. Counted are two calls less one, so nothing but a call. Writes a line of CSV for each pass and
prints a Markdown table. Half an hour; takes the package valgrind and a build of kernels_bench.

  --size HxW          of the input; default: $size
  --layers 'N...'     default: $layers
  --program FILE      default: $program
  --out CSV           where counts are written; default: $out
  --commit-results    also copies CSV and origin to $results.* and updates the tables in the READMEs
  --help              shows this help and exits
HELP
}

take_only_options 'size layers program out' "$@"
command -v valgrind >/dev/null || fail 'valgrind is not here (package valgrind).'
[ -x "$program" ] || fail "$program does not exist: cmake --preset bench && cmake --build build/bench --target kernels_bench"

# counted VECTORS CANDIDATE CALLS: misses of data in the first and in the last cache. Cores that do not work together have a quarter each.
counted() {
  local last=524288
  [ "$1" = cortex-a53 ] || last=131072
  TESSERA_VECTORS=$1 OMP_NUM_THREADS=1 valgrind --tool=cachegrind --cache-sim=yes --cachegrind-out-file=/dev/null --I1=32768,2,64 \
    --D1=32768,4,64 --LL=$last,16,64 "$program" --model "$model" --size "$size" --candidate "$2" --calls "$3" 2>&1 |
    sed -n 's/,//g; s/^==[0-9]*== D1 *misses: *\([0-9]*\).*/\1/p; s/^==[0-9]*== LLd misses: *\([0-9]*\).*/\1/p' | paste -sd ' '
}

# misses VECTORS CANDIDATE: of one call, separated by a comma.
misses() {
  local once twice
  once=$(counted "$1" "$2" 1)
  twice=$(counted "$1" "$2" 2)
  [[ $once =~ ^[0-9]+\ [0-9]+$ && $twice =~ ^[0-9]+\ [0-9]+$ ]] || fail "$2 cannot be counted: '$once', '$twice'"
  printf '%s,%s' "$((${twice% *} - ${once% *}))" "$((${twice#* } - ${once#* }))"
}

echo 'layer,shape,pass,kernel,blocks,d1_misses,ll_misses' >"$(in_folder "$out")"
for layer in $layers; do
  while IFS=, read -r shape pass kernel; do
    say "layer $layer, $pass"
    for vectors in generic cortex-a53; do
      counts=$(misses "$vectors" "layer$layer/$pass/tessera/$kernel")
      printf '%s,%s,%s,%s,%s,%s\n' "$layer" "$shape" "$pass" "$kernel" "$vectors" "$counts" >>"$out"
    done
  done < <(awk -F, -v layer="$layer" '$1 == "3B" && $5 == layer && $9 != "" { sub(/ [0-9]+x[0-9]+$/, "", $6); print $6 "," $8 "," $9 }' bench/pi/step_times.csv)
done
awk -F, '
  NR == 1 { print "| layer | convolution | pass | D1 misses | with blocks for a Cortex-A53 | LL misses | with blocks for a Cortex-A53 |\n| --- | --- | --- | --- | --- | --- | --- |" }
  $5 == "generic" { d1 = $6; ll = $7 }
  $5 == "cortex-a53" { print "| " $1 " | " $2 " | " $3 " | " d1 " | " $6 " | " ll " | " $7 " |" }' "$out"
note_origin "$out"
keep_results "$out" "$results"
