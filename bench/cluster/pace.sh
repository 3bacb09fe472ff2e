# Devices that keep to their share of a processor by pauses of their ranks: pace.c, and how large shares have to be.
# shellcheck shell=bash

# build_pace_library: not below /run, from where nothing may be executed. In $state/pace_loop the seconds that its loop takes on a core of
# this machine that nothing disturbs.
build_pace_library() {
  local library
  library=$(mktemp --tmpdir=/var/tmp tessera-cluster.XXXXXX.so)
  echo "$library" >"$state/pace_library"
  cc -O2 -o "$library" "$here/core_now.c" && "$library" >"$state/pace_loop" && cc -O2 -shared -fPIC -o "$library" "$here/pace.c" ||
    fail '--slow-by pace needs a C compiler: apt-get install gcc, or slow devices by quota.'
}

# leave_a_processor_for_the_wire: whether the devices' shares fit on all but one of the processors with room to spare, since ranks that wait for
# each other's turns are late. Shares that are still to be settled may become twice as large.
leave_a_processor_for_the_wire() {
  local most=0.7
  [ "$measure_pace" = no ] || most=0.35
  awk -v wanted="$(times "$(cores_of_devices)" "$dilation")" -v most="$most" -v others="$(($(processors) - 1))" 'BEGIN { exit !(wanted <= most * others) }'
}

# settle_pace: after a pause a rank finds its caches cold, and in many short turns it computes more slowly than one that has a core
# for itself, on some machines by half. So all devices compute at once, and their shares are corrected by what came of it: roughly at
# first, then by the median of three runs, and by the same factor for all of one speed, since a single run or device may have bad luck.
settle_pace() {
  local name
  if measure_paced 1; then correct_shares; else return 0; fi
  if measure_paced 3; then correct_shares; fi
  warn_of_too_few_processors "$(for name in "${names[@]}"; do value "$name" cores; done | sum_of_lines)" 'give a smaller --dilate'
}

# measure_paced RUNS: leaves in $state/paced a line for each run and device with a speed, DEVICE PART MEDIAN: what part of its speed it
# had, and the median of all lines of that speed. False where the program does not run on all devices.
measure_paced() {
  local rates name number run
  for ((run = 0; run < $1; ++run)); do
    if ! rates=$("$here/cluster" --cluster "$cluster" run --timeout 900 --each \
      "$program" time "$model" --size "$size" --steps 3 --json | grep -o '"gflops":[0-9.]*' | cut -d : -f 2); then
      warn "$program could not time $model at $size on all devices: how fast they really compute is not known."
      return 1
    fi
    number=0
    for name in "${names[@]}"; do
      number=$((number + 1))
      [ -z "${property[$name.speed]-}" ] || echo "$name ${property[$name.speed]} $(sed -n "${number}p" <<<"$rates")"
    done
  done >"$state/rates"
  awk -v dilation="$dilation" -f "$here/../median.awk" -f "$here/pace.awk" "$state/rates" >"$state/paced"
}

# correct_shares: a share of a core or more would be no pace at all.
correct_shares() {
  local name part
  while read -r name part; do
    set_value "$name" cores \
      "$(awk -v share="$(value "$name" cores)" -v part="$part" 'BEGIN { s = share / part; printf "%.6g", s < 0.99 ? s : 0.99 }')"
  done < <(cut -d ' ' -f 1,3 "$state/paced" | sort -u)
}

# paced_range: the least and most of the last runs, by their median.
paced_range() {
  awk '{ print $2 / $3 }' "$state/paced" | sort -g | awk 'NR == 1 { least = $1 } END { printf "%.2f to %.2f", least, $1 }'
}
