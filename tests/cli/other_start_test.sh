#!/usr/bin/env bash
# Ranks that were started with other options or that find other files: one line says which rank has what, with exit code 2 on
# all of them and in little time. What they need not share works.
. tests/cli/support/harness.sh
time_limit=20

# run_each ARGUMENTS...: a rank for each, which is a line of words. Sets what run does.
run_each() {
  local launcher=() words=()
  command_line="$MPIEXEC"
  for line in "$@"; do
    read -ra words <<<"$line"
    [ "${#launcher[@]}" -eq 0 ] || launcher+=(:)
    launcher+=(-n 1 "$TESSERA" "${words[@]}")
    command_line+=" : tessera $line"
  done
  status=0
  timeout -k 5 "$time_limit" "$MPIEXEC" "${launcher[@]}" >"$folder/out" 2>"$folder/err" </dev/null || status=$?
}

# refused_each PATTERN ARGUMENTS...: they are refused, and nothing is printed beside the refusal.
refused_each() {
  local pattern=$1
  shift
  run_each "$@"
  expect_refusal "$pattern"
  expect 'nothing else is printed' test ! -s "$folder/out"
}

# works_each ARGUMENTS...
works_each() {
  run_each "$@"
  [ "$status" -eq 0 ] || fail 'it should work'
}

check='check models/lenet5.cfg'
host='\([^ ]+\)'

# One rank's options are wrong, wherever it is; all are wrong, in the same way or not.
refused_each "^tessera: rank 1 $host: .*--bogus.*see tessera check --help" "$check --grid 1x2" "$check --grid 1x2 --bogus"
refused_each "^tessera: rank 0 $host: .*--bogus" "$check --grid 1x2 --bogus" "$check --grid 1x2"
refused_each "^tessera: rank 2 $host: --batch: \"x\"" "$check" "$check" "$check --batch x"
refused_each "^tessera: rank 1 $host: unknown command .wobble." "$check" wobble
refused_each "^tessera: rank 0 $host: .*--one" "$check --one" "$check --two"
refused_each '^tessera: [^r].*--bogus' "$check --bogus" "$check --bogus"
refused_each "^tessera: rank 1 $host: .*--bogus" --help "$check --bogus"
refused_each "^tessera: rank 1 $host: .*--bogus" 'plan models/lenet5.cfg' 'plan models/lenet5.cfg --bogus'

# They are right and not the same, also where one rank alone would do the work.
other="^tessera: rank 1 $host was started with different options than rank 0 $host: "
refused_each "$other--grid 2x1 instead of --grid 1x2$" "$check --grid 1x2" "$check --grid 2x1"
refused_each "$other--batch 3 too$" "$check" "$check --batch 3"
refused_each "${other}without --batch 3$" "$check --batch 3" "$check"
refused_each "${other}MODEL models/fashion-resnet\.cfg instead of MODEL models/lenet5\.cfg$" "$check" 'check models/fashion-resnet.cfg'
refused_each "${other}time instead of check$" "$check" 'time models/lenet5.cfg'
refused_each "$other--help instead of check MODEL models/lenet5\.cfg$" "$check" --help
refused_each "$other--json too$" 'plan models/lenet5.cfg' 'plan models/lenet5.cfg --json'
refused_each "${other}--partition auto too$" 'time models/lenet5.cfg --steps 1' 'time models/lenet5.cfg --steps 1 --partition auto'
refused_each "$other--kernels winograd2 instead of" 'probe --kernels direct' 'probe --kernels winograd2'
refused_each 'rank 2 .* was started with different options' "$check" "$check" "$check --seed 7"
train='train models/lenet5.cfg --steps 1 --run runs/nowhere --data'
refused_each "$other--no-eval too$" "$train nowhere" "$train nowhere --no-eval"
refused_each "$other--weights b instead of --weights a$" 'eval models/lenet5.cfg --data d --weights a' 'eval models/lenet5.cfg --data d --weights b'
refused_each "$other--top 2 too$" 'predict models/lenet5.cfg --weights a p' 'predict models/lenet5.cfg --weights a p --top 2'
refused_each "$other--precision double too$" 'gradients models/lenet5.cfg --in a --out b' \
  'gradients models/lenet5.cfg --in a --out b --precision double'

# Their order and way of writing are nobody's business, nor are threads and where pictures are.
works_each "$check --grid 1x2 --batch 3" 'check --batch=3 --grid=1x2 models/lenet5.cfg'
works_each 'time models/lenet5.cfg --steps 1 --threads 1' 'time models/lenet5.cfg --steps 1 --threads 2'
for place in here there; do
  mkdir "$folder/$place"
  make_digits "$folder/$place" 12 4
done
train="train models/lenet5.cfg --steps 1 --batch 2 --run $folder/run --force --data"
works_each "$train $folder/here" "$train $folder/there"
works_each 'plan models/lenet5.cfg' 'plan models/lenet5.cfg'
expect 'one rank prints the plan' test "$(grep -c '^model' "$folder/out")" -eq 1
works_each --version --version
expect 'one rank prints the version' test "$(wc -l <"$folder/out")" -eq 1

# The same options, and files of one machine are not those of the other: a folder for each rank has them under one name.
for rank in 0 1; do
  mkdir "$folder/$rank"
  cp models/lenet5.cfg "$folder/$rank/model.cfg"
  "$TESSERA" plan models/lenet5.cfg --grid 1x2 --save "$folder/$rank/cut.toml" >/dev/null
done
# shellcheck disable=SC2016 # each rank's own shell is to know its rank
in_own_folder='cd "$1/$PMI_RANK" && shift && exec "$@"'
# run_apart ARGUMENT...: two ranks, each in its folder.
run_apart() {
  command_line="$MPIEXEC -n 2 tessera $* (each in its own folder)"
  status=0
  timeout -k 5 "$time_limit" "$MPIEXEC" -n 2 bash -c "$in_own_folder" rank "$folder" "$TESSERA" "$@" \
    >"$folder/out" 2>"$folder/err" </dev/null || status=$?
}
run_apart check model.cfg --partition cut.toml
expect 'the same files in several places work' test "$status" -eq 0
"$TESSERA" plan models/lenet5.cfg --grid 2x1 --save "$folder/1/cut.toml" >/dev/null
run_apart check model.cfg --partition cut.toml
expect_refusal "^tessera: rank 1 $host has a different cut\.toml than rank 0 $host: all ranks need the same$"
sed -i 's/^learning_rate *=.*/learning_rate=0.5/' "$folder/1/model.cfg"
for command in 'check' 'time' 'probe --out p.toml' 'eval --data d --weights w' 'predict --weights w p' 'gradients --in i --out o' \
  'train --data d --run r --steps 1'; do
  read -ra words <<<"$command"
  run_apart "${words[0]}" model.cfg "${words[@]:1}"
  expect_refusal "^tessera: rank 1 $host has a different model\.cfg than rank 0 $host"
done
rm "$folder/1/model.cfg"
run_apart check model.cfg
expect_refusal "^tessera: rank 1 $host: model\.cfg: no such model file"
