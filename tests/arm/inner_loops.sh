#!/usr/bin/env bash
# Whether inner loops of 64-bit ARM go to the stack: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.ci/machine.sh
. .ci/machine.sh

show_help() {
  cat <<HELP
Usage: tests/arm/inner_loops.sh [--all]

Compiles the kernels for 64-bit ARM as a release does, reads the assembly, and fails if an innermost loop that multiplies
and adds, and calls nothing, reads or writes the stack: then more sums are kept at once than there are registers
(engine/ops/simd/block_kernel_versions.h). A minute; takes g++ itself on 64-bit ARM, elsewhere aarch64-linux-gnu-g++ of the
package g++-aarch64-linux-gnu, and without it says so and ends with exit code 77.

Not counted are Winograd's transforms, whose squares of 36 vectors are more than registers; in double precision, which
only checks compute with, the one sum of five vectors' width that no smaller tile exists of; and logistic, tanh, swish and
mish of several cells at once, some of whose constants are on the stack: it takes less time than one cell after the other.

With arm-linux-gnueabihf-g++ (package g++-arm-linux-gnueabihf) also looks at the sums of 32-bit ARM with NEON, of 16 and 8 channels.

  --all  lists all innermost loops: multiply-adds, instructions, calls, accesses to the stack, function
HELP
}

all=no
case ${1:-} in
  '') ;;
  --all) all=yes ;;
  --help | -h) show_help || true; exit 0 ;;
  *) fail "unknown option '$1'." 'See tests/arm/inner_loops.sh --help.' ;;
esac

if [ "$(uname -m)" = aarch64 ]; then compiler=g++; else compiler=aarch64-linux-gnu-g++; fi
if ! command -v "$compiler" >/dev/null; then
  echo "skipped: $compiler is not here (package g++-aarch64-linux-gnu)"
  exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# As CMakeLists.txt does for a release.
for version in generic cortex_a53; do
  "$compiler" -std=c++20 -O3 -DNDEBUG -fopenmp -Wno-psabi -I. -S -o "$folder/$version.s" engine/ops/simd/block_kernels_$version.cpp
  perl tests/arm/inner_loops.pl "$folder/$version.s"
done | c++filt | sed "s/tessera::engine::\\(generic\\|cortex_a53\\):://g; s/tessera::engine:://g" >"$folder/loops"

if [ "$all" = yes ]; then
  cat "$folder/loops"
  exit 0
fi

failures=0
# Where the sums are: a kernel without a loop of multiply-adds is one that this no longer finds.
for kernel in sum_pixels\<float, outer_terms\<float, product_pixels\<float, product_weights\<float, plane_vectors\<float, argmax_rows\<float, \
  depthwise_channels\<float, sum_depthwise\<float, sum_squares\<float, sum_pixels_in_order\< outer_terms_in_order\< \
  product_pixels_in_order\< product_weights_in_order\( plane_vector_in_order\<; do
  if ! awk -F '\t' -v name="$kernel" '$1 >= 4 && sub(/^void /, "", $5) + 1 && index($5, name) == 1 { found = 1 } END { exit !found }' "$folder/loops"; then
    printf 'FAILED: no loop of multiply-adds was found in %s\n' "$kernel"
    failures=$((failures + 1))
  fi
done

awk -F '\t' '$1 > 0 && $3 == 0 && $4 > 0 && $5 !~ /^void (transform_|argmax_rows<double, 5l)|_at_once<\(Kind\)[6-9]>/ {
  printf "FAILED: %d of the %d instructions of a loop access the stack: %s\n", $4, $2, $5
}' "$folder/loops" >"$folder/spills"
if command -v arm-linux-gnueabihf-g++ >/dev/null; then
  arm-linux-gnueabihf-g++ -std=c++20 -O3 -DNDEBUG -fopenmp -Wno-psabi -I. -S -o "$folder/neon.s" engine/ops/simd/block_kernels_neon.cpp
  perl tests/arm/inner_loops.pl "$folder/neon.s" | c++filt | sed 's/tessera::engine::neon:://g; s/tessera::engine:://g' |
    grep -E 'void (sum_pixels|outer_terms|product_pixels|product_weights)<float,' >"$folder/neon"
  awk -F '\t' '$1 > 0 && $4 > 0 { printf "FAILED: %d of the %d instructions of a loop access the stack: %s, with NEON\n", $4, $2, $5 }' \
    "$folder/neon" >>"$folder/spills"
  if ! awk -F '\t' '$1 >= 8 { found = 1 } END { exit !found }' "$folder/neon"; then
    echo 'FAILED: no loop of multiply-adds was found with NEON' >>"$folder/spills"
  fi
fi
cat "$folder/spills"
failures=$((failures + $(wc -l <"$folder/spills")))
[ "$failures" -eq 0 ] || { printf '%d failed\n' "$failures"; exit 1; }
