#!/usr/bin/env bash
# Training with data moved and without on emulated devices, beside what `tessera balance` predicts. See --help.
# shellcheck source-path=SCRIPTDIR/../../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
bench=bench/heterogeneous/balance/measure.sh
. bench/steps/steps.sh
. bench/heterogeneous/models.sh

readonly measured_columns='setting,what,predicted_s,planned_s,measured_s,round'
common_options=(program model batch rounds timeout out table probe-seconds vectors dilate slow-by)
own_options=(cluster samples epochs data bitmap-side bitmaps)
model=models/fashion-resnet.cfg
batch=128
rounds=3
out=runs/balance-measured.csv
results=bench/heterogeneous/balance/measured # where --commit-results copies them
cluster=bench/heterogeneous/balance/unlike.devices
samples=1500,500,300,100
epochs=3
data=/usr/share/datasets/fashion-mnist
bitmap_side=180
bitmaps=800,100,50,50

show_help() {
  cat <<HELP
Usage: bench/heterogeneous/balance/measure.sh [OPTION...]

On emulated devices of unlike speeds and links, with unlike amounts of Fashion-MNIST on them: \`tessera probe\` measures the devices, \`tessera balance\`
predicts, and \`tessera train --data-map\` trains with samples where they lie and with them moved. Then large bitmaps move, for the time of moving alone.
Needs root and the package dataset-fashion-mnist; takes about an hour, and the machine should be otherwise idle.

  --cluster FILE        devices (bench/cluster); default: $cluster
  --model FILE|NAME     one of bench/heterogeneous/models.sh has a name; default: $model
  --samples 'N,...'     training pictures on each device; default: $samples
  --epochs E            default: $epochs
  --batch N             images per step; default: $batch
  --data FOLDER         default: $data
  --bitmaps 'N,...'     that many bitmaps on each device, for moving alone; default: $bitmaps
  --bitmap-side N       their pixels a side; default: $bitmap_side
  --rounds N            of everything that is measured; default: $rounds
  --timeout S           of a training run; default: $timeout
  --vectors, --dilate, --slow-by, --probe-seconds, --program: as in bench/speed/run.sh
  --out CSV             default: $out
  --table CSV           measures nothing; prints the table of existing measurements
  --commit-results      also copies CSV and origin to $results.* and updates the tables in the READMEs
  --quick               a short measurement, to see that everything works
  --help                shows this help and exits
HELP
}

be_quick() {
  samples=150,50,30,10
  bitmaps=80,10,5,5
  epochs=1
  batch=32
  rounds=1
  probe_seconds=10
  out=runs/balance-measured-quick.csv
}

# row WHAT PREDICTED_S PLANNED_S MEASURED_S ROUND: times of the emulated devices, which are faster than real ones. Predicted by `tessera balance`, which
# knows how long devices compute; planned by the cost model, with what steps exchange, or nothing.
row() {
  awk -v label="$cluster_label $model_name" -v what="$1" -v predicted="$2" -v planned="$3" -v measured="$4" -v round="$5" -v k="$dilation" '
    function of_devices(s) { return s == "" ? "" : sprintf("%.6g", k * s) }
    BEGIN { printf "%s,%s,%s,%s,%s,%s\n", label, what, of_devices(predicted), of_devices(planned), of_devices(measured), round }' >>"$out"
  say "$(tail -n 1 "$out" | awk -F, '{ printf "%s: predicted %.3g s%s, measured %.3g s", $2, $3, $4 == "" ? "" : sprintf(", with exchange %.3g s", $4), $5 }')"
}

# predict SAMPLES BYTES EPOCHS OPTION...: leaves the flat JSON in $scratch/balance, and the map in $scratch/map.toml.
predict() {
  local numbers=$1 bytes=$2 for_epochs=$3
  shift 3
  "$program" balance "$model" --cluster "$profile" --samples "$numbers" --sample-bytes "$bytes" --epochs "$for_epochs" --json --out "$scratch/map.toml" "$@" |
    flat_json >"$scratch/balance"
}
predicted() { value "$1" <"$scratch/balance"; }

# stay SAMPLES: a map of which nothing moves.
stay() { printf 'samples = [%s]\n' "$1" >"$scratch/stay.toml"; }

# unmoved_epoch_s SAMPLES: by the same prediction, of an epoch without moving: that of devices that can give nothing away.
unmoved_epoch_s() {
  "$program" balance "$model" --cluster "$profile" --samples "$1" --sample-bytes 1e12 --epochs 1e-9 --json | flat_json | value t_epoch_s
}

# train MAP DATA OPTION...: a run in $scratch/run.
train() {
  local map=$1 from=$2
  shift 2
  rm -rf "$scratch/run"
  run "${launch[@]}" "$program" train "$model" --data "$from/part-{rank}" --data-map "$map" --batch "$batch" --cluster "$profile" --no-eval --monitor off --progress line \
    --run "$scratch/run" "$@" || fail "tessera train: $(last_complaint)"
}
# seconds: of the steps of the last run.
seconds() { sed -n 's/.*"step_s":\([^,}]*\).*/\1/p' "$scratch/run/metrics.jsonl" | awk '{ sum += $1 } END { printf "%.6g", sum }'; }
# planned_s: what the cost model says of them.
planned_s() {
  sed -n 's/.*"predicted_step_s": *\([^,}]*\).*/\1/p' "$scratch/run/run.json" |
    awk -v steps="$(grep -c '"step_s"' "$scratch/run/metrics.jsonl")" 'NR == 1 { printf "%.6g", steps * $1 }'
}
# moved_s: of its move.
moved_s() {
  sed -n 's/^moved \([^ ]* [^ ]*\) of \1 in \([0-9.]*\) s,.*/\2/p' "$scratch/printed" | tail -n 1
}
# waited_s: for its move; all of it where no steps ran meanwhile.
waited_s() {
  local waited
  waited=$(sed -n 's/^[0-9]* steps\{0,1\} ran meanwhile, then \([0-9.]*\) s of waiting$/\1/p' "$scratch/printed")
  echo "${waited:-$(moved_s)}"
}

measure_training() {
  local round before_s
  bench/heterogeneous/balance/share_out.py "$scratch/idx" --samples "$samples" --data "$data"
  stay "$samples"
  for ((round = 1; round <= rounds; ++round)); do
    before_s=$(unmoved_epoch_s "$samples")
    train "$scratch/stay.toml" "$scratch/idx" --epochs "$epochs"
    row 'training without moving' "$(awk -v s="$before_s" -v e="$epochs" 'BEGIN { print s * e }')" "$(planned_s)" "$(seconds)" "$round"
    predict "$samples" 785 "$epochs"
    train "$scratch/map.toml" "$scratch/idx" --epochs "$epochs"
    row 'training with samples moved' "$(awk -v s="$(predicted t_epoch_s)" -v e="$epochs" 'BEGIN { print s * e }')" "$(planned_s)" "$(seconds)" "$round"
    row 'moving and training' "$(predicted total_s)" "$(awk -v a="$(planned_s)" -v b="$(predicted t_move_s)" 'BEGIN { print a + b }')" "$(awk -v a="$(seconds)" -v b="$(waited_s)" 'BEGIN { print a + b }')" "$round"
  done
}

measure_moving() {
  local round bytes
  bench/heterogeneous/balance/share_out.py "$scratch/bmp" --samples "$bitmaps" --bitmaps "$bitmap_side" --data "$data"
  bytes=$(find "$scratch/bmp/part-0/train" -name '*.bmp' -printf '%s\n' -quit)
  for ((round = 1; round <= rounds; ++round)); do
    predict "$bitmaps" "$bytes" 1000000
    train "$scratch/map.toml" "$scratch/bmp" --steps 1
    row "moving bitmaps of $((bytes / 1000)) kB" "$(predicted t_move_s)" '' "$(moved_s)" "$round"
  done
}

report() {
  awk -F, 'NR == 1 { next }
    { key = $1 ": " $2; if (!(key in count)) order[++keys] = key; predicted[key] += $3; planned[key] += $4; measured[key, ++count[key]] = $5 }
    function median(key,    n, i, j, x, t) {
      n = count[key]
      for (i = 1; i <= n; ++i) x[i] = measured[key, i]
      for (i = 1; i <= n; ++i) for (j = i + 1; j <= n; ++j) if (x[j] < x[i]) { t = x[i]; x[i] = x[j]; x[j] = t }
      return n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2
    }
    END {
      print "| what | predicted, s | with exchange, s | measured, s |"
      print "| --- | ---: | ---: | ---: |"
      for (i = 1; i <= keys; ++i)
        printf "| %s | %.4g | %s | %.4g |\n", order[i], predicted[order[i]] / count[order[i]], planned[order[i]] ? sprintf("%.4g", planned[order[i]] / count[order[i]]) : "",
          median(order[i])
    }' "$out"
}

read_options "$@"
report_before
need_program
scratch=$(mktemp -d)
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
may_emulate
if made_model "$model" >"$scratch/made.cfg"; then
  mv "$scratch/made.cfg" "$scratch/$model.cfg"
  model=$scratch/$model.cfg
fi
echo "$measured_columns" >"$(in_folder "$out")"
emulate "$(basename "$cluster" .devices)" "$cluster"
setting "$model" own "$batch"
measure_training
measure_moving
note_origin "$out"
report
keep_results "$out" "$results"
