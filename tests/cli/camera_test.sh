#!/usr/bin/env bash
# From the folder that a labelling program exports to boxes that another program finds: check-data, adapt, train on four ranks,
# export; OpenCV finds in the exported file what `predict` does.
. tests/cli/support/harness.sh

# A detector of 80 classes with two heads, as it might be downloaded.
cat >"$folder/coco.cfg" <<'EOM'
[net]
height=64
width=64
channels=3
batch=8
learning_rate=0.004
adam=1
hue=.02
[convolutional]
batch_normalize=1
filters=8
size=3
stride=2
pad=1
activation=leaky
[convolutional]
batch_normalize=1
filters=16
size=3
stride=4
pad=1
activation=leaky
[convolutional]
batch_normalize=1
filters=32
size=3
stride=2
pad=1
activation=leaky
[convolutional]
filters=170
size=1
activation=linear
[yolo]
mask=2,3
anchors=10,14, 23,27, 37,58, 81,82
classes=80
num=4
[route]
layers=1
[convolutional]
filters=170  # 2 * (80 + 5)
size=1
activation=linear
[yolo]
mask=0,1
anchors=10,14, 23,27, 37,58, 81,82
classes=80
num=4
EOM

python3 "$support/make_labelled_set.py" cvat "$folder/cvat" 48 64 1
python3 "$support/make_labelled_set.py" roboflow "$folder/roboflow" 48 64 2
run 1 check-data "$folder/cvat"
if grep -q 'built without' "$folder/err"; then
  exit 77
fi

for program in cvat roboflow; do
  works 1 check-data "$folder/$program"
  expect "$program: the layout is said" grep -qi 'layout: .*data\.yaml' "$folder/out"
  run 1 train "$folder/coco.cfg" --data "$folder/$program" --steps 1 --run "$folder/$program-unfit"
  expect "$program: train names what makes the model fit" grep -q "tessera adapt $folder/coco.cfg --data $folder/$program" "$folder/err"
  works 1 adapt "$folder/coco.cfg" --data "$folder/$program" --out "$folder/$program.cfg"
  expect "$program: comments stay" grep -qx 'filters=14  # 2 \* (80 + 5)' "$folder/$program.cfg"
  works 4 train "$folder/$program.cfg" --data "$folder/$program" --grid 2x2 --steps 240 --run "$folder/$program-run" --progress none
  mkdir "$folder/$program-found"
  status=0
  timeout 120 /usr/bin/python3 "$support/compare_onnx.py" "$TESSERA" "$folder/$program-found" "$folder/$program-run" \
    "$folder/$program" >"$folder/out" 2>"$folder/err" || status=$?
  [ "$status" -ne 77 ] || exit 77
  command_line="compare_onnx.py $program"
  expect "$program: OpenCV finds what predict does" test "$status" -eq 0
  expect "$program: which is something" test "$(sed 's/ .*//' "$folder/out")" -ge 10
  expect "$program: names are beside it" grep -qx disc "$folder/$program-found/labels.txt"
done
