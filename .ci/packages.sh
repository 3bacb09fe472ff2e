#!/usr/bin/env bash
# Debian packages of the program and the library, by cross-building: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=.ci/machine.sh
. .ci/machine.sh
# shellcheck source=.ci/sysroot.sh
. .ci/sysroot.sh

show_help() {
  cat <<HELP
Usage: .ci/packages.sh [--yes] [RELEASE-ARCHITECTURE...]

Makes the packages tessera and libtessera-dev on an x86-64 machine with Debian, for Debian 12 (bookworm-amd64, bookworm-arm64,
bookworm-armhf) and Debian 13 (trixie-amd64, trixie-arm64, trixie-armhf). Without arguments it makes all of them. Packages are
for one release each, since libraries have other names in the next; their versions end in ~deb12 or ~deb13.

Installs what is missing for these targets (it asks first): compiler, CMake, mmdebstrap, lintian; for ARM a cross compiler and
qemu. Unpacks the packages of the target into build/packages (600 MB each), not into this system. The packages are then in
build/packages/RELEASE-ARCHITECTURE. Fails where lintian finds errors or warnings in them.

The compiler is that of the release. For another release than this system's, all of that happens in a clean root of it, in
build/packages/RELEASE (2 GB); setting it up and working in it needs root.

  --yes     install without asking
  --help    shows this help and exits
HELP
}

targets=()
consent=ask
for argument in "$@"; do
  case $argument in
    --yes | -y) consent=yes ;;
    --help | -h) show_help || true; exit 0 ;;
    bookworm-amd64 | bookworm-arm64 | bookworm-armhf | trixie-amd64 | trixie-arm64 | trixie-armhf) targets+=("$argument") ;;
    *) fail "unknown argument '$argument'." 'See .ci/packages.sh --help.' ;;
  esac
done
[ "${#targets[@]}" -gt 0 ] || targets=(bookworm-{amd64,arm64,armhf} trixie-{amd64,arm64,armhf})

declare -A suffixes=([bookworm]='~deb12' [trixie]='~deb13')
declare -A compiler_versions=([bookworm]=12 [trixie]=14)
libraries=(libc6-dev libgomp1)
for package in "${program_packages[@]}"; do
  case $package in *-dev) libraries+=("$package") ;; esac
done

# builders ARCHITECTURE...: prints the packages of this system that build for these, all else being in their roots.
builders() {
  local architecture
  printf '%s\n' g++ cmake ninja-build pkg-config mmdebstrap dpkg-dev file lintian
  for architecture in "$@"; do
    case $architecture in
      arm64) printf '%s\n' g++-aarch64-linux-gnu qemu-user-static ;;
      armhf) printf '%s\n' g++-arm-linux-gnueabihf qemu-user-static ;;
    esac
  done
}

# make_packages RELEASE ARCHITECTURE
make_packages() {
  local release=$1 architecture=$2 folder=$PWD/build/packages/$1-$2 started=$SECONDS
  make_sysroot "$release" "$architecture" "$folder/root" "libstdc++-${compiler_versions[$release]}-dev" "${libraries[@]}"
  local unpacked=$SECONDS
  # Neither -O2 nor the stack protector of Debian's own packages: kernels are as fast as in a build by hand. No path of this
  # machine is in what is built. MPICH's programs are named alone: nothing here starts them.
  cmake -S . -B "$folder/build" -G Ninja --toolchain "$PWD/.ci/sysroot.cmake" -DTESSERA_SYSROOT="$folder/root" \
    -DTESSERA_ARCHITECTURE="$architecture" -DTESSERA_RELEASE="$release" -DTESSERA_PACKAGE_SUFFIX="${suffixes[$release]}" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
    -DMPI_CXX_COMPILER=/usr/bin/mpicxx.mpich -DMPIEXEC_EXECUTABLE=/usr/bin/mpiexec.mpich \
    -DCMAKE_CXX_FLAGS="-ffile-prefix-map=$PWD=tessera" -DCMAKE_EXE_LINKER_FLAGS=-Wl,-z,relro,-z,now >"$folder/configure.log" 2>&1 ||
    { cat "$folder/configure.log" >&2; fail "$release-$architecture could not be configured (CMake's message is above)."; }
  cmake --build "$folder/build" -j "$(build_jobs)"
  local built=$SECONDS
  rm -f "$folder"/*.deb
  # dpkg-shlibdeps looks up in DPKG_ADMINDIR which packages the libraries come from.
  DEB_HOST_ARCH=$architecture DPKG_ADMINDIR=$folder/root/var/lib/dpkg \
    cpack --config "$folder/build/CPackConfig.cmake" -B "$folder/cpack" >"$folder/cpack.log" 2>&1 ||
    { cat "$folder/cpack.log" >&2; fail "$release-$architecture could not be packed (CPack's message is above)."; }
  mv "$folder"/cpack/*.deb "$folder"
  rm -rf "$folder/cpack"
  expect_no_paths "$folder"
  printf '%s-%s: %d s for the packages of the target, %d s to build, %d s to pack\n' "$release" "$architecture" \
    $((unpacked - started)) $((built - unpacked)) $((SECONDS - built))
  ls -l "$folder"/*.deb
  lintian --allow-root --fail-on error,warning "$folder"/*.deb
}

# expect_no_paths FOLDER: nothing in the packages names a folder of this machine.
expect_no_paths() {
  local package
  for package in "$1"/*.deb; do
    if dpkg-deb --fsys-tarfile "$package" | grep -qaF "$PWD"; then
      fail "$package: a path of this machine, $PWD, is in it."
    fi
  done
}

# make_in_root RELEASE TARGET...: lets this script make them in a clean root of their release. What is mounted there is seen by
# the processes in it alone, and gone when they end.
make_in_root() {
  local release=$1 root=$PWD/build/packages/$1
  shift
  [ "$(id -u)" -eq 0 ] || fail "packages of $release are made in a root of that release, which needs root."
  install_packages "$consent" mmdebstrap
  if [ ! -e "$root/complete" ]; then
    rm -rf "$root"
    mkdir -p build/packages
    mmdebstrap --variant=apt --arch=amd64 "$release" "$root" "$debian_mirror" ||
      fail "the root of $release could not be set up (mmdebstrap's message is above)."
    mkdir -p "$root$PWD"
    touch "$root/complete"
  fi
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # shellcheck disable=SC2016 # the $ are the other shell's
  unshare --mount --pid --fork --kill-child bash -euc '
    root=$1 project=$2
    shift 2
    mount -t proc proc "$root/proc"
    mount --bind "$project" "$root$project"
    exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root "$project/.ci/packages.sh" --yes "$@"
  ' bash "$root" "$PWD" "$@" || fail "the packages of $release could not be made (the message of what failed is above)."
}

[ "$(uname -m)" = x86_64 ] || fail 'this cross-builds on x86-64. On other machines: cmake --preset release, cmake --build build/release, cpack.'
# shellcheck source=/dev/null
own_release=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
own_targets=()
declare -A targets_elsewhere=()
for target in "${targets[@]}"; do
  if [ "${target%-*}" = "$own_release" ]; then
    own_targets+=("$target")
  else
    targets_elsewhere[${target%-*}]+=" $target"
  fi
done
if [ "${#own_targets[@]}" -gt 0 ]; then
  mapfile -t needed < <(builders "${own_targets[@]#*-}" | sort -u)
  install_packages "$consent" "${needed[@]}"
fi
for target in "${own_targets[@]}"; do
  make_packages "${target%-*}" "${target#*-}"
done
for release in "${!targets_elsewhere[@]}"; do
  read -ra targets <<<"${targets_elsewhere[$release]}"
  make_in_root "$release" "${targets[@]}"
done
