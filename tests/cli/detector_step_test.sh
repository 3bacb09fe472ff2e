#!/usr/bin/env bash
# A training step of detectors as Darknet ships them is Darknet's on 1, 4 and 6 ranks: outputs and deltas of heads, the loss, gradients and
# running statistics. tests/golden/README.md says what the files hold.
. tests/cli/support/harness.sh

golden=tests/golden/detectors
# expected_of FILE OUT: the expected tensors under the names of what the program writes.
expected_of() {
  perl -e '
    local $/;
    my $bytes = <STDIN>;
    my $size = unpack "V", $bytes;
    my $header = substr $bytes, 8, $size;
    $header =~ s/"(?!expected\.)[\w.]+":\{[^{}]*\},?//g;
    $header =~ s/,\s*\}\s*$/}/;
    $header =~ s/"expected\./"/g;
    print pack("VV", length $header, 0), $header, substr $bytes, 8 + $size' <"$1" >"$2"
}

# agrees NAME RANKS BOUND PRECISION ARGUMENT...
agrees() {
  local name=$1 ranks=$2 bound=$3 precision=$4
  shift 4
  works "$ranks" gradients "$golden/$name.cfg" --in "$golden/$name.safetensors" --out "$folder/found.safetensors" --precision "$precision" "$@" || return
  # What comes out beside these is the last layer's output once more.
  expect "$name on $ranks ranks, in $precision precision" perl "$support/compare_tensors.pl" "$folder/expected.safetensors" \
    "$folder/found.safetensors" "$bound" '^(?!output$)'
}

for name in yolov1-tiny yolov2 yolov2-tiny yolov3-tiny; do
  expected_of "$golden/$name.safetensors" "$folder/expected.safetensors"
  for precision in single double; do
    agrees "$name" 1 1e-4 "$precision"
    agrees "$name" 4 1e-4 "$precision" --grid 2x2
    agrees "$name" 6 1e-4 "$precision" --grid 2x3
  done
done

# By the rule of the model file: with the other one, of 12 cells, it is another step.
sed '/^batch_norm_rule/d' "$golden/yolov3-tiny.cfg" >"$folder/pytorch.cfg"
works 1 gradients "$folder/pytorch.cfg" --in "$golden/yolov3-tiny.safetensors" --out "$folder/found.safetensors"
different() { ! perl "$support/compare_tensors.pl" "$folder/expected.safetensors" "$folder/found.safetensors" 1e-2 '^layers.*weight' >/dev/null; }
expect "by PyTorch's rule gradients differ" different
