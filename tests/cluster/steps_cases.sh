# Benches of training steps, bench/steps: what they refuse.
# shellcheck shell=bash disable=SC2154 # variables of run.sh and support.sh

group_size() { timeout 120 bench/group_size/run.sh --cluster test-one --out "$folder/steps.csv" --figure "$folder/steps.svg" "$@"; }

test_steps_refuse_numbers_that_are_none() {
  local option
  for option in equal batch rounds steps longest most within timeout probe-seconds dilate; do
    expect_refusal "--$option wants" group_size "--$option" 0
    expect_refusal "--$option wants" group_size "--$option" x
  done
  expect_refusal '--groups wants layers' group_size --groups a-b
}

# measure_lenet OPTION...: one round of groups of one layer and of what is found.
measure_lenet() {
  group_size --model models/lenet5.cfg --size own --batch 3 --equal 1 --rounds 1 --steps 1 --probe-seconds 3 "$@" 2>&1
}

test_steps_refuse_groups_of_layers_that_are_not_there() {
  [ -x build/release/tessera ] || skip 'no build/release/tessera'
  local said code=0
  said=$(measure_lenet --groups 0-99 --out "$folder/none.csv") || code=$?
  expect_equal "$code" 2
  expect_text "$said" 'group 0-99 ends at layer 99'
  rm runs/profiles/test-one-1-lenet5-own.cluster.toml*
}
