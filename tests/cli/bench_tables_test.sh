#!/usr/bin/env bash
# The tables of the READMEs are those of the benches' result files, and bench/tables.py --check notices where they are not. No bench in
# Python has two functions, or two keys of a dictionary, of one name, of which the first counts for nothing. The pairs that predictions are
# judged by at the end are those that were drawn at the beginning.
set -euo pipefail
command -v python3 >/dev/null || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
  printf 'FAILED: %s\n' "$1"
  cat "$folder/said"
  failures=$((failures + 1))
}

# check: of the copy; what it says is in $folder/said.
check() { python3 "$folder/bench/tables.py" --check >"$folder/said" 2>&1; }

# cells TABLE: of the second row of a table in the copy's bench/README.md, one a line.
cells() { sed -n "/^<!-- table: $1 -->/,/^<!-- end/p" "$folder/bench/README.md" | sed -n 4p | tr '|' '\n' | sed 's/^ *//; s/ *$//; /^$/d'; }

cp -r bench README.md "$folder"
: >"$folder/said"
check || fail 'the tables are not those of the result files: run bench/tables.py'

sed -i 's/^1,92\.70,/1,12.34,/' "$folder/bench/fashion.csv"
! check || fail 'a changed result goes unnoticed'
grep -qF bench/README.md "$folder/said" || fail 'the file that is not up to date is not named'
python3 "$folder/bench/tables.py" >"$folder/said" 2>&1 || fail 'the tables cannot be written anew'
check || fail 'tables that were just written are not up to date'
grep -qF '| 1 | 12.34 % | 92.93 % |' "$folder/bench/README.md" || fail 'a changed result does not reach its table'

python3 - bench/*.py bench/*/*.py >"$folder/said" <<'END' || fail 'there are names that stand for two things'
import ast
import collections
import sys

def names_of(node):
    if isinstance(node, ast.Dict):
        return [(key.value, key.lineno) for key in node.keys if isinstance(key, ast.Constant)]
    body = node.body if isinstance(node, (ast.Module, ast.ClassDef)) else []
    return [(each.name, each.lineno) for each in body if isinstance(each, (ast.FunctionDef, ast.ClassDef))]

twice = []
for path in sys.argv[1:]:
    for node in ast.walk(ast.parse(open(path, encoding="utf-8").read())):
        names = names_of(node)
        counts = collections.Counter(name for name, _ in names)
        twice += [f"{path}:{line}: {name}" for name, line in names if counts[name] > 1]
print("\n".join(twice))
sys.exit(bool(twice))
END

# Rows as a bench writes them, two rounds of each partition: medians, ranges and what follows from them are computed.
{
  echo cluster,devices,rate_mbit,dilation,model,size,batch,name,round,predicted_s,measured_s,planned_bytes,peak_bytes
  echo pi3x4,4,100,1,net,64x64,2,auto,1,0.8,1.0,1000 2000,1000 1600
  echo pi3x4,4,100,1,net,64x64,2,auto,2,0.8,1.2,1000 2000,1000 1600
  echo pi3x4,4,100,1,net,64x64,2,grid,1,0.9,1.0,1000 2000,1000 2000
  echo pi3x4,4,100,1,net,64x64,2,images,1,2.0,4.0,1000 2000,1000 2000
} >"$folder/raw.csv"
cp "$folder/raw.csv" "$folder/bench/choice/choice.csv"
cp "$folder/raw.csv" "$folder/bench/prediction/prediction.csv"
{
  echo cluster,devices,rate_mbit,dilation,model,size,batch,name,predicted_s,measured_s,computing_s,maps_s,statistics_s,sums_s,idle_s,busiest_bytes,work_bound,recomputed
  echo pi3x2-100,2,100,1,net,64x64,4,each,40,40,40,0,0,0,0,0,,
  echo pi3x2-100,2,100,1,net,64x64,8,each,100,100,100,0,0,0,0,0,,0-3
  echo pi3x2-100,2,100,1,net,64x64,8,auto,50,50,45,2,1,1,1,12500000,1.9,
} >"$folder/bench/speed/speed.csv"
python3 "$folder/bench/tables.py" >"$folder/said" 2>&1 || fail 'rows of a bench make no tables'

# expect_cells TABLE CELL...
expect_cells() {
  local name=$1 wanted
  shift
  wanted=$(printf '%s\n' "$@")
  [ "$(cells "$name")" = "$wanted" ] || fail "$name has the row $(cells "$name" | paste -sd '|'), not $(paste -sd '|' <<<"$wanted")"
}

# shellcheck disable=SC2016 # backquotes of Markdown
expect_cells choice 'pi3x4, 100 Mbit/s' '`net`, 64x64, 2' 3 0.80 '1.10 (1.00 to 1.20)' '`grid`' 1.00 1.10
# shellcheck disable=SC2016 # backquotes of Markdown
expect_cells prediction 'pi3x4, 100 Mbit/s' '`net`, 64x64, 2' 3 '27.3 %' '50.0 %' 0.50 '0.0 %' '25.0 %'
# One device recomputes layers for a batch of 8, so it is compared in two passes of 4: 80 s.
expect_cells speed 8 '100 *' 100 50.0 50.0 1.60 1.60 1.90 80.0

kept=$(python3 bench/prediction/pairs.py --part kept --hash)
[ "$kept" = "$(cat bench/prediction/kept-pairs.sha256)" ] || fail "the pairs that are kept have another hash: $kept"
[ "$failures" -eq 0 ] || { printf '%d failed\n' "$failures"; exit 1; }
