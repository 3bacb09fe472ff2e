#!/usr/bin/env bash
# The tables of Park, Lee and Kim (2020) on emulated devices, with their way of synchronising and with --partition auto. See --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/heterogeneous/park.sh
. bench/steps/steps.sh

common_options=(program timeout out figure table probe-seconds vectors dilate slow-by)
own_options=(parts counts shared-counts shared-batch lenet-batch resnet-batch lenet-steps resnet-steps depths depth-batches depth-steps epochs epoch-pictures
  ways several cluster images)
out=runs/park.csv
figure=runs/park.svg
results=bench/heterogeneous/park # where --commit-results copies them
columns='part,model,layers,devices,way,batch,steps,epoch,pictures,elapsed_s,step_s,predicted_s,star_s,working,accuracy,busy,memory_bytes,received_bytes_per_s,sent_bytes_per_s,settings'
parts='devices shared depth epochs synchronisation'
counts='1 2 3 4 5 6 7 8 9 10'
shared_counts='1 2 4 6 8 10'
shared_batch=64
lenet_batch=32
resnet_batch=16
lenet_steps=60
resnet_steps=30
depths='1 2 3'
depth_batches='8 32'
depth_steps=20
epochs=5
epoch_pictures=4800
ways='every-step parameter-rank:0 parameter-rank:1 parameter-rank:4'
several=4
cluster=
images=/usr/share/datasets/fashion-mnist
speed=4.5
rate=100
timeout=600
dilate=0.75
probe_seconds=25
test_pictures=1000 # of the tests after each epoch; all others are with the whole test set

show_help() {
  cat <<HELP
Usage: bench/heterogeneous/park.sh [OPTION...]

Trains LeNet-5 and a ResNet on Fashion-MNIST on 1 to 10 emulated Raspberry Pi 3 ($speed GFLOP/s, links of $rate Mbit/s), as Park, Lee and Kim did with
MXNet and a parameter server (Electronics 2020, 9, 28), and with what --partition auto finds on the same devices. Runs are short: a few dozen
steps. Accuracy is measured afterwards, on all pictures for testing. Writes a line of CSV for each run, prints a table, draws a
figure. Needs root and Debian's dataset-fashion-mnist. With the defaults it takes about 40 minutes; the machine should be otherwise idle.

Their way of synchronising is parameter-rank:0: all gradients go to one device and all parameters back, in every step. Where \`tessera train\` has no
--sync, it is images shared out, with gradients reduced by their owners instead.

  --parts 'NAME...'     default: $parts
    devices             the same number of images on each device, so larger batches on more devices: time and accuracy
    shared              LeNet-5 with the same batch on all numbers of devices: the same work shared out
    depth               layers x batch size: processor, memory, network of each device, on --several devices
    epochs              the ResNet, tested after each epoch, on --several devices
    synchronisation     synchronous and asynchronous, on --several devices; needs --sync
  --counts 'N...'       devices of the first part; default: $counts
  --shared-counts 'N...'
                        devices of the second part; default: $shared_counts
  --shared-batch N      images per step in it, or the nearest multiple of the devices; default: $shared_batch
  --lenet-batch N, --resnet-batch N
                        images per step on each device; default: $lenet_batch, $resnet_batch
  --lenet-steps N, --resnet-steps N
                        default: $lenet_steps, $resnet_steps
  --depths 'N...'       how often each of the ResNet's blocks is there; default: $depths
  --depth-batches 'N...', --depth-steps N
                        images per step on each device, and steps, in that part; default: $depth_batches; $depth_steps
  --epochs N, --epoch-pictures N
                        default: $epochs epochs of $epoch_pictures pictures
  --ways 'SYNC...'      of the last part; default: $ways
  --several N           devices of the last three parts; default: $several
  --cluster NAME        an emulated cluster of at least 10 devices that is up already
  --images DIR          Fashion-MNIST; default: $images
HELP
  emulation_help
  results_help
}

be_quick() {
  counts='1 3'
  shared_counts='1 3'
  lenet_steps=8
  resnet_steps=4
  depths='1 2'
  depth_batches=8
  depth_steps=5
  epochs=2
  epoch_pictures=480
  ways='every-step parameter-rank:0 parameter-rank:1'
  several=3
  probe_seconds=10
  out=runs/park-quick.csv
  figure=runs/park-quick.svg
}

expect_choices() {
  local part
  expect_numbers list counts shared-counts depths depth-batches
  expect_numbers whole shared-batch lenet-batch resnet-batch lenet-steps resnet-steps depth-steps epochs epoch-pictures several
  for part in $parts; do
    case $part in devices | shared | depth | epochs | synchronisation) ;; *) fail "--parts: unknown part '$part': see --help." ;; esac
  done
  [ -s "$images/train-images-idx3-ubyte.gz" ] || [ -n "$table" ] || fail "$images does not have the pictures: apt-get install dataset-fashion-mnist."
}

# most NUMBER...
most() { printf '%s\n' "$@" | sort -n | tail -n 1; }

wants() { [[ " $parts " == *" $1 "* ]]; }

# ---- data and models ----

# big_endian NUMBER: in four bytes.
big_endian() {
  # shellcheck disable=SC2059 # it is the format
  printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)))"
}

# first_of FILE COUNT HEADER_BYTES PICTURE_BYTES: of an IDX file, with a header that says so.
first_of() {
  gzip -dc "$1" >"$scratch/idx"
  head -c 4 "$scratch/idx"
  big_endian "$2"
  head -c "$3" "$scratch/idx" | tail -c +9
  head -c $(($3 + $2 * $4)) "$scratch/idx" | tail -c "+$(($3 + 1))"
}

# data_of TRAINING TESTING: a folder with so many pictures of Fashion-MNIST, the first of each file, as they are in no order.
data_of() {
  local folder=runs/park/fashion-$1-$2 part count
  if [ ! -s "$folder/done" ]; then
    mkdir -p "$folder"
    for part in "train $1" "t10k $2"; do
      count=${part#* } part=${part% *}
      first_of "$images/$part-images-idx3-ubyte.gz" "$count" 16 784 >"$folder/$part-images-idx3-ubyte"
      first_of "$images/$part-labels-idx1-ubyte.gz" "$count" 8 1 >"$folder/$part-labels-idx1-ubyte"
    done
    echo yes >"$folder/done"
  fi
  printf '%s' "$folder"
}

# short_run MODEL: with less warm-up, as runs are shorter than those that the file is made for.
short_run() {
  local copy
  copy=runs/park/$(basename "$1")
  mkdir -p runs/park
  [ "$copy" -nt "$1" ] || sed 's/^burn_in=.*/burn_in=10/' "$1" >"$copy"
  printf '%s' "$copy"
}

# deeper TIMES: the ResNet with each of its residual blocks TIMES times.
deeper() {
  local copy=runs/park/resnet-$((2 + 4 * $1)).cfg
  awk -v times="$1" -f bench/heterogeneous/repeat_blocks.awk "$(short_run models/fashion-resnet.cfg)" >"$copy"
  printf '%s' "$copy"
}

layers_of() { grep -c '^\[\(convolutional\|connected\)\]' "$1"; }

# ---- one run ----

# know_sync: whether replicas can be tied by a parameter rank, and what stands for the published way.
know_sync() {
  published_way=images
  if "$program" train --help | grep -q -- '--sync'; then published_way=parameter-rank:0; fi
}

# cut_of WAY DEVICES: sets `cut`, options for training and planning.
cut_of() {
  case $1 in
    alone) cut=() ;;
    auto) cut=(--partition auto) ;;
    images) cut=(--data-parallel-from 0) ;;
    *) cut=(--replicas "$2" --sync "$1") ;;
  esac
}

# is_done PART DEVICES WAY BATCH [EPOCH]: of the model that is set.
is_done() {
  awk -F, -v part="$1" -v model="$model_name" -v devices="$2" -v way="$3" -v batch="$4" -v epoch="${5-}" '
    $1 == part && $2 == model && $4 == devices && $5 == way && $6 == batch && (epoch == "" || $8 == epoch) { found = 1 }
    END { exit !found }' "$out"
}

# of_devices: seconds of this machine as seconds of the devices.
of_devices() { awk -v dilation="$dilation" '{ printf "%.4g", dilation * $1 }'; }

# predict DEVICES BATCH WAY: leaves in $predicted_s and $star_s what a plan says of the step, and of a star that reduces all gradients; in `cut` options for training.
predict() {
  local devices=$1 way=$3 ranks=$1
  batch=$2 predicted_s='' star_s=''
  cut_of "$way" "$devices"
  plan "$way" "${cut[@]}" --explain || return 0
  predicted_s=$(planned prediction.step_s | of_devices)
  star_s=$(awk '$1 ~ /^explanation\.sums\.[0-9]+\.algorithm$/ && $2 == "star" { at = $1; sub(/algorithm$/, "seconds", at) }
    { of[$1] = $2 } END { if (at != "") print of[at] }' "$scratch/plan" | of_devices)
  # The search has been done here; a slow device need not repeat it.
  if [ "$way" = auto ]; then cut=(--partition "$partition"); fi
}

# train DEVICES OPTION...: leaves the run in $scratch/run. Where it fails, says why.
train() {
  local devices=$1
  shift
  rm -rf "$scratch/run"
  run "${launch[@]}" -- -f "$scratch/hosts" -n "$devices" "$program" train "$model" --data "$data" --run "$scratch/run" --seed 1 --progress none "$@" ||
    { say "$model_name on $devices: $(last_complaint)" && return 1; }
}

# accuracy: of the last weights on all pictures for testing, by this machine.
accuracy() {
  OMP_NUM_THREADS=$(processors) "$program" eval "$model" --data "$images" --weights "$scratch/run/checkpoint.safetensors" --json 2>"$scratch/log" </dev/null |
    flat_json | value accuracy
}

# observed: of the run, ELAPSED_S STEP_S BUSY MEMORY_BYTES RECEIVED_BYTES_PER_S SENT_BYTES_PER_S with commas in between, in seconds of the devices.
observed() {
  awk -v dilation="$dilation" -f bench/median.awk -f bench/metrics.awk -f bench/heterogeneous/observed.awk "$scratch/run/metrics.jsonl" "$scratch/run/devices.jsonl"
}

# working: how many ranks have tiles.
working() { grep '^ranks = \[' "$scratch/run/partition.toml" | tr -dc '0-9 \n' | tr ' ' '\n' | grep . | sort -u | wc -l; }

# write_run PART DEVICES WAY BATCH STEPS
write_run() {
  local elapsed_s step_s rest
  IFS=, read -r elapsed_s step_s rest <<<"$(observed)"
  printf '%s,%s,%s,%s,%s,%s,%s,,%s,%s,%s,%s,%s,%s,%s,%s,%s\n' "$1" "$model_name" "$(layers_of "$model")" "$2" "$3" "$4" "$5" $(($4 * $5)) \
    "$elapsed_s" "$step_s" "$predicted_s" "$star_s" "$(working)" "$(accuracy)" "$rest" "$run_settings" >>"$out"
  say "$1: $model_name on $2, $3, batch $4: $elapsed_s s, step $step_s s (predicted ${predicted_s:-nothing}), accuracy $(tail -n 1 "$out" | cut -d , -f 15)"
}

# measure_run PART DEVICES WAY BATCH STEPS: a row.
measure_run() {
  local part=$1 devices=$2 way=$3 batch=$4 steps=$5
  if is_done "$part" "$devices" "$way" "$batch"; then return 0; fi
  predict "$devices" "$batch" "$way"
  train "$devices" --batch "$batch" --steps "$steps" --schedule-steps "$steps" --no-eval "${cut[@]}" || return 0
  write_run "$part" "$devices" "$way" "$batch" "$steps"
}

# choose MODEL: what the next runs train; the cluster is probed for it once.
choose() {
  setting "$1" own 1
  run_settings=$(tr , ' ' <<<"dilation $dilation; program $program${made_with:+; $made_with}")
}

# ---- the parts ----

# ways_of DEVICES: one device has one way only.
ways_of() { if [ "$1" -eq 1 ]; then echo alone; else echo "$published_way auto"; fi; }

devices_part() {
  local name count way
  for name in lenet resnet; do
    case $name in
      lenet) choose "$(short_run models/lenet5.cfg)" && own_batch=$lenet_batch own_steps=$lenet_steps ;;
      resnet) choose "$(short_run models/fashion-resnet.cfg)" && own_batch=$resnet_batch own_steps=$resnet_steps ;;
    esac
    for count in $counts; do
      for way in $(ways_of "$count"); do measure_run devices "$count" "$way" $((own_batch * count)) "$own_steps"; done
    done
  done
}

shared_part() {
  local count way
  choose "$(short_run models/lenet5.cfg)"
  for count in $shared_counts; do
    for way in $(ways_of "$count"); do
      measure_run shared "$count" "$way" $(((shared_batch + count / 2) / count * count)) "$lenet_steps"
    done
  done
}

# depth_part: all by the profile of the ResNet as it is.
depth_part() {
  local times images_each
  choose "$(short_run models/fashion-resnet.cfg)"
  for times in $depths; do
    model=$(deeper "$times")
    model_name=$(basename "$model" .cfg)
    for images_each in $depth_batches; do
      measure_run depth "$several" "$published_way" $((images_each * several)) "$depth_steps"
    done
  done
}

# epochs_part: a row for each epoch of one run.
epochs_part() {
  local way=$published_way epoch elapsed_s accuracy batch data
  data=$(data_of "$epoch_pictures" "$test_pictures")
  choose "$(short_run models/fashion-resnet.cfg)"
  batch=$((resnet_batch * several))
  if is_done epochs "$several" "$way" "$batch" "$epochs"; then return 0; fi
  cut_of "$way" "$several"
  train "$several" --batch "$batch" --epochs "$epochs" --schedule-steps $(((epoch_pictures * epochs + batch - 1) / batch)) "${cut[@]}" || return 0
  while read -r epoch elapsed_s accuracy; do
    printf '%s,%s,%s,%s,%s,%s,,%s,%s,%s,,,,,%s,,,,,%s\n' epochs "$model_name" "$(layers_of "$model")" "$several" "$way" "$batch" "$epoch" \
      $((epoch * epoch_pictures)) "$elapsed_s" "$accuracy" "$run_settings" >>"$out"
    say "epochs: $model_name, epoch $epoch: $elapsed_s s, accuracy $accuracy"
  done < <(awk -v dilation="$dilation" -f bench/metrics.awk -f bench/heterogeneous/epochs.awk "$scratch/run/metrics.jsonl")
}

synchronisation_part() {
  local way
  if [ "$published_way" = images ]; then
    say "$program train has no --sync: synchronous and asynchronous training are not compared."
    return 0
  fi
  for way in $ways; do
    choose "$(short_run models/lenet5.cfg)"
    measure_run synchronisation "$several" "$way" $((lenet_batch * several)) "$lenet_steps"
    choose "$(short_run models/fashion-resnet.cfg)"
    measure_run synchronisation "$several" "$way" $((resnet_batch * several)) "$resnet_steps"
  done
}

# choose_place: ten devices, of which the first few are used; that many take too long to make for each number anew.
choose_place() {
  local needed name
  # shellcheck disable=SC2086 # lists
  needed=$(most $counts $shared_counts "$several")
  may_emulate
  if [ -n "$cluster" ]; then use_cluster "$cluster"; else emulate "pi3x$needed-$rate" --devices "$needed" --rate "$rate" --speed "$speed"; fi
  [ "$devices" -ge "$needed" ] || fail "$cluster_label has $devices devices, and $needed are needed."
  bench/cluster/cluster --cluster "${cluster:-$made_cluster}" status --csv | awk -F, 'NR > 1 { print $1 }' >"$scratch/hosts"
}

measure_all() {
  local part data pictures
  # shellcheck disable=SC2086 # a list
  pictures=$(most $((lenet_batch * lenet_steps * $(most $counts))) $((resnet_batch * resnet_steps * $(most $counts))) 1000)
  data=$(data_of $((pictures < 60000 ? pictures : 60000)) "$test_pictures")
  choose_place
  for part in $parts; do
    "${part}_part"
  done
}

report() {
  awk -f bench/heterogeneous/park.awk "$out"
  if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
    /usr/bin/python3 bench/heterogeneous/park_figure.py "$out" --out "$(in_folder "$figure")"
  else
    say 'no figure: install python3-matplotlib.'
  fi
}

read_options "$@"
expect_choices
prepare
know_sync
measure_all
print_machine
finish
