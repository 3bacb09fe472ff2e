# Devices: names, addresses, namespaces, processor, memory.
# shellcheck shell=bash disable=SC2154,SC2016 # variables of run.sh and support.sh; shells on devices expand

test_devices_have_names_and_addresses() {
  expect_equal "$(one exec pi2 hostname)" pi2
  expect_equal "$(one exec pi1 getent hosts pi3)" "10.77.0.3       pi3"
  expect_text "$(one exec pi3 ip -brief address show dev eth0)" '10.77.0.3/24'
}

test_devices_share_no_namespace_that_mpi_could_use() {
  local kind
  for kind in net ipc pid uts mnt; do
    local here first second
    here=$(readlink "/proc/self/ns/$kind")
    first=$(one exec pi1 readlink "/proc/self/ns/$kind")
    second=$(one exec pi2 readlink "/proc/self/ns/$kind")
    expect_equal "$(printf '%s\n' "$here" "$first" "$second" | sort -u | wc -l)" 3
  done
  one exec pi1 touch /dev/shm/mine
  ! one exec pi2 test -e /dev/shm/mine
}

test_commands_run_in_the_same_folder_with_their_words_and_exit_code() {
  expect_equal "$(one exec pi1 pwd)" "$PWD"
  expect_equal "$(one exec pi1 printf '%s;' 'two words' '*' "it's")" "two words;*;it's;"
  local code=0
  one exec pi1 sh -c 'exit 5' || code=$?
  expect_equal "$code" 5
}

# seconds_and_use DEVICE: the time now and the processor time so far.
seconds_and_use() { echo "$EPOCHREALTIME $(status_of "$1" cpu_s)"; }

test_a_busy_device_gets_its_share_of_a_processor_and_no_more() {
  local before after
  # Two processes, which together want five times as much.
  one exec pi1 timeout 60 sh -c 'while :; do :; done' &
  one exec pi1 timeout 60 sh -c 'while :; do :; done' &
  sleep 0.5
  before=$(seconds_and_use pi1)
  sleep 4
  after=$(seconds_and_use pi1)
  one exec pi1 pkill -KILL -f 'while :' || true
  wait || true
  expect_between "$(awk -v a="$after" -v b="$before" 'BEGIN { split(a, x); split(b, y); print (x[2] - y[2]) / (x[1] - y[1]) }')" 0.34 0.43
  expect_between "$(status_of pi1 throttled_periods)" 50 1e9
}

# Prints its share of a processor and the mean of the pauses that it is given, in ms.
spinning_rank() {
  cat >"$folder/spin.py" <<'PYTHON'
import time
start, processor, last, gaps = time.perf_counter(), time.thread_time(), 0, []
while last < 3:
    now = time.perf_counter() - start
    if now - last > 1e-4:
        gaps.append(now - last)
    last = now
print((time.thread_time() - processor) / last, 1e3 * sum(gaps) / max(1, len(gaps)))
PYTHON
  "$cluster_command" --cluster test-pace run --timeout 60 -n 1 "$python" "$folder/spin.py"
}

# pids_awake: of the loops that keep processors from sleeping during a run.
pids_awake() { ip netns pids tessera-test-pace.switch; }
is_awake() { [ "$(pids_awake | xargs -r -n 1 chrt -p | grep -c SCHED_IDLE)" = "$(nproc)" ]; }

test_a_rank_that_keeps_pace_gets_its_share_in_short_pauses() {
  local share pause pid awake
  "$cluster_command" up --devices 1 --cpu 0.3 --name test-pace --slow-by pace >/dev/null
  spinning_rank >"$folder/spun" &
  wait_until is_awake
  awake=$(pids_awake)
  wait "$!"
  for pid in $awake; do wait_until test ! -e "/proc/$pid"; done
  read -r share pause <"$folder/spun"
  expect_between "$share" 0.24 0.8 # more than 0.3 where the host slows its cores down
  expect_between "$pause" 0.1 3
  expect_equal "$("$cluster_command" --cluster test-pace exec pi1 sh -c 'i=0; while [ $i -lt 9 ]; do i=$((i + 1)); done; echo $i')" 9
  ls /var/tmp/tessera-cluster.*.so
  "$cluster_command" --cluster test-pace down
  expect_equal "$(traces test-pace)" ''
}

# A core that takes twice as long for the loop as one that nothing disturbs is half as fast, and a rank gets twice as much of it.
test_a_rank_that_keeps_pace_gets_more_of_a_core_that_is_slower() {
  local state=/run/tessera-cluster/test-pace share loop_s
  "$cluster_command" up --devices 1 --cpu 0.3 --name test-pace --slow-by pace >/dev/null
  loop_s=$(<"$state/pace_loop")
  expect_between "$loop_s" 1e-7 1e-4
  awk -v loop_s="$loop_s" 'BEGIN { print loop_s * 8 }' >"$state/pace_loop"
  read -r share _ < <(spinning_rank)
  expect_between "$share" 0.03 0.15
  awk -v loop_s="$loop_s" 'BEGIN { print loop_s / 8 }' >"$state/pace_loop"
  read -r share _ < <(spinning_rank)
  expect_between "$share" 0.9 1
  "$cluster_command" --cluster test-pace down
}

# Also in a program that the first one becomes. While they wait they are where the wire is.
test_ranks_that_keep_pace_compute_where_the_wire_is_not() {
  local said
  [ "$(nproc)" -gt 1 ] || skip "one processor"
  cat >"$folder/where.py" <<'PYTHON'
import os, threading, time
found = []
thread = threading.Thread(target=lambda: (threading.Event().wait(0.1), found.append(os.sched_getaffinity(0))))
thread.start()
thread.join()
waited = os.sched_getaffinity(0)
end = time.perf_counter() + 0.5
while time.perf_counter() < end:
    pass
print(*sorted(os.sched_getaffinity(0)), "and", *sorted(found[0]), "and", *sorted(waited))
PYTHON
  said=$("$cluster_command" up --devices 1 --cpu 0.2 --name test-pace --slow-by pace)
  expect_text "$said" 'The wire has a processor of its own'
  expect_equal "$("$cluster_command" --cluster test-pace run --timeout 60 -n 1 env "$python" "$folder/where.py")" \
    "$("$python" -c 'import os; first, *others = sorted(os.sched_getaffinity(0)); print(*others, "and", first, "and", first)')"
  "$cluster_command" --cluster test-pace down
  said=$("$cluster_command" up --devices 1 --cpu "$(($(nproc) - 1)).9" --name test-pace --slow-by pace)
  "$cluster_command" --cluster test-pace down
  [[ $said != *'a processor of its own'* ]]
}

# At 10 Mbit/s and 400 ns a byte a device has half of its time left.
test_a_rank_that_keeps_pace_pays_for_what_its_device_receives() {
  local alone beside pid
  [ "$(nproc)" -gt 1 ] || skip "one processor"
  "$cluster_command" up --devices 2 --cpu 0.2 --rate 10 --byte 400 --name test-pace --slow-by pace >/dev/null
  read -r alone _ < <(spinning_rank)
  "$cluster_command" --cluster test-pace exec pi1 "$python" tests/cluster/transfer.py receive 5001 >"$folder/rate" &
  pid=$!
  "$cluster_command" --cluster test-pace exec pi2 "$python" tests/cluster/transfer.py send pi1 5001 9000000 &
  read -r beside _ < <(spinning_rank)
  wait "$!" "$pid"
  "$cluster_command" --cluster test-pace down
  expect_between "$(awk -v a="$alone" -v b="$beside" 'BEGIN { print b / a }')" 0.3 0.75
}

# The machine may have other work, so that the bounds are wide.
test_ranks_that_keep_pace_compute_at_the_speed_of_their_device() {
  local program=build/release/tessera said
  [ -x "$program" ] || skip "no $program"
  said=$("$cluster_command" up --devices 2 --speed 4 --name test-pace --slow-by pace --vectors generic --dilate 2 --size 160x160)
  expect_text "$said" 'devices which compute all at once do so at these speeds'
  "$cluster_command" --cluster test-pace run --timeout 120 --each "$program" time models/yolov2-early.cfg --size 160x160 --steps 3 --json |
    grep -o '"gflops":[0-9.]*' | cut -d : -f 2 >"$folder/rates"
  "$cluster_command" --cluster test-pace down
  expect_equal "$(wc -l <"$folder/rates")" 2
  while read -r rate; do expect_between "$rate" 5.5 11; done <"$folder/rates"
}

test_devices_too_small_for_the_timing_come_up_all_the_same() {
  local said
  [ -x build/release/tessera ] || skip "no build/release/tessera"
  said=$("$cluster_command" up --devices 1 --memory 20 --name test-pace --slow-by pace 2>&1)
  "$cluster_command" --cluster test-pace down
  expect_text "$said" 'how fast they really compute is not known'
  expect_text "$said" '4.5 GFLOP/s'
}

test_a_device_may_use_the_memory_it_has() {
  one exec pi2 "$python" -c 'len(bytearray(60 << 20))'
  expect_between "$(status_of pi2 memory_peak_bytes)" $((60 << 20)) $((100 << 20))
}

test_more_memory_than_the_limit_ends_the_program_and_is_told() {
  local said code=0 kills
  kills=$(status_of pi2 oom_kills)
  said=$(one run --timeout 30 sh -c "[ \$(hostname) != pi2 ] || exec $python -c 'bytearray(300 << 20)'" 2>&1) || code=$?
  expect_equal "$((code > 0))" 1
  expect_text "$said" 'pi2 ran out of memory: its 100 MiB were not enough'
  expect_equal "$(grep -c 'ran out of memory' <<<"$said")" 1
  expect_equal "$(status_of pi2 oom_kills)" $((kills + 1))
}

test_power_goes_off_and_on_for_all_that_are_named_or_for_none() {
  expect_refusal "has no device 'pi9'" one poweroff pi1 pi9
  expect_equal "$(status_of pi1 power)" on
  one poweroff pi1 pi2
  expect_equal "$(status_of pi1 power) $(status_of pi2 power) $(status_of pi3 power)" 'off off on'
  expect_refusal 'pi3 is already on' one poweron pi1 pi3
  expect_equal "$(status_of pi1 power)" off
  one poweron pi1 pi2
  expect_equal "$(one exec pi2 hostname)" pi2
}

test_power_off_ends_all_processes_and_power_on_starts_afresh() {
  one exec pi3 sleep 4321 || true &
  wait_until one exec pi3 pgrep -f 'sleep 4321'
  one poweroff pi3
  expect_equal "$(pgrep -fc 'sleep 4321' || true)" 0
  expect_refusal 'pi3 is off' one exec pi3 true
  expect_equal "$(status_of pi3 power)" off
  one poweron pi3
  expect_equal "$(one exec pi3 hostname)" pi3
  expect_between "$(mbit_per_s pi1 pi3 1000000)" 60 96
}

# rate_of OUT COMMAND...: of direct kernels, in operations a second, as `tessera probe` under COMMAND finds it.
rate_of() {
  local out=$1
  shift
  OMP_NUM_THREADS=1 "$@" build/release/tessera probe --force --threads 1 --kernels direct --seconds 5 --out "$out" \
    >/dev/null 2>&1 || return 1
  sed -n 's/^direct_flops_per_s = //p' "$out"
}

# A device of a quota stands still for longer than a trial takes. Both are probed at the same time, processors being
# faster now and slower then.
test_a_probe_finds_a_device_as_slow_as_its_share_makes_it() {
  [ -x build/release/tessera ] || skip 'no build/release/tessera'
  local whole share shares=()
  for _ in 1 2 3; do
    rate_of "$folder/whole.toml" env >"$folder/whole" &
    share=$(rate_of "$folder/share.toml" one exec pi1)
    wait $!
    whole=$(cat "$folder/whole")
    shares+=("$(awk -v whole="$whole" -v share="$share" 'BEGIN { print share / whole }')")
  done
  expect_between "$(printf '%s\n' "${shares[@]}" | sort -g | sed -n 2p)" 0.3 0.46
}
