# Processor quotas and memory limits by control groups, in version 1 or 2, whichever holds a controller.
# Each device has the group tessera-cluster-CLUSTER/DEVICE in every hierarchy that is needed.
# shellcheck shell=bash

# hierarchy_of CONTROLLER: the folder that it is mounted on, or nothing.
hierarchy_of() {
  local root
  root=$(awk -v controller="$1" '$3 == "cgroup" && ("," $4 ",") ~ ("," controller ",") { print $2; exit }' /proc/mounts)
  if [ -z "$root" ]; then
    root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    [ -n "$root" ] && grep -qw "$1" "$root/cgroup.controllers" || root=
  fi
  printf '%s' "$root"
}

is_version_1() { [ ! -e "$1/cgroup.controllers" ]; }

# hierarchies: one folder a line. Version 1 counts processor time in a controller of its own.
hierarchies() {
  {
    hierarchy_of cpu && echo
    hierarchy_of memory && echo
    hierarchy_of cpuacct && echo
  } | sort -u | sed '/^$/d'
}

cluster_group() { printf 'tessera-cluster-%s' "$cluster"; }

# group_of CONTROLLER DEVICE
group_of() { printf '%s/%s/%s' "$(hierarchy_of "$1")" "$(cluster_group)" "$2"; }

# make_groups DEVICE
make_groups() {
  local root folder
  while read -r root; do
    folder=$root/$(cluster_group)
    mkdir -p "$folder"
    if ! is_version_1 "$root"; then
      hand_down_controllers "$root"
      hand_down_controllers "$folder"
    fi
    mkdir -p "$folder/$1"
  done < <(hierarchies)
  go_before_others
}

# go_before_others: devices get their quotas even if this machine has other work, 100 times the usual weight.
go_before_others() {
  local folder
  folder=$(hierarchy_of cpu)/$(cluster_group)
  if [ -e "$folder/cpu.weight" ]; then
    echo 10000 >"$folder/cpu.weight"
  else
    echo 102400 >"$folder/cpu.shares"
  fi
}

# hand_down_controllers FOLDER: in version 2 a group must pass controllers on to those below it.
hand_down_controllers() {
  local controller
  for controller in cpu memory; do
    grep -qw "$controller" "$1/cgroup.subtree_control" && continue
    grep -qw "$controller" "$1/cgroup.controllers" || continue
    { echo "+$controller" >"$1/cgroup.subtree_control"; } 2>/dev/null ||
      fail "control groups below $1 are not given the controller '$controller'; inside a container, start that with all privileges."
  done
}

# join_groups DEVICE: this process, and what it starts from now on, counts for the device.
join_groups() {
  local root
  while read -r root; do
    echo "$BASHPID" >"$root/$(cluster_group)/$1/cgroup.procs"
  done < <(hierarchies)
}

# remove_groups: of the whole cluster; their processes must have ended.
remove_groups() {
  local root folder
  while read -r root; do
    folder=$root/$(cluster_group)
    [ -d "$folder" ] || continue
    find "$folder" -mindepth 1 -maxdepth 1 -type d -exec rmdir {} +
    rmdir "$folder"
  done < <(hierarchies)
}

# set_quota DEVICE CORES. The kernel takes no quota below 1 ms, so that a small share needs a long period.
set_quota() {
  local folder period quota
  folder=$(group_of cpu "$1")
  read -r period quota < <(awk -v cores="$2" 'BEGIN {
    period = 10000
    if (cores * period < 1000) period = int(1000 / cores) + 1
    if (period > 1000000) period = 1000000
    quota = int(cores * period + 0.5)
    print period, quota < 1000 ? 1000 : quota
  }')
  if [ -e "$folder/cpu.max" ]; then
    echo "$quota $period" >"$folder/cpu.max"
  else
    echo -1 >"$folder/cpu.cfs_quota_us"
    echo "$period" >"$folder/cpu.cfs_period_us"
    echo "$quota" >"$folder/cpu.cfs_quota_us"
  fi
}

# set_memory_limit DEVICE MIB: with no swap on top of it, as far as this kernel counts swap.
set_memory_limit() {
  local folder bytes=$(($2 << 20))
  folder=$(group_of memory "$1")
  if [ -e "$folder/memory.max" ]; then
    echo "$bytes" >"$folder/memory.max"
    [ ! -e "$folder/memory.swap.max" ] || echo 0 >"$folder/memory.swap.max"
  else
    echo "$bytes" >"$folder/memory.limit_in_bytes"
    [ ! -e "$folder/memory.memsw.limit_in_bytes" ] || echo "$bytes" >"$folder/memory.memsw.limit_in_bytes"
  fi
}

# processor_use DEVICE: prints seconds of processor time, periods, periods throttled, seconds throttled.
processor_use() {
  local folder used_ns=0
  folder=$(group_of cpu "$1")
  [ -e "$folder/cpu.max" ] || used_ns=$(cat "$(group_of cpuacct "$1")/cpuacct.usage" 2>/dev/null || echo 0)
  awk -v used_s="$used_ns" 'BEGIN { used_s /= 1e9 }
    $1 == "usage_usec" { used_s = $2 / 1e6 }
    $1 == "nr_periods" { periods = $2 }
    $1 == "nr_throttled" { throttled = $2 }
    $1 == "throttled_time" { throttled_s = $2 / 1e9 }
    $1 == "throttled_usec" { throttled_s = $2 / 1e6 }
    END { printf "%.3f %d %d %.3f\n", used_s, periods, throttled, throttled_s }' "$folder/cpu.stat"
}

# memory_use DEVICE: prints bytes now, bytes at most (? before Linux 5.19 in version 2), and the limit.
memory_use() {
  local folder
  folder=$(group_of memory "$1")
  if [ -e "$folder/memory.max" ]; then
    printf '%s %s %s\n' "$(<"$folder/memory.current")" "$(cat "$folder/memory.peak" 2>/dev/null || echo '?')" "$(<"$folder/memory.max")"
  else
    printf '%s %s %s\n' "$(<"$folder/memory.usage_in_bytes")" "$(<"$folder/memory.max_usage_in_bytes")" "$(<"$folder/memory.limit_in_bytes")"
  fi
}

# out_of_memory_kills DEVICE: how many processes the kernel ended because the limit was reached.
out_of_memory_kills() {
  local folder file
  folder=$(group_of memory "$1")
  file=$folder/memory.oom_control
  [ -e "$file" ] || file=$folder/memory.events
  awk '$1 == "oom_kill" { kills = $2 } END { print kills + 0 }' "$file"
}
