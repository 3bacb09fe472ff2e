#!/usr/bin/env bash
# Installs what the tests need, builds them and runs them: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=.ci/machine.sh
. .ci/machine.sh

show_help() {
  cat <<HELP
Usage: tests/run.sh [--all]

Installs missing packages (without asking: it is meant for continuous integration too), then
  1. checks that sources include their own headers first and, where clang-format 14 is installed, their format;
  2. builds the tests with warnings as errors and runs them, on 1, 3, 4 and 7 ranks where MPI is involved;
  3. tests the program from its command line (tests/cli/*.sh), several scripts at a time;
  4. tests the library from another project (tests/library/run.sh);
  5. looks whether inner loops of 64-bit ARM go to the stack (tests/arm/inner_loops.sh);
  6. runs the tests under the address and undefined-behaviour sanitizers, on 2 ranks where MPI is involved.

  --all  then also, an hour and more on two cores
  7. on 2 ranks; the operators by AVX2 and generic vectors; on narrower vectors and on 1, 3, 4 and 7 ranks under the sanitizers;
  8. compiles every source and header by itself, which finds missing includes;
  9. compiles all of the library as a part of another project;
 10. runs clang-tidy over all sources, where it is installed.

The seconds of each part and the names of tests that failed come at the end. The last line says how many passed and failed; the
exit code is 1 if any failed.
HELP
}

passed=0
failed=0
skipped=0
failures=()      # their names
parts=()         # names of the parts that have begun
parts_seconds=() # when each began

headline() {
  parts+=("$1")
  parts_seconds+=("$SECONDS")
  printf '\n== %s (%d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60))
}

# finish: how long each part took, the closing line and the exit code.
finish() {
  local part
  parts_seconds+=("$SECONDS")
  printf '\nSeconds of each part:\n'
  for part in "${!parts[@]}"; do
    printf '%7d  %s\n' $((parts_seconds[part + 1] - parts_seconds[part])) "${parts[part]}"
  done
  printf '%7d  in all\n\n' "$SECONDS"
  [ "$failed" -eq 0 ] || printf 'FAILED: %s\n' "${failures[@]}"
  if [ "$skipped" -gt 0 ]; then
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  else
    printf '%d passed, %d failed\n' "$passed" "$failed"
  fi
  [ "$failed" -eq 0 ] || exit 1
  exit 0
}

# failed_one NAME: counts it.
failed_one() {
  failed=$((failed + 1))
  failures+=("$1")
}

# give_up WHAT: counts a step without which nothing after it can run.
give_up() {
  failed_one "$1"
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
  local folder=build/$1 log total bad left_out
  shift
  log=$folder/ctest.log
  ctest --test-dir "$folder" --output-on-failure --timeout 900 "$@" 2>&1 | tee "$log" || true
  total=$(sed -n 's/^.*tests passed, .*failed out of \([0-9]*\).*$/\1/p' "$log")
  bad=$(sed -n 's/^.*tests passed, \([0-9]*\) tests\{0,1\} failed out of.*$/\1/p' "$log")
  left_out=$(grep -c '^[[:space:]]*[0-9]* - .* (Skipped)$' "$log" || true)
  if [ "${total:-0}" -eq 0 ]; then
    failed_one "no test in $folder for: ctest $*"
    return
  fi
  passed=$((passed + total - bad - left_out))
  skipped=$((skipped + left_out))
  failed=$((failed + bad))
  [ "$bad" -eq 0 ] || mapfile -t -O "${#failures[@]}" failures < <(
    sed -n '/^The following tests FAILED:$/,$ { /(Skipped)$/d; s/^[[:space:]]*[0-9][0-9]* - \(.*\) ([^()]*)$/\1/p }' "$log"
  )
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
    failed_one "$name"
  fi
}

install_test_packages() {
  local packages=("${program_packages[@]}" doctest-dev libcpp-httplib-dev tmux chromium python3
    python3-onnx man-db mandoc fish zsh iputils-ping)
  # clang-tidy parses the sources with clang, which wants its own <omp.h>.
  ! command -v clang-tidy >/dev/null || packages+=(libomp-dev)
  [ "$(uname -m)" != x86_64 ] || packages+=(g++-aarch64-linux-gnu)
  (install_packages yes "${packages[@]}" </dev/null) || give_up 'installing packages'
}

narrow='^engine_(avx2|generic|cortex-a53)$' # the operators once more on narrower vectors
# Of those, what --all alone runs: on x86-64, as for a Cortex-A53 is generic vectors with that processor's caches.
left_to_all='^engine_avx2$'
[ "$(uname -m)" != x86_64 ] || left_to_all='^engine_(avx2|generic)$'

# sanitized_mpi SELECTION: MPICH itself leaks at its start, so leaks are not looked for there.
sanitized_mpi() { ASAN_OPTIONS=detect_leaks=0 run_ctest sanitize -R "$1"; }

run_sanitized_tests() {
  export UBSAN_OPTIONS=print_stacktrace=1
  # fontconfig forgets part of its own configuration files.
  echo leak:libfontconfig >build/leaks
  LSAN_OPTIONS=print_suppressions=0:suppressions=$PWD/build/leaks ASAN_OPTIONS=detect_leaks=1 \
    run_ctest sanitize -E "^mpi_|$narrow" -j "$(nproc)"
  sanitized_mpi '^mpi_2$'
}

compile_by_itself() {
  build single
  run_script 'headers without a source compile by themselves' \
    cmake --build build/single -j "$(build_jobs)" --target all_verify_interface_header_sets
}

run_tidy() {
  if ! command -v clang-tidy >/dev/null; then
    printf 'clang-tidy is not installed: skipped.\n'
    skipped=$((skipped + 1))
  elif tests/tidy.sh; then
    passed=$((passed + 1))
  else
    failed_one clang-tidy
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
headline 'Tests'
run_ctest tests -E "^(mpi_[2347]|cli:)|$left_to_all" -j "$(nproc)"
headline 'Tests on several ranks'
run_ctest tests -R '^mpi_[347]$'
headline 'Tests of the command line'
run_ctest tests -R '^cli:' -j $(($(nproc) + 1)) # a script waits about as long as it computes
headline 'The library in another project'
run_script tests/library/run.sh tests/library/run.sh
headline 'Inner loops of 64-bit ARM'
run_script tests/arm/inner_loops.sh tests/arm/inner_loops.sh
headline 'Building the tests with the sanitizers'
build sanitize
headline 'Tests under the sanitizers'
run_sanitized_tests
if [ "$all" = yes ]; then
  headline 'More ranks and vectors'
  run_ctest tests -R "^mpi_2$|$left_to_all"
  run_ctest sanitize -R "$narrow" -j "$(nproc)"
  sanitized_mpi '^mpi_[1347]$'
  headline 'Each source and header by itself'
  compile_by_itself
  headline 'All of the library in another project'
  run_script 'tests/library/run.sh --all' tests/library/run.sh --all
  headline 'clang-tidy'
  run_tidy
fi
finish
