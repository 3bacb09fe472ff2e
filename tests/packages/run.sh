#!/usr/bin/env bash
# Installs the Debian packages into clean roots and uses them there: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.ci/machine.sh
. .ci/machine.sh
# shellcheck source=.ci/sysroot.sh
. .ci/sysroot.sh

show_help() {
  cat <<HELP
Usage: tests/packages/run.sh [RELEASE-ARCHITECTURE...]

Tests the packages that .ci/packages.sh has made, by default all that are there. For each, as root: a clean root of that release
and architecture is set up in build/clean (mmdebstrap; programs for ARM run in qemu, for which its formats are registered with
this machine's kernel for as long as the test runs). In it the package is installed with apt-get and what it recommends, then

  - tessera --version, its manual pages, the pages in /usr/share/tessera and the completion of bash;
  - some steps of the quick start's training on Fashion-MNIST on two ranks, with mpiexec.mpich and with tessera run; their
    losses are those of one rank;
  - a program of another project, tests/library/tiles.cpp, built with libtessera-dev;
  - what is left when both packages are removed: nothing.

Minutes each, under qemu more. The last line says how many passed and failed.
HELP
}

targets=()
for argument in "$@"; do
  case $argument in
    --help | -h) show_help || true; exit 0 ;;
    *-*) targets+=("$argument") ;;
    *) fail "unknown argument '$argument'." 'See tests/packages/run.sh --help.' ;;
  esac
done
if [ "${#targets[@]}" -eq 0 ]; then
  for package in build/packages/*/tessera_*.deb; do
    [ ! -e "$package" ] || targets+=("$(basename "$(dirname "$package")")")
  done
fi
[ "${#targets[@]}" -gt 0 ] || fail 'there are no packages in build/packages.' 'Make them first: .ci/packages.sh'
[ "$(id -u)" -eq 0 ] || fail 'clean roots need root.'

formats=/proc/sys/fs/binfmt_misc
registered=()
mounted=()

# take_down: what this script has mounted and registered.
take_down() {
  local at format
  for ((at = ${#mounted[@]} - 1; at >= 0; at--)); do
    umount "${mounted[at]}" || true
  done
  mounted=()
  for format in "${registered[@]}"; do
    printf -- '-1' >"$formats/$format"
  done
  registered=()
}
trap take_down EXIT

# register NAME MACHINE CLASS INTERPRETER: programs of an ELF machine (two bytes) and class (01: 32 bits, 02: 64) run in qemu.
# The interpreter is opened now, so that roots need no copy of it.
register() {
  [ ! -e "$formats/$1" ] || return 0
  printf ':%s:M::\\x7fELF\\x%s\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x%s\\x00:%s:%s:F' "$1" "$3" "$2" \
    '\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff' "$4" >"$formats/register"
  registered+=("$1")
}

# emulate ARCHITECTURE: makes this machine run its programs.
emulate() {
  [ "$1" != "$(dpkg --print-architecture)" ] || return 0
  if [ ! -e "$formats/register" ]; then
    mount -t binfmt_misc binfmt_misc "$formats" || fail "this kernel cannot run programs of other architectures: no binfmt_misc."
  fi
  case $1 in
    arm64) register qemu-aarch64 b7 02 /usr/bin/qemu-aarch64-static ;;
    armhf) register qemu-arm 28 01 /usr/bin/qemu-arm-static ;;
  esac
}

passed=0
failed=0

# check WHAT COMMAND...: the command works; its output is shown when it does not.
check() {
  local what=$1 started=$SECONDS log
  shift
  if log=$("$@" 2>&1 </dev/null); then
    printf 'passed  %4d s  %s: %s\n' $((SECONDS - started)) "$target" "$what"
    passed=$((passed + 1))
  else
    printf 'FAILED  %4d s  %s: %s\n%s\n' $((SECONDS - started)) "$target" "$what" "$log"
    failed=$((failed + 1))
  fi
}

# inside COMMAND...: in the root.
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive OMP_NUM_THREADS=1 "$@"; }

# train NAME RANKS LAUNCHER...: five steps on Fashion-MNIST; leaves their losses in /tmp/NAME.losses of the root.
train() {
  local name=$1 ranks=$2 cut=()
  shift 2
  [ "$ranks" -eq 1 ] || cut=(--grid "1x$ranks")
  inside timeout 1800 "$@" train /usr/share/tessera/models/lenet5.cfg --data /usr/share/datasets/fashion-mnist --run "/tmp/$name" --steps 5 \
    --batch 16 --no-eval --progress line "${cut[@]}" && sed -n 's/^{"step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$root/tmp/$name/metrics.jsonl" >"$root/tmp/$name.losses"
}

# same_losses NAME NAME: both have five steps, with losses that differ by rounding.
same_losses() {
  paste -d ' ' "$root/tmp/$1.losses" "$root/tmp/$2.losses" |
    awk '{ print } NF != 4 || $1 != $3 || $2 - $4 > 1e-4 || $4 - $2 > 1e-4 { bad = 1 } END { exit bad || NR != 5 }'
}

build_other_project() {
  cp -r tests/library "$root/tmp/library"
  inside sh -c 'cd /tmp/library && cmake -S . -B build -G Ninja && cmake --build build --target tiles && build/tiles'
}

version_is_right() { inside tessera --version | grep -x "tessera [0-9.]*"; }

manual_is_there() {
  inside man --pager=cat tessera-train | grep -e --progress && inside man -k tessera | grep tessera-check
}

pages_are_there() {
  (cd "$root/usr/share/tessera" && ls engine/running.md engine/data/README.md partitioner/how-to-cut.md models/detectors.md) &&
    ! grep -r build/release/tessera "$root/usr/share/tessera"
}

# shellcheck disable=SC2016 # the $ are the other shell's
bash_completes() {
  inside bash -c '. /usr/share/bash-completion/completions/tessera; COMP_WORDS=(tessera tra) COMP_CWORD=1; _tessera; [ "${COMPREPLY[*]}" = train ]'
}

# Every file of the packages has its name in its path; man keeps what it has shown.
nothing_is_left() {
  ! find "$root" -xdev \( -path "$root/tmp" -o -path "$root/var/log" -o -path "$root/var/cache/man" \) -prune -o -name '*tessera*' -print | grep . &&
    ! inside dpkg-query -W tessera libtessera-dev 2>/dev/null | grep tessera
}

# test_packages RELEASE ARCHITECTURE
test_packages() {
  local release=$1 architecture=$2 packages=build/packages/$1-$2
  folder=$PWD/build/clean/$target
  root=$folder/root
  compgen -G "$packages/tessera_*.deb" >/dev/null || fail "there is no package in $packages." 'Make it first: .ci/packages.sh' "$target"
  rm -rf "$folder"
  mkdir -p "$folder"
  emulate "$architecture"
  mmdebstrap --variant=apt --arch="$architecture" --include=man-db,bash-completion,dataset-fashion-mnist "$release" "$root" "$debian_mirror" \
    >"$folder/root.log" 2>&1 || { cat "$folder/root.log" >&2; fail "the root of $target could not be set up (mmdebstrap's message is above)."; }
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # As Debian's installer does; MPICH of 32 bits asks for the address of its own name.
  printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$(uname -n)" >"$root/etc/hosts"
  mount -t proc proc "$root/proc"
  mounted+=("$root/proc")
  cp "$packages"/*.deb "$root/tmp"

  check 'the package can be installed' inside sh -c 'apt-get -q update && apt-get -q -y install /tmp/tessera_*.deb'
  check 'tessera --version' version_is_right
  check 'manual pages' manual_is_there
  check 'pages to read' pages_are_there
  check 'completion of bash' bash_completes
  check 'training on one rank' train one 1 tessera
  check 'training on two ranks with mpiexec.mpich' train two 2 mpiexec.mpich -n 2 tessera
  check 'losses of two ranks' same_losses one two
  check 'training on two ranks with tessera run' train run 2 tessera run -n 2 --
  check 'losses of tessera run' same_losses one run
  check 'the library can be installed' inside sh -c 'apt-get -q -y install --no-install-recommends g++ cmake ninja-build /tmp/libtessera-dev_*.deb'
  check 'another project builds with the library' build_other_project
  check 'packages can be removed' inside apt-get -q -y purge tessera libtessera-dev
  check 'nothing is left' nothing_is_left
  take_down
  rm -rf "$root"
}

install_packages yes mmdebstrap qemu-user-static arch-test
for target in "${targets[@]}"; do
  test_packages "${target%-*}" "${target#*-}"
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
