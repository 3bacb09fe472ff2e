#!/usr/bin/env bash
# A device on which ranks hang again and again before a step is finished, or do not even start, is left out of a supervised run,
# which goes on without it and takes it back later; one whose agent is killed is left out at once, also together with that of this
# machine. Three devices on this machine: two of them see a /dev/shm of their own, and so have an agent and a state of their own.
. tests/cli/support/harness.sh

# What a shell does to run its arguments with a /dev/shm that nobody else has.
in_own_memory='mount -t tmpfs own /dev/shm && exec "$@"'
unshare --mount sh -c "$in_own_memory" sh true 2>/dev/null || { echo 'this user may not mount a file system'; exit 77; }
cat >"$folder/shell" <<SHELL
#!/bin/sh
device=\$1
shift
TESSERA_TEST_DEVICE=\$device exec unshare --mount sh -c '$in_own_memory' sh sh -c "exec \$*"
SHELL
chmod +x "$folder/shell"
printf 'localhost\npi2\npi3\n' >"$folder/hosts"

# Steps are long enough for a rank to be stopped within the first one.
data=$folder/digits
mkdir "$data"
make_digits "$data" 2400 20
training=(train "$models/lenet5.cfg" --data "$data" --batch 2400 --no-eval --progress none)
works 1 "${training[@]}" --steps 8 --run "$folder/whole"

export TESSERA_TEST=$folder TESSERA_START_TIMEOUT=5
# process_of DEVICE WORD: of this test's program that was started there with that word first; true if there is one.
process_of() {
  local pid environment
  for pid in $(pgrep -f "^$TESSERA $2"); do
    environment=$({ tr '\0' '\n' <"/proc/$pid/environ"; } 2>/dev/null)
    [[ $environment == *"TESSERA_TEST=$folder"* && $environment == *"TESSERA_TEST_DEVICE=$1"* ]] && echo "$pid" && return
  done
  return 1
}
said() { grep -qE -e "$1" "$folder/err"; }
steps() { losses "$folder/run" 2>/dev/null | wc -l; }
more_steps_than() { [ "$(steps)" -gt "$1" ]; }

command_line='tessera run on three devices'
timeout -k 5 240 "$TESSERA" run --hostfile "$folder/hosts" --remote-shell "$folder/shell" --silence 1 -- \
  "${training[@]}" --steps 10000 --grid 1x3 --run "$folder/run" >"$folder/out" 2>"$folder/err" </dev/null &
supervised=$!
soon more_steps_than 0

supervisor() { pgrep -f -P "$supervised" "^$TESSERA run"; }

# The rank of the second device is stopped in its first step, whenever there is a new one: once it has told its agent that it lives.
left_out='pi2 has not answered for [0-9.]+ s: going on with 2 of 3 devices'
stopped=' '
# stop_ranks: true once the device is left out.
stop_ranks() {
  local pid
  said "$left_out" && return
  pid=$(process_of pi2 train) || return
  if [[ $stopped != *" $pid "* ]] && grep -qsx 'signs of life' "/proc/$pid"/task/*/comm; then
    kill -STOP "$pid" && stopped+="$pid "
  fi
  return 1
}
soon stop_ranks
expect 'it is left out' said "rank [0-9] on $left_out"
expect 'after it was there again twice' test "$(grep -c 'on pi2 has not answered for .*: going on with the same devices' "$folder/err")" -ge 2
expect 'a rank was stopped for each' test "$(wc -w <<<"$stopped")" -ge 3

# Nothing is wrong with it any more.
soon said 'pi2 is back: taking part again from the next step'
soon process_of pi2 train >"$folder/rank"
soon more_steps_than "$(steps)"
expect 'it takes part in what follows' test "$(process_of pi2 train)" = "$(cat "$folder/rank")"

# A device on which the program does not begin any more, as on a disk that does not answer.
printf '#!/bin/sh\nexec sleep 1000\n' >"$folder/stuck"
chmod +x "$folder/stuck"
agent=$(process_of pi3 agent)
nsenter --target "$agent" --mount mount --bind "$folder/stuck" "$TESSERA"
kill -9 "$(process_of pi3 train)"
soon said 'rank [0-9] on pi3 has not started: going on with 2 of 3 devices'
nsenter --target "$agent" --mount umount "$TESSERA"
soon more_steps_than "$(steps)"

# Agents that are killed: there is another one here, and the other device is left out. No rank starts before there is.
kill -9 "$(pgrep -f -P "$(supervisor)" "^$TESSERA agent --output")" "$(process_of pi2 agent)"
soon said 'pi2 has closed the connection: going on with [12] of 3 devices'
soon more_steps_than $(($(steps) + 8))
expect 'the agent here was lost, too' said '^tessera: localhost has closed the connection: starting there again$'
expect 'and nothing else' test "$(grep -c '"kind":"fault"' "$folder/run/events.jsonl")" -eq $(($(wc -w <<<"$stopped") + 4))
kill -INT "$(supervisor)"
status=0
wait "$supervised" || status=$?
expect 'it ends when it is told to' test "$status" -eq 130
first_steps 8 "$folder/run" "$folder/first"
expect 'each step was done once' each_step_once "$folder/run"
expect 'with the losses of one device' same_losses "$folder/whole" "$folder/first" 1e-3
