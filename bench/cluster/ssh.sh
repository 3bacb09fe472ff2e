# An sshd on each device, with keys of the cluster's own, for programs that reach devices by ssh.
# shellcheck shell=bash

# make_keys: of the cluster's user and of its machines, which are all one here.
make_keys() {
  mkdir -m 700 "$state/ssh"
  ssh-keygen -q -t ed25519 -N '' -C "$cluster" -f "$state/ssh/user_key"
  ssh-keygen -q -t ed25519 -N '' -C "$cluster" -f "$state/ssh/host_key"
  cp "$state/ssh/user_key.pub" "$state/ssh/authorized_keys"
  cat >"$state/ssh/sshd_config" <<CONFIG
HostKey $state/ssh/host_key
AuthorizedKeysFile $state/ssh/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
MaxStartups 100
PrintMotd no
UseDNS no
CONFIG
  cat >"$state/ssh/ssh_config" <<CONFIG
IdentityFile $state/ssh/user_key
IdentitiesOnly yes
UserKnownHostsFile $state/ssh/known_hosts
LogLevel ERROR
CONFIG
  printf '#!/bin/sh\nexec ssh -F %s "$@"\n' "$state/ssh/ssh_config" >"$state/ssh/ssh"
  chmod +x "$state/ssh/ssh"
  local name
  for name in $(device_names); do
    printf '%s,%s %s\n' "$name" "$(value "$name" address)" "$(cut -d ' ' -f 1,2 "$state/ssh/host_key.pub")"
  done >"$state/ssh/known_hosts"
}

# start_sshd DEVICE: it ends with the device. What comes in by it has the device's share of processor and memory.
start_sshd() {
  mkdir -p /run/sshd
  (enter_device "$1" setsid /usr/sbin/sshd -f "$state/ssh/sshd_config" -E "$state/devices/$1/sshd.log" </dev/null >/dev/null 2>&1)
}

# serve_ssh: prints the program that reaches the devices, called as ssh is.
serve_ssh() {
  local name
  [ -x /usr/sbin/sshd ] || fail 'ssh: sshd is missing; install openssh-server.'
  if [ ! -d "$state/ssh" ]; then
    make_keys
    for name in $(device_names); do
      ! device_pid "$name" >/dev/null || start_sshd "$name"
    done
  fi
  printf '%s\n' "$state/ssh/ssh"
}
