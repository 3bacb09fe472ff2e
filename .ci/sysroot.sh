# Packages of another architecture or release of Debian, unpacked into a folder to build against (.ci/sysroot.cmake). Sourced
# after .ci/machine.sh, by scripts that are bash with set -eu.
# shellcheck shell=bash

# Of the release alone, without updates: what is built against its oldest packages runs with all of them.
debian_mirror=http://deb.debian.org/debian

# record_packages ROOT: what dpkg-shlibdeps asks of a system, its packages with their lists of files, shlibs and symbols, for
# packages that were unpacked but not installed. Called by mmdebstrap while they are still in the root's cache.
record_packages() {
  local root=$1 info=$1/var/lib/dpkg/info package name member
  mkdir -p "$info"
  for package in "$root"/var/cache/apt/archives/*.deb; do
    # shellcheck disable=SC2016 # the $ are dpkg-deb's
    name=$(dpkg-deb --show --showformat='${Package}' "$package")
    if dpkg-deb --field "$package" Multi-Arch | grep -qx same; then
      name+=:$(dpkg-deb --field "$package" Architecture)
    fi
    printf '%s\nStatus: install ok installed\n\n' "$(dpkg-deb --field "$package")" >>"$root/var/lib/dpkg/status"
    dpkg-deb --fsys-tarfile "$package" | tar -t | sed 's|^\./|/|; s|^/$|/.|; s|\(.\)/$|\1|' >"$info/$name.list"
    for member in shlibs symbols; do
      dpkg-deb --ctrl-tarfile "$package" | tar -xO "./$member" >"$info/$name.$member" 2>/dev/null || rm -f "$info/$name.$member"
    done
  done
}

# make_sysroot SUITE ARCHITECTURE FOLDER PACKAGE...: unpacks those packages and what they depend on into the folder, unless
# they are there already. Nothing is installed: no program of the packages is run.
make_sysroot() {
  local suite=$1 architecture=$2 root=$3 wanted
  shift 3
  wanted="$suite $architecture $*"
  [ "$(cat "$root/complete" 2>/dev/null || true)" != "$wanted" ] || return 0
  rm -rf "$root"
  mkdir -p "$(dirname "$root")"
  # shellcheck disable=SC2016 # the $ are the hook's
  SYSROOT_FUNCTIONS=$PWD/.ci/sysroot.sh mmdebstrap --variant=extract --arch="$architecture" --include="$*" \
    --extract-hook='bash -euc ". \"\$SYSROOT_FUNCTIONS\"; record_packages \"\$0\"" "$1"' \
    "$suite" "$root" "$debian_mirror" || fail "the $architecture packages of $suite could not be fetched (mmdebstrap's message is above)."
  printf '%s\n' "$wanted" >"$root/complete"
}
