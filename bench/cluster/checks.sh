# What an emulated cluster needs of this machine, and how to say that something is missing.
# shellcheck shell=bash

# fail MESSAGE: ends the script as bad input does.
fail() {
  printf 'cluster: %s\n' "$1" >&2
  exit 2
}

warn() { printf 'cluster: %s\n' "$1" >&2; }

# expect_no_more COMMAND ARGUMENT...: what is left of the arguments of a command that needs no more of them.
expect_no_more() { [ $# -eq 1 ] || fail "$1 does not take '$2': see --help."; }

# Each problem_* prints one sentence if there is a problem, and nothing if there is none.

problem_root() {
  [ "$(id -u)" -eq 0 ] || echo 'only root may make namespaces, links and control groups: start it with sudo.'
}

problem_commands() {
  local pair absent=() packages=()
  for pair in unshare:util-linux nsenter:util-linux setsid:util-linux ip:iproute2 tc:iproute2 ethtool:ethtool; do
    command -v "${pair%:*}" >/dev/null && continue
    absent+=("${pair%:*}")
    packages+=("${pair#*:}")
  done
  [ "${#absent[@]}" -gt 0 ] || return 0
  printf 'not installed: %s; as root: apt-get install %s\n' "${absent[*]}" \
    "$(printf '%s\n' "${packages[@]}" | sort -u | tr '\n' ' ')"
}

problem_namespaces() {
  unshare --net --uts --ipc --mount --pid --fork true 2>/dev/null ||
    echo 'the kernel does not let this process make namespaces; inside a container, start that with all privileges.'
}

# Tried in a network namespace that is gone when the command ends.
works_on_a_link() { unshare --net sh -ec "ip link add name one type veth peer name two; $1" 2>/dev/null; }

problem_veth() { works_on_a_link true || echo 'the kernel has no virtual links: modprobe veth, or a kernel with CONFIG_VETH.'; }

problem_bridge() {
  works_on_a_link 'ip link add name three type bridge' ||
    echo 'the kernel has no bridge: modprobe bridge, or a kernel with CONFIG_BRIDGE.'
}

problem_tbf() {
  works_on_a_link 'tc qdisc add dev one root tbf rate 100mbit burst 8000 limit 100000 overhead 24' ||
    echo 'the kernel cannot shape links: modprobe sch_tbf, or a kernel with CONFIG_NET_SCH_TBF.'
}

problem_cpu_quota() {
  local root
  root=$(hierarchy_of cpu)
  [ -n "$root" ] || echo 'no control group hierarchy has the controller "cpu": mount cgroup2, or cgroup with -o cpu.'
  if [ -n "$root" ] && is_version_1 "$root" && [ ! -e "$root/cpu.cfs_quota_us" ] && [ ! -e "$root/cpu.cfs_period_us" ]; then
    echo 'the kernel has no processor quotas: it needs CONFIG_CFS_BANDWIDTH.'
  fi
}

problem_memory_limit() {
  [ -n "$(hierarchy_of memory)" ] ||
    echo 'no control group hierarchy has the controller "memory"; on a Raspberry Pi add cgroup_enable=memory to cmdline.txt.'
}

problem_launcher() {
  command -v mpiexec.mpich >/dev/null || echo 'mpiexec.mpich is not installed; as root: apt-get install mpich'
}

needed_by_up=(root commands namespaces veth bridge tbf cpu_quota memory_limit)

# require CHECK...: ends the script with the sentence of the first problem.
require() {
  local check problem
  for check in "$@"; do
    problem=$("problem_$check")
    [ -z "$problem" ] || fail "$problem"
  done
}

# check_machine: says what is there and what is missing. Without root the rest cannot be tried.
check_machine() {
  local check problem missing=0
  for check in "${needed_by_up[@]}" launcher; do
    problem=$("problem_$check")
    printf '%-13s %s\n' "${check//_/ }" "${problem:-there}"
    [ -n "$problem" ] || continue
    missing=1
    case $check in root | commands) break ;; esac
  done
  if [ "$missing" -eq 0 ]; then echo "All that an emulated cluster needs is there."; fi
  return "$missing"
}
