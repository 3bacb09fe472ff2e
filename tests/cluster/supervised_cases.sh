# `tessera run` on devices that vanish and come back: the run goes on, no step is lost, and nothing stays behind.
# shellcheck shell=bash disable=SC2154 # variables of run.sh and support.sh

supervised_program=$(realpath -m "${TESSERA:-build/release/tessera}")
supervised() { "$cluster_command" --cluster test-run "$@"; }

# prepare_supervised: four devices with an sshd each, pictures, and the losses of an undisturbed run.
prepare_supervised() {
  [ -x "$supervised_program" ] || skip "$supervised_program is not there"
  [ -x /usr/sbin/sshd ] || skip 'openssh-server is not installed'
  if [ ! -d /run/tessera-cluster/test-run ]; then
    mkdir -p "$folder/own"
    "$cluster_command" up --devices 4 --cpu 0.3 --memory 200 --name test-run --own "$folder/own" >/dev/null
  fi
  remote_shell=$(supervised ssh)
  printf 'pi%d\n' 1 2 3 4 >"$folder/hosts"
  if [ ! -d "$folder/digits" ]; then mkdir "$folder/digits" && perl tests/cli/support/make_idx.pl "$folder/digits" 60 20; fi
  # Learning rates that do not depend on how long a run is.
  training=(train models/lenet5.cfg --data "$folder/digits" --batch 8 --reader 0 --progress none --schedule-steps 100000)
  supervised_training=("${training[@]}" --no-eval --steps 1500)
  if [ ! -d "$folder/undisturbed" ]; then
    OMP_NUM_THREADS=1 "$supervised_program" "${supervised_training[@]}" --run "$folder/undisturbed" >/dev/null 2>&1
  fi
}

# supervise FOLDER: in the background, from pi1. Sets supervised_run.
supervise() {
  OMP_NUM_THREADS=1 supervised exec pi1 "$supervised_program" run --hostfile "$folder/hosts" --remote-shell "$remote_shell" -- \
    "${supervised_training[@]}" --grid 2x2 --run "$1" >"$folder/supervised.out" 2>"$folder/supervised.err" &
  supervised_run=$!
}

losses_in() { sed -n 's/^{"step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p'; }

# expect_all_steps METRICS: each step once, with the losses of the undisturbed run but for rounding.
expect_all_steps() {
  paste -d ' ' <(losses_in <"$folder/undisturbed/metrics.jsonl") <(losses_in <"$1") | awk '
    NF != 4 || $1 != $3 || ($2 - $4) ^ 2 > (0.01 + 0.02 * $2) ^ 2 { print "step " $0; bad = 1 }
    END { exit bad || NR != 1500 }'
}

nothing_of_it_stays() { [ -z "$(what_stays)" ]; }
what_stays() {
  local device
  for device in pi1 pi2 pi3 pi4; do
    supervised exec "$device" sh -c "ls /dev/shm | grep ^tessera-; ps -eo args | grep '^$supervised_program '" 2>/dev/null | sed "s/^/$device: /" || true
  done
}

expect_good_end() {
  local code=0
  wait "$supervised_run" || code=$?
  expect_equal "$code" 0
  expect_all_steps "$1/metrics.jsonl"
  wait_until nothing_of_it_stays
}

test_supervised_run_goes_on_without_power_and_takes_the_device_back() {
  prepare_supervised
  supervise "$folder/power_again"
  wait_until has_steps "$folder/power_again" 20
  supervised poweroff pi3
  wait_until has_steps "$folder/power_again" 40
  supervised poweron pi3
  expect_good_end "$folder/power_again"
  expect_text "$(cat "$folder/supervised.err")" 'pi3 has not answered for 3'
  expect_text "$(cat "$folder/supervised.err")" 'pi3 is back: taking part again'
}

test_supervised_run_goes_on_while_a_cable_is_out() {
  prepare_supervised
  supervise "$folder/cable_again"
  wait_until has_steps "$folder/cable_again" 20
  supervised link pi2 down
  sleep 12
  supervised link pi2 up
  expect_good_end "$folder/cable_again"
  expect_text "$(cat "$folder/supervised.err")" 'pi2 has not answered for 3'
}

has_ended() { grep -q '"finished"' "$1/run.json"; }

# Each device has a folder of its own where the run's is, as without a shared file system; that of pi2 has the copy. The first device
# boots again while the run goes on elsewhere: what it would go on from is of before.
test_supervised_run_is_taken_over_when_the_first_device_loses_its_power() {
  local code=0 copy=$folder/own/pi2/taken
  prepare_supervised
  supervise "$folder/own/taken"
  wait_until has_steps "$copy" 20
  supervised poweroff pi1
  wait "$supervised_run" || true
  within 180 has_steps "$copy" $(($(wc -l <"$copy/metrics.jsonl") + 20)) || { cat "$copy/supervisor.log" && return 1; }
  supervised poweron pi1
  supervised exec pi1 "$supervised_program" run --continue "$folder/own/taken" >"$folder/second.out" 2>&1 || code=$?
  expect_equal "$code" 75
  expect_text "$(cat "$folder/second.out")" 'this run'
  within 180 has_ended "$copy" || { cat "$copy/supervisor.log" && return 1; }
  expect_all_steps "$copy/metrics.jsonl"
  wait_until nothing_of_it_stays
}
