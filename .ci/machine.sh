# What the scripts of this project need of a machine: packages, MPICH under its own names, and how many
# compilers fit into its memory. Sourced by quickstart.sh and tests/run.sh, which are bash with set -eu.
# shellcheck shell=bash

# shellcheck disable=SC2034 # used by the scripts that source this
# The packages of Debian 12 and 13 that build and run the program, and the data set of the quick start.
program_packages=(g++ cmake ninja-build pkg-config mpich libmpich-dev libeigen3-dev libcli11-dev
  libfmt-dev libtomlplusplus-dev nlohmann-json3-dev libxxhash-dev libjpeg62-turbo-dev libpng-dev libwebp-dev libgif-dev
  libexif-dev libstb-dev zlib1g-dev liblemon-dev coinor-libclp-dev libcurl4-gnutls-dev libmicrohttpd-dev
  libqrencode-dev libutf8proc-dev libcsv-dev libpango1.0-dev libxml2-dev libyaml-cpp-dev libsodium-dev libonnx-dev
  libprotobuf-dev openssh-client rsync dataset-fashion-mnist)

# fail MESSAGE...: says what is wrong, a line per argument, and ends the script as bad input does.
fail() {
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  shift
  [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
  exit 2
}

# missing_packages PACKAGE...: prints those that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    case " $(dpkg-query -W -f='${db:Status-Status} ' "$package" 2>/dev/null || true)" in
      *' installed '*) ;;
      *) printf '%s\n' "$package" ;;
    esac
  done
}

# ask_to_install: true if the person at the terminal agrees.
ask_to_install() {
  local answer=''
  [ -t 0 ] || return 1
  printf 'Install them now? [y/N] '
  read -r answer || true
  case $answer in [yY] | [yY][eE][sS]) return 0 ;; *) return 1 ;; esac
}

# install_packages ask|yes PACKAGE...: installs what is missing, after asking. Nothing missing: does nothing.
install_packages() {
  local consent=$1 missing='' by_hand
  shift
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    fail 'this is not Debian, Raspberry Pi OS or a relative: apt-get and dpkg-query are not here.' \
      'Install what these Debian packages hold by hand, then build with: cmake --preset release' "$*"
  fi
  missing=$(missing_packages "$@" | tr '\n' ' ')
  missing=${missing% }
  [ -n "$missing" ] || return 0

  by_hand="apt-get update && apt-get install --no-install-recommends $missing"
  printf 'Missing packages: %s\n' "$missing"
  if [ "$consent" = ask ] && ! ask_to_install; then
    fail 'nothing was installed.' 'Start again with --yes to install without a question, or as root run:' "$by_hand"
  fi

  local as_root=(env DEBIAN_FRONTEND=noninteractive)
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail 'installing needs root, and sudo is not here.' 'As root run:' "$by_hand"
    # Without a terminal sudo cannot ask for a password: then it must not try.
    if [ -t 0 ]; then as_root=(sudo "${as_root[@]}"); else as_root=(sudo -n "${as_root[@]}"); fi
  fi
  "${as_root[@]}" apt-get -q update ||
    printf 'The lists of packages could not be brought up to date; trying with the old ones.\n' >&2
  # Splitting into words is meant: names of packages have no spaces.
  # shellcheck disable=SC2086
  "${as_root[@]}" apt-get -q -y -o DPkg::Lock::Timeout=120 install --no-install-recommends $missing ||
    fail 'apt-get could not install the packages (its own message is above).' \
      'Is there a network, and room on the disk? Then start again, or as root run:' "$by_hand" \
      'A package that is not found: this was made for Debian 12 and 13, Raspberry Pi OS 12 and 13.'
}

# find_mpich: sets mpich_compiler and mpich_launcher to full paths (CMake would take a bare name for a file of the
# current folder). Never the plain names: beside Open MPI those are Open MPI's, and nothing says so.
find_mpich() {
  mpich_compiler=$(command -v mpicxx.mpich || true)
  mpich_launcher=$(command -v mpiexec.mpich || true)
  if [ -z "$mpich_compiler" ] || [ -z "$mpich_launcher" ]; then
    fail 'mpicxx.mpich and mpiexec.mpich are not both on PATH.' 'They belong to the packages libmpich-dev and mpich.'
  fi
}

# configure PRESET [CMAKE OPTION...]: configures with MPICH, quietly unless it fails. Leaves the log in build/.
configure() {
  local preset=$1 log="build/configure-$1.log"
  shift
  find_mpich
  mkdir -p build
  cmake --preset "$preset" -DMPI_CXX_COMPILER="$mpich_compiler" -DMPIEXEC_EXECUTABLE="$mpich_launcher" "$@" \
    >"$log" 2>&1 || {
    cat "$log" >&2
    fail "cmake could not configure the preset '$preset' (its message is above; also in $log)." \
      'CMake 3.25 and g++ 12, those of Debian 12, are the oldest that work.'
  }
}

# build_jobs: prints how many compilers may run at once: one per GB of free memory, 1 at least, one per processor at most.
build_jobs() {
  local processors free_gb=1
  processors=$(nproc)
  if [ -r /proc/meminfo ]; then
    free_gb=$(awk '/^MemAvailable:/ { printf "%d", $2 / 1000000 }' /proc/meminfo)
  fi
  [ "${free_gb:-0}" -ge 1 ] || free_gb=1
  if [ "$free_gb" -lt "$processors" ]; then echo "$free_gb"; else echo "$processors"; fi
}
