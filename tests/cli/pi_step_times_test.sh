#!/usr/bin/env bash
# Predicted step times of Raspberry Pis: layers of a model get rows, rates stay below the peak, and the committed profiles are what the
# committed predictions say.
. tests/cli/support/harness.sh
command -v python3 >/dev/null || exit 77

bench/pi/step_times.py --tessera "$TESSERA" --loops bench/pi/loops.json --out "$folder/again.csv" >"$folder/out" 2>&1 || fail 'the script predicts steps'
expect 'the committed predictions are those of the model and its layers' cmp -s "$folder/again.csv" bench/pi/step_times.csv
expect 'each board has its step' test "$(grep -c ': a step takes' "$folder/out")" -eq 6

bench/pi/step_times.py --tessera "$TESSERA" --loops bench/pi/loops.json --out "$folder/two.csv" --batch 2 >"$folder/out" 2>&1 || fail 'of two images, too'
bench/pi/step_times.py --tessera "$TESSERA" --loops bench/pi/loops.json --size 64x64 --out "$folder/other.csv" models/fashion-resnet.cfg >"$folder/out" 2>&1 ||
  fail 'of another model'
expect 'layers that are not counted are named' grep -q '^not counted: layers .*shortcut' "$folder/out"

python3 - "$folder" <<'PYTHON' || fail 'predictions have the properties that they must have'
import csv, json, sys
sys.path.insert(0, "bench/pi")
from step_times import BOARDS, BLOCK, Convolution, Loops, Work, convolution_work, parts

assert parts(13, 6) == [5, 4, 4] and parts(0, 6) == []
assert Work(4e9, 0).seconds(BOARDS[0]) == 1 and Work(0, BOARDS[0].bytes_per_s).seconds(BOARDS[0]) == 1
cycles = json.load(open("bench/pi/loops.json"))
for board in BOARDS:
    loops = Loops(board.processor, cycles[board.processor])
    peak = board.cores * board.hertz * 8 * (2 if board.processor == "a76" else 1)
    one = Convolution(64, 128, 76, 76, 1, 1)
    for passed in ("forward", "backward_data", "backward_weights"):
        work = convolution_work(one, "direct", passed, loops, board)
        assert one.flops / work.seconds(board) < peak, (board.name, passed)
        assert work.bytes >= one.in_bytes + one.weight_bytes, (board.name, passed)
        # A remainder costs a whole turn: 17 output channels as much as 32.
        more, whole = (convolution_work(Convolution(64, filters, 76, 76, 1, 1), "direct", "forward", loops, board).cycles for filters in (17, 32))
        assert more == whole
one, two = ([row for row in csv.DictReader(open(path))] for path in ("bench/pi/step_times.csv", sys.argv[1] + "/two.csv"))
for a, b in zip(one, two, strict=True):
    assert a["pass"] == "update" or int(b["flops"]) == 2 * int(a["flops"])
    assert float(b["seconds"]) >= float(a["seconds"])
PYTHON

bench/pi/profiles.py --check >"$folder/out" 2>&1 || fail 'the profiles are not those of the predictions: run bench/pi/profiles.py'
mkdir -p "$folder/tree/bench"
cp -r bench/pi "$folder/tree/bench"
cp -r hostfiles "$folder/tree"
sed -i 's/^direct_flops_per_s = .*/direct_flops_per_s = 1/' "$folder/tree/hostfiles/pi4x4.cluster.toml"
! "$folder/tree/bench/pi/profiles.py" --check >"$folder/out" 2>&1 || fail 'a changed profile goes unnoticed'
expect 'it is named' grep -qF 'pi4x4.cluster.toml' "$folder/out"

bench/pi/plans.py --tessera "$TESSERA" --check >"$folder/out" 2>&1 || fail 'the planner says something else of the example clusters: run bench/pi/plans.py'
sed -i 's/^\(clusters,pi4x4,4,1,,--partition auto\),[0-9.]*/\1,9.99/' "$folder/tree/bench/pi/plans.csv"
mkdir "$folder/tree/models"
cp models/yolov2-early.cfg models/yolov4-tiny-clothes.cfg "$folder/tree/models"
cp hostfiles/*.cluster.toml "$folder/tree/hostfiles"
! "$folder/tree/bench/pi/plans.py" --tessera "$TESSERA" --check >"$folder/out" 2>&1 || fail 'a changed plan goes unnoticed'
expect 'it is named' grep -q '^- clusters,pi4x4,4' "$folder/out"
