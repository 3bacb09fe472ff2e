#!/usr/bin/env bash
# Installs what the tests need, builds them and runs all of them: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=.ci/machine.sh
. .ci/machine.sh

show_help() {
  cat <<HELP
Usage: tests/run.sh [--all]

Installs missing packages (without asking: it is meant for continuous integration too), then
  1. checks that sources include their own headers first and, where clang-format 14 is installed, their format;
  2. builds the tests with warnings as errors, compiles headers without a source alone, and runs the tests, on 1 to 7 ranks
     where MPI is involved;
  3. tests the program from its command line (tests/cli/*.sh), and the library from another project (tests/library/run.sh);
  4. looks whether inner loops of 64-bit ARM go to the stack (tests/arm/inner_loops.sh);
  5. runs the tests once more under the address and undefined-behaviour sanitizers.

  --all  then also
  6. compiles all of the library as a part of another project;
  7. runs clang-tidy over all sources, where it is installed: half an hour or more on two cores.

The last line says how many passed and failed; the exit code is 1 if any failed.
HELP
}

passed=0
failed=0
skipped=0

headline() { printf '\n== %s (%d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

# finish: the closing line and exit code.
finish() {
  printf '\n%d min %02d s\n' $((SECONDS / 60)) $((SECONDS % 60))
  if [ "$skipped" -gt 0 ]; then
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  else
    printf '%d passed, %d failed\n' "$passed" "$failed"
  fi
  [ "$failed" -eq 0 ] || exit 1
  exit 0
}

# give_up WHAT: counts a step without which nothing after it can run.
give_up() {
  printf 'FAILED: %s\n' "$1"
  failed=$((failed + 1))
  finish
}

# build PRESET: configures in a process of its own, since an error there ends it.
build() {
  local preset=$1
  (configure "$preset" -DCMAKE_COMPILE_WARNING_AS_ERROR=ON) || give_up "configuring the preset $preset"
  cmake --build "build/$preset" -j "$(build_jobs)" || give_up "building the preset $preset"
}

# run_ctest PRESET CTEST_OPTION...: runs the tests that the options select and adds up the results.
run_ctest() {
  local folder=build/$1 log total bad
  shift
  log=$folder/ctest.log
  ctest --test-dir "$folder" --output-on-failure --timeout 900 "$@" 2>&1 | tee "$log" || true
  total=$(sed -n 's/^.*tests passed, .*failed out of \([0-9]*\).*$/\1/p' "$log")
  bad=$(sed -n 's/^.*tests passed, \([0-9]*\) tests\{0,1\} failed out of.*$/\1/p' "$log")
  if [ "${total:-0}" -eq 0 ]; then
    printf 'FAILED: no test in %s for: ctest %s\n' "$folder" "$*"
    failed=$((failed + 1))
    return
  fi
  passed=$((passed + total - bad))
  failed=$((failed + bad))
}

# run_script NAME COMMAND...: one test that is a command; its output is shown only when it fails. Exit code 77: skipped.
run_script() {
  local name=$1 log started=$SECONDS
  shift
  local code=0
  log=$(timeout 900 "$@" 2>&1 </dev/null) || code=$?
  if [ "$code" -eq 0 ]; then
    printf 'passed  %4d s  %s\n' $((SECONDS - started)) "$name"
    passed=$((passed + 1))
  elif [ "$code" -eq 77 ]; then
    printf 'skipped %4d s  %s: %s\n' $((SECONDS - started)) "$name" "$log"
    skipped=$((skipped + 1))
  else
    printf 'FAILED  %4d s  %s\n%s\n' $((SECONDS - started)) "$name" "$log"
    failed=$((failed + 1))
  fi
}

install_test_packages() {
  local packages=("${program_packages[@]}" doctest-dev tmux chromium python3)
  # clang-tidy parses the sources with clang, which wants its own <omp.h>.
  ! command -v clang-tidy >/dev/null || packages+=(libomp-dev)
  [ "$(uname -m)" != x86_64 ] || packages+=(g++-aarch64-linux-gnu)
  (install_packages yes "${packages[@]}" </dev/null) || give_up 'installing packages'
}

run_command_line_tests() {
  local test
  TESSERA=$PWD/build/tests/tessera
  MPIEXEC=$(command -v mpiexec.mpich)
  export TESSERA MPIEXEC
  for test in tests/cli/*.sh; do
    [ ! -e "$test" ] || run_script "$test" bash "$test"
  done
}

run_sanitized_tests() {
  build sanitize
  export UBSAN_OPTIONS=print_stacktrace=1
  ASAN_OPTIONS=detect_leaks=1 run_ctest sanitize -E '^mpi_' -j "$(nproc)"
  # MPICH itself leaks at its start, so leaks are not looked for here.
  ASAN_OPTIONS=detect_leaks=0 run_ctest sanitize -R '^mpi_2$'
}

run_tidy() {
  if ! command -v clang-tidy >/dev/null; then
    printf 'clang-tidy is not installed: skipped.\n'
    skipped=$((skipped + 1))
  elif tests/tidy.sh; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
}

all=no
case ${1:-} in
  '') ;;
  --all) all=yes ;;
  --help | -h) show_help || true; exit 0 ;;
  *) fail "unknown option '$1'." 'See tests/run.sh --help.' ;;
esac

headline 'Packages'
install_test_packages
headline 'Format of the sources'
run_script tests/format.sh tests/format.sh
headline 'Building the tests'
build tests
headline 'Headers alone'
run_script 'headers without a source compile alone' cmake --build build/tests -j "$(build_jobs)" --target all_verify_interface_header_sets
headline 'Tests'
run_ctest tests -E '^mpi_' -j "$(nproc)"
headline 'Tests on several ranks'
run_ctest tests -R '^mpi_'
headline 'Tests of the command line'
run_command_line_tests
headline 'The library in another project'
library_test=(tests/library/run.sh)
[ "$all" = no ] || library_test+=(--all)
run_script tests/library/run.sh "${library_test[@]}"
headline 'Inner loops of 64-bit ARM'
run_script tests/arm/inner_loops.sh tests/arm/inner_loops.sh
headline 'Tests under the sanitizers'
run_sanitized_tests
if [ "$all" = yes ]; then
  headline 'clang-tidy'
  run_tidy
fi
finish
