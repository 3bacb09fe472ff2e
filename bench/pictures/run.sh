#!/usr/bin/env bash
# What pictures cost in each epoch, with a cache and without. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/pictures/run.sh
. bench/results.sh

readonly columns='cache,epoch,waiting_s,least_s,most_s,step_s,decoded,pairs'
program=build/release/tessera
out=runs/pictures.csv
results=bench/pictures/pictures # where --commit-results copies them
table=
photos=60
megapixels=12
ranks=4
epochs=4
pairs=3
caches='off memory folder'
read -ra cut <<<'--grid 2x2'

show_help() {
  cat <<HELP
Usage: bench/pictures/run.sh [OPTION...]

Trains a small network, input 96x96, on JPEG photos with augmentation, on ranks of this machine: how long steps of each epoch wait for
pictures with --cache off, memory and a folder that is empty before, one after the other, the order turning from round to round. Before
it measures it sees that all have the same losses. Needs python3-pil and python3-numpy.

  --photos N            how many; default: $photos
  --megapixels M        of each; default: $megapixels
  --epochs N            default: $epochs
  --pairs N             rounds; the median counts; default: $pairs
  --program FILE        default: $program
  --out CSV             default: $out
  --table CSV           measures nothing; prints the table of existing measurements
  --commit-results      also copies CSV and origin to $results.* and updates the tables in the READMEs
  --quick               few small photos, to see that everything works
  --help                shows this help and exits
HELP
}

be_quick() {
  photos=12
  megapixels=1
  epochs=2
  pairs=1
  out=runs/pictures-quick.csv
}

read_options() {
  local option name
  take_only_options 'photos megapixels epochs pairs program out table' "$@"
  for option in photos megapixels epochs pairs; do
    name=${option//-/_}
    [[ ${!name} =~ ^[1-9][0-9]{0,4}$ ]] || fail "--$option: expected an integer above 0, not '${!name}'."
  done
}

leave() { rm -rf "$scratch"; }

# train CACHE ROUND: adds a line "cache epoch waiting_s step_s" for each epoch.
train() {
  local run=$scratch/$1-$2 place=$1
  [ "$1" != folder ] || place=$scratch/kept-$2
  OMP_NUM_THREADS=1 mpiexec.mpich -n "$ranks" "$program" train bench/pictures/photos.cfg --data "$scratch/photos" --run "$run" --no-eval --monitor off \
    --epochs "$epochs" --progress none --cache "$place" "${cut[@]}" >"$scratch/out" 2>&1 || fail "training fails: $(tail -n 1 "$scratch/out")"
  sed -n 's/^{"step":\([0-9]*\),.*"step_s":\([^,]*\),.*"load_s":\([^,}]*\).*/\1 \2 \3/p' "$run/metrics.jsonl" | awk -v cache="$1" -v steps="$epoch_steps" '
    { epoch = int(($1 - 1) / steps) + 1; all[epoch] += $2; waiting[epoch] += $3 }
    END { for (epoch = 1; epoch in all; ++epoch) print cache, epoch, waiting[epoch], all[epoch] / steps }' >>"$scratch/measured"
  sed -n 's/^{"step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$run/metrics.jsonl" >"$scratch/losses"
  [ -s "$scratch/reference" ] || cp "$scratch/losses" "$scratch/reference"
  cmp -s "$scratch/losses" "$scratch/reference" || fail "--cache $1 has other losses than --cache ${caches%% *}"
  sed -n '/"cache": {/,/}/s/^ *"decoded": \([0-9]*\).*/\1/p' "$run/run.json" >"$scratch/decoded-$1"
}

# summary CACHE EPOCH: a row of the result.
summary() {
  awk -v cache="$1" -v epoch="$2" '$1 == cache && $2 == epoch { print $3, $4 }' "$scratch/measured" | sort -g |
    awk -v cache="$1" -v epoch="$2" -v decoded="$(cat "$scratch/decoded-$1")" '{ waiting[NR] = $1; step[NR] = $2 }
      END { middle = int((NR + 1) / 2); printf "%s,%d,%.4f,%.4f,%.4f,%.4f,%d,%d\n", cache, epoch, waiting[middle], waiting[1], waiting[NR], step[middle], decoded, NR }'
}

report() {
  awk -F, 'NR == 1 { print "| cache | epoch | waiting for pictures, s | least to most | share of the first epoch |\n| --- | ---: | ---: | ---: | ---: |"; next }
    { if ($2 == 1) first = $3; printf "| %s | %d | %.3f | %.3f to %.3f | %.1f %% |\n", $1, $2, $3, $4, $5, 100 * $3 / first }' "$out"
}

read_options "$@"
scratch=$(mktemp -d)
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if [ -n "$table" ]; then
  out=$table
  report
  exit 0
fi
[ -x "$program" ] || fail "$program does not exist: run ./quickstart.sh first, or give --program."
python3=/usr/bin/python3 # with the distribution's packages
"$python3" -c 'import numpy, PIL' 2>"$scratch/err" || fail 'photos cannot be made here: apt-get install python3-pil python3-numpy.'
epoch_steps=$((photos / 12))
[ $((photos % 12)) -eq 0 ] || fail "--photos: expected a multiple of the batch, which is 12, not '$photos'."
"$python3" bench/pictures/make_photos.py "$scratch/photos" "$photos" "$megapixels"
for ((round = 1; round <= pairs; ++round)); do
  for cache in $caches; do train "$cache" "$round"; done
  read -r first rest <<<"$caches"
  caches="$rest $first"
done
{
  echo "$columns"
  for cache in off memory folder; do
    for ((epoch = 1; epoch <= epochs; ++epoch)); do summary "$cache" "$epoch"; done
  done
} >"$(in_folder "$out")"
note_origin "$out"
report
keep_results "$out" "$results"
