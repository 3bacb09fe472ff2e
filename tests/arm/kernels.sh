#!/usr/bin/env bash
# Builds the tests of the kernels' versions for ARM alone and runs them in an emulator: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.ci/machine.sh
. .ci/machine.sh

show_help() {
  cat <<HELP
Usage: tests/arm/kernels.sh [32|64]

Builds tests/engine/ops/simd, without the rest of the program, for ARM with 32 bits and NEON or with 64 bits (default), and runs
it emulated. Two minutes; takes the packages qemu-user-static and g++-arm-linux-gnueabihf or g++-aarch64-linux-gnu.
HELP
}

case ${1:-64} in
  64) compiler=aarch64-linux-gnu-g++ emulator=(qemu-aarch64-static -cpu cortex-a53) ;;
  32) compiler=arm-linux-gnueabihf-g++ emulator=(qemu-arm-static -cpu cortex-a15) ;;
  --help | -h) show_help || true; exit 0 ;;
  *) fail "unknown option '$1'." 'See tests/arm/kernels.sh --help.' ;;
esac
for program in "$compiler" "${emulator[0]}"; do
  command -v "$program" >/dev/null || fail "$program is not here." 'See tests/arm/kernels.sh --help.'
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Headers of libraries are the same for all machines.
for library in doctest fmt; do ln -s "/usr/include/$library" "$folder/$library"; done
options=(-std=c++20 -fopenmp -Wno-psabi -I. -isystem "$folder" -DFMT_HEADER_ONLY)
for source in engine/ops/simd/*.cpp partitioner/base/{errors,printable,utf8}.cpp; do
  "$compiler" "${options[@]}" -O3 -c "$source" -o "$folder/$(basename "$source").o"
done
for source in tests/main.cpp tests/engine/ops/simd/*.cpp; do
  "$compiler" "${options[@]}" -O1 -c "$source" -o "$folder/$(basename "$source").o"
done
"$compiler" -static -fopenmp "$folder"/*.o -o "$folder/kernel_tests"
"${emulator[@]}" "$folder/kernel_tests"
