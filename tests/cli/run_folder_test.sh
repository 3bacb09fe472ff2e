#!/usr/bin/env bash
# A run folder holds one run: a second one at the same time is refused, an earlier one is not replaced unasked, and where the
# folder goes away under a run what was learnt is saved beside it. What is printed may be lost, files may not.
# shellcheck disable=SC2016 # the $ are those of perl
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 60 20
model=models/lenet5.cfg
training=(train "$model" --data "$data" --batch 8)
trap 'kill $(jobs -p) 2>/dev/null; finish' EXIT

# wait_until WHAT COMMAND...: looks for it ten times a second, a minute at most.
wait_until() {
  local what=$1 tenths
  shift
  for ((tenths = 0; tenths < 600; ++tenths)); do
    "$@" && return
    sleep 0.1
  done
  fail "$what"
}
steps_are_done() { [ "$(wc -l <"$1/metrics.jsonl")" -ge 3 ]; } 2>/dev/null

# start RANKS RUN ARGUMENT...: a long run in the background that has done some steps. Sets process.
start() {
  local ranks=$1 run=$2 launcher=()
  shift 2
  [ "$ranks" -eq 1 ] || launcher=("$MPIEXEC" -n "$ranks")
  command_line="${launcher[*]} tessera train in the background"
  "${launcher[@]}" "$TESSERA" "${training[@]}" --steps 1000000 --no-eval --run "$run" "$@" >"$folder/out" 2>"$folder/err.background" </dev/null &
  process=$!
  wait_until 'training should start' steps_are_done "$run"
}

# Two runs at a time.
start 1 "$folder/busy"
refused "busy: another run is using this folder, process $process on .* since 20[0-9-]* [0-9:]*: .*--run" \
  "${training[@]}" --steps 2 --run "$folder/busy"
refused "busy: another run is using" "${training[@]}" --steps 2 --run "$folder/busy" --force
kill -9 "$process"
wait "$process" 2>/dev/null
expect 'a lock file is left behind' test -e "$folder/busy/run.lock"
works 1 "${training[@]}" --steps 2 --run "$folder/busy" --force --no-eval # the lock of the dead is none
expect 'a run that ends takes its lock file away' test ! -e "$folder/busy/run.lock"

# Whoever has made the folder chose where its links lead: nothing is written there. A run that is resumed reads through them.
# linked MAKE_LINK...: the folder `linked`, in which each file of a run is a link to what somebody else has.
linked() {
  local name
  mkdir "$folder/linked" "$folder/theirs"
  for name in "${names[@]}"; do
    printf 'of somebody, %s\n' "$name" >"$folder/theirs/$name"
    printf 'half, %s\n' "$name" >"$folder/theirs/$name.partial"
    "$@" "$folder/theirs/$name" "$folder/linked/$name"
    "$@" "$folder/theirs/$name.partial" "$folder/linked/$name.partial"
  done
  cp -r "$folder/theirs" "$folder/theirs-before"
}
works 1 "${training[@]}" --epochs 2 --run "$folder/plain" --monitor on
works 1 report "$folder/plain"
mapfile -t names < <(ls "$folder/plain")
names+=(run.lock timeline.json choice.json data-map.toml)
expect 'these are the files of a run' test "${#names[@]}" -ge 15
for make_link in 'ln -s' ln; do
  linked $make_link
  works 1 "${training[@]}" --epochs 2 --run "$folder/linked" --force
  works 1 report "$folder/linked"
  works 1 "${training[@]}" --epochs 3 --run "$folder/linked" --resume "$folder/linked/checkpoint.safetensors"
  expect "$make_link: what the links lead to is as it was" diff -r "$folder/theirs-before" "$folder/theirs"
  rm -r "$folder/linked" "$folder/theirs" "$folder/theirs-before"
done

# An earlier run.
works 2 "${training[@]}" --steps 9 --run "$folder/run"
cp -r "$folder/run" "$folder/before"
refused 'run: holds an earlier run \(metrics\.jsonl up to step 9, checkpoint\.safetensors, best\.safetensors\): .*--resume .*run/checkpoint\.safetensors.*--force.*--run' \
  "${training[@]}" --steps 2 --run "$folder/run"
works 1 "${training[@]}" --steps 2 --run "$folder/other" --no-eval
refused 'run: holds an earlier run' "${training[@]}" --steps 4 --run "$folder/run" --resume "$folder/other/checkpoint.safetensors"
expect 'nothing is changed by that' diff -r "$folder/before" "$folder/run"
works 1 "${training[@]}" --steps 11 --run "$folder/run/" --resume "$folder/run/checkpoint.safetensors"
expect 'a run that goes on keeps its lines' test "$(losses "$folder/run" | wc -l)" -eq 11
works 1 "${training[@]}" --steps 2 --run "$folder/run" --force --no-eval
expect 'one that is replaced leaves none' test "$(losses "$folder/run" | wc -l)" -eq 2
expect 'nor its best weights' test ! -e "$folder/run/best.safetensors"
mkdir "$folder/empty"
echo '# mine' >"$folder/empty/partition.toml"
: >"$folder/empty/metrics.jsonl"
works 1 "${training[@]}" --steps 1 --run "$folder/empty" --no-eval # without a step there was no run
rm "$folder/empty/checkpoint.safetensors"
refused 'empty: holds an earlier run \(metrics\.jsonl up to step 1\): replace it with --force' "${training[@]}" --steps 1 --run "$folder/empty"
refused ': ' train "$model" --data "$folder/nothing" --steps 1 --run "$folder/never"
expect 'a run that was never begun leaves no folder' test ! -e "$folder/never"

# The best weights so far stay beside the last ones.
stored() { # stored FILE KEY: a number of a checkpoint's metadata
  perl -e 'my ($path, $key) = @ARGV; open(my $file, "<:raw", $path) or die; read($file, my $bytes, 8); read($file, my $json, unpack("V", $bytes));
    print $1 if $json =~ /"\Q$key\E":"([^"]*)"/' "$@"
}
best_of() { # best_of RUN: its best accuracy, and the first step that has it with the least loss
  sed -n 's/^{"step":\([0-9]*\),.*"accuracy":\([^,]*\),"test_loss":\([^,]*\),.*/\2 \3 \1/p' "$1/metrics.jsonl" |
    sort -k 1,1gr -k 2,2g -k 3,3n | awk 'NR == 1 { print $1 + 0, $3 }'
}
works 2 "${training[@]}" --steps 48 --run "$folder/best" # 6 epochs
best=$folder/best/best.safetensors
expect 'it is the best of the tests' test "$(stored "$best" accuracy) $(stored "$best" step)" = "$(best_of "$folder/best")"
expect 'the closing line says where weights are, and what to do with them' \
  grep -qE '^trained weights: .*/best/best\.safetensors \(test accuracy [0-9.]+ % at step [0-9]+\)' "$folder/out"
expect 'and how to use them' grep -qE 'tessera predict models/lenet5\.cfg PICTURES --weights .*best\.safetensors' "$folder/out"
works 1 "${training[@]}" --steps 56 --run "$folder/best" --resume "$folder/best/checkpoint.safetensors"
expect 'a run that goes on knows the best before it' test "$(stored "$best" accuracy) $(stored "$best" step)" = "$(best_of "$folder/best")"
works 1 eval "$model" --data "$data" --weights "$best" --json
expect 'the best weights have that accuracy' test "$(sed 's/.*"accuracy":\([^,]*\),.*/\1/' "$folder/out" | awk '{ print $1 + 0 }')" = "$(stored "$best" accuracy)"

# The folder goes away.
for ranks in 1 3; do
  start "$ranks" "$folder/gone"
  mv "$folder/gone" "$folder/elsewhere"
  status=0
  wait "$process" || status=$?
  cp "$folder/err.background" "$folder/err"
  expect_refusal 'gone: the run folder.* is gone: .* until step [0-9]+ is saved in .*/gone-rescued'
  expect 'all steps are there' test "$(losses "$folder/gone-rescued" | tail -n 1 | cut -d ' ' -f 1)" = "$(stored "$folder/gone-rescued/checkpoint.safetensors" step)"
  step=$(stored "$folder/gone-rescued/checkpoint.safetensors" step)
  read -ra resume < <(sed -n 's/.*to continue: the same command with //p' "$folder/err")
  works "$ranks" "${training[@]}" --steps "$((step + 2))" --no-eval "${resume[@]}"
  expect 'it goes on in that folder' test "$(stored "$folder/gone-rescued/checkpoint.safetensors" step)" -eq $((step + 2))
  rm -rf "$folder/gone-rescued" "$folder/elsewhere"
done

# What is printed goes nowhere: the files are complete all the same. (Under mpiexec it is the launcher that prints, and ends.)
command_line='tessera train >/dev/full 2>/dev/full'
status=0
timeout 60 "$TESSERA" "${training[@]}" --steps 40 --run "$folder/full" >/dev/full 2>/dev/full </dev/null || status=$?
expect 'a full output is no failure' test "$status" -eq 0 -a "$(losses "$folder/full" | wc -l)" -eq 40
command_line='tessera train >&- 2>&-'
status=0
timeout 60 "$TESSERA" "${training[@]}" --steps 40 --run "$folder/shut" >&- 2>&- </dev/null || status=$?
expect 'nor is one that is shut' test "$status" -eq 0 -a "$(losses "$folder/shut" | wc -l)" -eq 40
expect 'and what is printed goes into no file' test "$(grep -vc '^{' "$folder/shut/metrics.jsonl")" -eq 0
command_line='tessera train | head -n 1'
status=0
{ timeout 60 "$TESSERA" "${training[@]}" --steps 400 --run "$folder/pipe" --no-eval 2>&1 </dev/null || echo $? >"$folder/code"; } | head -n 1 >/dev/null
expect 'a closed pipe is no failure' test ! -e "$folder/code" -a "$(losses "$folder/pipe" | wc -l)" -eq 400
expect 'the checkpoint is of the last step' test "$(stored "$folder/pipe/checkpoint.safetensors" step)" = 400

# What is printed at the end works as it is, by the program that was started and with what the data set needs.
mkdir "$folder/my tools"
ln -s "$TESSERA" "$folder/my tools/tessera"
make_colours_model "$folder/colours.cfg"
colours=$folder/colours
mkdir -p "$colours"/{train,test}/{blue,red}
for number in 1 2 3 4; do
  make_picture "$colours/train/blue/$number.png" 12 "$number" 0 200
  make_picture "$colours/train/red/$number.png" 12 200 "$number" 0
done
make_picture "$colours/test/blue/9.png" 12 9 0 200
make_picture "$colours/test/red/9.png" 12 200 9 0
head -c 100 "$colours/test/red/9.png" >"$colours/test/red/8.png"
colour_training=(train "$folder/colours.cfg" --data "$colours" --skip-broken --steps 2 --run "$folder/colour-run")
command_line="my tools/tessera ${colour_training[*]}"
"$folder/my tools/tessera" "${colour_training[@]}" >"$folder/out" 2>"$folder/err"
sed -n 's/.*or test them: //p' "$folder/out" >"$folder/eval.sh"
expect 'the command names the program that was started' grep -qF "'$folder/my tools/tessera' eval" "$folder/eval.sh"
expect 'and works as it is printed' bash "$folder/eval.sh" >"$folder/eval.out"
expect 'on the pictures that can be used' grep -q ' 2 pictures$' "$folder/eval.out"
rm -r "$colours/test"
works 1 "${colour_training[@]}" --force --no-eval
expect 'no test is advised without pictures to test with' test "$(grep -c 'test them' "$folder/out") $(grep -c 'try them' "$folder/out")" = '0 1'

# Nobody is told to use weights of a training that has diverged.
cat >"$folder/diverges.cfg" <<'MODEL'
[net]
height=28
width=28
channels=1
batch=4
learning_rate=30
max_batches=100
[connected]
output=10
activation=linear
[softmax]
MODEL
works 2 train "$folder/diverges.cfg" --data "$data" --steps 20 --run "$folder/diverged"
expect 'that the loss rose is said' grep -q '^tessera: warning: training has diverged: the loss rose from [0-9.]* to ' "$folder/err"
expect 'and kept with the run' grep -q '"kind":"warning".*training has diverged' "$folder/diverged/events.jsonl"
expect 'where the weights are is said, but nothing to do with them' \
  test "$(grep -c 'try them' "$folder/out") $(grep -c '^trained weights: ' "$folder/out")" = '0 1'
