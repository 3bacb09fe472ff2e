#!/usr/bin/env bash
# top: what it shows of runs that are going, finished, interrupted and empty, on terminals of several kinds, and that it
# leaves the terminal as it was.
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data" "$folder/empty"
make_digits "$data" 40 10
train=(train models/lenet5.cfg --data "$data" --batch 10 --steps 8 --schedule-steps 100)
works 2 "${train[@]}" --run "$folder/finished"

refused_alone 'required' top
refused_alone 'none: does not exist: give the folder of a run' top "$folder/none"
refused_alone 'digits/train-images-idx3-ubyte: is not a folder' top "$data/train-images-idx3-ubyte"

# Where standard output is no terminal, it shows the run once.
for locale in C C.UTF-8; do
  LC_ALL=$locale works 1 top "$folder/finished"
  expect 'it says how the run is' grep -q 'finished' "$folder/out"
  expect 'and how far it is' grep -q 'step 8' "$folder/out"
  expect 'in 80 columns' awk 'length > 80 * (ENVIRON["LC_ALL"] == "C" ? 1 : 3) { bad = 1 } END { exit bad }' "$folder/out"
  expect 'without escape sequences' bash -c "! grep -q \$'\e' '$folder/out'"
done
LC_ALL=C works 1 top "$folder/finished"
expect 'without UTF-8 it is all ASCII' bash -c "! LC_ALL=C grep -q '[^ -~]' '$folder/out'"
LC_ALL=C.UTF-8 works 1 top --ascii "$folder/finished"
expect 'nor where ASCII is asked for' bash -c "! LC_ALL=C grep -q '[^ -~]' '$folder/out'"
works 1 top --once "$folder/empty"
expect 'an empty folder is an empty run' grep -q 'empty' "$folder/out"
works 3 top "$folder/empty"
expect 'under mpiexec it is printed once' test "$(grep -c '^ tessera' "$folder/out")" -eq 1

command -v tmux >/dev/null || { echo 'there is no tmux: terminals are left out'; exit; }
export LC_ALL=C.UTF-8
socket=$folder/tmux
tmux() { command tmux -f /dev/null -S "$socket" "$@"; }
trap 'tmux kill-server 2>/dev/null; finish' EXIT
tmux new-session -d -s server 'sleep 1000'  # or the server would end with each session

# show COLUMNS LINES COMMAND: a shell command in a new terminal, which then prints its exit code.
show() {
  command_line=$3
  tmux kill-session -t top 2>/dev/null
  # The shell lives on when Ctrl-C ends the program.
  tmux new-session -d -s top -x "$1" -y "$2" "sh -c 'trap : INT; $3; echo ended with \$?; sleep 60'"
}
screen() { tmux capture-pane -p -t top >"$folder/screen" 2>/dev/null; cat "$folder/screen"; }
# shows PATTERN: the screen does, within some seconds.
shows() {
  local tenths
  for ((tenths = 0; tenths < 200; ++tenths)); do
    screen | grep -qE -e "$1" && return
    sleep 0.1
  done
  fail "the screen should show: $1"
  sed 's/^/  screen: /' "$folder/screen"
}
keys() { tmux send-keys -t top "$@"; }

show 80 24 "$TESSERA top $folder/finished"
shows 'finished'
expect 'it fills the screen' grep -q 'q quits' <(tail -n 1 "$folder/screen")
tmux resize-window -t top -x 120 -y 40
shows 'q quits$'
expect 'and follows its size' test "$(screen | awk '/q quits/ { print NR }')" -eq 40
keys q
shows 'ended with 0'
expect 'the screen of before is back' bash -c "! grep -q 'q quits' '$folder/screen'"

show 80 24 "$TESSERA top $folder/soon"
shows 'no run is here yet'
cp -r "$folder/finished" "$folder/soon"
shows 'finished'
keys q
shows 'ended with 0'

show 200 50 "$TESSERA top $folder/empty"
shows 'empty'
keys C-c
shows 'ended with 130'
expect 'echo is on again' bash -c "tmux -S '$socket' send-keys -t top abc; sleep 0.5; tmux -S '$socket' capture-pane -p -t top | grep -q abc"

show 40 10 "LC_ALL=C NO_COLOR=1 $TESSERA top $folder/finished"
shows 'finished'
expect 'a small screen is all ASCII' bash -c "! LC_ALL=C grep -q '[^ -~]' '$folder/screen'"
tmux capture-pane -e -p -t top >"$folder/screen"
expect 'and without colours where they are not wanted' bash -c "! grep -q \$'\e\[[0-9;]*3[0-9]m' '$folder/screen'"
keys q

show 80 24 "TERM=dumb $TESSERA top $folder/finished"
shows 'ended with 0' # it shows the run once
expect 'a terminal that can do nothing gets lines' grep -q 'events' "$folder/screen"

# A run that goes on, and is killed.
cp "$TESSERA" "$folder/tessera-under-test"
"$folder/tessera-under-test" train models/lenet5.cfg --data "$data" --batch 10 --steps 1000000 --no-eval --run "$folder/going" \
  >/dev/null 2>&1 &
run=$!
for ((tenths = 0; tenths < 600; ++tenths)); do
  [ ! -s "$folder/going/metrics.jsonl" ] || break
  sleep 0.1
done
show 80 24 "$TESSERA top $folder/going"
shows 'running'
shows 'step [0-9]+'
before=$(screen | sed -n 's/.*step \([0-9]*\).*/\1/p' | head -n 1)
for ((tenths = 0; tenths < 200; ++tenths)); do
  after=$(screen | sed -n 's/.*step \([0-9]*\).*/\1/p' | head -n 1)
  [ "${after:-0}" -eq "${before:-0}" ] || break
  sleep 0.1
done
expect 'it follows the run' test "${after:-0}" -gt "${before:-0}"
kill -9 "$run"
wait "$run" 2>/dev/null
shows 'interrupted'
keys q
shows 'ended with 0'
