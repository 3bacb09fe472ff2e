#!/usr/bin/env bash
# Data sets with boxes: what is wrong with one is found and listed, what does not fit the model is refused before step 1, and any number of
# ranks trains on the same pictures and boxes.
. tests/cli/support/harness.sh

cd "$folder" || exit
set=$folder/set/detection.data
works 1 make-detection-set set --pictures 30 --size 64x80 --seed 3
expect 'it says where the set is' grep -qx '30 pictures for training and 6 for testing: set/detection.data' out
works 1 make-detection-set again --pictures 30 --size 64x80 --seed 3
expect 'the same seed gives the same files' diff -r set again
works 1 make-detection-set other --pictures 30 --size 64x80 --seed 4
expect 'another seed gives others' test "$(cat set/labels/train/*)" != "$(cat other/labels/train/*)"
refused_alone '^tessera: set: there is something here already' make-detection-set set --pictures 1
refused_alone '^tessera: .*/none: no such file or folder' make-detection-set new --from "$folder/none"
refused_alone '^tessera: --size: 8x8: expected sides of 32 to 4096' make-detection-set new --size 8x8
expect 'nothing is begun' test ! -e new

works 1 check-data "$set" --sheet sheet.png
expect 'objects of each class are counted' grep -qE '^ +[0-9]+  ankle-boot$' out
expect 'and their sizes' grep -qE '^  [0-9]+ objects on 30 pictures \(0 without any\): [0-9]+ small' out
expect 'there is nothing wrong' grep -qx 'no problems found' out
expect 'a sheet is drawn' test "$(head -c 4 sheet.png | tail -c 3)" = PNG
expect 'and says what is on it' grep -q 'row 1, column 1: .*set/images/train/000000.png' sheet.png.txt

# By kind and half.
cp -r set bad
list=$folder/bad/detection.data
printf '0 0.5 0.5 0.1 0.1\n0 0.5 nan 0.1 0.1\n' >bad/labels/train/000001.txt
printf '17 0.5 0.5 0.1 0.1\n' >bad/labels/train/000002.txt
rm bad/labels/train/000003.txt bad/images/train/000004.png
: >bad/labels/train/000005.txt
head -c 500 set/images/train/000006.png >bad/images/train/000006.png
cp bad/images/train/000008.png bad/images/train/000009.png
printf '1 0.5 0.5 2 0.1\n' >bad/labels/test/000001.txt
run 1 check-data "$list"
expect_refusal '^tessera: .*detection.data: 6 problems: 1 missing, 1 broken, 1 unlabelled, 2 bad label, 1 out of range$'
for line in 'labels/train/000001.txt:2: y is nan' 'labels/train/000002.txt:1: class 17: there are 10 classes' \
  'train.txt:4: .*labels/train/000003.txt, which says what is on this' 'train.txt:5: .*000004.png: there is no such picture' \
  'train.txt:7: .*000006.png: ' 'labels/test/000001.txt:1: a width of 2' 'train.txt:10: the same picture as .*train.txt:9'; do
  expect "it lists $line" grep -qE "$line" out
done
expect 'problems are counted half by half' \
  grep -qx '  problems: 1 missing, 1 broken, 1 unlabelled, 1 bad label, 1 out of range, 1 duplicate' out
expect 'also of the other half' grep -qx '  problems: 1 bad label' out
expect 'a picture without objects is counted' grep -qE 'on 27 pictures \(1 without any\)' out
run 1 check-data "$list" --json
expect 'the same as JSON' grep -qE '"out of range": 1' out
run 1 check-data "$list" --allow-unlabelled
expect_refusal '^tessera: .*: 5 problems: 1 missing, 1 broken, 2 bad label, 1 out of range$'

works 1 anchors "$set" --count 3 --size 64x80
expect 'anchors are written as the model file has them' grep -qE '^anchors = [0-9]+,[0-9]+,  [0-9]+,[0-9]+,  [0-9]+,[0-9]+$' out
expect 'with what they fit' grep -qE '^mean IoU of [0-9]+ boxes with the anchor most like each: 0\.[5-9]' out
cp out first
works 1 anchors "$set" --count 3 --size 64x80
expect 'and are the same every time' cmp -s first out
works 1 anchors "$set" --count 2 --stride 32 --size 64x80
expect 'also in cells' grep -qE '^anchors = [0-9.]+\.[0-9]{2},' out
works 1 anchors "$list" --count 2
expect 'pictures that are left out of anchors are said' grep -qE "$list: [0-9]+ of its pictures or boxes cannot be used" err
cp -r bad "worse data"
cp bad/labels/train/000002.txt "worse data/labels/train/000010.txt"
works 1 anchors "$folder/worse data/detection.data" --count 2
expect 'with a command for the shell' grep -qF "\`tessera check-data '$folder/worse data/detection.data'\` lists them" err
refused_alone 'too few for 5000 anchors' anchors "$set" --count 5000
refused_alone 'images/train: nothing says what is on the 30 pictures here' anchors "$folder/set/images"

# model CLASSES FILTERS
model() {
  cat <<EOM
[net]
height=48
width=48
channels=3
batch=4
learning_rate=0.001
saturation=1.5
hue=.1
mosaic=$3
[convolutional]
batch_normalize=1
filters=4
size=3
stride=4
pad=1
activation=leaky
[convolutional]
filters=$2
size=1
activation=linear
[yolo]
mask=0,1
anchors=10,14, 25,23
classes=$1
num=2
jitter=.3
EOM
}
model 10 30 0 >m.cfg
model 10 30 1 | sed 's/^mosaic=1/&\nmixup=1\nmixup_prob=0.5\nletter_box=2/' >mosaic.cfg
model 4 18 0 >few.cfg
# Without the last figures, which the order of sums changes.
losses() { grep -oE 'loss [0-9]+\.[0-9]' out; }
train() { local ranks=$1; shift; works "$ranks" train "$@" --run run --force --steps 3 --progress line --no-eval; }
for each in m.cfg mosaic.cfg; do
  train 1 "$each" --data "$set"
  losses >first
  expect "it trains with $each" test "$(wc -l <first)" -ge 3
  train 4 "$each" --data "$set" --grid 2x2
  expect "four ranks see the same pictures and boxes with $each" test "$(losses)" = "$(cat first)"
  train 3 "$each" --data "$set" --grid 1x3 --reader 0
  expect "so they do where one reads, with $each" test "$(losses)" = "$(cat first)"
done
refused 'has 10 classes, few.cfg tells 4 apart: set classes=10 in layer 2 .* and filters=30 in layer 1' train few.cfg --data "$set" --run new
refused '^tessera: .*000004.png: there is no such picture \(5 problems: 1 missing, 1 broken, 1 unlabelled, 1 bad label, 1 out of range' train m.cfg --data "$list" --run new --no-eval
refused 'images/train: nothing says what is on the 30 pictures here' train m.cfg --data "$folder/set/images" --run new
expect 'nothing is begun' test ! -e new
train 1 m.cfg --data "$list" --skip-broken
expect 'what is skipped is said' grep -q 'labels/train/000001.txt:2: y is nan' err

# What is doubtful about boxes, and about them and a model, is said by train and by check-data.
sed 's/activation=linear/activation=leaky/; s/^jitter/max=1\n&/' m.cfg >doubtful.cfg
works 1 check-data "$set" --model doubtful.cfg
expect 'of a head' grep -q 'doubtful.cfg:.*has activation=leaky: set activation=linear' err
expect 'of too many objects for it' grep -q 'images/train/.*more objects than the 1 that the model' out
train 1 doubtful.cfg --data "$set"
expect 'by both' test "$(grep -cE 'has activation=leaky|more objects than the 1' err)" -eq 2
sed 's/^train=.*/train=none.txt/; s/^valid=.*/valid=none.txt/' "$set" >none.data
mkdir -p none/images none/labels
cp set/images/train/000000.png none/images/
: >none/labels/000000.txt
echo none/images/000000.png >none.txt
cp set/*.names .
run 1 check-data none.data
expect_refusal '^tessera: none.data: 1 problem: 1 unusable$'
refused 'none.data: there is no object on the 1 picture to train on' train m.cfg --data "$folder/none.data" --run new

# On ranks of its own data.
sed -i '1s/.*/3 0.25 0.5 0.125 0.25/' again/labels/train/000007.txt
command_line='tessera train m.cfg on two data sets'
status=0
timeout 60 "$MPIEXEC" -n 1 "$TESSERA" train m.cfg --data "$set" --run new --no-eval : \
  -n 2 "$TESSERA" train m.cfg --data "$folder/again/detection.data" --run new --no-eval >out 2>err </dev/null || status=$?
expect_refusal 'rank 1 .* has a different images/train/000007.png among its pictures for training than rank 0 .*: its boxes differ'

printf 'samples = [20, 10]\n' >map.toml
cp -r set set-0
cp -r set set-1
run 2 train m.cfg --data "$folder/set-{rank}/detection.data" --data-map map.toml --run new --no-eval
expect_refusal 'm.cfg finds objects: a data map is for data sets with one class per picture'

# The same objects as VOC has them, and COCO.
mkdir -p voc/{JPEGImages,Annotations} coco/annotations coco/train coco/val
for i in 0 1 2; do
  cp "set/images/train/00000$i.png" "voc/JPEGImages/$i.png"
  cp "set/images/train/00000$i.png" coco/train/
  cp "set/images/test/00000$i.png" coco/val/
  printf '<annotation><size><width>80</width><height>64</height></size><object><name>bag</name><bndbox><xmin>5</xmin><ymin>5</ymin>
<xmax>%d</xmax><ymax>40</ymax></bndbox></object></annotation>' $((40 + i)) >"voc/Annotations/$i.xml"
done
works 1 check-data voc
expect 'VOC is read' grep -qE '^3 pictures, 1 class \(bag\), 3 objects, 1 for testing$' out
for half in train val; do
  printf '{"images":[{"id":5,"file_name":"000000.png","width":80,"height":64},{"id":6,"file_name":"000001.png","width":80,"height":64}],
"categories":[{"id":3,"name":"bag"}],"annotations":[{"image_id":6,"category_id":3,"bbox":[4,4,40,40]}]}' >"coco/annotations/instances_$half.json"
done
works 1 check-data coco
expect 'COCO is read' grep -qE '^4 pictures, 1 class \(bag\), 2 objects, 2 for testing$' out
sed -i 's/\[4,4,40,40\]/[4,4,40]/' coco/annotations/instances_train.json
run 1 check-data coco
expect_refusal '^tessera: coco: 2 problems: 1 bad label, 1 unusable'
expect 'its fault is named' grep -q 'instances_train.json: annotations\[0\].bbox: expected four numbers' out

# And as labelling programs export them.
"$support/make_labelled_set.py" roboflow labelled 12 64
works 1 check-data labelled/data.yaml
expect 'the layout is said' grep -qx 'layout: data.yaml (Ultralytics)' out
expect 'and what is taken for ../train' grep -q 'labelled/data.yaml: there is no \.\./train/images, \.\./valid/images here' out
model 2 14 0 >two.cfg
rm labelled/train/labels/00000.txt
sed -i 's/$/ 0.5 0.5/' labelled/train/labels/00001.txt
train 1 two.cfg --data labelled
expect 'train says so, too' grep -q 'warning: .*there is no \.\./train/images' err
expect 'pictures without a label text are counted' grep -q 'warning: .*1 picture for training without a label text' err
expect 'and polygons' grep -q 'warning: .*given by corners' err
refused 'this data set has boxes around objects' train "$models/lenet5.cfg" --data "$folder/labelled" --run new
"$support/make_labelled_set.py" cvat labelled/cvat 12 64
train 2 two.cfg --data labelled/cvat --grid 1x2
{
  echo 'a0: &a0 [x, x]'
  for i in {1..12}; do printf 'a%d: &a%d [%s]\n' "$i" "$i" "$(yes "*a$((i - 1))" | head -n 10 | paste -sd,)"; done
} >labelled/data.yaml
command_line='tessera check-data labelled'
status=0
(ulimit -v 1000000 && exec timeout 60 "$TESSERA" check-data labelled) >out 2>err || status=$?
expect_refusal 'labelled: 1 problem: 1 unusable'
expect 'a bomb is refused with its file' grep -q 'labelled/data.yaml:.* expected at most' out
