#!/usr/bin/env bash
# Pictures as cameras and strangers make them: what they cost, that they lie upright, and what is refused before it is trained on.
. tests/cli/support/harness.sh

perl "$support/make_odd_pictures.pl" "$folder"
cat >"$folder/m.cfg" <<'EOM'
[net]
height=64
width=64
channels=3
batch=2
learning_rate=0.01
max_batches=2
flip=0
[convolutional]
filters=4
size=3
stride=4
pad=1
activation=relu
[connected]
output=2
activation=linear
[softmax]
EOM

# data_of FILE: a data set of that picture, twice, once to test with.
data_of() {
  rm -rf "$folder/data"
  mkdir -p "$folder"/data/{train,test}/{a,b}
  cp "$1" "$folder/data/train/a"
  cp "$folder/upright.png" "$folder/data/train/b"
  cp "$folder/upright.png" "$folder/data/test/a"
}
training=(train "$folder/m.cfg" --data "$folder/data" --progress none --no-eval)

# memory WHICH KIND: of rank 0, from the last run's report.
memory() {
  awk -v which="\"$1\":" -v kind="\"$2\":" '$1 == which { inside = 1 }
    inside && $1 == kind { sub(/,/, "", $2); print $2; exit }' "$folder/run/memory.json"
}

data_of "$folder/photo.jpg"
works 1 "${training[@]}" --run "$folder/run" --partition auto --memory-limit 60
resident=$(memory measured peak_resident)
expect 'what a photo of 12 megapixels takes was planned' test "$((4 * resident))" -lt "$((5 * $(memory planned total)))"
expect 'decoding it was planned to the byte' test "$(memory measured decoding)" -eq "$(memory planned decoding)"
expect 'and is less than a tenth of its pixels' test "$(memory planned decoding)" -lt 1200000
expect 'a list of pictures has its column' test "$(memory measured data)" -gt 0

weights=$folder/run/checkpoint.safetensors
# answer FILE: what the network makes of it, in no more than 150 MB of memory beside what the program maps.
answer() {
  works 1 predict "$folder/m.cfg" "$1" --weights "$weights" --json && sed 's/"picture":"[^"]*",//' "$folder/out"
}
expect 'a picture that is stored turned is seen upright' test "$(answer "$folder/turned.png")" = "$(answer "$folder/upright.png")"
expect 'the same bits come from all instructions' test "$(answer "$folder/photo.jpg")" = "$(JSIMD_FORCENONE=1 answer "$folder/photo.jpg")"
answer "$folder/colour.bmp" >"$folder/bmp"
expect 'a BMP picture is read' test -s "$folder/bmp"

# With so little memory to be had, what a file unpacks to cannot be taken.
(
  ulimit -v $((800 * 1024))
  answer "$folder/big.png" >"$folder/big"
)
expect 'a PNG of 64 megapixels takes little memory' test -s "$folder/big"

# rejects PATTERN FILE
rejects() {
  run 1 predict "$folder/m.cfg" "$folder/$2" --weights "$weights"
  expect_refusal "$2: .*$1"
}
rejects '60000 x 60000 pixels' huge.png
rejects '60000 x 60000 pixels' huge.jpg
rejects '8000 x 8000 pixels, but is cut off' wide.jpg
rejects 'damaged' bomb.png
rejects 'cut off' photo-cut.jpg
rejects 'damaged' photo-dirty.jpg
rejects 'HEIC.*convert it to JPEG' photo.heic
rejects 'AVIF.*convert it to JPEG' photo.avif
rejects 'TIFF.*convert it to JPEG' scan.tiff

# Damage is found by training, on all ranks.
data_of "$folder/photo-dirty.jpg"
for ranks in 1 4; do
  run "$ranks" "${training[@]}" --run "$folder/damaged"
  expect_refusal 'photo-dirty\.jpg: '
done

# A picture that needs more than there is is named before training.
data_of "$folder/big.png"
sed 's/=64$/=6000/; s/stride=4/stride=2000/' "$folder/m.cfg" >"$folder/large.cfg"
run 1 train "$folder/large.cfg" --data "$folder/data" --run "$folder/large" --no-eval --partition auto --memory-limit 70
expect_refusal 'big\.png: decoding this picture takes .* than --memory-limit allows'
expect 'nothing was begun' test ! -e "$folder/large"
