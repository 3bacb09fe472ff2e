# Running MPI programs over the devices.
# shellcheck shell=bash

# write_hostfile RANKS_PER_DEVICE: the devices that are on.
write_hostfile() {
  local name
  for name in $(device_names); do
    if device_pid "$name" >/dev/null; then
      echo "$name:$1"
    else
      warn "$name is off and left out."
    fi
  done >"$hostfile"
  [ -s "$hostfile" ] || fail "all devices of $cluster are off; switch them on with: cluster poweron DEVICE"
}

# processes_of_run: ids of all processes on the devices that belong to this run.
processes_of_run() {
  local name pid
  for name in $(device_names); do
    for pid in $(processes_on "$name"); do
      if grep -qzx "TESSERA_CLUSTER_RUN=$run_id" "/proc/$pid/environ" 2>/dev/null; then echo "$pid"; fi
    done
  done
}

# keep_processors_awake: a processor that sleeps between the short turns of ranks that keep pace wakes up late, above all a virtual one,
# which has to wait for its host then. A loop on each that yields to everything else keeps it from that, during the run; should this script
# be killed, `down` finds them by their namespace.
keep_processors_awake() {
  local processors
  [ -s "$state/pace_library" ] || return 0
  for ((processors = $(nproc); processors > 0; --processors)); do
    ip netns exec "$(namespace_of switch)" chrt --idle 0 sh -c 'while :; do :; done' </dev/null >/dev/null 2>&1 &
    awake+=("$!")
    disown "$!" # so that bash says nothing of their end
  done
}

# end_run: mpiexec does not end for a rank that is stopped or cannot be reached, and leaves such ranks behind.
end_run() {
  local pids
  [ "${#awake[@]}" -eq 0 ] || kill -KILL "${awake[@]}" 2>/dev/null || true
  while pids=$(processes_of_run) && [ -n "$pids" ]; do
    # shellcheck disable=SC2086 # a list of ids
    kill -KILL $pids 2>/dev/null || true
    sleep 0.02
  done
  rm -f "$hostfile" "$hostfile".*
}

# kills_by_device: a line for each, DEVICE KILLS.
kills_by_device() {
  local name
  for name in $(device_names); do
    echo "$name $(out_of_memory_kills "$name")"
  done
}

# report_out_of_memory BEFORE: a sentence for each device whose kills have become more since.
report_out_of_memory() {
  local name
  while read -r name; do
    warn "$name ran out of memory: its $(value "$name" memory_mib) MiB were not enough, and the kernel killed a process there."
  done < <(join <(sort <<<"$1") <(kills_by_device | sort) | awk '$3 > $2 { print $1 }')
}

# start_mpiexec FROM SECONDS ARGUMENT...: mpiexec keeps the process ids of this machine, so that its launcher reaches
# every device, and has the network and name of one of them. It becomes this process.
start_mpiexec() {
  local pid limit=()
  pid=$(device_pid "$1")
  [ -z "$2" ] || limit=(timeout --foreground --kill-after=1 "$2")
  export HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC=$here/remote_shell HYDRA_LAUNCHER_AUTOFORK=0
  export HYDRA_HOST_FILE=$hostfile HYDRA_IFACE=eth0 TESSERA_CLUSTER=$cluster TESSERA_CLUSTER_RUN=$run_id
  local from=$1
  shift 2
  exec nsenter --target "$pid" --net --uts -- "${limit[@]}" mpiexec.mpich -localhost "$from" "$@" </dev/null
}

# all_together FROM SECONDS ARGUMENT...: one MPI program over all devices.
# In the background, so that this script can be interrupted while mpiexec ignores it.
all_together() {
  local code=0
  start_mpiexec "$@" &
  wait "$!" || code=$?
  return "$code"
}

# each_alone SECONDS ARGUMENT...: on every device at once a program of its own, of one rank; what they print follows each other
# in the order of the devices. The exit code is that of the last one that failed.
each_alone() {
  local device pid code=0 seconds=$1 started=()
  shift
  while IFS=: read -r device _; do
    start_mpiexec "$device" "$seconds" -hosts "$device" -n 1 "$@" >"$hostfile.$device" &
    started+=("$!")
  done <"$hostfile"
  for pid in "${started[@]}"; do
    wait "$pid" || code=$?
  done
  while IFS=: read -r device _; do
    cat "$hostfile.$device"
  done <"$hostfile"
  return "$code"
}

# expect_hosts_on MPIEXEC_OPTION...: that the devices which a host file would take are there and on; else mpiexec, which notices only in
# the midst of starting, adds lines of its own. With options other than these two it may take others, and is left to notice.
expect_hosts_on() {
  local file='' ranks=0 device
  while [[ $# -ge 2 && $1 == -* ]]; do
    case $1 in
      -f) file=$2 ;;
      -n) ranks=$2 ;;
      *) return 0 ;;
    esac
    shift 2
  done
  [ -r "$file" ] || return 0
  for device in $(hosts_of "$file" "$ranks"); do
    expect_device "$device"
    device_pid "$device" >/dev/null || fail "$device is off; switch it on with: cluster poweron $device"
  done
}

# hosts_of FILE RANKS: the first of a host file that have room for so many ranks; 0: all.
hosts_of() {
  awk -v ranks="$2" '{ sub(/#.*/, "") }
    NF {
      split($1, part, ":")
      print part[1]
      room += part[2] > 0 ? part[2] : 1
      if (ranks > 0 && room >= ranks) exit
    }' "$1"
}

run_program() {
  local from='' ranks_per_device=1 seconds='' each=no code=0 before started
  while [ $# -gt 0 ]; do
    case $1 in
      --each) each=yes && shift && continue ;;
      --from | --ppn | --timeout) [ $# -ge 2 ] || fail "$1 needs a value: see --help." ;;
      --) shift && break ;;
      *) break ;;
    esac
    case $1 in
      --from) from=$2 ;;
      --ppn) ranks_per_device=$2 ;;
      --timeout) seconds=$2 ;;
    esac
    shift 2
  done
  [ $# -gt 0 ] || fail 'run: expected a program: see --help.'
  [[ $ranks_per_device =~ ^[1-9][0-9]*$ ]] || fail '--ppn: expected a positive integer.'
  [ -z "$seconds" ] || is_positive "$seconds" || fail '--timeout: expected a positive number of seconds.'
  [ "$each" = no ] || [ "$from$ranks_per_device" = 1 ] || fail '--each starts one rank on each device and cannot be combined with --from or --ppn.'
  require root launcher
  expect_hosts_on "$@"
  hostfile=$(mktemp "$state/hostfile.XXXXXX")
  run_id=${hostfile##*.}
  awake=()
  trap end_run EXIT
  keep_processors_awake
  write_hostfile "$ranks_per_device"
  [ -n "$from" ] || from=$(head -n 1 "$hostfile" | cut -d : -f 1)
  expect_device "$from"
  device_pid "$from" >/dev/null || fail "$from is off; switch it on with: cluster poweron $from"
  before=$(kills_by_device)
  started=$EPOCHREALTIME
  if [ "$each" = yes ]; then
    each_alone "$seconds" "$@" || code=$?
  else
    all_together "$from" "$seconds" "$@" || code=$?
  fi
  report_out_of_memory "$before"
  if [ -n "$seconds" ] && awk -v s="$seconds" -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN { exit !(b - a >= s) }'; then
    warn "the program did not end within $seconds s: all of it was killed."
    code=124 # timeout's own is 137 where KILL was needed, as is that of a rank that was killed
  fi
  exit "$code"
}
