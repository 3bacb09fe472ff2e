#!/usr/bin/env bash
# Builds for 64-bit ARM and runs the tests in an emulator: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.ci/machine.sh
. .ci/machine.sh
# shellcheck source=.ci/sysroot.sh
. .ci/sysroot.sh

show_help() {
  cat <<HELP
Usage: tests/arm/run.sh [CTEST OPTION...]

Builds the program and its tests for 64-bit ARM on an x86-64 machine with Debian 12, and runs them emulated,
with the instructions of a Cortex-A53 (Raspberry Pi 3): without it nothing here has seen NEON. Installs
a cross compiler, qemu and mmdebstrap, and puts Debian's ARM packages into build/arm64-root (600 MB), not into
this system. First of all tests/arm/inner_loops.sh, which can be run by itself, looks whether inner loops go to the
stack. What is left is in build/arm64: build/arm64/tessera runs on a Pi with the packages of the README.

Options go to ctest, for example: tests/arm/run.sh -R '^(partitioner:|mpi_2\$)'
HELP
}

case ${1:-} in --help | -h) show_help || true; exit 0 ;; esac

root=$PWD/build/arm64-root
libraries=(libc6-dev libstdc++-12-dev libgomp1 doctest-dev)
for package in "${program_packages[@]}"; do
  case $package in *-dev) libraries+=("$package") ;; esac
done

install_packages yes "${program_packages[@]}" doctest-dev g++-aarch64-linux-gnu qemu-user-static mmdebstrap
make_sysroot bookworm arm64 "$root" "${libraries[@]}"
tests/arm/inner_loops.sh
find_mpich
cmake -S . -B build/arm64 -G Ninja --toolchain "$PWD/.ci/sysroot.cmake" -DTESSERA_ARCHITECTURE=arm64 -DTESSERA_SYSROOT="$root" \
  -DCMAKE_BUILD_TYPE=Release -DTESSERA_TESTS=ON -DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DMPIEXEC_EXECUTABLE="$mpich_launcher"
cmake --build build/arm64 -j "$(build_jobs)"
ctest --test-dir build/arm64 --output-on-failure --timeout 7200 "$@"
