#!/usr/bin/env bash
# Whether `tessera choose` chooses well on random clusters, of which the truth is known. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/choice/simulated.sh
. bench/results.sh

program=build/bench/bench/choice/choose_bench
clusters=1000
seed=1
model=models/small-vgg.cfg
sets=
out=runs/simulated.csv

show_help() {
  cat <<HELP
Usage: bench/choice/simulated.sh [OPTION...]

Lets the chooser of \`tessera choose\` choose among the sets of devices of random clusters, for each objective, with predictions that are
off by 10, 20 and 40 % and trials by 2, 5 and 10 %: how often it finds the best set, and how much of an hour its trials take. README.md
says what is simulated. Needs the program: cmake --preset bench && cmake --build build/bench --target choose_bench

  --clusters N          how many; default: $clusters
  --seed N              of clusters, errors and noise; default: $seed
  --model FILE          that they train; default: $model
  --sets FILE           predicted and true steps of all sets: read if the file exists, else written
  --program FILE        default: $program
  --out FILE            the CSV; default: $out
  --commit-results      copies the CSV and its origin to bench/choice and writes the tables of the READMEs anew
  --quick               20 clusters, to see that it runs
HELP
}

be_quick() {
  clusters=20
  out=runs/simulated-quick.csv
}

take_only_options 'clusters seed model sets program out' "$@"
[ -x "$program" ] || fail "$program is not there: see --help."
options=(--clusters "$clusters" --seed "$seed" --model "$model")
[ -z "$sets" ] || options+=(--sets "$sets")
"$program" "${options[@]}" >"$(in_folder "$out")"
note_origin "$out"
keep_results "$out" bench/choice/simulated
