# How fast one core of this machine runs the program, so that a device's speed can be turned into a share of a core.
# The unit is the rate that `tessera time` prints: multiply-adds of the network, as a direct convolution counts
# them, two operations each. The same command on a real device gives the number to put into a description.
# shellcheck shell=bash

program=build/release/tessera
model=models/yolov2-early.cfg
size=416x416

# measure_core_speed: prints GFLOP/s of the fastest of some steps on one thread, since others may use this machine too.
measure_core_speed() {
  local json
  [ -x "$program" ] ||
    fail "$program is not there to measure with: build it (cmake --preset release && cmake --build build/release), or give --core-speed GFLOPS or --cpu CORES."
  json=$(OMP_NUM_THREADS=1 "$program" time "$model" --size "$size" --threads 1 --steps 7 --json </dev/null) ||
    fail "$program could not time $model at $size (see above)."
  awk -v json="$json" 'function of(key) { return match(json, "\"" key "\":") ? substr(json, RSTART + RLENGTH) + 0 : 0 }
    BEGIN { printf "%.2f\n", of("gflops") * of("median") / of("min") }'
}

# kept_core_speed: the file that it is kept in.
kept_core_speed() { printf '%s/core_speed-%s-%s' "$(dirname "$program")" "$(basename "$model" .cfg)" "$size"; }

# core_speed: measured once for each build of the program, model and size, and kept beside the program.
core_speed() {
  local kept
  kept=$(kept_core_speed)
  if [ ! -s "$kept" ] || [ "$program" -nt "$kept" ] || [ "$model" -nt "$kept" ]; then
    local measured
    measured=$(measure_core_speed) || exit 2
    echo "$measured" >"$kept"
  fi
  cat "$kept"
}

# measure_anew [--model FILE] [--size HxW] [--program FILE]
measure_anew() {
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "$1 wants a value: see --help."
    case $1 in
      --model) model=$2 ;;
      --size) size=$2 ;;
      --program) program=$2 ;;
      *) fail "unknown option '$1': speed knows --model, --size and --program." ;;
    esac
    shift 2
  done
  rm -f "$(kept_core_speed)"
  printf '%s GFLOP/s: %s at %s on one core\n' "$(core_speed)" "$model" "$size"
}
