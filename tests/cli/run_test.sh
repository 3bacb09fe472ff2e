#!/usr/bin/env bash
# A supervised run goes on by itself: ranks, agents and the supervisor itself are killed and stopped, and no step is lost or
# there twice.
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 120 20
training=(train "$models/lenet5.cfg" --data "$data" --batch 8 --no-eval --progress none)

refused_alone 'expected --hostfile FILE, -n N or --continue DIR' run -- "${training[@]}" --steps 2 --run "$folder/a"
refused_alone 'expected train or choose and its options after --' run -n 2
refused_alone 'expected train or choose and its options after --' run -n 2 -- plan "$models/lenet5.cfg"
refused_alone '--run is required' run -n 2 -- "${training[@]}" --steps 2
refused_alone 'unknown option --wobble' run -n 2 -- "${training[@]}" --steps 2 --run "$folder/a" --wobble
refused_alone 'that trains nothing' run -n 2 -- train --help
refused_alone 'there is no record of a run' run --continue "$folder/nowhere"
refused_alone '--data-map' run -n 2 -- "${training[@]}" --steps 2 --run "$folder/a" --data-map "$folder/map.toml"
printf 'pi1\n-oProxyCommand=reboot\n' >"$folder/hosts"
refused_alone 'line 2: "-oProxyCommand=reboot" is not a host name' run --hostfile "$folder/hosts" -- "${training[@]}" --steps 2 --run "$folder/a"
printf 'no-such-host.invalid\n' >"$folder/hosts"
refused_alone 'this machine is not in the host file' run --hostfile "$folder/hosts" -- "${training[@]}" --steps 2 --run "$folder/a"
refused_alone 'expected -- between the options of run and the command' run -n 2 "${training[@]}" --steps 2 --run "$folder/a"
[ "$(nproc)" -ge 64 ] || refused_alone 'localhost: 1024 ranks on .*: expected at most 16' run -n 1024 -- "${training[@]}" --steps 2 --run "$folder/a"

# A remote shell that leads to this machine, and one that leads nowhere.
printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >"$folder/shell"
printf '#!/bin/sh\ntouch "%s"\nexec sleep 60\n' "$folder/waits" >"$folder/nowhere"
chmod +x "$folder/shell" "$folder/nowhere"
printf 'localhost\n192.0.2.77\n' >"$folder/hosts"
refused_alone 'are the same machine: name it once' run --hostfile "$folder/hosts" --remote-shell "$folder/shell" -- "${training[@]}" --steps 2 --run "$folder/a"
timeout --foreground 60 "$TESSERA" run --hostfile "$folder/hosts" --remote-shell "$folder/nowhere" -- "${training[@]}" --steps 2 --run "$folder/a" 2>"$folder/err" &
reaching=$!
soon test -e "$folder/waits"
kill -TERM "$reaching"
status=0
wait "$reaching" || status=$?
expect 'a run that is stopped while devices are reached says so' test "$status $(cat "$folder/err")" = '143 tessera: stopped by SIGTERM'

# What ends ranks before the first step, and a limit explains, is no fault of a device.
command_line='tessera run with a limit of files'
status=0
(ulimit -f 100 && exec timeout 60 "$TESSERA" run -n 2 -- "${training[@]}" --steps 2 --run "$folder/a" >"$folder/out" 2>"$folder/err" </dev/null) || status=$?
expect 'a limit is named, and ranks do not start again' test "$status $(grep -c '^tessera: rank .*(there `ulimit -f` allows .*: given up$' "$folder/err")" = '2 1'
run 1 agent --wobble
expect_refusal 'an agent is started by'
echo '{"run_number":"../../etc","words":["train"],"hosts":[],"folder":"/","run_folder":"/","remote_shell":"ssh","generation":1}' >"$folder/supervisor.json"
refused_alone 'is damaged' run --continue "$folder"

# A unit for the next boot is printed, and nothing is started; whether there is a run to go on with is found out at the boot.
odd="$folder/50% \"off\""
works 1 run -n 2 --at-boot -- "${training[@]}" --steps 2 --run "$odd"
expect 'the unit begins the run or goes on with it' grep -qE '^ExecStart=":/.*tessera" "run" "-n" "2" .*"--or-continue" "--" "train" ' "$folder/out"
expect 'with the run folder in words of systemd' grep -qF '/50%% \"off\""' "$folder/out"
expect 'in this folder' grep -qxF "WorkingDirectory=$PWD/" "$folder/out"
expect 'as this user' grep -qxF "User=$(id -un)" "$folder/out"
expect 'and nothing is started' test ! -e "$odd"
if command -v systemd-analyze >/dev/null; then
  cp "$folder/out" "$folder/tessera.service"
  expect 'systemd takes it' systemd-analyze verify --man=no "$folder/tessera.service"
fi
refused_alone 'there is no record of a run' run --at-boot --continue "$folder/nowhere"
refused_alone '--run is required' run -n 2 --at-boot -- "${training[@]}" --steps 2
for time in first second; do
  command_line="tessera run --or-continue, the $time time"
  status=0
  timeout 60 "$TESSERA" run -n 2 --or-continue -- "${training[@]}" --grid 1x2 --steps 2 --run "$odd" >"$folder/out" 2>"$folder/err" </dev/null || status=$?
  expect "it ends well the $time time" test "$status" -eq 0
  expect "two steps are there after the $time time" test "$(losses "$odd" | wc -l)" -eq 2
done
refused_alone 'leave out what follows' run --continue "$odd" -- "${training[@]}" --steps 2 --run "$odd"
works 1 run --at-boot --continue "$odd"
expect 'the unit of a run goes on with it' grep -qE '^ExecStart=":/.*tessera" "run" "--continue" ".*/50%% ' "$folder/out"

# processes NAME: of this test's program that were started with that word first.
processes() {
  local pid words
  for pid in $(pgrep -f "^$TESSERA $1"); do
    words=$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) || continue
    [[ $words == "$TESSERA $1"* && $(tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null) == *"TESSERA_TEST=$folder"* ]] && echo "$pid"
  done
  return 0
}
export TESSERA_TEST=$folder

# supervise RUN RANKS OPTION...: in the background.
supervise() {
  local name=$1 ranks=$2
  shift 2
  command_line="tessera run -n $ranks -- ${training[*]} $*"
  timeout -k 5 "$time_limit" "$TESSERA" run -n "$ranks" -- "${training[@]}" --run "$folder/$name" "$@" >"$folder/out" 2>"$folder/err" </dev/null &
  supervised=$!
}
finished() {
  status=0
  wait "$supervised" || status=$?
}
# at_step RUN STEP: once that step is done.
at_step() {
  local end=$((SECONDS + 60))
  until [ "$(losses "$folder/$1" 2>/dev/null | wc -l)" -ge "$2" ]; do
    [ "$SECONDS" -lt "$end" ] || { fail "step $2 was not reached"; return 1; }
    sleep 0.02
  done
}
nothing_stays() {
  local end=$((SECONDS + 20))
  until [ -z "$(processes train)$(processes agent)$(processes run)" ]; do
    [ "$SECONDS" -lt "$end" ] || { fail "processes are left after $1"; return; }
    sleep 0.05
  done
}
pick() { shuf -n 1 --random-source=<(yes "$1"); }

# stood_still RUN: the clock of a run goes on over faults, by the time that events say was lost before the next step.
stood_still() {
  awk -F'[:,]' '
    function of(key) { return match($0, "\"" key "\":[0-9.]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) : 0 }
    FNR == NR { if (/"loss"/) { seconds[of("step")] = of("t_s") } next }
    /"recovery"/ { step = of("step"); if (of("lost_s") <= 0 || seconds[step] - seconds[step - 1] < of("lost_s") - 0.5) { bad = 1 } ++told }
    END { exit bad || !told }' "$folder/$1/metrics.jsonl" "$folder/$1/events.jsonl"
}
# what_happened RUN: kinds of events, but for those of each epoch.
what_happened() { sed -n 's/.*"kind":"\(start\|fault\|resume\|recovery\)".*/\1/p' "$folder/$1/events.jsonl" | tr '\n' ' '; }

# Undisturbed, and the same bits as under mpiexec.
works 4 "${training[@]}" --grid 2x2 --steps 600 --run "$folder/mpiexec"
supervise whole 4 --grid 2x2 --steps 600
finished
expect 'a supervised run works' test "$status" -eq 0
expect 'it is the run that mpiexec starts' same_losses "$folder/mpiexec" "$folder/whole" 0
nothing_stays 'a run'

# Killed and stopped ranks: the same bits, each step once.
printf 'period 0.02\n0 5\n' >"$folder/five"
supervise faulty 4 --grid 2x2 --steps 600 --meter "file:$folder/five"
for step in 5 120 240 360; do
  at_step faulty "$step" || break
  kill -9 "$(processes train | pick "$step")"

done
# All of them, so that no meter is read until others follow.
# shellcheck disable=SC2046 # a word for each
at_step faulty 480 && kill -STOP $(processes train)
finished
expect 'a run whose ranks are killed ends well' test "$status" -eq 0
expect 'its steps and losses are those of the undisturbed run' same_losses "$folder/whole" "$folder/faulty" 0
expect 'its weights too' same_bytes "$folder/whole/checkpoint.safetensors" "$folder/faulty/checkpoint.safetensors"
expect 'events tell of the faults' test "$(grep -c '"fault"' "$folder/faulty/events.jsonl")" -ge 5
expect 'and of going on' test "$(grep -c '"recovery"' "$folder/faulty/events.jsonl")" -ge 4
expect 'with what it cost as numbers' test -z "$(grep '"recovery"' "$folder/faulty/events.jsonl" |
  grep -vE '"text":"[^"]*","lost_s":[0-9.]+,"repeated_steps":[0-9]+}$')"
expect 'each run that is resumed stands behind its faults' grep -qE '^start ((fault )+resume (recovery )?)+$' <(what_happened faulty)
expect 'time that is lost is time of the run' stood_still faulty
# watts RUN: joules by devices, of all steps and of all epochs, over five watts in the time of the run, are about 1.
watts() {
  local joules seconds steps epochs
  joules=$(sed -n 's/.*"rank":0,.*"energy_j":\([0-9.]*\).*/\1/p' "$folder/$1/devices.jsonl" | tail -n 1)
  steps=$(sed -n 's/^{"step":[0-9]*,"loss".*"energy_j":\([0-9.]*\).*/\1/p' "$folder/$1/metrics.jsonl" | awk '{ sum += $1 } END { print sum }')
  epochs=$(awk -F, 'NR > 1 { sum += $9 } END { print sum }' "$folder/$1/epochs.csv")
  seconds=$(sed -n 's/^{"t_s":\([0-9.]*\).*"finish".*/\1/p' "$folder/$1/events.jsonl")
  for energy in "$joules" "$steps" "$epochs"; do
    awk -v energy="$energy" -v whole="$seconds" 'BEGIN { exit !(energy > 5 * whole - 15 && energy < 5 * whole + 5) }' ||
      { echo "$energy J in $seconds s"; return 1; }
  done
}
expect 'energy goes on over faults, and is the same wherever it stands' watts faulty
expect 'its closing line says what is assumed' grep -q '^energy of the run: .* (file), by the last power while the run stood still$' "$folder/out"
expect 'its command is the one that was typed' grep -qE '^ "command": ".*tessera run -n 4 -- train .*--grid 2x2 --steps 600 --meter file:' "$folder/faulty/run.json"
expect 'without what the supervisor adds' test "$(grep -c stall-timeout "$folder/faulty/run.json")" -eq 0
nothing_stays 'faults'

# A signal ends it as without a supervisor; one command goes on.
supervise stopped 2 --grid 1x2 --steps 5000
at_step stopped 3
kill -INT "$(processes run | head -n 1)"
finished
expect 'SIGINT is the exit code' test "$status" -eq 130
expect 'the checkpoint is saved' test -s "$folder/stopped/checkpoint.safetensors"
nothing_stays 'a signal'

# The supervisor is killed: its ranks end, and one command goes on from the last finished step.
supervise killed 2 --grid 1x2 --steps 600
at_step killed 10
kill -9 "$(processes run | head -n 1)"
finished
expect 'what it kept is there' test "$(losses "$folder/killed" | wc -l)" -ge 10
command_line="tessera run --continue"
status=0
timeout 60 "$TESSERA" run --continue "$folder/killed" >"$folder/out" 2>"$folder/err" </dev/null || status=$?
expect 'one command goes on' test "$status" -eq 0
expect 'that the supervisor was gone is a fault' test "$(grep -c '"kind":"fault","text":"the supervisor on localhost was gone"' "$folder/killed/events.jsonl")" -eq 1
expect 'the only one' test "$(what_happened killed)" = 'start fault resume recovery '
expect 'the time until then is lost' stood_still killed
expect 'the command is the first one' grep -qE '^ "command": ".*tessera run -n 2 -- train ' "$folder/killed/run.json"
works 2 "${training[@]}" --grid 1x2 --steps 600 --run "$folder/whole2"
expect 'no step is lost by that' same_losses "$folder/whole2" "$folder/killed" 0
nothing_stays 'going on'
in_memory() {
  local record
  for record in "$folder"/*/supervisor.json; do
    find /dev/shm -maxdepth 1 -name "tessera-*-$(sed -n 's/.*"run_number": "\([0-9a-f]*\)".*/\1/p' "$record")" -print
  done
}
expect 'nothing stays in memory' test -z "$(in_memory)"

# Ranks that are killed again and again start after pauses. Stopped in one of them, the run has no rank that could save.
supervise unlucky 2 --grid 1x2 --steps 10000000 --checkpoint-every 1000000
at_step unlucky 10
killed_into_a_pause() { # a long one, after several kills
  processes train | head -n 1 | xargs -r kill -9 2>/dev/null
  grep -q 'going on with the same devices in 2 s$' "$folder/err"
}
soon killed_into_a_pause
kill -INT "$(processes run | head -n 1)"
finished
expect 'SIGINT is the exit code in a pause, too' test "$status" -eq 130
expect 'it says what can be done' grep -q 'the last step is kept in memory; to continue: tessera run --continue' "$folder/err"
nothing_stays 'a signal in a pause'
steps_before=$(losses "$folder/unlucky" | wc -l)
# From a record of the last release, which has the words alone.
perl -MJSON::PP -0777 -i -ne '$run = decode_json($_); delete $run->{request}; print encode_json($run)' "$folder/unlucky/supervisor.json"
timeout 100 "$TESSERA" run --continue "$folder/unlucky" >"$folder/out" 2>"$folder/err" </dev/null &
supervised=$!
at_step unlucky $((steps_before + 5))
kill -INT "$(processes run | head -n 1)"
finished
expect 'no step was lost' each_step_once "$folder/unlucky"
expect 'a supervisor that was told to stop was not gone' test "$(grep -c 'supervisor.*gone' "$folder/unlucky/events.jsonl")" -eq 0
expect 'nor done again' test "$(grep -o '"repeated_steps":[0-9]*' "$folder/unlucky/events.jsonl" | tail -n 1 | cut -d : -f 2)" -le 1
expect 'nothing stays in memory after that' test -z "$(in_memory)"
nothing_stays 'a run that was stopped twice'

# Told to stop in moments in which no rank can save: the last step stays in memory, and one command goes on from it.
. tests/cli/support/test_points.sh
# goes_on_from_memory NAME: the run in that folder, after it was stopped.
goes_on_from_memory() {
  local before
  nothing_stays "a stop at $1"
  before=$(losses "$folder/$1" | wc -l)
  timeout 100 "$TESSERA" run --continue "$folder/$1" >"$folder/out" 2>"$folder/err" </dev/null &
  supervised=$!
  at_step "$1" $((before + 5))
  kill -INT "$(processes run | head -n 1)"
  finished
  expect "$1: no step was lost" each_step_once "$folder/$1"
  expect "$1: nor done again" test "$(resumed_after "$1")" -ge $((before - 1))
  expect "$1: nothing stays in memory" test -z "$(in_memory)"
}
resumed_after() { grep '"resume"' "$folder/$1/events.jsonl" | tail -n 1 | sed 's/.*after step \([0-9]*\).*/\1/'; }
for moment in ranks_start rank_begins devices_are_reached; do
  supervise "$moment" 2 --grid 1x2 --steps 10000000 --checkpoint-every 1000000
  at_step "$moment" 10
  case $moment in
    ranks_start) at_point ranks_start "kill -TERM $(processes run | tail -n 1)" ;;
    rank_begins) at_point rank_begins "kill -TERM $(processes run | tail -n 1); while kill -0 \$1; do :; done 2>/dev/null" ;;
  esac
  if [ "$moment" = devices_are_reached ]; then
    kill -9 "$(processes run | head -n 1)"
    finished
    at_point devices_are_reached 'kill -TERM $1'
    status=0
    timeout 60 "$TESSERA" run --continue "$folder/$moment" >"$folder/out" 2>"$folder/err" </dev/null || status=$?
  else
    kill -9 "$(processes train | head -n 1)"
    finished
  fi
  expect "$moment: SIGTERM is the exit code" test "$status" -eq 143
  expect "$moment: it says what can be done" grep -q 'the last step is kept in memory; to continue: tessera run --continue' "$folder/err"
  expect "$moment: what stopped it is noted" grep -q '"text":"SIGTERM"' "$(in_memory | head -n 1)/faults.jsonl"
  goes_on_from_memory "$moment"
done

# All processes are told to end at once, as when a machine shuts down: ranks save first.
for signal in TERM HUP; do
  supervise "all-$signal" 2 --grid 1x2 --steps 10000000 --checkpoint-every 1000000
  at_step "all-$signal" 10
  # shellcheck disable=SC2046 # a word for each
  kill "-$signal" $(processes run | tail -n 1) $(processes agent) $(processes train)
  finished
  expect "SIG$signal to all is the exit code" test "$status" -eq $((128 + $(kill -l "$signal")))
  expect 'the checkpoint is that of the last step' grep -q "checkpoint after step $(losses "$folder/all-$signal" | wc -l)\"" "$folder/all-$signal/events.jsonl"
  nothing_stays "SIG$signal to all"
done

# A second supervisor of a run that goes on is refused and changes nothing.
# go_on NAME: in the background, with its exit code in NAME.code.
go_on() {
  { timeout 100 "$TESSERA" run --silence 1 --continue "$folder/wanted" >"$folder/$1.out" 2>"$folder/$1.err" </dev/null; echo $? >"$folder/$1.code"; } &
}
supervise wanted 2 --grid 1x2 --steps 10000000 --checkpoint-every 1000000
at_step wanted 10
go_on refused && wait $!
expect 'a second supervisor is refused' test "$(cat "$folder/refused.code")" -eq 75
expect 'and says who has the run' grep -q 'a supervisor of this run is heard on localhost: it has the run' "$folder/refused.err"
expect 'the first one is still there' kill -0 "$supervised"
expect 'the run has seen no fault by that' test "$(grep -c '"fault"' "$folder/wanted/events.jsonl")" -eq 0
# Of two that go on at once with a run whose supervisor is gone, one does.
kill -9 "$(processes run | head -n 1)"
finished
go_on one
first=$!
go_on other
wait -n "$first" $!
at_step wanted $(($(losses "$folder/wanted" | wc -l) + 600))
kill -TERM "$(processes run | head -n 1)"
wait "$first" $!
expect 'one of two goes on until it is told to stop, the other is refused' \
  test "$(sort -n "$folder/one.code" "$folder/other.code" | tr '\n' ' ')" = '75 143 '
expect 'no step is lost or there twice' each_step_once "$folder/wanted"
first_steps 600 "$folder/wanted" "$folder/first"
expect 'each has its loss' same_losses "$folder/whole2" "$folder/first" 0
nothing_stays 'two supervisors'

# A disk that is full for a while: ranks wait for room, and no step is lost. Only where the tests run as root.
mkdir "$folder/disk"
if mount -t tmpfs -o size=3m tmpfs "$folder/disk" 2>/dev/null; then
  trap 'umount "$folder/disk"; finish' EXIT
  supervise disk/full 4 --grid 2x2 --steps 600 --checkpoint-every 50
  at_step disk/full 60 && head -c 8M /dev/zero >"$folder/disk/filler" 2>/dev/null
  waited=$((SECONDS + 60))
  until grep -q 'training waits until there is room' "$folder/err" || [ "$SECONDS" -ge "$waited" ]; do sleep 0.05; done
  expect 'it says what it waits for' grep -q 'disk/full is full: training waits until there is room' "$folder/err"
  rm "$folder/disk/filler"
  finished
  expect 'it goes on once there is room' test "$status" -eq 0
  expect 'no step is lost by a full disk' same_losses "$folder/whole" "$folder/disk/full" 0
  nothing_stays 'a full disk'
fi
