#!/usr/bin/env bash
# plan: its table and JSON, without mpiexec; partitions written and read again; every classification model of Darknet's.
. tests/cli/support/harness.sh

works 1 plan models/lenet5.cfg --grid 2x2
for word in 'layers 0-3 as 2x2 tiles' 'messages' 'multiply-adds' 'redundant' 'Planned memory' 'Advice:' 'tessera probe'; do
  expect "the answer says '$word'" grep -q -e "$word" "$folder/out"
done
expect 'it fits on a screen' test "$(wc -l <"$folder/out")" -le 24
expect 'of 100 columns' awk 'length > 100 { bad = 1 } END { exit bad }' "$folder/out"
expect 'regions are not among it' test "$(grep -c begin:end "$folder/out")" -eq 0
works 1 plan models/lenet5.cfg --grid 2x2 --regions
for word in 'begin:end' '^group 0, layer 0' 'Planned memory, MiB' '^Planned memory of 860.0 MiB each: '; do
  expect "with --regions it says '$word'" grep -q -e "$word" "$folder/out"
done
works 1 plan models/lenet5.cfg --grid 2x2 --json
cp "$folder/out" "$folder/plan.json"
expect 'the plan is JSON' valid_json "$folder/plan.json" whole
expect 'it counts parameters' grep -q '"parameters":61706,' "$folder/plan.json"
expect 'it lists the layers with their outputs' grep -qF \
  '"layers":[{"index":0,"kind":"convolutional","output":[6,28,28]},{"index":1,"kind":"maxpool","output":[6,14,14]},' "$folder/plan.json"
expect 'a connected layer has an output of one cell' grep -qF '{"index":4,"kind":"connected","output":[120,1,1]}' "$folder/plan.json"
works 4 plan models/lenet5.cfg --grid 2x2 --json
expect 'under mpiexec it is printed once' same_bytes "$folder/plan.json" "$folder/out"

# Pictures: an epoch of them, and what training keeps decoded.
cache() { grep -o '"cache":[0-9]*' "$folder/out" | head -n 1 | cut -d : -f 2; }
works 1 plan models/yolov2-early.cfg --grid 2x2 --json
expect 'no cache is counted of unknown pictures' test "$(cache)" -eq 0
works 1 plan models/yolov2-early.cfg --grid 2x2 --size 96x96 --photos 100 --json
cp "$folder/out" "$folder/photos.json"
works 1 plan models/yolov2-early.cfg --grid 2x2 --size 96x96 --pictures 100 --json
expect 'the option has an older name' same_bytes "$folder/photos.json" "$folder/out"
expect 'photos of 167x125 pixels are counted where that is enough' test "$(cache)" -ge $((100 * 167 * 125 * 3))
expect 'with a hundredth for what leads to them' test "$(cache)" -le $((101 * 250 * 188 * 3))

mkdir "$folder/digits"
make_digits "$folder/digits" 300 20
works 1 plan models/lenet5.cfg --grid 1x2 --data "$folder/digits" --subdivisions 4 --json
expect 'the pictures of a data set are counted' grep -qE '"pictures":300,"epoch_steps":3,"epoch_s":[0-9]' "$folder/out"
expect 'a step has several passes' grep -qF '"batch":32,' "$folder/out"
expect 'what the data set takes is counted' grep -qE '"data":(23[5-9]|2[4-9].)...[,}]' "$folder/out"
works 1 plan models/lenet5.cfg --grid 1x2 --pictures 300
expect 'the time of an epoch has two digits' grep -qE '^Epoch of 300 pictures: about [0-9.]+ m?s \(3 steps of 128 images' "$folder/out"
refused_alone '128 images .* 3 subdivisions' plan models/lenet5.cfg --subdivisions 3
refused_alone '^tessera: .*nowhere' plan models/lenet5.cfg --data "$folder/nowhere"

# A grid without a number of ranks, more ranks than tiles, other sizes and batches.
works 1 plan models/yolov2-early.cfg --grid 2x3 --groups 0-3,4-7,8-15 --json
expect 'it is JSON' valid_json "$folder/out" whole
expect 'fusing layers makes work twice' grep -qE '"redundant_multiply_adds":[1-9]' "$folder/out"
works 1 plan models/yolov2-early.cfg --grid 2x2 --ranks 6 --size 96x160 --batch 3 --json
expect 'the size is that of the command line' grep -qF '"output":[32,96,160]' "$folder/out"
expect 'the ranks are those of the command line' grep -qF '"ranks":6' "$folder/out"
works 1 plan models/yolov2-early.cfg --ranks 4 --data-parallel-from 0 --batch 2
works 1 plan models/yolov2-early.cfg --ranks 4 --grid 2x2 --filter-parallel-from 12

# More ranks or pixels than a plan is made for.
refused_alone '^tessera: --ranks: "1000000000" is not an integer from 1 to 10000' plan models/lenet5.cfg --ranks 1000000000
refused_alone '^tessera: --grid: 600x600 is more than 10000 tiles' plan models/yolov2-early.cfg --grid 600x600
refused_alone '^tessera: --size: 1000000x1000000 is more than 1000000000 pixels' plan models/yolov2-early.cfg --size 1000000x1000000

# A limit of scratch takes kernels that need less, and says where none does.
works 1 plan models/yolov2-early.cfg --size 416x416 --batch 1
expect 'large layers have Winograd kernels' grep -qE '^kernels .*winograd4 for layers 2 4 6 8 10 12 14$' "$folder/out"
works 1 plan models/yolov2-early.cfg --size 416x416 --batch 1 --workspace 4
expect 'with little scratch fewer have' grep -qE '^kernels .*direct for layers .*winograd4 for layers 2 4 6' "$folder/out"
refused_alone 'layer 8 .convolutional. needs' plan models/yolov2-early.cfg --size 416x416 --batch 1 --workspace 2

# A partition that was saved says the same as the options that it was made with.
works 1 plan models/fashion-resnet.cfg --grid 2x2 --groups 0-4,5-7 --reader 2 --save "$folder/partition.toml" --json
cp "$folder/out" "$folder/first.json"
works 1 plan models/fashion-resnet.cfg --partition "$folder/partition.toml" --json
expect 'a saved partition gives the same plan' same_bytes "$folder/first.json" "$folder/out"
expect 'running statistics are no parameters' grep -q '"parameters":70330,' "$folder/out"
works 1 plan models/fashion-resnet.cfg --partition "$folder/partition.toml" --save "$folder/again.toml"
expect 'a saved partition is saved as it was' same_bytes "$folder/partition.toml" "$folder/again.toml"
works 1 plan models/fashion-resnet.cfg --partition "$folder/partition.toml" --reader every --json
expect 'another reader than the one in the file' grep -qF '"reader":"every"' "$folder/out"

# Half of the bytes where gradients travel rounded; the plan that is saved says so.
works 1 plan models/yolov2-early.cfg --grid 2x2 --gradient-precision half --save "$folder/half.toml"
cp "$folder/out" "$folder/half.txt"
works 1 plan models/yolov2-early.cfg --partition "$folder/half.toml"
expect 'a partition file keeps how gradients are reduced' same_bytes "$folder/half.txt" "$folder/out"
works 1 plan models/yolov2-early.cfg --partition "$folder/half.toml" --sums exact
expect 'the command line has the last word, also by the older name of the option' bash -c "! cmp -s '$folder/half.txt' '$folder/out'"

darknet=/usr/share/darknet/cfg
if [ -d "$darknet" ]; then
  for name in alexnet cifar darknet darknet19 darknet19_448 darknet53 darknet53_448 densenet201 extraction resnet18 resnet34 resnet50 \
    resnet101 resnet152 resnext50 resnext101-32x4d resnext152-32x4d strided tiny vgg-16; do
    works 1 plan "$darknet/$name.cfg" --batch 1
    works 1 plan "$darknet/$name.cfg" --batch 4 --grid 2x2 --json
    expect "the plan of $name is JSON" valid_json "$folder/out" whole
    expect "$name keeps every invariant" test "$(grep -c invariant "$folder/err")" -eq 0
  done
else
  echo "Darknet's models are not in $darknet: that part is left out"
fi

works 1 plan models/yolov2-early.cfg --grid 2x2
expect 'it says which kernels compute which layers' grep -q '^kernels  *direct for layers 0 .*winograd4 for layers 2 4' "$folder/out"
works 1 plan models/yolov2-early.cfg --kernels direct --save "$folder/direct.toml"
expect 'direct kernels everywhere when asked for' grep -q '^kernels  *direct for all convolutions' "$folder/out"
works 1 plan models/yolov2-early.cfg --partition "$folder/direct.toml" --json
expect 'a partition file keeps its kernels' grep -qF '"kernels":[{"layer":0,"forward":"direct"' "$folder/out"
expect 'none of them is another' bash -c "! grep -q winograd '$folder/out'"
works 1 plan models/fashion-resnet.cfg --grid 2x2 --batch 2 --kernels measured --save "$folder/measured.toml"
works 4 check models/fashion-resnet.cfg --partition "$folder/measured.toml" --batch 2
expect 'measured kernels compute what one tile computes' grep -qx equal "$folder/out"
run 1 check models/fashion-resnet.cfg --kernels measured
expect 'only a plan measures' test "$status" -eq 2

# What is not exact is said as train says it.
works 1 plan models/fashion-resnet.cfg --grid 2x2 --batch 4 --batch-norm tile
expect 'statistics of tiles are not exact' grep -q '^not exact .*batch statistics of each tile' "$folder/out"
works 1 plan models/fashion-resnet.cfg --grid 2x2 --batch 4 --batch-norm tile --json
expect 'in JSON, too' grep -q '"exact":false' "$folder/out"
for exact in '--grid 2x2' '--grid 1x1 --batch-norm tile'; do
  # shellcheck disable=SC2086 # words
  works 1 plan models/fashion-resnet.cfg $exact --batch 4
  expect "$exact is exact" test "$(grep -c '^not exact' "$folder/out")" -eq 0
done
works 1 plan models/lenet5.cfg --grid 2x2 --batch 4 --batch-norm tile
expect 'nor is anything inexact without batch normalisation' test "$(grep -c '^not exact' "$folder/out")" -eq 0
