#!/usr/bin/env bash
# Predicted steps on 1, 2, 4, ... equal devices for pictures of several sizes. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/planner/scale.sh
. bench/steps/steps.sh

common_options=(program model batch out figure table)
own_options=(sides devices seconds)
out=runs/scale.csv
figure=runs/scale.svg
results=bench/planner/scale # where --commit-results copies them
batch=16
sides='608 2048 8192'
devices=4096
seconds=300
columns=pixels,devices,step_s,computing_s,redundant_s,maps_s,statistics_s,gradients_s,idle_s,planning_s

show_help() {
  cat <<HELP
Usage: bench/planner/scale.sh [OPTION...]

For pictures of several sizes: the predicted step time of the best partition for 1, 2, 4, ... equal devices, what it consists of, and how
long the search took, for as many devices as can be planned within --seconds. A forecast by the cost model, not a measurement:
README.md says what it assumes. Writes a line of CSV for each, prints a Markdown table, draws a figure.

  --model FILE          default: $model
  --batch N             images per step; default: $batch
  --sides 'PIXELS...'   sides of square pictures; default: $sides
  --devices N           at most this many; default: $devices
  --seconds S           planning time for each size; default: $seconds
  --program FILE        default: $program
HELP
  results_help
}

be_quick() {
  devices=4
  out=runs/scale-quick.csv
  figure=runs/scale-quick.svg
}

# row PIXELS LINE: of a line of JSON.
row() {
  flat_json <<<"$2" | awk -v pixels="$1" '{ of[$1] = $2 }
    END {
      computing = of["forward_s"] + of["backward_data_s"] + of["backward_weights_s"] + of["other_s"] + of["update_s"]
      printf "%s,%s,%s,%.6g,%s,%s,%s,%s,%.6g,%s\n", pixels, of["devices"], of["step_s"], computing, of["redundant_s"], of["maps_s"],
        of["statistics_s"], of["gradients_s"], of["idle_s"] + of["loss_s"], of["planning_s"]
    }'
}

plan_all() {
  local side line
  echo "$columns" >"$(in_folder "$out")"
  for side in $sides; do
    while read -r line; do
      row "$side" "$line" >>"$out"
      say "$side pixels: $(tail -n 1 "$out" | awk -F, '{ printf "%d devices, step %.4g s, planned in %.1f s", $2, $3, $10 }')"
    done < <(timeout "$seconds" "$program" plan "$model" --scale "$devices" --size "${side}x$side" --batch "$batch" --json 2>/dev/null)
  done
}

report() {
  awk -F, 'function percent(part) { return sprintf("%.1f %%", 100 * part / $3) }
    BEGIN {
      print "| pixels | devices | step, s | speed-up | computing | redundant | maps | statistics | gradients | idle | planned in, s |"
      print "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    }
    NR > 1 {
      if (!($1 in first)) first[$1] = $3
      printf "| %s | %s | %.4g | %.1f | %s | %s | %s | %s | %s | %s | %.1f |\n", $1, $2, $3, first[$1] / $3, percent($4), percent($5), percent($6),
        percent($7), percent($8), percent($9), $10
    }' "$out"
  draw scale "$out"
}

read_options "$@"
report_before
need_program
plan_all
finish
