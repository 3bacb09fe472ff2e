#!/usr/bin/env bash
# Installs the PyTorch of Debian's unstable distribution into a folder of its own: see --help.
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=bench/peers/torch_root.sh
# shellcheck source=bench/results.sh
. bench/results.sh
# shellcheck source=bench/peers/inside.sh
. bench/peers/inside.sh

suite=sid
mirror=http://deb.debian.org/debian

show_help() {
  cat <<HELP
Usage: bench/peers/torch_root.sh DIR [--suite NAME] [--mirror URL]

Installs Debian's distribution $suite with python3-torch and libopenblas0 into the folder DIR, which must not exist yet, for
bench/peers/run.sh --torch-root DIR. Needs root and debootstrap; takes 2 GB of disk. Nothing else on the machine changes.

  --suite NAME  default: $suite
  --mirror URL  default: $mirror
  --help        shows this help and exits
HELP
}

case ${1-} in
  '' | --help | -h) show_help; exit 0 ;;
  -*) fail "$bench DIR: the folder comes first." ;;
esac
root=$1
shift
take_only_options 'suite mirror' "$@"
[ ! -e "$root" ] || fail "$root exists already."
[ "$(id -u)" -eq 0 ] || fail 'needs root: a system is installed into the folder.'
command -v debootstrap >/dev/null || fail 'install debootstrap.'

debootstrap --variant=minbase "$suite" "$root" "$mirror"
export DEBIAN_FRONTEND=noninteractive
in_root "$root" apt-get install --yes --no-install-recommends python3 python3-numpy python3-torch libopenblas0
rm -f "$root"/var/cache/apt/archives/*.deb
chroot "$root" dpkg-query --show python3-torch libopenblas0 'libdnnl3*'
