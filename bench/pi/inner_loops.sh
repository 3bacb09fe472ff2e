#!/usr/bin/env bash
# How fast inner loops are on the processors of Raspberry Pis, by models: see --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/pi/inner_loops.sh

least=16
precision='double'
out=runs/inner_loops.csv
results=bench/pi/inner_loops # where --commit-results copies it
# shellcheck source=bench/results.sh
. bench/results.sh

show_help() {
  cat <<HELP
Usage: bench/pi/inner_loops.sh [--all] [OPTION...]

Compiles the kernels for 64-bit ARM as a release does and writes a line of CSV for each of their inner loops with 16 multiply-adds of
vectors or more, in single precision, transforms aside: what models of a Cortex-A53, A72 and A76 make of it (bench/pi/README.md). For
the A53 also what its vector unit does in how many cycles, and the share of the peak of multiply-adds if it were never idle. Two
minutes. On another architecture than 64-bit ARM it takes the packages g++-aarch64-linux-gnu and llvm-14, on it llvm-14.

  --all               loops with 2 multiply-adds or more, of both precisions
  --out CSV           default: $out
  --commit-results    also copies CSV and origin to $results.* and updates the tables in the READMEs
  --help              shows this help and exits
HELP
}

own_flag() {
  if [ "$1" = --all ]; then
    least=2 precision='^$' taken=1
  fi
}

take_only_options 'out' "$@"
if [ "$(uname -m)" = aarch64 ]; then compiler=g++; else compiler=aarch64-linux-gnu-g++; fi
for program in "$compiler" llvm-mca-14; do
  command -v "$program" >/dev/null || fail "$program is not here: see --help."
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo 'kernels,loop,multiply_adds,instructions,stack,cycles,of_peak,busy,at_most,memory,choices,conversions,divisions,other,of_peak_a72,of_peak_a76' \
  >"$(in_folder "$out")"
for version in generic cortex_a53; do
  "$compiler" -std=c++20 -O3 -DNDEBUG -fopenmp -Wno-psabi -I. -S -o "$folder/$version.s" engine/ops/simd/block_kernels_$version.cpp
  bench/pi/pipeline.py --table --least "$least" "$folder/$version.s" | c++filt | sed "s/tessera::engine::$version:://g; s/tessera::engine:://g" |
    sed -E 's/([0-9])l\b/\1/g' | awk -F '\t' -v version="$version" -v skipped="$precision" '$NF !~ /^void transform_/ && $NF !~ "<" skipped {
      sub(/^(void|long) /, "", $NF); gsub(/\(Kind\)/, "kind ", $NF); sub(/\(.*/, "", $NF);
      printf "%s,\"%s\"", version, $NF; for (i = 1; i < NF; ++i) printf ",%s", $i; print "" }' >>"$out"
done
cat "$out"
note_origin "$out"
sed -i "s/^machine: .*/machine: predicted on $(uname -m) with $("$compiler" -dumpmachine)-g++ $("$compiler" -dumpversion) and llvm-mca-14, measured on no Raspberry Pi/" \
  "${out%.csv}.origin"
keep_results "$out" "$results"
