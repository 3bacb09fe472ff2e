#!/usr/bin/env bash
# What is wrong with a data set is found before anything is trained; ranks that have other pictures than each other do not start.
. tests/cli/support/harness.sh

# model CLASSES: a small network for pictures of 16 pixels.
model() {
  cat <<EOM
[net]
height=16
width=16
channels=3
batch=4
learning_rate=0.01
max_batches=4
[convolutional]
batch_normalize=1
filters=4
size=3
pad=1
activation=relu
[connected]
output=$1
activation=linear
[softmax]
EOM
}
model 2 >"$folder/m.cfg"
cd "$folder" || exit

# class_folders DIR HALF...: six pictures of each of two classes in each half.
class_folders() {
  local where=$1 half number
  shift
  for half in "$@"; do
    mkdir -p "$where/$half"/{ant,bee}
    for number in {1..6}; do
      make_picture "$where/$half/ant/$number.png" 16 "$number" "${#half}" 200
      make_picture "$where/$half/bee/$number.png" 16 200 "$number" "${#half}"
    done
  done
}
train() { local ranks=$1; shift; rm -rf run; run "$ranks" train m.cfg --run run --force --steps 2 --progress none "$@"; }

# Each on ranks of its own data: differ FIRST OTHER ARGUMENT...
differ() {
  local first=$1 other=$2
  shift 2
  command_line="tessera $* --data $first : --data $other"
  status=0
  timeout 60 "$MPIEXEC" -n 1 "$TESSERA" "$@" --data "$first" : -n 2 "$TESSERA" "$@" --data "$other" \
    >out 2>err </dev/null || status=$?
}
together=(train m.cfg --run run --force --steps 2 --progress none)

class_folders one train test
cp -r one two
differ one two "${together[@]}" --grid 1x3
expect 'the same pictures in another place are the same' test "$status" -eq 0
rm two/train/ant/1.png
rm -rf run
differ one two "${together[@]}" --grid 1x3
expect_refusal '^tessera: rank 1 \(.*\) lacks train/ant/1\.png among its pictures for training, which rank 0'
differ two one "${together[@]}" --grid 1x3
expect_refusal '^tessera: rank 1 \(.*\) has train/ant/1\.png among its pictures for training, which rank 0 \(.*\) lacks'
expect 'nothing is begun' test ! -e run
rm -rf two && cp -r one two
make_picture two/test/bee/3.png 16 77 1 1
differ one two "${together[@]}"
expect_refusal 'a different test/bee/3\.png among its pictures for testing than rank 0'
differ one two "${together[@]}" --no-eval
expect 'pictures that nobody reads may differ' test "$status" -eq 0
differ one two "${together[@]}" --reader 0
expect 'pictures that one rank reads are compared with none' test "$status" -eq 0
differ one two eval m.cfg --weights run/checkpoint.safetensors
expect_refusal 'a different test/bee/3\.png'
rm -rf two && cp -r one two
mv two/train/ant two/train/eel
mv two/test/ant two/test/eel
differ one two "${together[@]}"
expect_refusal 'rank 1 \(.*\) lacks ant among its classes'
# Pictures that are kept as bytes.
mkdir one.idx
make_digits one.idx 20 10
cp -r one.idx two.idx
digits=(train "$models/lenet5.cfg" --run run --force --steps 1 --batch 6 --progress none)
differ one.idx two.idx "${digits[@]}"
expect 'the same digits are the same' test "$status" -eq 0
printf '\001' | dd of=two.idx/train-images-idx3-ubyte bs=1 seek=$((16 + 5 * 784 + 300)) conv=notrunc 2>/dev/null
cmp -s one.idx/train-images-idx3-ubyte two.idx/train-images-idx3-ubyte &&
  printf '\002' | dd of=two.idx/train-images-idx3-ubyte bs=1 seek=$((16 + 5 * 784 + 300)) conv=notrunc 2>/dev/null
differ one.idx two.idx "${digits[@]}"
expect_refusal 'a different picture 5 among its pictures for training than rank 0'

# Labels are whole words of paths.
rm -rf run
mkdir -p train
for number in {1..8}; do
  make_picture "train/${number}_sun.png" 16 "$number" 9 200
  make_picture "train/${number}_rain.png" 16 200 "$number" 9
done
ls train/*.png >d.list
printf 'rain\nsun\n' >d.labels
printf 'classes=2\ntrain=d.list\nvalid=d.list\nlabels=d.labels\n' >d.data
works 1 check-data d.data --json
expect 'it is JSON' valid_json out whole
expect 'eight are of each class' test "$(grep -c '"pictures": 8$' out)" -eq 4
cp train/1_sun.png train/1_sun_rain.png
cp d.list good.list
echo train/1_sun_rain.png >>d.list
for ranks in 1 3; do
  train "$ranks" --data d.data
  expect_refusal 'd\.list:17: train/1_sun_rain\.png: .*"sun" and "rain".*rename'
done

# Missing pictures are found first, and all that is wrong is listed at once.
for number in {1..25}; do cat good.list; done >d.list
echo train/9_sun.png >>d.list
train 1 --data d.data
expect_refusal 'd\.list:401: .*train/9_sun\.png: there is no such picture'
expect 'no step was taken' test ! -e run
head -c 100 train/1_sun.png >train/3_rain.png.new && mv train/3_rain.png.new train/3_rain.png
: >train/4_rain.png
printf 'no picture' >train/5_rain.png
cp good.list d.list
echo train/9_sun.png >>d.list
run 1 check-data d.data
expect_refusal 'd\.data: [0-9]+ problems: 1 missing, 3 broken'
for line in 'd\.list:17: .*there is no such picture' 'd\.list:5: ' 'd\.list:7: .*empty' 'd\.list:9: '; do
  expect "the list has $line" grep -qE "$line" out
done
run 1 check-data d.data --json
expect 'it is JSON' valid_json out whole
train 1 --data d.data
expect_refusal 'd\.list:.*`tessera check-data d\.data` lists them'
for ranks in 1 3; do
  train "$ranks" --data d.data --skip-broken
  expect 'it goes on without them' test "$status" -eq 0
  expect 'it says so' grep -q 'warning: --skip-broken skips 4 unusable pictures' err
  expect 'the rest is counted' grep -q '^26 pictures, 2 classes (rain, sun), 13 for testing' out
done
works 1 check-data d.data --skip-broken
works 1 eval m.cfg --data d.data --weights run/checkpoint.safetensors --skip-broken

# Marks, line ends, pipes and devices.
cp good.list d.list
rm -rf train/[345]_rain.png
grep -v '[345]_rain' good.list | sed '1s/^/\xef\xbb\xbf/; s/$/\r/' >d.list
printf '\xff\xfer\0a\0i\0n\0\r\0\n\0s\0u\0n\0\r\0\n\0' >d.labels
works 1 check-data d.data
printf 'rain\n\nsun\n' >d.labels
refused 'd\.labels:2: this line is blank' train m.cfg --data d.data --run run --force --steps 1
rm d.labels
mkfifo d.labels
refused 'd\.labels' train m.cfg --data d.data --run run --force --steps 1
rm d.labels d.list
printf 'rain\nsun\n' >d.labels
ln -s /dev/zero d.list
refused 'd\.list' train m.cfg --data d.data --run run --force --steps 1
# What a list's lines hold is nobody's business unless they are paths of pictures.
rm d.list
echo 'root:secret:1' >d.list
refused 'd\.list:1: this line is not the path' train m.cfg --data d.data --run run --force --steps 1
expect 'the line is not shown' sh -c '! grep -q secret err'

# Names of halves, deeper folders, other files.
class_folders v train Validation
for number in {1..6}; do
  mkdir -p v/train/ant/day2
  make_picture "v/train/ant/day2/$number.png" 16 "$number" 50 222
done
touch v/train/bee/{1,2}.heic
train 1 --data v
expect 'it works' test "$status" -eq 0
expect 'it counts' grep -q '^30 pictures, 2 classes (ant, bee), 12 for testing; 2 \.heic files left out$' out
expect 'it warns of files' grep -q 'warning: v: 2 \.heic files left out' err
expect 'it warns of deeper folders' grep -q 'v/train/ant: 6 pictures in deeper folders (day2)' err
expect 'all are tested' grep -q '"test_pictures":12' run/metrics.jsonl

# A picture that changes while training goes on: the run ends when its turn comes, and what was learnt is kept.
cp -r one changing
for ranks in 1 3; do
  rm -rf run
  command_line="tessera train, a picture is changed meanwhile, $ranks ranks"
  timeout 60 "$MPIEXEC" -n "$ranks" "$TESSERA" train m.cfg --data changing --run run --force --steps 1000000 --no-eval \
    --checkpoint-every 1 --progress none >out 2>err </dev/null &
  training=$!
  until [ -s run/checkpoint.safetensors ] || ! kill -0 "$training" 2>/dev/null; do sleep 0.05; done
  make_picture changed.png 16 9 99 "$ranks"
  mv changed.png changing/train/ant/2.png
  status=0
  wait "$training" || status=$?
  expect_refusal 'changing/train/ant/2\.png: this picture was changed after the run began'
  expect 'the checkpoint is kept' test -s run/checkpoint.safetensors
done

# Whether it fits a model.
works 1 check-data one --model m.cfg
model 1 >small.cfg
run 1 check-data one --model small.cfg
expect_refusal 'one: 1 problem: 1 unusable'

# A few megabytes that unpack to a gigabyte more than they say are refused before they take memory.
mkdir bomb
{ printf '\000\000\010\003\000\025\000\000\000\000\000\034\000\000\000\034'; head -c 1100000000 /dev/zero; } |
  gzip -1 >bomb/train-images-idx3-ubyte.gz
{ printf '\000\000\010\001\000\025\000\000'; head -c $((0x150000)) /dev/zero; } | gzip -1 >bomb/train-labels-idx1-ubyte.gz
command_line='tessera check-data bomb'
status=0
(ulimit -v 700000 && exec timeout 60 "$TESSERA" check-data bomb) >out 2>err || status=$?
expect_refusal 'bomb: 2 problems: 2 unusable'
expect 'it says which file' grep -q 'train-images-idx3-ubyte\.gz: this file continues' out
