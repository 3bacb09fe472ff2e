# Devices: sets of namespaces with a first process each. What is known of the cluster called $cluster is kept in
# $state, a file a value: own, and devices/NAME/{address,cores,memory_mib,rate_mbit,threads,byte_s,pid}.
# shellcheck shell=bash

readonly all_state=/run/tessera-cluster

# use_cluster NAME
use_cluster() {
  cluster=$1
  state=$all_state/$cluster
}

device_names() { cat "$state/names"; }

# value DEVICE KEY
value() { cat "$state/devices/$1/$2"; }

# set_value DEVICE KEY VALUE
set_value() { printf '%s\n' "$3" >"$state/devices/$1/$2"; }

# expect_device NAME: ends the script if there is none.
expect_device() {
  [ -n "${1-}" ] || fail "which device? One of: $(device_names | tr '\n' ' ')"
  [ -d "$state/devices/$1" ] || fail "$cluster has no device '$1'; it has: $(device_names | tr '\n' ' ')"
}

# device_pid DEVICE: of its first process, or false if it is off.
device_pid() {
  local pid
  pid=$(cat "$state/devices/$1/pid" 2>/dev/null) &&
    grep -qzx "TESSERA_CLUSTER_INIT=$cluster/$1" "/proc/$pid/environ" 2>/dev/null && printf '%s' "$pid"
}

# switch_on DEVICE: makes its namespaces, starts its first process, connects it.
switch_on() {
  local device=$1 namespace pid= own
  namespace=$(namespace_of "$device")
  own=$(<"$state/own")
  ip netns add "$namespace"
  read -r pid < <(cd / && exec env -i PATH="$PATH" TESSERA_CLUSTER_INIT="$cluster/$device" setsid \
    nsenter --net="/run/netns/$namespace" unshare --uts --ipc --mount --pid --fork \
    "$here/device_init" "$device" "$state/hosts" ${own:+"$own/$device" "$own"} 2>"$state/devices/$device/log") ||
    fail "$device could not be started: $(tail -n 1 "$state/devices/$device/log")"
  set_value "$device" pid "$pid"
  connect "$device" "$(value "$device" address)"
  set_rate "$device" "$(dilated "$(value "$device" rate_mbit)")"
}

# switch_off DEVICE: as if its power were cut. The cable goes first, so that nobody is told.
switch_off() {
  local device=$1 namespace
  namespace=$(namespace_of "$device")
  set_cable "$device" down 2>/dev/null || true
  kill_device "$device"
  rm -f "$state/devices/$device/pid"
  ip -n "$(namespace_of switch)" link delete dev "$device" 2>/dev/null || true
  ip netns delete "$namespace" 2>/dev/null || true
}

# processes_on DEVICE: ids of all that is in its network namespace, mpiexec included if it was started there.
processes_on() { ip netns pids "$(namespace_of "$1")" 2>/dev/null || true; }

# kill_device DEVICE: ends all its processes, by id, and waits until they are gone.
kill_device() {
  local pid attempt
  for ((attempt = 0; attempt < 100; ++attempt)); do
    # With the first process the kernel ends whatever else has its process ids.
    if pid=$(device_pid "$1"); then kill -KILL "$pid" 2>/dev/null || true; fi
    pid=$(processes_on "$1")
    [ -n "$pid" ] || return 0
    # shellcheck disable=SC2086 # a list of ids
    kill -KILL $pid 2>/dev/null || true
    sleep 0.02
  done
  warn "$1 still has processes that do not end: $(processes_on "$1" | tr '\n' ' ')"
}

# enter_device DEVICE COMMAND...: becomes that command on the device, in the same working directory.
enter_device() {
  local device=$1 pid
  shift
  pid=$(device_pid "$device") || fail "$device is off; switch it on with: cluster poweron $device"
  join_groups "$device"
  OMP_NUM_THREADS=${OMP_NUM_THREADS-$(value "$device" threads)}
  export OMP_NUM_THREADS
  if [ -s "$state/vectors" ]; then
    TESSERA_VECTORS=$(<"$state/vectors")
    export TESSERA_VECTORS
  fi
  if [ -s "$state/pace_library" ]; then
    TESSERA_PACE=$(value "$device" cores) TESSERA_PACE_LOOP=$(<"$state/pace_loop") LD_PRELOAD=$(<"$state/pace_library")
    export TESSERA_PACE TESSERA_PACE_LOOP LD_PRELOAD
    if [ -s "$state/devices/$device/byte_s" ]; then
      TESSERA_PACE_BYTE=$(value "$device" byte_s)
      export TESSERA_PACE_BYTE
    fi
  fi
  exec nsenter --target "$pid" --net --uts --ipc --mount --pid -- env --chdir="$PWD" "$@"
}
