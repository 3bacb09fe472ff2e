#!/usr/bin/env bash
# How fast inner loops are on the processors of Raspberry Pis, by models: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.ci/machine.sh
. .ci/machine.sh

show_help() {
  cat <<HELP
Usage: bench/pi/inner_loops.sh [--all]

Compiles the kernels for 64-bit ARM as a release does and prints a table of their inner loops with 16 multiply-adds of
vectors or more, in single precision, transforms aside: the shares of the peak of multiply-adds that models of a Cortex-A53,
A72 and A76 give them, and how much of the time an A53's vector unit has something to do (bench/pi/README.md). Two minutes. On
another architecture than 64-bit ARM it takes the packages g++-aarch64-linux-gnu and llvm-14, on it llvm-14.

  --all  loops with 2 multiply-adds or more, of both precisions
HELP
}

least=16
precision='double'
case ${1:-} in
  '') ;;
  --all) least=2 precision='^$' ;;
  --help | -h) show_help || true; exit 0 ;;
  *) fail "unknown option '$1'." 'See bench/pi/inner_loops.sh --help.' ;;
esac
if [ "$(uname -m)" = aarch64 ]; then compiler=g++; else compiler=aarch64-linux-gnu-g++; fi
for program in "$compiler" llvm-mca-14; do
  command -v "$program" >/dev/null || fail "$program is not here." 'See bench/pi/inner_loops.sh --help.'
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo '| kernels | loop | multiply-adds | instructions | on the stack | cycles, A53 | of peak, A53 | vector unit busy, A53 | of peak, A72 | of peak, A76 |'
echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |'
for version in generic cortex_a53; do
  "$compiler" -std=c++20 -O3 -DNDEBUG -fopenmp -Wno-psabi -I. -S -o "$folder/$version.s" engine/ops/simd/block_kernels_$version.cpp
  bench/pi/pipeline.py --table --least "$least" "$folder/$version.s" | c++filt | sed "s/tessera::engine::$version:://g; s/tessera::engine:://g" |
    awk -F '\t' -v version="$version" -v skipped="$precision" '$NF !~ /^void transform_/ && $NF !~ "<" skipped {
      sub(/^(void|long) /, "", $NF); gsub(/\(Kind\)/, "kind ", $NF); sub(/\(.*/, "", $NF)
      gsub(/[0-9]+l/, "&,", $NF); gsub(/l,/, "", $NF); gsub(/,,/, ",", $NF)
      print "| " version, "`" $NF "`", $1, $2, $3, $4, $5, $6, $7, $8 " |" }' OFS=' | '
done
