# How fast one core of this machine runs the program, so that a device's speed can be turned into a share of a core.
# The unit is the rate that `tessera time` prints: multiply-adds of the network, as a direct convolution counts
# them, two operations each. The same command on a real device gives the number to put into a description.
# shellcheck shell=bash

program=build/release/tessera
model=models/yolov2-early.cfg
size=224x224
vectors=

# time_steps COUNT: prints the operations of a step, and the processor seconds of the whole command.
time_steps() {
  local json cpu_s TIMEFORMAT='%U %S'
  cpu_s=$({ time OMP_NUM_THREADS=1 "$program" time "$model" --size "$size" --threads 1 --steps "$1" --json </dev/null >&3; } 3>"$kept.json" 2>&1) ||
    fail "$program could not time $model at $size: ${cpu_s%%$'\n'*}"
  json=$(<"$kept.json")
  rm "$kept.json"
  awk -v json="$json" -v cpu_s="${cpu_s##*$'\n'}" '
    function of(key) { return match(json, "\"" key "\":") ? substr(json, RSTART + RLENGTH) + 0 : 0 }
    BEGIN { split(cpu_s, part, " "); print of("gflops") * 1e9 * of("median"), part[1] + part[2] }'
}

# measure_core_speed: prints GFLOP/s of a thread. Others may use this machine too, so it is processor time that counts:
# that of one step and of seven, start and warm-up taken off.
measure_core_speed() {
  [ -x "$program" ] ||
    fail "$program does not exist, so the core's speed cannot be measured: build it (cmake --preset release && cmake --build build/release), or give --core-speed GFLOPS or --cpu CORES."
  [ -z "$vectors" ] || export TESSERA_VECTORS=$vectors
  local one seven
  one=$(time_steps 1) && seven=$(time_steps 7) || exit 2
  awk -v one="$one" -v seven="$seven" 'BEGIN {
    split(one, a, " "); split(seven, b, " ")
    printf "%.2f\n", 6 * b[1] / (b[2] - a[2]) * 1e-9
  }'
}

# core_speed: measured once for each build of the program, model, size and vectors, and kept beside the program.
core_speed() {
  local kept speed
  kept=$(kept_core_speed)
  if [ ! -s "$kept" ] || [ "$program" -nt "$kept" ] || [ "$model" -nt "$kept" ]; then
    speed=$(measure_core_speed) || exit 2
    echo "$speed" >"$kept"
  fi
  cat "$kept"
}

# kept_core_speed: the file that it is kept in.
kept_core_speed() {
  printf '%s/core_speed-%s-%s%s' "$(dirname "$program")" "$(basename "$model" .cfg)" "$size" "${vectors:+-$vectors}"
}

# measure_anew [--model FILE] [--size HxW] [--program FILE] [--vectors KIND]
measure_anew() {
  local speed
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "$1 needs a value: see --help."
    case $1 in
      --model) model=$2 ;;
      --size) size=$2 ;;
      --program) program=$2 ;;
      --vectors) vectors=$2 ;;
      *) fail "unknown option '$1': speed accepts --model, --size, --program and --vectors." ;;
    esac
    shift 2
  done
  rm -f "$(kept_core_speed)"
  speed=$(core_speed) || exit 2
  printf '%s GFLOP/s: %s at %s on one core\n' "$speed" "$model" "$size"
}
