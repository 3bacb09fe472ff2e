#!/usr/bin/env bash
# export: OpenCV computes of ONNX files what this program does; what is refused, and what is left as it is then.
. tests/cli/support/harness.sh

run 1 export models/lenet5.cfg --weights none --out "$folder/m.onnx"
if grep -q 'built without ONNX' "$folder/err"; then
  expect_refusal 'install libonnx-dev and libprotobuf-dev'
  exit 77
fi

mkdir "$folder/compared"
timeout 600 /usr/bin/python3 "$support/compare_onnx.py" "$TESSERA" "$folder/compared" >"$folder/found" 2>&1
code=$?
cat "$folder/found"
[ "$code" -eq 0 ] || [ "$code" -eq 77 ] || failures=1

golden=tests/golden
lenet=("$golden/network_lenet.cfg" --weights "$golden/network_lenet.safetensors")
yolo=("$golden/detectors/yolo.cfg" --weights "$golden/detectors/yolo.safetensors")
out=(--out "$folder/m.onnx")
printf 'a\nb\nc\n' >"$folder/names"
works 1 export "${yolo[@]}" "${out[@]}" --names "$folder/names"
expect 'what is in the file is said' grep -qx "$folder/m.onnx: images \[1, 3, 32, 64\] -> output0 \[1, 7, 80\]" "$folder/out"
expect 'names are beside it' same_bytes "$folder/names" "$folder/labels.txt"
cp "$folder/m.onnx" "$folder/before"
works 2 export "${yolo[@]}" "${out[@]}" --names "$folder/names"
expect 'several ranks write the same' same_bytes "$folder/m.onnx" "$folder/before"
works 1 export "${yolo[@]}" "${out[@]}" --names "$folder/names" --size 32x32 --raw --batch any
expect 'of another size and any number' grep -q 'images \[any, 3, 32, 32\] -> output0 \[any, 16, 2, 2\], output1 \[any, 16, 4, 4\]' "$folder/out"

refused_alone 'labels.txt: already exists, with other names' export "${yolo[@]}" "${out[@]}"
expect 'it stays' same_bytes "$folder/names" "$folder/labels.txt"
works 1 export "${yolo[@]}" "${out[@]}" --force
expect 'or is replaced' grep -qx 'class 2' "$folder/labels.txt"
cp "$folder/m.onnx" "$folder/before"
refused_alone 'labels.txt: already exists' export "${lenet[@]}" "${out[@]}"
refused_alone 'is a folder' export "${lenet[@]}" --out "$folder"
refused_alone 'expected a name ending in .onnx' export "${lenet[@]}" --out "$folder/m.weights"
refused_alone 'none/m.onnx: cannot be written' export "${lenet[@]}" --out "$folder/none/m.onnx"
refused_alone "yolo.safetensors: 'layers.0.weight' is 8x3x3x3 in the file" export models/lenet5.cfg "${yolo[@]:1}" "${out[@]}"
refused_alone '"0" is not any, nor an integer' export "${lenet[@]}" "${out[@]}" --batch 0
refused_alone 'raw is for detectors' export "${lenet[@]}" "${out[@]}" --raw
refused_alone 'logits is for networks that end in .softmax' export "${yolo[@]}" "${out[@]}" --logits
refused_alone '2 numbers to normalise pixels with' export "${yolo[@]}" "${out[@]}" --mean 1,2
refused_alone 'nothing: no such file or folder' export "${yolo[@]}" "${out[@]}" --force --calibration "$folder/nothing"
expect 'the file stays where another is refused' same_bytes "$folder/m.onnx" "$folder/before"
mkdir "$folder/disk"
if mount -t tmpfs -o size=20k tmpfs "$folder/disk" 2>/dev/null; then
  refused_alone 'No space left on device' export "${yolo[@]}" --out "$folder/disk/m.onnx"
  expect 'nothing is left of it on a full disk' test ! -e "$folder/disk/m.onnx" -a ! -e "$folder/disk/m.onnx.partial"
  umount "$folder/disk"
fi
