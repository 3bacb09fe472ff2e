# Benches of training steps, bench/steps: what they refuse, and when they continue from earlier measurements.
# shellcheck shell=bash disable=SC2154 # variables of run.sh and support.sh

group_size() { timeout 120 bench/group_size/run.sh --cluster test-one --out "$folder/steps.csv" --figure "$folder/steps.svg" "$@"; }

test_steps_refuse_values_that_are_not_positive_numbers() {
  local option
  for option in equal rates layers batch rounds steps longest most within timeout probe-seconds dilate; do
    expect_refusal "--$option: expected" group_size "--$option" 0
    expect_refusal "--$option: expected" group_size "--$option" x
  done
  expect_refusal '--groups: expected layers' group_size --groups a-b
}

# measure_lenet OPTION...: one round of groups of one layer and of what is found.
measure_lenet() {
  group_size --model models/lenet5.cfg --size own --batch 3 --equal 1 --rounds 1 --steps 1 --probe-seconds 3 "$@" 2>&1
}

test_steps_continue_only_with_the_same_settings() {
  [ -x build/release/tessera ] || skip 'no build/release/tessera'
  measure_lenet --grid 1x3
  expect_equal "$(wc -l <"$folder/steps.csv")" 3
  expect_refusal 'with other settings' measure_lenet --grid 3x1
  expect_refusal 'with other settings' measure_lenet --grid 1x3 --kernels reference
  expect_refusal 'with other settings' measure_lenet --grid 1x3 --steps 2
  measure_lenet --grid 1x3 --equal '1 2'
  expect_equal "$(tail -n +2 "$folder/steps.csv" | cut -d , -f 8,10 | tr '\n' ' ')" 'each layer alone,1 auto,1 2 layers each,1 '
  rm runs/profiles/test-one-1-lenet5-own.cluster.toml*
}

test_steps_refuse_groups_of_layers_that_do_not_exist() {
  [ -x build/release/tessera ] || skip 'no build/release/tessera'
  local said code=0
  said=$(measure_lenet --groups 0-99 --out "$folder/none.csv") || code=$?
  expect_equal "$code" 2
  expect_text "$said" 'group 0-99 ends at layer 99'
  rm runs/profiles/test-one-1-lenet5-own.cluster.toml*
}
