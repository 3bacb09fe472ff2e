#!/usr/bin/env bash
# Trains what stands behind frozen layers, with and without keeping the maps of these: see --help.
# shellcheck source-path=SCRIPTDIR/..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bench=bench/trunk_cache.sh
# shellcheck source=bench/results.sh
. bench/results.sh

models='mobilenetv2 yolov4-tiny'
pictures=200
epochs=10
ranks=4
rounds=1
program=build/release/tessera
out=runs/trunk_cache.csv
results=bench/trunk_cache # where --commit-results copies them

show_help() {
  cat <<HELP
Usage: bench/trunk_cache.sh [OPTION...]

Trains the last layers of MobileNetV2 (224x224, all but the last three layers frozen) and of YOLOv4-tiny (416x416, the first 29 layers
frozen) on pictures that \`tessera make-detection-set\` composes, each shown in one variant: with maps of the frozen layers computed for
every step (--trunk-cache off), and kept in memory and in a folder, in turn. Compares the checkpoints byte by byte. Writes a line of CSV
for each run: the time of all of it, start, tests and checkpoints included, and of its steps.

  --models 'NAME...'    default: '$models'
  --pictures N          default: $pictures
  --epochs N            default: $epochs
  --ranks N             one thread each; early layers as tiles, later ones by images; default: $ranks
  --rounds N            default: $rounds
  --program FILE        default: $program
  --out CSV             default: $out
  --commit-results      also copies CSV and origin to $results.* and updates the tables in the READMEs
  --help                shows this help and exits
HELP
}

take_only_options 'models pictures epochs ranks rounds program out' "$@"
[ -x "$program" ] || fail "$program does not exist: run ./quickstart.sh first, or give --program."
work=runs/trunk_cache
mkdir -p "$work"

# What a model trains on, its file, what is frozen and how it is cut: in `data`, `model`, `freeze` and `cut`.
prepare() {
  case $1 in
    mobilenetv2)
      data=$work/classes-$pictures model=models/mobilenetv2.cfg freeze=62 cut='--grid 2x2 --data-parallel-from 30'
      if [ ! -d "$data" ]; then
        local set=$work/composed-224-$pictures label picture
        [ -d "$set" ] || "$program" make-detection-set "$set" --pictures "$pictures" --test-pictures 20 --size 224x224 --seed 1
        while IFS= read -r picture; do  # the class of its first object
          local text=${picture/images/labels} half=train
          label=$(cut -d ' ' -f 1 "${text%.*}.txt" | head -n 1)
          case $picture in */test/*) half='test' ;; esac
          mkdir -p "$data/$half/class${label:-0}"
          cp "$picture" "$data/$half/class${label:-0}/"
        done < <(find "$set" -name '*.png' -o -name '*.jpg' | sort)
      fi
      sed 's/^output=1000$/output=10/' models/mobilenetv2.cfg >"$work/mobilenetv2.cfg"
      model=$work/mobilenetv2.cfg
      ;;
    yolov4-tiny)
      data=$work/composed-416-$pictures/detection.data model=$work/yolov4-tiny.cfg freeze=28 cut='--grid 2x2 --data-parallel-from 18'
      [ -f "$data" ] ||
        "$program" make-detection-set "$work/composed-416-$pictures" --pictures "$pictures" --test-pictures 20 --size 416x416 --seed 1
      "$program" adapt models/yolov4-tiny-clothes.cfg --data "$data" --size 416x416 --out "$model" >/dev/null 2>&1
      ;;
    *) fail "$1: expected mobilenetv2 or yolov4-tiny." ;;
  esac
}

# train MODEL HOW: a run; prints seconds of all of it, and of its steps together.
train() {
  local run=$work/$1-$2 how=$2 began ended
  rm -rf "$run" "$work/maps"
  [ "$how" != folder ] || how=$work/maps
  began=$(date +%s.%N)
  # shellcheck disable=SC2086 # several options
  OMP_NUM_THREADS=1 mpiexec.mpich -n "$ranks" "$program" train "$model" --data "$data" --batch 8 --subdivisions 1 --epochs "$epochs" \
    --freeze "$freeze" --augment-variants 1 --trunk-cache "$how" --seed 1 --run "$run" --progress none $cut </dev/null >"$run.log" 2>&1 || {
    tail -5 "$run.log" >&2
    exit 1
  }
  ended=$(date +%s.%N)
  grep -o '"step_s":[0-9.e-]*' "$run/metrics.jsonl" |
    awk -F : -v began="$began" -v ended="$ended" '{ steps += $2 } END { printf "%.3f,%.3f", ended - began, steps }'
}

echo model,pictures,epochs,ranks,round,trunk_cache,run_s,steps_s,same_bytes >"$(in_folder "$out")"
for name in $models; do
  prepare "$name"
  for ((round = 1; round <= rounds; ++round)); do
    for how in off memory folder; do
      seconds=$(train "$name" "$how")
      same=no
      ! cmp -s "$work/$name-off/checkpoint.safetensors" "$work/$name-$how/checkpoint.safetensors" || same=yes
      printf '%s,%s,%s,%s,%s,%s,%s,%s\n' "$name" "$pictures" "$epochs" "$ranks" "$round" "$how" "$seconds" "$same" | tee -a "$out"
    done
  done
done
note_origin "$out"
keep_results "$out" "$results"
