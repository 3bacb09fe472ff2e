#!/usr/bin/env bash
# A detector from training to drawn boxes: it is tested by average precision and finds objects, alike on one rank and on several; files of
# COCO's formats are measured; gradients of its heads are given.
. tests/cli/support/harness.sh

golden=$PWD/tests/golden
cd "$folder" || exit
works 1 make-detection-set set --pictures 40 --size 48x48 --seed 5
cp "$support/detector.cfg" m.cfg
works 4 train m.cfg --data set/detection.data --run run --grid 2x2 --steps 60 --monitor off
expect 'each epoch is tested by average precision' grep -qE 'test map50 [0-9.]+ %' out
expect 'so says the table of epochs' test "$(head -n 1 run/epochs.csv | cut -d, -f6)" = test_map50
expect 'which has the figures of metrics.jsonl' test "$(tail -n 1 run/epochs.csv | cut -d, -f6 | cut -c1-6)" = \
  "$(grep -oE '"map50":[0-9.]+' run/metrics.jsonl | tail -n 1 | cut -d: -f2 | cut -c1-6)"
for sheet in training-pictures test-pictures; do
  expect "$sheet are drawn" test "$(head -c 4 "run/$sheet.png" | tail -c 3)" = PNG
done
works 1 report run
expect 'the page has average precision' grep -q 'Mean average precision at an overlap of 0.5' run/report.html
for figure in precision-recall f1 classes-table average-precision confusion training-pictures test-pictures; do
  expect "it has $figure" grep -q "<figure id=\"$figure\"" run/report.html
done
if command -v chromium >/dev/null; then
  expect 'a browser finds nothing wrong with it' timeout -k 5 300 python3 "$support/browser.py" check run/report.html
fi
cp -r run hindered
mkdir hindered/test-pictures.png.partial
works 4 train m.cfg --data set/detection.data --run hindered --force --grid 2x2 --steps 5 --monitor off --reader 0
expect 'a run goes on where pictures cannot be written' test "$(wc -l <hindered/epochs.csv)" -eq 2
expect 'says so' grep -q '"kind":"warning","text":"[^"]*test-pictures.png' hindered/events.jsonl
expect 'and has what can be written, of this run' test hindered/training-pictures.png -nt hindered/plan.json
expect 'and nothing of the run before' test ! -e hindered/test-pictures.png
works 4 train m.cfg --data set/detection.data --run unread --grid 2x2 --steps 5 --monitor off --reader 1
expect 'without pictures rank 0 draws none' test ! -e unread/training-pictures.png

works 1 make-detection-set many --pictures 1200 --size 96x96 --seed 6
sed 's/=48$/=96/' m.cfg >large.cfg
works 2 train large.cfg --data many/detection.data --run large --steps 130
as_planned large

data=(--data set/detection.data --weights run/checkpoint.safetensors)
works 1 eval m.cfg "${data[@]}" --json
cp out alone
expect 'eval says the figures of COCO and each class' grep -qE '"map50":[0-9.e-]+,.*"AP75":.*"classes":\[\{"class":0,"name":"t-shirt","objects":' alone
works 4 eval m.cfg "${data[@]}" --json --grid 2x2
map50() { grep -oE '"map50":[0-9.]{0,6}' "$1"; }
counts() { grep -oE '"(confusion|right|wrong|missed)":[][0-9,]+|"best_f1_score":[0-9.]+' "$1"; }
expect 'eval has the confusion matrix and curves' test "$(counts alone | grep -cE 'confusion|best_f1_score')" -eq 2
expect 'they are the same on four ranks' test "$(counts out)" = "$(counts alone)"
python3 - alone <<'PY'
import json, sys
found = json.load(open(sys.argv[1]))
rows = found["confusion"]
for each in found["classes"]:
    i = each["class"]
    assert rows[i][i] == each["right"], "the diagonal has the right boxes"
    assert sum(rows[i]) == each["objects"] == each["right"] + each["missed"], "rows have the objects"
    assert sum(row[i] for row in rows) == each["right"] + each["wrong"], "columns have the boxes"
assert len(rows) == len(found["classes"]) + 1
curves = found["curves"]
assert len(curves["precision"]) == len(curves["f1"]) == 101
assert curves["best_f1"] >= max(curves["f1"]) - 1e-4
said = [each["f1"] or 0 for each in found["classes"] if each["objects"]]
assert abs(curves["f1"][25] - sum(said) / len(said)) < 1e-4, "the curve at 0.25 is the mean of the table"
open("consistent", "w")
PY
expect 'the matrix, the curves and the table agree' test -e consistent
expect 'four ranks find the same' test "$(map50 out)" = "$(map50 alone)"
works 1 eval m.cfg "${data[@]}"
expect "eval has COCO's figures with the other two" grep -qE '^AR100 +[0-9.]+ %' out
expect 'and why they differ' grep -q 'COCO gives an object to the best box that is left' out
expect 'a table has a line for each class' grep -qE ' %? +[0-9]+ +[0-9]+ +[0-9]+  ankle-boot$' out

works 1 predict m.cfg set/images/test --weights run/checkpoint.safetensors --threshold 0.01 --json
expect 'each picture has a line of objects' test "$(grep -c '^{"picture":".*","objects":\[' out)" -eq 8
grep -o '"class":[0-9]*' out >alone
works 4 predict m.cfg set/images/test --weights run/checkpoint.safetensors --threshold 0.01 --json --grid 2x2
expect 'so they have on four ranks' test "$(grep -o '"class":[0-9]*' out)" = "$(cat alone)"
works 1 predict m.cfg set/images/test/000000.png --weights run/checkpoint.safetensors --threshold 0.01 --out seen
expect 'names are those of the data set' grep -qE '^ +[0-9.]+ %  [a-z-]+  [0-9] [0-9.-]+ [0-9.-]+ [0-9.]+ [0-9.]+$' out
expect 'boxes are drawn' test "$(head -c 4 seen/000000.png | tail -c 3)" = PNG
sed 's/^anchors=10,14/anchors=11,14/' m.cfg >other.cfg
works 1 predict other.cfg set/images/test/000000.png --weights run/checkpoint.safetensors
expect 'other anchors than in training are warned of' grep -qE \
  'warning: run/checkpoint.safetensors was trained with anchors of layer [0-9]+=10,14, 25,23, .*has anchors of layer [0-9]+=11,14, 25,23' err
works 4 predict m.cfg set/images/test --weights run/checkpoint.safetensors --threshold 0.99 --grid 2x2
expect 'of a picture without objects it says the best score' test "$(grep -cE '^  nothing \(best score [0-9.]+ %, [a-z-]+\)$' out)" -eq 8
expect 'and where the test has found the best threshold' \
  grep -qE 'nothing was found on 8 pictures with a score of 0.99 .* highest score is 0\.[0-9]+, of [a-z-]+ on set/images/.*in the test of run/best.safetensors the highest F1, [0-9.]+ %, was at a score of 0\.[0-9]+: try --threshold 0' err
refused_alone 'threshold' predict m.cfg set/images/test --weights run/checkpoint.safetensors --threshold 2

sed 's/^batch=8/batch=8\nletter_box=1/' m.cfg >bars.cfg
works 4 predict bars.cfg set/images/test --weights run/checkpoint.safetensors --threshold 0.01 --grid 2x2 --reader 0
run 4 predict bars.cfg set/images/test --weights run/checkpoint.safetensors --grid 2x2 --reader 1
expect_refusal 'letter_box: rank 0 says where boxes lie'

python3 - "$golden/map/plain.json" <<'PY'
import json, sys
case = json.load(open(sys.argv[1]))
json.dump(case["ground_truth"], open("truth.json", "w"))
found = case["detections"]
json.dump([*found, {**found[0], "category_id": 77}], open("found.json", "w"))
# The object is on the second image of the list, whose id is the higher one.
truth = {"images": [{"id": 2}, {"id": 1}], "categories": [{"id": 1, "name": "a"}],
         "annotations": [{"image_id": 2, "category_id": 1, "bbox": [0, 0, 9, 9]}]}
json.dump(truth, open("tied-truth.json", "w"))
json.dump([{"image_id": i, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.5} for i in (2, 1)], open("tied.json", "w"))
for box in ([0, 0, -1, 9], [0, 0, 9]):
    truth["annotations"].append({"image_id": 1, "category_id": 1, "bbox": box})
json.dump(truth, open("faulty.json", "w"))
PY
works 1 map --ground-truth truth.json --detections found.json --json
expect "COCO's figure" grep -qE '"AP": 0\.31855728' out
expect 'of each class' grep -q '"ap_by_class"' out
expect 'boxes of a category that is not known are said' grep -qE 'found.json: boxes of categories .* left out: 1 \(1 of 77\)' err
works 1 map --ground-truth tied-truth.json --detections tied.json --json
expect 'of boxes with one score that of the lower id comes first' grep -q '"AP50": 0.5' out
refused_alone 'annotations.1..bbox: a box of -1 x 9 pixels; annotations.2..bbox: expected four' map --ground-truth faulty.json --detections tied.json
works 1 map --ground-truth truth.json --detections found.json
expect 'why three programs differ' grep -q 'COCO gives an object to the best box that is left' out
refused_alone 'found.json: expected an object' map --ground-truth found.json --detections found.json
refused_alone 'No such file' map --ground-truth none.json --detections found.json

case=$golden/detectors/yolo
works 1 gradients "$case.cfg" --in "$case.safetensors" --out one.safetensors
works 4 gradients "$case.cfg" --in "$case.safetensors" --out four.safetensors --grid 2x2 --precision double
for tensor in output.6 delta.6 output.13 delta.13 loss input_gradient layers.0.weight; do
  expect "gradients has $tensor" grep -qaF "\"$tensor\"" four.safetensors
done
expect 'on one rank, too' grep -qaF '"delta.13"' one.safetensors
