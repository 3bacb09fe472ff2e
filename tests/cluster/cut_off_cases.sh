# Who goes on where devices are cut off from each other: the table of engine/supervisor/README.md, a case a row. Each device has a
# folder of its own where the run's is; that of pi2 has the copy. The witness is the router, unless the variable `witness` has another.
# Runs are stopped once it is seen who goes on.
# shellcheck shell=bash disable=SC2154 # variables of run.sh and support.sh

# begin_cut_off DEVICES [OPTION...]: starts a run on the first so many, with further options of `tessera train`; returns with its first 20 steps.
begin_cut_off() {
  local devices=$1 grid=2x2
  shift
  prepare_supervised
  [ "$devices" -eq 4 ] || grid=1x$devices
  [ $# -gt 0 ] || set -- --steps 100000 --no-eval
  head -n "$devices" "$folder/hosts" >"$folder/some_hosts"
  rm -rf "$folder"/own/pi?/run*
  trap show_supervisors EXIT # seen where the case fails
  OMP_NUM_THREADS=1 supervised exec pi1 "$supervised_program" run --hostfile "$folder/some_hosts" --remote-shell "$remote_shell" ${witness:+--witness "$witness"} -- \
    "${training[@]}" "$@" --grid "$grid" --run "$folder/own/run" >"$folder/cut_off.out" 2>"$folder/cut_off.err" &
  supervised_run=$!
  within 60 has_steps "$(on pi1)" 20
}

# show_supervisors: what they have said, and what they have left.
show_supervisors() {
  what_stays
  tail -n 40 "$folder/cut_off.err" "$folder"/own/pi?/run*/supervisor.log 2>/dev/null || true
}

# on DEVICE: its folder of the run.
on() { printf '%s' "$folder/own/$1/run"; }
steps_on() { [ ! -s "$(on "$1")/metrics.jsonl" ] || wc -l <"$(on "$1")/metrics.jsonl"; }

# expect_going_on DEVICE SECONDS: its folder has 20 steps more within them.
expect_going_on() { within "$2" has_steps "$(on "$1")" $(($(steps_on "$1") + 20)); }

# expect_waiting SECONDS DEVICE...: but for steps that are just being finished, their folders get none in that time.
expect_waiting() {
  local device before
  sleep 1
  for device in "${@:2}"; do before+=("$(steps_on "$device")"); done
  sleep "$1"
  for device in "${@:2}"; do
    expect_equal "$device $(steps_on "$device")" "$device ${before[0]}"
    before=("${before[@]:1}")
  done
}

# leaders: devices with a supervisor.
leaders() {
  local device
  for device in pi1 pi2 pi3 pi4; do
    [ -z "$(pids_on "$device" run)" ] || printf '%s ' "$device"
  done
}
pids_on() { supervised exec "$1" pgrep -f "^$supervised_program ${2-}" 2>/dev/null || true; }
leads() { [ "$(leaders)" = "$1 " ]; }

# signal_on DEVICE SIGNAL [COMMAND]: to all processes of the program there, or those of that command of it.
signal_on() {
  local pids
  pids=$(pids_on "$1" "${3-}")
  # shellcheck disable=SC2086 # a list of ids
  [ -z "$pids" ] || supervised exec "$1" kill "-$2" $pids
}

# said PATTERN: by a supervisor on any device.
said() { grep -qsE -e "$1" "$folder/cut_off.err" "$folder"/own/pi?/run*/supervisor.log; }
is_back() { said "$1(, pi.)* (is|are) back"; }

# expect_steps_once DEVICE: in its folder; with the losses of the undisturbed run but for rounding, as far as that goes.
expect_steps_once() {
  paste -d ' ' <(losses_in <"$(on "$1")/metrics.jsonl") <(losses_in <"$folder/undisturbed/metrics.jsonl") | awk '
    $1 != NR || (NF == 4 && ($1 != $3 || ($2 - $4) ^ 2 > (0.01 + 0.02 * $2) ^ 2)) { print "step " $0; bad = 1 }
    END { exit bad || NR < 20 }'
}

# expect_none_lost DEVICE STEP: what it went on from is at most the second-last of so many finished steps: of the last one the others
# may not know yet.
expect_none_lost() {
  local from
  from=$(grep '"kind":"resume"' "$(on "$1")/events.jsonl" | tail -n 1 | sed 's/.*"step":\([0-9]*\).*/\1/')
  expect_between "${from:-0}" $(($2 - 1)) $(($2 + 1))
}

# end_of_run: the supervisor that there is is told to stop; what it leaves is right, and nothing of it stays.
end_of_run() {
  local leader
  leader=$(leaders)
  leader=${leader% }
  expect_equal "$(wc -w <<<"$leader")" 1
  signal_on "$leader" TERM run
  wait_until nobody_leads
  wait "$supervised_run" || true
  expect_text "$(cat "$(on "$leader")/run.json")" '"state": "interrupted"'
  expect_steps_once "$leader"
  wait_until nothing_of_it_stays
}
nobody_leads() { [ -z "$(leaders)" ]; }

test_cut_off_is_another_device_and_the_others_go_on() {
  begin_cut_off 4
  supervised link pi3 down
  expect_going_on pi1 20
  sleep 5
  supervised link pi3 up
  within 60 is_back pi3
  expect_going_on pi1 20
  end_of_run
}

# first_is_cut_off DEVICES: of so many the first one waits, and the second one leads the others, from the last step.
first_is_cut_off() {
  local last
  begin_cut_off "$1"
  supervised link pi1 down
  expect_waiting 4 pi1
  last=$(steps_on pi1)
  expect_going_on pi2 40
  expect_equal "$(steps_on pi1)" "$last"
  expect_none_lost pi2 "$last"
  supervised link pi1 up
  within 60 is_back pi1
  expect_going_on pi2 60
  leads pi2
  end_of_run
}

test_cut_off_is_the_first_device_of_four_and_the_others_go_on_from_the_last_step() { first_is_cut_off 4; }

test_cut_off_is_the_first_of_two_devices_and_the_other_goes_on() { first_is_cut_off 2; }

test_cut_off_is_the_first_of_two_devices_and_the_other_waits_where_it_reaches_no_witness() {
  local witness=10.77.0.99
  begin_cut_off 2
  supervised link pi1 down
  expect_waiting 25 pi1 pi2
  supervised link pi1 up
  expect_going_on pi1 60
  leads pi1
  end_of_run
}

test_cut_off_is_the_second_of_two_devices_and_the_first_goes_on() {
  local witness=10.77.0.254
  begin_cut_off 2
  supervised link pi2 down
  expect_going_on pi1 20
  supervised link pi2 up
  within 60 is_back pi2
  leads pi1
  end_of_run
}

test_cut_off_is_each_from_all_others_and_all_wait() {
  local device
  begin_cut_off 4
  for device in pi1 pi2 pi3 pi4; do supervised link "$device" down; done
  expect_waiting 20 pi1 pi2
  said '--alone'
  for device in pi1 pi2 pi3 pi4; do supervised link "$device" up; done
  within 60 has_steps "$(on pi1)" $(($(steps_on pi1) + 20))
  leads pi1
  end_of_run
}

test_cut_off_are_two_halves_that_both_reach_the_witness_and_one_stays() {
  local leader
  begin_cut_off 4
  supervised split pi2 pi4
  expect_going_on pi1 30
  expect_going_on pi2 40
  supervised join
  within 60 one_leads
  leader=$(leaders)
  expect_going_on "${leader% }" 40
  ls -d "$folder"/own/pi[12]/run-aside-1
  end_of_run
}
one_leads() { [ "$(leaders | wc -w)" -eq 1 ]; }

test_cut_off_is_the_first_half_from_the_witness_too_and_waits() {
  local last
  begin_cut_off 4
  supervised split --without-router pi1 pi3
  expect_waiting 4 pi1
  last=$(steps_on pi1)
  expect_going_on pi2 40
  expect_equal "$(steps_on pi1)" "$last"
  said '--alone'
  expect_none_lost pi2 "$last"
  supervised join
  within 60 leads pi2
  within 60 is_back pi1
  expect_going_on pi2 60
  end_of_run
}

test_cut_off_is_the_other_half_from_the_witness_too_and_waits() {
  begin_cut_off 4
  supervised split --without-router pi2 pi4
  expect_going_on pi1 20
  expect_waiting 20 pi2
  leads pi1
  supervised join
  within 60 is_back pi2
  within 60 is_back pi4
  end_of_run
}

test_cut_off_is_one_of_four_that_goes_on_when_it_is_told_to() {
  begin_cut_off 4
  supervised poweroff pi2 pi3 pi4
  expect_waiting 15 pi1
  said '--alone'
  supervised exec pi1 "$supervised_program" run --continue "$folder/own/run" --alone >"$folder/alone.out" 2>&1 &
  expect_going_on pi1 40
  signal_on pi1 TERM run
  wait_until nobody_leads
  supervised poweron pi2 pi3 pi4
  expect_steps_once pi1
}

# stopped_on_pi1: its supervisor is, where there is still one.
stopped_on_pi1() { signal_on pi1 STOP run 2>/dev/null && [ -n "$(pids_on pi1 run)" ]; }

# cut_when_finished DEVICE: once the run has finished, before its supervisor, which is stopped in that moment, tells anybody; for
# longer than agents wait. A supervisor that has been faster has another run.
cut_when_finished() {
  local code=0 tries
  for ((tries = 0; tries < 10; ++tries)); do
    begin_cut_off 4 --steps 100
    within 120 has_ended "$(on pi1)"
    ! stopped_on_pi1 || break
    wait "$supervised_run"
  done
  supervised link "$1" down
  signal_on pi1 CONT run
  pkill -CONT -P "$supervised_run" nsenter || true # stops with what it has started
  sleep 25
  supervised link "$1" up
  wait "$supervised_run" || code=$?
  expect_equal "$code" 0
  sleep 15
  expect_equal "$(leaders)" ''
  expect_equal "$(cat "$folder"/own/pi?/run/events.jsonl | grep -c '"resume"' || true)" 0
  expect_equal "$(losses_in <"$(on pi1)/metrics.jsonl" | wc -l)" 100
  within 120 nothing_of_it_stays # one without a copy of the folder asks the others in its turn
}

test_cut_off_is_the_first_device_when_a_run_has_finished_and_nobody_trains_it_again() { cut_when_finished pi1; }

test_cut_off_is_the_second_device_when_a_run_has_finished_and_it_does_not_train_it_again() { cut_when_finished pi2; }

test_cut_off_is_the_third_device_when_a_run_has_finished_and_it_learns_that_from_the_others() { cut_when_finished pi3; }

test_told_to_stop_while_a_device_is_cut_off_that_device_does_not_go_on() {
  local device
  begin_cut_off 4
  supervised link pi2 down
  signal_on pi1 TERM run
  wait_until nobody_leads
  supervised link pi2 up
  sleep 25
  expect_equal "$(leaders)" ''
  expect_equal "$(pids_on pi1 train)$(pids_on pi2 train)" ''
  said 'stopped while no rank could save' # without pi2, so that agents would keep the last step for a day
  for device in pi1 pi2 pi3 pi4; do
    signal_on "$device" KILL agent
    supervised exec "$device" sh -c 'rm -rf /dev/shm/tessera-*'
  done
  wait_until nothing_of_it_stays
}

test_told_to_stop_all_processes_of_a_run_at_once_save() {
  local code=0 pids
  begin_cut_off 4
  # As this machine counts them, of all devices.
  pids=$(pgrep -f "^$supervised_program (run|agent|train) ")
  # shellcheck disable=SC2086 # a list of ids
  kill -TERM $pids
  wait "$supervised_run" || code=$?
  expect_equal "$code" 143
  expect_text "$(cat "$(on pi1)/run.json")" '"state": "interrupted"'
  expect_equal "$(grep '"checkpoint"' "$(on pi1)/events.jsonl" | tail -n 1 | sed 's/.*"step":\([0-9]*\).*/\1/')" "$(steps_on pi1)"
  wait_until nothing_of_it_stays
}
