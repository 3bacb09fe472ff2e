#!/usr/bin/env bash
# Trains on four ranks, makes the page of that run, and takes the pictures of it that the README shows: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=.ci/machine.sh
. .ci/machine.sh

show_help() {
  cat <<HELP
Usage: bench/report_pictures.sh [RUN]

Trains models/lenet5.cfg on Fashion-MNIST for five epochs on four ranks of this machine (a run folder given as RUN is
taken instead), writes runs/report/report.html, and takes two pictures of it with Chromium, light and dark:
engine/page/report-light.png and engine/page/report-dark.png.

It needs the program (./quickstart.sh builds it; PROGRAM=FILE takes another one) and Debian's packages chromium and python3.
HELP
}

case ${1:-} in
  --help | -h) show_help || true; exit 0 ;;
esac
program=${PROGRAM:-build/release/tessera}
[ -x "$program" ] || fail "$program does not exist: run ./quickstart.sh first, or set PROGRAM."
run=${1:-runs/report}
if [ $# -eq 0 ]; then
  find_mpich
  OMP_NUM_THREADS=1 "$mpich_launcher" -n 4 "$program" train models/lenet5.cfg --data /usr/share/datasets/fashion-mnist \
    --run "$run" --force --grid 2x2 --groups 0-3,4-7 --data-parallel-from 4 --epochs 5 \
    --schedule-steps 2345 --cluster hostfiles/pi3x4.cluster.toml --meter table:pi3b --progress line </dev/null
fi
"$program" report "$run"
for look in light dark; do
  options=()
  [ "$look" = light ] || options+=(--dark)
  python3 tests/cli/support/browser.py picture "$run/report.html" "engine/page/report-$look.png" --width 1080 --height 1240 \
    --scale 0.8 "${options[@]}"
done
