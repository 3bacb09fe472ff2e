#!/usr/bin/env bash
# The command line itself: help with and without mpiexec, the version, and what is said of wrong options.
. tests/cli/support/harness.sh

commands='train choose run doctor deploy eval predict plan time probe top check gradients convert export check-data report balance adapt anchors make-detection-set'

works 1 --help
expect 'the help names every subcommand' test "$(grep -cE "^  (${commands// /|})( |$)" "$folder/out")" -eq "$(wc -w <<<"$commands")"
works 1 --version
expect 'the version is a line' grep -qxE 'tessera [0-9.]+' "$folder/out"

for command in $commands; do
  works 1 "$command" --help
  cp "$folder/out" "$folder/alone"
  expect "the help of $command says how to call it" grep -q "^Usage: tessera $command " "$folder/alone"
  works 3 "$command" --help
  expect "under mpiexec the help of $command is printed once" same_bytes "$folder/alone" "$folder/out"
  expect 'help is no error' test ! -s "$folder/err"
  refused "(see tessera $command --help)" "$command" --wobble
  [ "$command" = probe ] || refused "(see tessera $command --help)" "$command"  # probe needs nothing
done
works 4 --help
expect 'under mpiexec the help is printed once' test "$(grep -c '^Usage:' "$folder/out")" -eq 1

refused 'expected a command: train, choose, run, doctor, deploy, eval, predict, plan'
refused 'unknown command "wobble" \(expected one of train, choose, run, doctor, deploy, eval, predict, plan' wobble
refused 'unknown command "trian": did you mean .train.\?' trian models/lenet5.cfg
refused_together 'unknown command "trian": did you mean .train.\?' trian models/lenet5.cfg
refused_together 'unknown option --epoch: did you mean .--epochs.\?' train models/lenet5.cfg --data a --run b --epoch 3
refused 'unknown command "predcit": did you mean .predict.\?' predcit

# Pages: short enough for a screen, with examples; how to cut is a page of its own.
for topic in '' $commands partitioning; do
  works 1 help ${topic:+"$topic"}
  cp "$folder/out" "$folder/alone"
  expect "help $topic fits on a screen" test "$(wc -l <"$folder/out")" -le "$([[ $topic =~ ^(partitioning|train|choose|plan)$ ]] && echo 80 || echo 50)"
  expect "help $topic fits into 80 columns" awk 'length > 80 { bad = 1 } END { exit bad }' "$folder/out"
  expect "help $topic has examples" grep -qE '^  (mpiexec\.mpich .*)?tessera ' "$folder/out"
  if [ -n "$topic" ] && [ "$topic" != partitioning ]; then
    works 1 "$topic" --help
    expect "help $topic is what $topic --help says" same_bytes "$folder/alone" "$folder/out"
    expect "$topic --help leaves cutting to its page" test "$(grep -c -e '--groups A-B' "$folder/out")" -eq 0
  fi
done
works 3 help partitioning
expect 'a page is printed once under mpiexec' test "$(grep -c -e '--groups' "$folder/out")" -ge 1
for option in partition cluster grid groups recompute reader kernels gradient-precision; do
  expect "the page about cutting has --$option" test "$(grep -c -e "^  --$option " "$folder/out")" -eq 1
done
refused 'there is no help on "partitionning": did you mean .partitioning.\?' help partitionning
refused "unexpected argument 'plan' after 'train'" help train plan

# What was not expected, in order, and what may have been meant.
refused "unexpected arguments 'one', 'two', 'three' after 'models/lenet5.cfg' \(see tessera plan --help\)" plan models/lenet5.cfg one two three
refused "unexpected argument 'two' after '2x2'" plan models/lenet5.cfg --grid 2x2 two
refused 'unknown option --epoch: did you mean .--epochs.\?' train models/lenet5.cfg --data a --run b --epoch 3
refused 'unknown option --date: did you mean .--data.\?' train models/lenet5.cfg --date a --run b
refused 'unknown option --wobble \(see' eval --wobble
train=(train models/lenet5.cfg --data nowhere --run nowhere)
refused '--steps: "0" is not an integer from 1' "${train[@]}" --steps 0
refused '--epochs: "-1"' "${train[@]}" --epochs -1
refused '--batch: "1\.5"' "${train[@]}" --batch 1.5
refused '--batch: "99999999999999999999"' "${train[@]}" --batch 99999999999999999999
refused '--subdivisions: "x"' "${train[@]}" --subdivisions x
refused '--seed: "-1"' "${train[@]}" --seed -1
refused '--steps excludes --epochs|--epochs excludes --steps' "${train[@]}" --steps 1 --epochs 1
refused 'excludes' "${train[@]}" --resume a --weights b
refused '--batch-norm: wobble not in .*sync' "${train[@]}" --batch-norm wobble
refused '--progress: wobble not in .*line' "${train[@]}" --progress wobble
refused '--data-parallel-from: "x"' "${train[@]}" --data-parallel-from x
refused '128 images .* 3 subdivisions' "${train[@]}" --subdivisions 3
refused '--mean' "${train[@]}" --mean grey
export TESSERA_VECTORS=avx-2
refused 'TESSERA_VECTORS: "avx-2": expected one of generic, avx2, avx512, cortex-a53, neon' "${train[@]}"
refused_alone 'TESSERA_VECTORS' plan models/lenet5.cfg
unset TESSERA_VECTORS
refused '--ranks: "0"' plan models/lenet5.cfg --ranks 0
refused '--threads: "0"' time models/lenet5.cfg --threads 0
refused '--precision: half not in' gradients models/lenet5.cfg --in a --out b --precision half
refused "unexpected argument 'more' after 'models/lenet5.cfg'" convert models/lenet5.cfg more --from a --to b

# More than any machine holds.
refused 'lenet5\.cfg: training needs .* on rank 0( \(.* with the others there\))?, its machine has .*--batch' time models/lenet5.cfg --batch 1000000000
