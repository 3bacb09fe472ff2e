# Making clusters, taking them down, and refusing what cannot be.
# shellcheck shell=bash disable=SC2154,SC2016 # variables of run.sh and support.sh; shells on devices expand

test_down_leaves_nothing_behind_and_can_be_repeated() {
  "$cluster_command" up --devices 2 --cpu 0.1 --name test-two >/dev/null
  "$cluster_command" --cluster test-two exec pi1 sleep 4323 || true &
  wait_until "$cluster_command" --cluster test-two exec pi1 pgrep -f 'sleep 4323'
  [ -n "$(traces test-two)" ]
  "$cluster_command" --cluster test-two down
  expect_equal "$(traces test-two)" ''
  expect_equal "$(pgrep -fc 'sleep 4323' || true)" 0
  expect_equal "$("$cluster_command" --cluster test-two down 2>&1)" 'cluster: no cluster called test-two is up.'
  expect_equal "$(one exec pi1 hostname)" pi1
}

test_down_takes_no_cluster_that_is_not_named_before_it() {
  expect_refusal "down does not take 'test-two'" one down test-two
  expect_refusal "down does not take 'nonsense'" "$cluster_command" down nonsense
  expect_equal "$(one exec pi1 hostname)" pi1
}

test_clusters_whose_names_run_together_stay_apart() {
  printf 'more-pi1 cpu=0.1\n' >"$folder/short.devices"
  printf 'pi1 cpu=0.1\n' >"$folder/long.devices"
  "$cluster_command" up "$folder/short.devices" --name test-two >/dev/null
  "$cluster_command" up "$folder/long.devices" --name test-two-more >/dev/null
  "$cluster_command" --cluster test-two-more down
  expect_equal "$("$cluster_command" --cluster test-two exec more-pi1 hostname)" more-pi1
  "$cluster_command" --cluster test-two down
}

test_up_leaves_a_namespace_that_something_else_made() {
  ip netns add tessera-test-two.pi2
  expect_refusal 'another program uses the network namespace tessera-test-two.pi2' "$cluster_command" up --devices 2 --cpu 0.1 --name test-two
  expect_equal "$(traces test-two)" tessera-test-two.pi2
  ip netns delete tessera-test-two.pi2
}

test_down_copes_with_a_first_process_that_was_killed() {
  "$cluster_command" up --devices 2 --cpu 0.1 --name test-two >/dev/null
  kill -KILL "$(cat /run/tessera-cluster/test-two/devices/pi2/pid)"
  "$cluster_command" --cluster test-two down
  expect_equal "$(traces test-two)" ''
}

test_a_folder_of_its_own_outlives_a_devices_power() {
  mkdir "$folder/own_files"
  "$cluster_command" up --devices 2 --cpu 0.1 --name test-two --own "$folder/own_files" >/dev/null
  "$cluster_command" --cluster test-two exec pi1 touch "$folder/own_files/mine"
  expect_equal "$("$cluster_command" --cluster test-two exec pi2 ls "$folder/own_files")" ''
  "$cluster_command" --cluster test-two poweroff pi1
  [ -e "$folder/own_files/pi1/mine" ]
  "$cluster_command" --cluster test-two poweron pi1
  expect_equal "$("$cluster_command" --cluster test-two exec pi1 ls "$folder/own_files")" mine
  "$cluster_command" --cluster test-two down
  expect_refusal '--own: expected a folder' "$cluster_command" up --devices 2 --cpu 0.1 --name test-two --own "$folder/nowhere"
}

test_two_clusters_do_not_see_each_other() {
  "$cluster_command" up --devices 2 --cpu 0.1 --rate 50 --name test-two >/dev/null
  expect_refusal 'several clusters are up' "$cluster_command" status
  expect_equal "$("$cluster_command" --cluster test-two run --timeout 30 hostname | sort | tr '\n' ' ')" 'pi1 pi2 '
  expect_equal "$(one run --timeout 30 hostname | wc -l)" 3
  one exec pi3 true
  "$cluster_command" --cluster test-two down
}

test_up_that_is_interrupted_cleans_up() {
  "$cluster_command" up --devices 20 --cpu 0.1 --name test-early &
  local script=$! code=0
  wait_until test -e /run/tessera-cluster/test-early/devices/pi3/pid
  kill -TERM "$script"
  wait "$script" || code=$?
  expect_equal "$code" 143
  expect_equal "$(traces test-early)" ''
}

test_up_does_not_keep_the_output_open() {
  local said
  said=$(timeout 20 "$cluster_command" up --devices 1 --cpu 0.1 --name test-two 2>&1)
  "$cluster_command" --cluster test-two down
  expect_text "$said" 'test-two: 1 devices'
}

test_speeds_become_shares_of_a_core() {
  printf '# a comment\n\nslow speed=2 memory=50\nfast speed=8 rate=1000 threads=4 # the new one\nown cpu=0.25\n' >"$folder/test-two.devices"
  "$cluster_command" up "$folder/test-two.devices" --core-speed 100 --dilate 2 >"$folder/said"
  expect_text "$(cat "$folder/said")" 'multiply times by 2'
  local rows
  rows=$("$cluster_command" --cluster test-two status --csv | cut -d , -f 1,4,11,13)
  local threads
  threads=$("$cluster_command" --cluster test-two exec fast sh -c 'echo $OMP_NUM_THREADS')
  "$cluster_command" --cluster test-two down
  expect_equal "$rows" 'device,cores,memory_limit_bytes,rate_mbit
slow,0.04,52428800,100
fast,0.16,943718400,1000
own,0.5,943718400,100'
  expect_equal "$threads" 4
}

test_up_refuses_what_is_wrong_in_one_sentence() {
  expect_refusal 'already up' "$cluster_command" up --devices 2 --cpu 0.1 --name test-one
  expect_refusal 'a number from 1 to 64' "$cluster_command" up --devices 0
  expect_refusal 'give one' "$cluster_command" up --devices 1 --cpu 1 --speed 4
  expect_refusal "there is no description 'nothing'" "$cluster_command" up nothing
  expect_refusal 'cannot be measured' "$cluster_command" up --devices 1 --program /nowhere
  printf 'pi1 speed=4\npi2 color=red\n' >"$folder/bad.devices"
  expect_refusal "$folder/bad.devices, line 2: unknown property 'color=red'" "$cluster_command" up "$folder/bad.devices"
  printf 'pi1\npi1\n' >"$folder/bad.devices"
  expect_refusal 'two devices called pi1' "$cluster_command" up "$folder/bad.devices"
  local name
  for name in lo all default switch; do
    printf '%s cpu=0.1\n' "$name" >"$folder/bad.devices"
    expect_refusal "'$name' cannot name a device" "$cluster_command" up "$folder/bad.devices"
  done
  expect_refusal 'rate: expected a number from 0.01 to 100000' "$cluster_command" up --devices 1 --cpu 0.1 --rate 0.001
  expect_refusal 'rate: expected a number from 0.01 to 100000' "$cluster_command" up --devices 1 --cpu 0.1 --rate 100001
  expect_refusal 'dilated by 0.001 is not' "$cluster_command" up --devices 1 --cpu 0.1 --rate 1 --dilate 0.001 --name bad
  expect_equal "$(traces bad)" ''
}

test_arguments_that_would_be_ignored_are_refused() {
  expect_refusal "check does not take 'foo'" "$cluster_command" check foo
  expect_refusal "link pi1 down does not take 'extra'" one link pi1 down extra
  expect_refusal "link pi1 rate 10 does not take 'extra'" one link pi1 rate 10 extra
  expect_refusal "status --csv does not take '--json'" one status --csv --json
  expect_equal "$(status_of pi1 cable) $(status_of pi1 rate_mbit)" 'in 100'
}

test_missing_rights_and_commands_are_named() {
  if command -v setpriv >/dev/null; then
    expect_refusal 'start it with sudo' setpriv --reuid 65534 --clear-groups "$cluster_command" up --devices 1 --cpu 0.1 --name test-two
  fi
  local command
  for command in bash awk grep sed sort tr id dirname readlink unshare nsenter setsid ip tc cat; do
    ln -sf "$(command -v "$command")" "$folder/$command"
  done
  expect_refusal 'not installed: ethtool' env PATH="$folder" "$cluster_command" up --devices 1 --cpu 0.1 --name test-two
}

test_status_is_json_for_those_who_want_it() {
  one status --json >"$folder/status.json"
  perl tests/cli/support/check_json.pl "$folder/status.json" whole
  expect_equal "$(grep -c '"device": "pi' "$folder/status.json")" 3
}
