#!/usr/bin/env bash
# Ranks of several kinds of processors train together, and agree with x86-64: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.ci/machine.sh
. .ci/machine.sh

show_help() {
  cat <<HELP
Usage: tests/arm/mixed.sh [arm64|armhf...]

Compares training on ARM with training on this x86-64 machine, with programs that exist: build/arm64/tessera and
build/armhf/tessera (tests/arm/run.sh builds them), which run in an emulator, and build/release/tessera, or what the
environment says with TESSERA. By default both ARM ones:

  - \`check\`: a partition over ranks of x86-64 and arm64 computes what one tile does. Ranks of 32 bits are among themselves:
    Debian's MPICH for armhf speaks another protocol (ch3) than those of 64 bits (UCX).
  - Some steps on Fashion-MNIST: losses are those of x86-64 alone to rounding, tiled over mixed ranks too, and the partition
    that a run keeps has the same bytes.
  - A run that x86-64 has begun goes on from its checkpoint on ARM, with the same losses.

A minute or two. The last line says how many passed and failed.
HELP
}

kinds=()
for argument in "$@"; do
  case $argument in
    arm64 | armhf) kinds+=("$argument") ;;
    --help | -h) show_help || true; exit 0 ;;
    *) fail "unknown argument '$argument'." 'See tests/arm/mixed.sh --help.' ;;
  esac
done
[ "${#kinds[@]}" -gt 0 ] || kinds=(arm64 armhf)
native=${TESSERA:-build/release/tessera}
for program in "$native" "${kinds[@]/%//tessera}"; do
  case $program in arm*) program=build/$program ;; esac
  [ -x "$program" ] || fail "$program is not here." 'See tests/arm/mixed.sh --help.'
done
find_mpich

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMP_NUM_THREADS=1
steps=6
passed=0
failed=0

# program KIND: sets `program` to the words that start it.
program() {
  case $1 in
    x86) program=("$native") ;;
    arm64) program=(qemu-aarch64-static -cpu cortex-a53 -L "$PWD/build/arm64-root" build/arm64/tessera) ;;
    armhf) program=(qemu-arm-static -cpu cortex-a7 -L "$PWD/build/armhf-root" build/armhf/tessera) ;;
  esac
}

# on 'KIND KIND...' ARGUMENT...: a rank of each kind, in that order.
on() {
  local kind program command=()
  for kind in $1; do
    program "$kind"
    [ "${#command[@]}" -eq 0 ] || command+=(:)
    command+=(-n 1 "${program[@]}" "${@:2}")
  done
  timeout 1800 "$mpich_launcher" "${command[@]}"
}

# check WHAT COMMAND...: the command works; its output is shown when it does not.
check() {
  local what=$1 started=$SECONDS log
  shift
  if log=$("$@" 2>&1 </dev/null); then
    printf 'passed  %4d s  %s\n' $((SECONDS - started)) "$what"
    passed=$((passed + 1))
  else
    printf 'FAILED  %4d s  %s\n%s\n' $((SECONDS - started)) "$what" "$log"
    failed=$((failed + 1))
  fi
}

# train NAME KINDS GRID ARGUMENT...: steps on Fashion-MNIST.
train() {
  on "$2" train models/lenet5.cfg --data /usr/share/datasets/fashion-mnist --run "$folder/$1" --grid "$3" --batch 16 --no-eval \
    --progress line --seed 3 --schedule-steps "$steps" "${@:4}"
}

# same_losses NAME FIRST LAST: those steps, and no others, with the losses of x86-64 alone.
same_losses() {
  sed -n 's/^{"step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$folder/$1/metrics.jsonl" >"$folder/$1.losses"
  sed -n "$2,$3p" "$folder/x86.losses" | paste -d ' ' - "$folder/$1.losses" |
    awk -v steps=$(($3 - $2 + 1)) '
      { print; difference = ($4 - $2) / $2 }
      NF != 4 || $1 != $3 || difference > 1e-4 || difference < -1e-4 { bad = 1 }
      END { exit bad || NR != steps }'
}

same_partition() { cmp "$folder/$1/partition.toml" "$folder/$2/partition.toml"; }

check 'x86-64 alone trains' train x86 x86 1x1 --steps "$steps"
check 'its losses' same_losses x86 1 "$steps"
check 'x86-64 trains half of it' train half x86 1x1 --steps $((steps / 2))
check 'x86-64 trains tiled' train x86-tiled 'x86 x86 x86 x86' 2x2 --steps "$steps"
check 'its losses' same_losses x86-tiled 1 "$steps"
for kind in "${kinds[@]}"; do
  case $kind in
    arm64) ranks='x86 arm64 arm64 x86' ;;
    armhf) ranks='armhf armhf armhf armhf' ;;
  esac
  check "check of LeNet-5 on $ranks" on "$ranks" check models/lenet5.cfg --grid 2x2 --batch 4
  check "check of YOLOv2's early layers on $ranks" on "$ranks" check models/yolov2-early.cfg --grid 2x2 --batch 1 --size 64x64
  check "$kind alone trains" train "$kind" "$kind" 1x1 --steps "$steps"
  check 'its losses' same_losses "$kind" 1 "$steps"
  check "$ranks train tiled" train "$kind-tiled" "$ranks" 2x2 --steps "$steps"
  check 'their losses' same_losses "$kind-tiled" 1 "$steps"
  check 'their partition' same_partition x86-tiled "$kind-tiled"
  check "$kind goes on from a checkpoint of x86-64" train "$kind-resumed" "$kind" 1x1 --steps "$steps" --resume "$folder/half/checkpoint.safetensors"
  check 'its losses' same_losses "$kind-resumed" $((steps / 2 + 1)) "$steps"
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
