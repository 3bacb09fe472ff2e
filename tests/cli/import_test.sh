#!/usr/bin/env bash
# convert MODEL.onnx: networks that PyTorch's exporters wrote compute the same as model files, on 1 and 4 ranks; what no section says,
# and what lies, is refused.
. tests/cli/support/harness.sh

golden=tests/golden/onnx
run 1 convert "$golden/heads-torch113.onnx" --out "$folder/heads.cfg"
if grep -q 'built without ONNX' "$folder/err"; then
  echo 'this program was built without ONNX'
  exit 0
fi
expect 'it is said that there is no normalisation' grep -q 'heads-torch113\.onnx: it has no batch normalisation' "$folder/err"

compare=(python3 tests/golden/compare_import.py --program "$TESSERA" --launcher "$MPIEXEC")
expect 'imported networks compute what the files do' "${compare[@]}" --precision double
expect 'imported networks do on 4 ranks' "${compare[@]}" --ranks 4 --grid 2x2 csp-torch113 mobilenetv2-bn-torch113 csp-two-outputs-bn-torch214 \
  unet-transpose-torch214

# Weights have the names of a checkpoint's; a given model gets the same ones.
works 1 convert "$golden/mobilenetv2-bn-torch113.onnx" --out "$folder/m.cfg"
works 1 convert "$folder/m.cfg" --from "$folder/m.safetensors" --to "$folder/m.weights"
works 1 convert "$golden/mobilenetv2-bn-torch113.onnx" --model "$folder/m.cfg" --to "$folder/given.safetensors"
expect 'a given model gets the same weights' perl "$support/compare_tensors.pl" "$folder/m.safetensors" "$folder/given.safetensors" 0
refused_alone "efficientnet-dynamo\.onnx: the weights of node 'node_Conv_308' are 8x3x3x3, those of layer 0 \(convolutional\) of the model 6x1x5x5" \
  convert "$golden/efficientnet-dynamo.onnx" --model "$models/lenet5.cfg" --to "$folder/none.safetensors"

# Hostile files, in little memory.
for bytes in 0 1000 30000; do
  head -c "$bytes" "$golden/csp-torch113.onnx" >"$folder/cut.onnx"
  refused_alone 'cut\.onnx: is no ONNX model' convert "$folder/cut.onnx" --out "$folder/none.cfg"
done
# A million and a half nodes, each of two bytes: 3,000,000 of the graph.
perl -e 'print "\x08\x07\x3a\xc0\x8d\xb7\x01", "\x0a\x00" x 1_500_000, "\x42\x02\x10\x0d"' >"$folder/many.onnx"
(
  ulimit -v 1000000
  refused_alone 'many\.onnx: its graph has more than' convert "$folder/many.onnx" --out "$folder/none.cfg"
  exit "$failures"
) || failures=$((failures + 1))
expect 'nothing is written where it is refused' test ! -e "$folder/none.cfg" -a ! -e "$folder/none.safetensors"

refused_alone 'expected a name ending in \.cfg' convert "$golden/heads-torch113.onnx" --out "$folder/heads.txt"
refused_alone 'expected --from FILE and --to FILE' convert "$golden/heads-torch113.onnx"
