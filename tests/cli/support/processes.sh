# For tests that stop and kill ranks: a training run of which each process is known. Source after harness.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # variables of harness.sh, and for it

data=$folder/digits
mkdir "$data"
make_digits "$data" 60 20
# Its path is what the processes of this test are known by.
program=$folder/tessera-under-test
cp "$TESSERA" "$program"
trap 'kill -9 $(ranks_running) 2>/dev/null; finish' EXIT

# The process numbers of this test's ranks, in the order in which mpiexec started them.
ranks_running() {
  local process
  for process in /proc/[0-9]*; do
    [ ! "$process/exe" -ef "$program" ] || printf '%s\n' "${process#/proc/}"
  done | sort -n
}
# rank NUMBER: its process number.
rank() { ranks_running | sed -n "$(($1 + 1))p"; }

# wait_until WHAT COMMAND...: looks for it ten times a second, a minute at most.
wait_until() {
  local what=$1 tenths
  shift
  for ((tenths = 0; tenths < 600; ++tenths)); do
    "$@" && return
    sleep 0.1
  done
  fail "$what"
}
all_are_gone() { [ -z "$(ranks_running)" ]; }
a_rank_runs() { [ -n "$(ranks_running)" ]; }
steps() { wc -l <"$folder/run/metrics.jsonl"; } 2>/dev/null
# more_steps_than NUMBER
more_steps_than() { [ "$(steps || echo 0)" -gt "$1" ]; } 2>/dev/null

launcher_options=() # of mpiexec, beside -n

# start RANKS ARGUMENT...: training, long enough to be stopped; returns when it is under way. Sets started_process.
start() {
  local ranks=$1 launcher=()
  shift
  [ "$ranks" -eq 1 ] || launcher=("$MPIEXEC" "${launcher_options[@]}" -n "$ranks")
  rm -rf "$folder/run"
  command_line="${launcher[*]} tessera train $*, stopped"
  [[ " $* " == *' --batch '* ]] || set -- "$@" --batch 8
  [[ " $* " == *' --checkpoint-every '* ]] || set -- "$@" --checkpoint-every 1000000
  "${launcher[@]}" "$program" train models/lenet5.cfg --data "$data" --steps 1000000 --run "$folder/run" --no-eval "$@" \
    >"$folder/out" 2>"$folder/err" </dev/null &
  started_process=$!
  wait_until 'training should start' more_steps_than 3
}
# ended: waits for what was started and sets status.
ended() { status=0; { wait "$started_process" || status=$?; } 2>/dev/null; }

# nothing_left WHAT: no process, no shared memory. Segments that a process has mapped are those of other programs' ranks, folders
# are those of `tessera run`, and a rank has no clock of libfaketime's.
shared_memory_files() { find /dev/shm -maxdepth 1 -type f -not -name 'faketime_shm_*' -printf '%f\n' | LC_ALL=C sort; }
shared_memory=$(shared_memory_files)
no_shared_memory() {
  local segment
  while read -r segment; do
    grep -qsF "/dev/shm/$segment" /proc/[0-9]*/maps || return 1
  done < <(LC_ALL=C comm -13 <(printf '%s\n' "$shared_memory") <(shared_memory_files))
}
nothing_left() {
  wait_until "$1: no process is left" all_are_gone
  # A program that starts has some for a moment before it maps it.
  wait_until "$1: no shared memory is left" no_shared_memory
}
