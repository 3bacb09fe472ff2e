#!/usr/bin/env bash
# Runs clang-tidy over every source of the project that the preset "single" compiles, or over those named.
#   tests/tidy.sh [FILE...]      paths from the project's folder; build/single must have been configured
# Prints a line per file and what was found; exits 1 if anything was. Minutes on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

database=build/single/compile_commands.json
if [ ! -s "$database" ]; then
  printf '%s is not there: configure first, with tests/run.sh --all or cmake --preset single.\n' "$database" >&2
  exit 2
fi

# Without what GCC alone knows.
mkdir -p build/single/tidy
sed 's/ -mmem[a-z]*-strategy=[^ "]*//g' "$database" > build/single/tidy/compile_commands.json

# The compiled sources that exist, from the project's folder. clang-tidy checks headers where they are included.
compiled_sources() {
  sed -n "s|^ *\"file\": \"$PWD/\(.*\)\",\{0,1\}\$|\1|p" "$database" | sort -u |
    while read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done
}

check_one() {
  local log started=$SECONDS
  if log=$(clang-tidy -p build/single/tidy --quiet "$1" 2>&1); then
    printf 'tidy   %3d s  %s\n' $((SECONDS - started)) "$1"
  else
    printf 'UNTIDY %3d s  %s\n%s\n' $((SECONDS - started)) "$1" "$log"
    return 1
  fi
}
export -f check_one

if [ $# -eq 0 ]; then
  mapfile -t files < <(compiled_sources)
else
  files=("$@")
fi
[ ${#files[@]} -gt 0 ] || { printf 'no sources in %s\n' "$database" >&2; exit 2; }
# shellcheck disable=SC2016 # $0 is the file, for the inner bash
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'check_one "$0"' ||
  { printf 'clang-tidy found something (above).\n'; exit 1; }
printf 'clang-tidy: %d files are clean.\n' ${#files[@]}
