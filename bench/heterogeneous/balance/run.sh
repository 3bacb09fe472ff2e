#!/usr/bin/env bash
# How much faster training is when data moves between devices first. See --help.
# shellcheck source-path=SCRIPTDIR/../../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
bench=bench/heterogeneous/balance/run.sh
. bench/results.sh

program=build/release/tessera
out=runs/balance.csv
figure=runs/balance.svg
results=bench/heterogeneous/balance/balance # where --commit-results copies them
table=
devices='5 10 20 50 100'
kinds='data speeds links all classes'
imbalances='1 2 4 8 16'
seeds='1 2 3'
epochs=10

show_help() {
  cat <<HELP
Usage: bench/heterogeneous/balance/run.sh [OPTION...]

By simulation: clusters of devices with unlike amounts of data, speeds and links, the largest R times the smallest; time of training
without moving, with the moves of \`tessera balance\`, exact and greedy, and how long these take to find. Kinds: data; speeds; links,
beside data; all three; classes, on 64 devices with ten of them. Writes a CSV, prints a table, draws a figure (Debian: python3-matplotlib).
measure.sh measures on emulated devices.

  --devices 'N...'      default: $devices
  --kinds 'NAME...'     default: $kinds
  --imbalances 'R...'   default: $imbalances
  --seeds 'S...'        default: $seeds
  --epochs E            default: $epochs
  --program FILE        default: $program
  --out CSV             default: $out
  --figure FILE         default: $figure
  --table CSV           simulates nothing; prints the table of existing results
  --commit-results      also copies CSV, origin and figure to $results.* and updates the tables in the READMEs
  --quick               a few small clusters, to see that everything works
  --help                shows this help and exits
HELP
}

be_quick() {
  devices=5
  imbalances='1 8'
  seeds=1
  out=runs/balance-quick.csv
  figure=runs/balance-quick.svg
}

# The means over seeds, and over all sizes of clusters of one kind the range.
report() {
  awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
    {
      key = $at["kind"] "," $at["devices"] "," $at["imbalance"]
      if (!(key in count)) order[++keys] = key
      ++count[key]
      exact[key] += $at["unmoved_s"] / $at["exact_s"]
      if ($at["greedy_s"] != "") greedy[key] += $at["unmoved_s"] / $at["greedy_s"]
      gap = 1 - $at["bound_s"] / $at["exact_s"]
      if (gap > gaps[key]) gaps[key] = gap
      if ($at["exact_solve_s"] > solve[key]) solve[key] = $at["exact_solve_s"]
    }
    END {
      print "| kind | devices | imbalance | times as fast, exact | greedy | largest gap | solved in, ms at most |"
      print "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
      for (i = 1; i <= keys; ++i) {
        key = order[i]
        split(key, part, ",")
        printf "| %s | %s | %g | %.2f | %s | %.2g %% | %.1f |\n", part[1], part[2], part[3], exact[key] / count[key],
          key in greedy ? sprintf("%.2f", greedy[key] / count[key]) : "", 100 * gaps[key], 1000 * solve[key]
      }
    }' "$out"
  if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
    bench/plot_balance.py --out "$(in_folder "$figure")" "$out"
    say "figure: $figure"
  else
    say 'no figure: install python3-matplotlib.'
  fi
  keep_results "$out" "$figure" "$results"
}

take_only_options 'devices kinds imbalances seeds epochs program out figure table' "$@"
if [ -n "$table" ]; then
  out=$table
  report
  exit 0
fi
[ -x "$program" ] || fail "there is no program $program: build it with ./quickstart.sh, or give --program."
bench/heterogeneous/balance/simulate.py --program "$program" --out "$(in_folder "$out")" --devices "$devices" --kinds "$kinds" \
  --imbalances "$imbalances" --seeds "$seeds" --epochs "$epochs"
note_origin "$out"
report
