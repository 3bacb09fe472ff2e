#!/usr/bin/env bash
# bench/group_size out of a CSV that was measured before: names of groupings, the table, the sentence that concludes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
  printf 'FAILED: %s\n' "$1"
  failures=$((failures + 1))
}

# expect_name GROUPS NAME: of 8 layers.
expect_name() {
  local name
  name=$(awk -v groups="$1" -v layers=8 -f bench/group_size/name.awk)
  [ "$name" = "$2" ] || fail "$1 is called '$name', not '$2'"
}

expect_name 0,1,2,3,4,5,6,7 'each layer alone'
expect_name 0-1,2-3,4-5,6-7 '2 layers each'
expect_name 0-2,3-5,6-7 '3 layers each'
expect_name 0-7 'all 8 layers'
expect_name 0-1,2-7 '0-1 2-7'
expect_name 0-3 '0-3 the rest alone'
expect_name 2-3 '2-3 the rest alone'

# row NAME GROUPS MEASURED COMPUTING MAPS REDUNDANT
row() {
  printf 'pi,4,20,1,net,64x64,4,%s,%s,1,%s,%s,%s,%s,%s,%s,0.1,0.1,0,10,1048576,1048576,%s,1,1048576,1048576,maps,,program p; steps 1; grid 2x2; tiled 8,0.50\n' \
    "$1" "$2" "$3" "$3" "$3" "$3" "$4" "$5" "$6"
}
{
  sed -n "s/^readonly step_columns='\(.*\)'$/\1/p" bench/steps/steps.sh
  row 'each layer alone' '0 1 2 3 4 5 6 7' 1.5 0.8 0.5 0
  row '0-3 the rest alone' '0-3 4 5 6 7' 1.01 0.8 0.1 0
  row 'all 8 layers' 0-7 1.0 1.0 0 0.3
  row auto 0-7 0.5 0.3 0 0
} >"$folder/measured.csv"
bench/group_size/run.sh --table "$folder/measured.csv" --figure "$folder/figure.svg" >"$folder/out" 2>"$folder/err"

# expect LINE: it was printed.
expect() { grep -qxF -- "$1" "$folder/out" || fail "this line is missing: $1"; }

expect 'auto is faster than every grouping in all of 1 settings.'
expect '  links of 20 Mbit/s: auto 0.50 s per step, all 8 layers 1.00 s: 0.50 times as long'
[ "$(head -n 1 "$folder/out")" = 'auto is faster than every grouping in all of 1 settings.' ] || fail 'the verdict on auto is not the first line'
expect 'pi, net, 64x64, batch 4: 4 devices, links of 20 Mbit/s; cut: layers 0 to 7 in 2x2 tiles'
expect '| **all 8 layers** | 1.000 | 1.000, 1.000 | 1.000 | 0.700 | 0.300 | 0.000 | 0.100 | 0.100 | 0.000 | 10 | 1.0 | 1.0 |'
sentence='net, links of 20 Mbit/s, batch 4: fastest is all 8 layers, 1.00 s per step (within 2 %: 0-3, the rest alone); '
sentence+='each layer alone takes 50 % longer (maps +0.50 s, redundant computing -0.30 s, computing +0.10 s).'
expect "$sentence"
[ "$(grep '^| ' "$folder/out" | sed -n '$s/^| .\([a-z]*\).*/\1/p')" = auto ] || fail 'auto is not the last row, apart from the groupings'
if [ "$failures" -gt 0 ]; then
  cat "$folder/out" "$folder/err"
  printf '%d failed\n' "$failures"
  exit 1
fi
