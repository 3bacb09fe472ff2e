#!/usr/bin/env bash
# What a start has read of its pictures need not be read again by the next one of the same run, and what has changed in between is
# noticed as it is by any start.
. tests/cli/support/harness.sh

perl "$support/make_odd_pictures.pl" "$folder"
make_colours_model "$folder/m.cfg"
for class in a b; do
  mkdir -p "$folder"/data/{train,test}/$class
  for i in 1 2 3 4 5; do
    # Each with a text of its own behind the picture.
    { cat "$folder/upright.png"; echo "$class$i"; } >"$folder/data/train/$class/$i.png"
  done
  { cat "$folder/upright.png"; echo "$class test"; } >"$folder/data/test/$class/1.png"
done
training=(train "$folder/m.cfg" --data "$folder/data" --batch 2 --steps 2 --progress none --no-eval --run "$folder/run")
# start COMMAND RANKS: `works` or `run` with a training run of its own.
start() {
  rm -rf "$folder/run"
  "$1" "$2" "${training[@]}"
}
# says TEXT / says_not TEXT: the last command, on its standard output.
says() { grep -qF -- "$1" "$folder/out"; }
says_not() { ! says "$1"; }

start works 1 && expect 'without a state folder nothing is kept' says_not 'read again'
export TESSERA_STATE_DIR=$folder/state
mkdir -m 700 "$TESSERA_STATE_DIR"
start works 2 && expect 'the first start reads all' says_not 'read again'
cp "$folder/run/checkpoint.safetensors" "$folder/first.safetensors"
start works 2 && expect 'the second start reads none' says '10 files need not be read again'
expect 'and trains on the same pictures' cmp -s "$folder/run/checkpoint.safetensors" "$folder/first.safetensors"

# Added, replaced and removed.
{ cat "$folder/upright.png"; echo more; } >"$folder/data/train/a/0.png"
start works 1 && expect 'a picture that was added is one of them' says '11 pictures'
expect 'and is read, the others are not' says '10 files need not be read again'
start works 1 && expect 'the next start knows it' says '11 files need not be read again'
rm "$folder/data/train/a/0.png"
start works 1 && expect 'one that is gone is not missed' says '10 pictures'
head -c 40 "$folder/upright.png" >"$folder/data/train/b/3.png"
start run 1
expect_refusal 'train/b/3\.png: '
start run 1
expect_refusal 'train/b/3\.png: ' # what is wrong is found each time
{ cat "$folder/upright.png"; echo b3; } >"$folder/data/train/b/3.png"

# What is damaged is not believed.
start works 1 || true
for file in "$folder"/state/*.pictures; do
  printf x | dd of="$file" bs=1 seek=100 conv=notrunc status=none
done
start works 1 && expect 'a damaged file is as if it were not there' says_not 'read again'
start works 1 && expect 'and is replaced' says '10 files need not be read again'
