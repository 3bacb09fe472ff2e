# Packages of another architecture or release of Debian, unpacked into a folder to build against (.ci/sysroot.cmake). Sourced
# after .ci/machine.sh, by scripts that are bash with set -eu.
# shellcheck shell=bash

# Of the release alone, without updates: what is built against its oldest packages runs with all of them.
debian_mirror=http://deb.debian.org/debian

# record_packages ROOT: what dpkg-shlibdeps asks of a system, its packages with their lists of files, shlibs and symbols, for
# packages that were unpacked but not installed. It finds libraries by their paths, which begin with ROOT here. Called by
# mmdebstrap while the packages are still in the root's cache.
record_packages() {
  local root=$1 info=$1/var/lib/dpkg/info package name member
  mkdir -p "$info"
  echo 1 >"$info/format" # names of files may have :ARCHITECTURE
  for package in "$root"/var/cache/apt/archives/*.deb; do
    # shellcheck disable=SC2016 # the $ are dpkg-deb's
    name=$(dpkg-deb --show --showformat='${Package}' "$package")
    if dpkg-deb --field "$package" Multi-Arch | grep -qx same; then
      name+=:$(dpkg-deb --field "$package" Architecture)
    fi
    printf '%s\nStatus: install ok installed\n\n' "$(dpkg-deb --field "$package")" >>"$root/var/lib/dpkg/status"
    dpkg-deb --fsys-tarfile "$package" | tar -t | sed "s|^\./lib/|./usr/lib/|; s|/\$||; s|^\.|$root|" >"$info/$name.list"
    for member in shlibs symbols; do
      dpkg-deb --ctrl-tarfile "$package" | tar -xO "./$member" >"$info/$name.$member" 2>/dev/null || rm -f "$info/$name.$member"
    done
  done
}

# keep_links_inside ROOT: links to absolute paths, such as those of development packages to libraries, lead there under ROOT.
keep_links_inside() {
  local root=$1 link
  while IFS= read -r link; do
    ln -snrf "$root$(readlink "$link")" "$link"
  done < <(find "$root/usr" -type l -lname '/*')
}

# make_sysroot SUITE ARCHITECTURE FOLDER PACKAGE...: unpacks those packages and what they depend on into the folder, unless
# they are there already. Nothing is installed: no program of the packages is run. The folder is not to be moved.
make_sysroot() {
  local suite=$1 architecture=$2 root=$3 wanted
  shift 3
  wanted="$suite $architecture $*"
  [ "$(cat "$root/complete" 2>/dev/null || true)" != "$wanted" ] || return 0
  rm -rf "$root"
  mkdir -p "$(dirname "$root")"
  root=$(realpath "$(dirname "$root")")/$(basename "$root")
  # shellcheck disable=SC2016 # the $ are the hook's
  SYSROOT_FUNCTIONS=$PWD/.ci/sysroot.sh mmdebstrap --variant=extract --arch="$architecture" --include="$*" \
    --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
    --extract-hook='bash -euc ". \"\$SYSROOT_FUNCTIONS\"; record_packages \"\$0\"" "$1"' \
    "$suite" "$root" "$debian_mirror" || fail "the $architecture packages of $suite could not be fetched (mmdebstrap's message is above)."
  keep_links_inside "$root"
  # As in an installed system. In Debian 13 these links are in base-files, in Debian 12 mmdebstrap's hook makes them.
  local folder
  for folder in lib lib64; do
    [ -e "$root/$folder" ] || [ ! -d "$root/usr/$folder" ] || ln -s "usr/$folder" "$root/$folder"
  done
  printf '%s\n' "$wanted" >"$root/complete"
}
