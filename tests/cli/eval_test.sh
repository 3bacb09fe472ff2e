#!/usr/bin/env bash
# eval: accuracy of each class, the confusion matrix and top-5, for people and as JSON.
. tests/cli/support/harness.sh

# expect_perl WHAT PROGRAM: a Perl program finds JSON of the last run right; $_ is its text.
expect_perl() { expect "$1" perl -ne "$2" "$folder/out"; }

# Ten classes.
data=$folder/digits
mkdir "$data"
make_digits "$data" 200 50
sed "s/burn_in=100/burn_in=5/" models/fashion-resnet.cfg >"$folder/model.cfg"
works 1 train "$folder/model.cfg" --data "$data" --run "$folder/run" --batch 20 --epochs 3 --schedule-steps 60 --progress none
eval=(eval "$folder/model.cfg" --data "$data" --weights "$folder/run/checkpoint.safetensors")
works 1 "${eval[@]}" --json
expect 'it is JSON' valid_json "$folder/out"
cp "$folder/out" "$folder/one"
expect_perl 'the rows of the confusion matrix are the pictures of each class' '
  @pictures = /"pictures":(\d+),"predicted"/g;
  ($rows) = /"confusion":\[(\[.*\])\]/;
  @sums = map { $sum = 0; $sum += $_ for split /,/; $sum } $rows =~ /\[([\d,]+)\]/g;
  exit !(@pictures == 10 && "@pictures" eq "@sums")'
expect_perl 'its diagonal makes the accuracy' '
  @rows = map { [split /,/] } $1 =~ /\[([\d,]+)\]/g if /"confusion":\[(\[.*\])\]/;
  $right += $rows[$_][$_] for 0 .. 9;
  ($accuracy) = /"accuracy":([\d.]+)/;
  exit !(abs($right / 50 - $accuracy) < 1e-9)'
expect_perl 'top-5 is at least the accuracy' '
  ($accuracy) = /"accuracy":([\d.e-]+)/; ($top5) = /"top5":([\d.]+)/; exit !($top5 >= $accuracy && $top5 <= 1)'
works 4 "${eval[@]}" --json --grid 2x2 --batch 7
expect 'tiles count the same' same_bytes <(sed 's/"loss":[^,]*,//' "$folder/one") <(sed 's/"loss":[^,]*,//' "$folder/out")
works 1 "${eval[@]}"
expect 'people get a line of accuracy' grep -qE '^accuracy [0-9.]+ %, loss [0-9.]+, 50 pictures$' "$folder/out"
expect 'and one of top-5' grep -qE '^top-5 accuracy [0-9.]+ %$' "$folder/out"
expect 'and a row per class' test "$(grep -cE '^ +[0-9] .* %' "$folder/out")" -eq 10
expect 'in one screen' test "$(wc -l <"$folder/out")" -le 24
expect 'of 80 columns' awk 'length > 80 { bad = 1 } END { exit bad }' "$folder/out"

# Two classes by folder: their names.
make_colours_model "$folder/colours.cfg"
colours=$folder/colours
mkdir -p "$colours"/{train,test}/{blue,red}
for number in {1..8}; do
  make_picture "$colours/train/blue/$number.png" 12 "$number" 0 200
  make_picture "$colours/train/red/$number.png" 12 200 "$number" 0
done
make_picture "$colours/test/blue/1.png" 12 9 0 200
make_picture "$colours/test/blue/2.png" 12 200 0 9 # a red one, in the wrong folder
make_picture "$colours/test/red/1.png" 12 200 9 0
works 1 train "$folder/colours.cfg" --data "$colours" --steps 20 --run "$folder/colour-run" --progress none --no-eval
eval=(eval "$folder/colours.cfg" --data "$colours" --weights "$folder/colour-run/checkpoint.safetensors")
works 3 "${eval[@]}" --reader 2 --json
expect 'classes have the names of their folders, whoever reads' grep -q '"class":1,"name":"red","pictures":1,"predicted":2,"right":1,"recall":1.0,"precision":0.5' "$folder/out"
expect 'rows are classes, columns what they are taken for' grep -q '"confusion":\[\[1,1\],\[0,1\]\]' "$folder/out"
expect 'there is no top-5 of two classes' test "$(grep -c top5 "$folder/out")" -eq 0
works 1 "${eval[@]}"
expect 'so for people' grep -qE '^ +0 blue +50\.0 % +100\.0 % +1 1$' "$folder/out"
