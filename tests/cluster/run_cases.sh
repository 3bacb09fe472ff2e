# Running MPI programs.
# shellcheck shell=bash disable=SC2154,SC2016 # variables of run.sh and support.sh; shells on devices expand

test_run_starts_a_rank_on_each_device() {
  expect_equal "$(one run --timeout 30 hostname | sort | tr '\n' ' ')" 'pi1 pi2 pi3 '
  expect_equal "$(one run --timeout 30 --ppn 2 --from pi2 hostname | sort | tr '\n' ' ')" 'pi1 pi1 pi2 pi2 pi3 pi3 '
}

test_run_starts_a_program_of_its_own_on_each_device() {
  local said code=0
  said=$(one run --timeout 30 --each sh -c 'echo "$(hostname) is $PMI_RANK of $PMI_SIZE"; [ $(hostname) != pi2 ] || exit 7') || code=$?
  expect_equal "$said" $'pi1 is 0 of 1\npi2 is 0 of 1\npi3 is 0 of 1'
  expect_equal "$code" 7
}

test_run_takes_the_example_host_files() {
  expect_equal "$(one run --timeout 30 -- -f hostfiles/pi3x2 hostname | sort | tr '\n' ' ')" 'pi1 pi2 '
}

test_run_passes_the_exit_code_on() {
  local code=0
  one run --timeout 30 sh -c '[ $(hostname) != pi2 ] || exit 7' || code=$?
  expect_equal "$code" 7
}

test_run_tells_a_killed_rank_from_a_program_that_hangs() {
  local said code=0
  said=$(one run --timeout 60 sh -c 'exit 137' 2>&1) || code=$?
  expect_equal "$code" 137
  expect_equal "$(grep -c 'did not end' <<<"$said" || true)" 0
}

test_run_ends_a_program_that_hangs() {
  local said code=0
  # Ranks that do not listen to TERM, and one that is stopped.
  said=$(one run --timeout 2 sh -c 'trap "" TERM; [ $(hostname) != pi2 ] || kill -STOP $$; while :; do sleep 0.9876; done' 2>&1) || code=$?
  expect_equal "$code" 124
  expect_text "$said" 'did not end within 2 s'
  expect_equal "$(pgrep -fc 'sleep 0[.]9876' || true)" 0
}

test_run_ends_what_is_out_of_reach() {
  local code=0
  one run --timeout 8 sleep 4324 &
  local script=$!
  wait_until one exec pi2 pgrep -f 'sleep 4324'
  one link pi2 down
  wait "$script" || code=$?
  one link pi2 up
  expect_equal "$code" 124
  expect_equal "$(pgrep -fc 'sleep 4324' || true)" 0
}

test_run_refuses_host_files_of_devices_that_are_not_there() {
  expect_refusal "has no device 'pi4'" one run --timeout 20 -- -f hostfiles/pi3x4 hostname
  expect_equal "$(one run --timeout 30 -- -f hostfiles/pi3x4 -n 3 hostname | sort | tr '\n' ' ')" 'pi1 pi2 pi3 '
}

# Options other than -f and -n leave it to mpiexec to find out.
test_run_ends_when_mpiexec_finds_no_device() {
  local said code=0
  said=$(one run --timeout 20 -- -hosts pi1,pi9 -n 2 hostname 2>&1) || code=$?
  expect_text "$said" "has no device 'pi9'"
  expect_between "$code" 1 123 || expect_between "$code" 125 255
}

test_run_ends_when_a_device_cannot_be_reached() {
  local said code=0
  one poweroff pi3
  said=$(one run --timeout 20 -- -f hostfiles/pi3x6 -n 3 hostname 2>&1) || code=$?
  one poweron pi3
  expect_text "$said" 'pi3 is off'
  expect_between "$code" 1 123 || expect_between "$code" 125 255
}

test_run_can_be_interrupted() {
  "$cluster_command" --cluster test-one run sh -c 'sleep 4322' &
  local script=$! code=0
  wait_until one exec pi3 pgrep -f 'sleep 4322'
  kill -TERM "$script"
  wait "$script" || code=$?
  expect_equal "$code" 143
  expect_equal "$(pgrep -fc 'sleep 4322' || true)" 0
}

test_run_moves_messages_over_the_wire() {
  local program=build/release/tessera before after
  [ -x "$program" ] || skip "$program is not there"
  before=$(status_of pi1 sent_bytes)
  one run --timeout 60 "$program" time models/lenet5.cfg --batch 8 --steps 4
  after=$(status_of pi1 sent_bytes)
  # 5 steps of 1.6 MiB of gradients and weights: rank 0 sends at least its part of them.
  expect_between $((after - before)) 1000000 30000000
}
