#!/usr/bin/env bash
# Builds for ARM and runs the tests in an emulator: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.ci/machine.sh
. .ci/machine.sh
# shellcheck source=.ci/sysroot.sh
. .ci/sysroot.sh

show_help() {
  cat <<HELP
Usage: tests/arm/run.sh [arm64] [armhf] [--all | CTEST OPTION...]

Builds the program and its tests for ARM with 64 and with 32 bits, or one of them, on an x86-64 machine with Debian 12, and
runs them emulated, with the instructions of a Cortex-A53 (Raspberry Pi 3) and a Cortex-A7 (Raspberry Pi 2): without it
nothing here has seen NEON. Installs cross compilers, qemu and mmdebstrap, and puts Debian's ARM packages into
build/arm64-root and build/armhf-root (600 MB each), not into this system. What is left is in build/arm64 and build/armhf:
build/arm64/tessera runs on a Pi with the packages of the README.

First of all tests/arm/inner_loops.sh, which can be run by itself, looks whether inner loops go to the stack; at the end
tests/arm/mixed.sh compares training on ARM, and on x86-64 and ARM together, with training on x86-64.

  (no option)  the tests of operators, and those on three ranks
  --all        all tests: more than an hour each

Other options go to ctest instead, for example: tests/arm/run.sh arm64 -R '^(partitioner:|mpi_2\$)'
HELP
}

kinds=()
while [ $# -gt 0 ]; do
  case $1 in
    arm64 | armhf) kinds+=("$1") ;;
    --help | -h) show_help || true; exit 0 ;;
    *) break ;;
  esac
  shift
done
[ "${#kinds[@]}" -gt 0 ] || kinds=(arm64 armhf)
case ${1:-} in
  '') choice=(-R '^(engine_(generic|cortex-a53|neon)|mpi_3)$') ;;
  --all) choice=("${@:2}") ;;
  *) choice=("$@") ;;
esac

declare -A compilers=([arm64]=g++-aarch64-linux-gnu [armhf]=g++-arm-linux-gnueabihf)
libraries=(libc6-dev libstdc++-12-dev libgomp1 doctest-dev)
for package in "${program_packages[@]}"; do
  case $package in *-dev) libraries+=("$package") ;; esac
done

for kind in "${kinds[@]}"; do
  install_packages yes "${program_packages[@]}" doctest-dev "${compilers[$kind]}" qemu-user-static mmdebstrap
  make_sysroot bookworm "$kind" "$PWD/build/$kind-root" "${libraries[@]}"
done
tests/arm/inner_loops.sh
find_mpich
configure release
cmake --build build/release -j "$(build_jobs)" --target tessera
failed=0
for kind in "${kinds[@]}"; do
  cmake -S . -B "build/$kind" -G Ninja --toolchain "$PWD/.ci/sysroot.cmake" -DTESSERA_ARCHITECTURE="$kind" -DTESSERA_SYSROOT="$PWD/build/$kind-root" \
    -DCMAKE_BUILD_TYPE=Release -DTESSERA_TESTS=ON -DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DMPIEXEC_EXECUTABLE="$mpich_launcher"
  cmake --build "build/$kind" -j "$(build_jobs)"
  ctest --test-dir "build/$kind" --output-on-failure --no-tests=error --timeout 7200 "${choice[@]}" || failed=1
done
tests/arm/mixed.sh "${kinds[@]}" || failed=1
exit "$failed"
