# shellcheck shell=bash
# For scripts to source: commands in a system that bench/peers/torch_root.sh installed.

# in_root ROOT COMMAND...: in the system in the folder ROOT, which finds this project where it is outside, and this machine's root in /media.
in_root() {
  # shellcheck disable=SC2016 # of the shells that are started
  unshare --mount -- sh -ec 'root=$1; shift; mkdir -p "$root$PWD"; mount --rbind / "$root/media"; mount --bind . "$root$PWD"
    mount -t proc proc "$root/proc"; exec chroot "$root" sh -ec "cd \"\$1\"; shift; exec \"\$@\"" sh "$PWD" "$@"' sh "$@"
}

# outside COMMAND FILE: writes a script that runs a command of this machine from in there.
outside() {
  printf '#!/bin/sh\nexec chroot /media "%s" "$@"\n' "$(realpath "$1")" >"$2"
  chmod +x "$2"
}
