#!/usr/bin/env bash
# Fails, and names the sources, where one does not include the header of its own name first, which shows that this header compiles
# alone; then, with the lines, where one is not as clang-format 14 would have it. Exit code 77 where that is not installed.
# Not formatted: *.inl, in which it mangles attributes of lambdas.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

late=$(find engine partitioner -name '*.cpp' -exec sh -c '
  for source; do
    header=${source%.cpp}.h
    [ ! -e "$header" ] || [ "$(grep -m 1 "^#include" "$source")" = "#include \"$header\"" ] || echo "$source: does not include $header first"
  done' sh {} +)
if [ -n "$late" ]; then
  printf '%s\n' "$late" >&2
  exit 1
fi

tool=$(command -v clang-format-14 || command -v clang-format || true)
if [ -z "$tool" ] || ! "$tool" --version | grep -q 'version 14\.'; then
  echo 'clang-format 14 is not installed'
  exit 77
fi
find bench engine partitioner tests \( -name '*.cpp' -o -name '*.h' \) -print0 |
  xargs -0 -n 32 -P "$(nproc)" "$tool" --dry-run -Werror
