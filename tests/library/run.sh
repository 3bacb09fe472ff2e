#!/usr/bin/env bash
# Another project trains with the library on two ranks. The library is installed from a build, and added from its sources.
#   tests/library/run.sh [--all] [BUILD]
# BUILD is a folder that has been built; build/tests where none is given. From its sources the library takes minutes to
# compile: without --all only the folders that one of the two programs links.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.ci/machine.sh
. .ci/machine.sh

added=(tiles)
if [ "${1:-}" = --all ]; then
  added=(tiles train)
  shift
fi
build=$(realpath "${1:-build/tests}")
find_mpich
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# build_and_run NAME CMAKE_OPTION... -- PROGRAM...: configures the project with these options, builds the programs and runs them.
build_and_run() {
  local binaries=$folder/$1 options=()
  shift
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  cmake -S tests/library -B "$binaries" -G Ninja "${options[@]}" >/dev/null
  cmake --build "$binaries" -j "$(build_jobs)" --target "$@" >/dev/null
  local program arguments
  for program in "$@"; do
    arguments=()
    [ "$program" != choose ] || arguments=(models/lenet5.cfg "$folder/digits" hostfiles/pi3x2.cluster.toml "$folder/run")
    OMP_NUM_THREADS=1 timeout 60 "$mpich_launcher" -n 2 "$binaries/$program" "${arguments[@]}"
  done
}

mkdir "$folder/digits"
perl tests/cli/support/make_idx.pl "$folder/digits" 80 20
rm -rf "$build"/pages "$build"/package/changelog.gz  # which a build of the program alone does not make
cmake --install "$build" --prefix "$folder/prefix" >/dev/null
for page in man/man1/tessera-train.1.gz doc/tessera/changelog.gz; do
  [ -s "$folder/prefix/share/$page" ] || { echo "library: cmake --install lacks share/$page" >&2; exit 1; }
done
build_and_run installed "-DCMAKE_PREFIX_PATH=$folder/prefix" -- tiles train choose
build_and_run added "-DTESSERA_SOURCE=$PWD" -- "${added[@]}"
