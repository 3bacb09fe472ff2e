#!/usr/bin/env bash
# Predicted steps of YOLOv2's early layers on 1, 2, 4, ... equal devices for pictures of three sizes, where the time goes, and how long
# planning took on this machine. A forecast by the cost model, not a measurement: bench/planner/README.md says what it assumes.
#
#   bash bench/planner/scale.sh [DEVICES] [IMAGES]
#
#   TESSERA  the program (default build/release/tessera)
set -euo pipefail

tessera=${TESSERA:-build/release/tessera}
devices=${1:-128}
images=${2:-16}

for side in 608 2048 8192; do
  printf '%d x %d pixels, %d images a step\n' "$side" "$side" "$images"
  "$tessera" plan models/yolov2-early.cfg --scale "$devices" --size "${side}x${side}" --batch "$images"
  echo
done
