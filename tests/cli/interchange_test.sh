#!/usr/bin/env bash
# Detectors' weights in other programs: Debian's Darknet and OpenCV compute with what `convert` writes as this program does, and
# `darknet partial` cuts out what `convert --layers` does. Model files as arguments: with these instead of small ones.
. tests/cli/support/harness.sh

timeout 600 /usr/bin/python3 tests/interchange/compare.py "$TESSERA" "$@" >"$folder/found" 2>&1
code=$?
[ -z "${SHOW:-}$*" ] || cat "$folder/found"
if [ "$code" -eq 77 ]; then
  cat "$folder/found"
  exit 77
fi
[ "$code" -eq 0 ] || { failures=1; tail -n 20 "$folder/found"; }
