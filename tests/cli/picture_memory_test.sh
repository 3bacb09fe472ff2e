#!/usr/bin/env bash
# Decoding large pictures takes no memory that is not planned, whichever threads do it, also where all are looked at before training.
. tests/cli/support/harness.sh

# Each picture takes 16 MiB to decode, and there are enough of them for two threads.
data=$folder/photos
make_colours_model "$folder/colours.cfg"
mkdir -p "$data"/{train,test}/{blue,red}
perl -e '
  my ($side, $path) = (2364, @ARGV);
  open(my $file, ">:raw", $path) or die;
  print {$file} pack("a2 V4 l2 v2 V6", "BM", 54 + 3 * $side ** 2, 0, 54, 40, $side, $side, 1, 24, 0, 3 * $side ** 2, 0, 0, 0, 0),
    "\x80\x40\x20" x $side ** 2' "$folder/large.bmp"
for number in {1..70}; do
  ln "$folder/large.bmp" "$data/train/blue/$number.bmp"
  ln "$folder/large.bmp" "$data/train/red/$number.bmp"
done
make_picture "$data/test/blue/1.png" 12 9 0 200
make_picture "$data/test/red/1.png" 12 200 9 0
training=(train "$folder/colours.cfg" --data "$data" --steps 2 --batch 2)
works 1 "${training[@]}" --run "$folder/one" && as_planned one
works 1 "${training[@]}" --run "$folder/looked" --skip-broken && as_planned looked
works 2 "${training[@]}" --run "$folder/two" --skip-broken && as_planned two
