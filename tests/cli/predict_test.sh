#!/usr/bin/env bash
# predict: any number of pictures, folders and lists; bad ones are named and passed; pictures with captions.
. tests/cli/support/harness.sh

make_colours_model "$folder/colours.cfg"
data=$folder/colours
mkdir -p "$data"/{train,test}/{blue,red}
for number in {1..8}; do
  make_picture "$data/train/blue/$number.png" 12 "$number" 0 200
  make_picture "$data/train/red/$number.png" 12 200 "$number" 0
done
make_picture "$data/test/blue/1.png" 12 9 0 200
make_picture "$data/test/red/1.png" 12 200 9 0
works 1 train "$folder/colours.cfg" --data "$data" --steps 20 --run "$folder/run" --progress none
predict=(predict "$folder/colours.cfg" --weights "$folder/run/checkpoint.safetensors")
printf 'blue\nred\n' >"$folder/names.txt"

# answers: a line "FILE CLASS" for each picture of JSON.
answers() { sed -E 's/^\{"picture":"[^"]*\/([^"/]*\/[^"/]*)","predictions":\[\{"class":[0-9]+,"name":"([^"]*)".*/\1 \2/' "$folder/out"; }
# expect_answers WHAT LINE...: JSON has these answers, in this order.
expect_answers() {
  local what=$1
  shift
  expect "$what" test "$(answers)" = "$(printf '%s\n' "$@")"
}

# A folder, a picture, a list and another picture, in the order in which they are named.
printf '%s\n' "$data/train/red/3.png" "$data/train/blue/3.png" >"$folder/some.list"
named=("$data/test/blue" "$data/train/red/1.png" "$folder/some.list" "$data/train/blue/8.png")
order=('blue/1.png blue' 'red/1.png red' 'red/3.png red' 'blue/3.png blue' 'blue/8.png blue')
works 1 "${predict[@]}" --names "$folder/names.txt" --json "${named[@]}"
expect_answers 'all that is named is answered in order' "${order[@]}"
expect 'predictions are JSON' valid_json "$folder/out"
for batch in 1 2 3; do
  works 1 "${predict[@]}" "${named[@]}" --names "$folder/names.txt" --json --batch "$batch"
  expect_answers 'so it is with batches of other sizes' "${order[@]}"
done
# The checkpoint is the model, and of a run folder its best weights count.
works 1 predict "$folder/colours.cfg" "${named[@]}" --weights "$folder/run/best.safetensors" --json
cp "$folder/out" "$folder/with-model"
works 1 predict "${named[@]}" --weights "$folder/run" --json
expect 'a checkpoint needs no model file' cmp -s "$folder/out" "$folder/with-model"
expect 'and nothing is said' test ! -s "$folder/err"
works 2 predict "${named[@]}" --weights "$folder/run" --json
expect_answers 'nor do several ranks' "${order[@]}"
works 1 eval "$folder/colours.cfg" --data "$data" --weights "$folder/run" --json
cp "$folder/out" "$folder/with-model"
works 2 eval --data "$data" --weights "$folder/run" --json
expect 'eval needs none either' cmp -s "$folder/out" "$folder/with-model"
sed 's/activation=relu/activation=leaky/' "$folder/colours.cfg" >"$folder/other.cfg"
expect 'another model is another one' test "$(diff "$folder/colours.cfg" "$folder/other.cfg" | grep -c '^>')" -ge 1
works 1 predict "$folder/other.cfg" "${named[@]}" --weights "$folder/run"
says_so='the weights in .*best.safetensors were trained with another layer 0 (\[convolutional\])'
expect 'what is computed in another way is said' grep -q "$says_so" "$folder/err"
mkdir "$folder/empty"
run 1 predict "${named[@]}" --weights "$folder/empty"
expect_refusal 'empty: '
works 1 convert "$folder/colours.cfg" --from "$folder/run/best.safetensors" --to "$folder/colours.weights"
run 1 predict "${named[@]}" --weights "$folder/colours.weights"
expect_refusal 'colours.weights: .*give the model file'

works 4 "${predict[@]}" "${named[@]}" --names "$folder/names.txt" --json --grid 2x2
expect_answers 'tiles answer alike' "${order[@]}"
works 3 "${predict[@]}" "${named[@]}" --names "$folder/names.txt" --top 1 --reader 2
expect 'so they do where another rank reads' test "$(grep -o 'blue$\|red$' "$folder/out" | tr '\n' ' ')" = 'blue red red blue blue '

# A data set's folder: those of all folders in it, by path.
ln -s .. "$data/test/red/around"
for ranks in 1 3; do
  works "$ranks" "${predict[@]}" "$data/test" --names "$folder/names.txt" --json
  expect_answers 'folders in a folder are looked into' 'blue/1.png blue' 'red/1.png red'
  expect 'a link to a folder is said to be left out' \
    test "$(grep -c '^tessera: warning: .*test/red/around: a link to a folder' "$folder/err")" -eq 1
done
rm "$data/test/red/around"

# Bad pictures among good ones.
mkdir "$folder/mixed"
cp "$data/test/red/1.png" "$folder/mixed/0.png"
printf '\x89PNG broken' >"$folder/mixed/1.png"
cp "$data/test/blue/1.png" "$folder/mixed/2.png"
head -c 150 "$data/test/blue/1.png" >"$folder/mixed/3.png"
for ranks in 1 4; do
  run "$ranks" "${predict[@]}" "$folder/mixed" "$folder/nowhere.jpg" "$data/test/red/1.png" --names "$folder/names.txt" --json
  expect_refusal '3 of 6 pictures could not be read'
  expect_answers 'the good ones are answered' 'mixed/0.png red' 'mixed/2.png blue' 'red/1.png red'
  for bad in mixed/1.png mixed/3.png nowhere.jpg; do
    expect "$bad is named once" test "$(grep -c "^tessera: warning: .*$bad: " "$folder/err")" -eq 1
  done
done
run 4 "${predict[@]}" "$folder/mixed" --reader 3 --json
expect_refusal '2 of 4 pictures could not be read'
refused 'mixed/1\.png: ' "${predict[@]}" "$folder/mixed/1.png"
expect 'of a single picture there is nothing to count' test "$(grep -c could.not.be.read "$folder/err")" -eq 0
refused 'nowhere\.png: ' "${predict[@]}" "$folder/nowhere.png"
refused '2 of 2 pictures could not be read' "${predict[@]}" "$folder/nowhere.png" "$folder/nowhere.jpg"

# Pictures with captions, of several folders that use the same names.
works 1 "${predict[@]}" "$data/test/blue" "$data/test/red" --names "$folder/names.txt" --out "$folder/drawn"
expect 'each picture is drawn under a name of its own' test "$(cd "$folder/drawn" && echo *)" = '1-2.png 1.png'
expect 'and it is said which input it belongs to' sh -c "sed -n '/\/red\/1\.png\$/,\$p' '$folder/out' | grep -q '^  drawn in .*/drawn/1-2\.png\$'"
expect 'as PNG' test "$(head -c 4 "$folder/drawn/1.png" | tail -c 3)" = PNG
works 1 "${predict[@]}" "$data/test" --names "$folder/names.txt" --out "$folder/deep"
expect 'so it is with folders in a folder' test "$(cd "$folder/deep" && echo *)" = '1-2.png 1.png'
works 1 "${predict[@]}" "$folder/drawn/1.png" "$folder/drawn/1-2.png" --names "$folder/names.txt" --json
expect_answers 'what is drawn shows the picture' 'drawn/1.png blue' 'drawn/1-2.png red'

# Names in letters of their own, or in plain ones where there is no font.
printf 'Br\xc3\xbche\nBr\xc3\xbche\n' >"$folder/umlauts.txt"
printf '\xf3\xb0\x80\x80 soup\n\xf3\xb0\x80\x80 soup\n' >"$folder/unknown.txt" # of those that no font has
mkdir -p "$folder/fonts"
printf '<fontconfig><dir>%s</dir></fontconfig>\n' "$folder/fonts" >"$folder/fonts.conf"
works 1 "${predict[@]}" "$data/test/red" --names "$folder/umlauts.txt" --out "$folder/umlauts"
expect 'umlauts need no warning' test "$(grep -c 'out:' "$folder/err")" -eq 0
works 1 "${predict[@]}" "$data/test" --names "$folder/unknown.txt" --out "$folder/unknown"
expect 'names that no font has are warned of once' test "$(grep -c 'no font on this machine has all characters of' "$folder/err")" -eq 1
FONTCONFIG_FILE=$folder/fonts.conf works 1 "${predict[@]}" "$data/test/red" --names "$folder/umlauts.txt" --out "$folder/plain"
expect 'without fonts it says what to install' grep -q 'plain ASCII letters: there are no fonts: install fonts-dejavu-core' "$folder/err"
expect 'and draws all the same' test -s "$folder/plain/1.png"

refused 'drawn: this folder is not empty' "${predict[@]}" "$data/test" --out "$folder/drawn"
refused 'run/partition\.toml/x: cannot create this folder' "${predict[@]}" "$data/test/red" --out "$folder/run/partition.toml/x"
run 4 "${predict[@]}" "$data/test/red" --out "$folder/other" --reader 1
expect_refusal 'rank 0 draws the pictures'
works 4 "${predict[@]}" "$data/test/red" --out "$folder/tiles" --grid 2x2
expect 'tiles draw the same' test -s "$folder/tiles/1.png"

# Names.
echo blue >"$folder/one.txt"
works 1 "${predict[@]}" "$data/test/red" --names "$folder/one.txt"
expect 'too few names are warned of' grep -q 'warning: .* names 1 class' "$folder/err"
printf '\xef\xbb\xbfblue\r\nred\r\n' >"$folder/windows.txt"
works 1 "${predict[@]}" "$data/test/red" --top 1 --names "$folder/windows.txt"
expect 'a byte-order mark and line ends of Windows are no part of names' grep -qx '  *[0-9.]* %  red' "$folder/out"
works 3 "${predict[@]}" "$data/test/red" --top 1
expect 'without --names the checkpoint gives them' grep -qx '  *[0-9.]* %  red' "$folder/out"
