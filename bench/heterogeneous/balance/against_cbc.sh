#!/usr/bin/env bash
# Whether the moves of `tessera balance` are the best there are, beside a solver of mixed-integer programs. See --help.
# shellcheck source-path=SCRIPTDIR/../../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
bench=bench/heterogeneous/balance/against_cbc.sh
. bench/results.sh

program=build/release/tessera
out=runs/balance-cbc.csv
results=bench/heterogeneous/balance/cbc # where --commit-results copies them
table=
devices='3 4 6 8'
seeds='1 2 3 4 5'
limit=30

show_help() {
  cat <<HELP
Usage: bench/heterogeneous/balance/against_cbc.sh [OPTION...]

Small problems of moving data between devices, with latencies or in whole shards, solved by \`tessera balance\` and by COIN-OR's CBC
(Debian: coinor-cbc). Writes a CSV and prints a table: how often CBC proved its answer to be the best in the time that it had, and how far
the two are apart. Ten minutes or so.

  --devices 'N...'      default: $devices
  --seeds 'S...'        default: $seeds
  --limit SECONDS       of CBC, for each problem; default: $limit
  --program FILE        default: $program
  --out CSV             default: $out
  --table CSV           solves nothing; prints the table of existing results
  --commit-results      also copies CSV and origin to $results.* and updates the tables in the READMEs
  --quick               a few small problems, to see that everything works
  --help                shows this help and exits
HELP
}

be_quick() {
  devices='3 4'
  seeds=1
  limit=5
  out=runs/balance-cbc-quick.csv
}

report() {
  awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
    {
      ++all
      proved += $at["cbc_optimal"]
      apart = $at["cbc_s"] == "" ? 0 : $at["tessera_s"] / $at["cbc_s"] - 1
      if (all == 1 || apart > most) most = apart
    }
    END { printf "%d problems, of which CBC proved %d; at most %.1g %% longer than its answer\n", all, proved, 100 * most }' "$out"
  keep_results "$out" "$results"
}

take_only_options 'devices seeds limit program out table' "$@"
if [ -n "$table" ]; then
  out=$table
  report
  exit 0
fi
[ -x "$program" ] || fail "there is no program $program: build it with ./quickstart.sh, or give --program."
command -v cbc >/dev/null || fail 'there is no cbc: install coinor-cbc.'
bench/heterogeneous/balance/against_cbc.py --program "$program" --out "$(in_folder "$out")" --devices "$devices" --seeds "$seeds" --limit "$limit"
note_origin "$out"
report
