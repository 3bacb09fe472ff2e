# What a cluster consists of: from a file with a line per device, or from options for equal devices.
# shellcheck shell=bash

# The device names in order, and their properties under the keys DEVICE.PROPERTY.
names=()
declare -A property

readonly number_pattern='^([0-9]+([.][0-9]*)?|[.][0-9]+)$'
readonly name_pattern='^[a-z]([a-z0-9-]{0,13}[a-z0-9])?$'

readonly least_mbit=0.01 most_mbit=100000

is_positive() { [[ $1 =~ $number_pattern ]] && awk -v number="$1" 'BEGIN { exit !(number > 0) }'; }

# is_rate MBIT: what the kernel's `tbf` can keep to.
is_rate() {
  [[ $1 =~ $number_pattern ]] && awk -v mbit="$1" -v least="$least_mbit" -v most="$most_mbit" 'BEGIN { exit !(mbit >= least && mbit <= most) }'
}

# can_name_device NAME: it also becomes an interface beside those of the switch, where some names have a meaning of their own.
can_name_device() {
  case $1 in switch | bridge | localhost | lo | all | default) return 1 ;; esac
  [[ $1 =~ $name_pattern ]]
}

# add_device WHERE NAME PROPERTY=VALUE...: WHERE is for messages. What is left out is as on a Raspberry Pi 3.
add_device() {
  local where=$1 name=$2 pair key
  shift 2
  can_name_device "$name" ||
    fail "$where: '$name' cannot name a device: use up to 15 lower-case letters, digits and hyphens, a letter first; not switch, bridge, localhost, lo, all, default."
  [ -z "${property[$name.memory]-}" ] || fail "$where: there are two devices called $name."
  for pair in memory=900 rate=100 threads=1 byte=8 "$@"; do
    key=${pair%%=*}
    case $key in
      speed | cpu | memory | rate | threads | byte) ;;
      *) fail "$where: unknown property '$pair'; a device has speed or cpu, memory, rate, threads and byte." ;;
    esac
    [[ $pair == *=* ]] && is_positive "${pair#*=}" || fail "$where: $key: expected a positive number, as in $key=4."
    [ "$key" != rate ] || is_rate "${pair#*=}" || fail "$where: rate: expected a number from $least_mbit to $most_mbit, in Mbit/s."
    property[$name.$key]=${pair#*=}
  done
  [[ ${property[$name.memory]}${property[$name.threads]} =~ ^[0-9]+$ ]] || fail "$where: memory (MiB) and threads must be integers."
  if [ -n "${property[$name.cpu]-}" ] && [ -n "${property[$name.speed]-}" ]; then
    fail "$where: $name has both speed and cpu; give one."
  fi
  [ -n "${property[$name.cpu]-}" ] || : "${property[$name.speed]:=4.5}"
  names+=("$name")
}

# read_description FILE: a line per device: NAME PROPERTY=VALUE..., and # for comments.
read_description() {
  local line words number=0
  while read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    read -ra words <<<"${line%%#*}"
    [ "${#words[@]}" -eq 0 ] || add_device "$1, line $number" "${words[@]}"
  done <"$1"
  [ "${#names[@]}" -gt 0 ] || fail "$1 lists no device: add a line for each, as in: pi1 speed=4.5 memory=900 rate=100"
}

# describe_equal COUNT PROPERTY=VALUE...: devices called pi1, pi2, ...
describe_equal() {
  local count=$1 number
  shift
  [[ $count =~ ^[0-9]+$ ]] && [ "$count" -ge 1 ] && [ "$count" -le 64 ] || fail '--devices: expected a number from 1 to 64.'
  for ((number = 1; number <= count; ++number)); do
    add_device "up" "pi$number" "$@"
  done
}

# description_file NAME_OR_FILE: a file as it is, else the example of that name beside this script.
description_file() {
  if [ -f "$1" ]; then
    printf '%s' "$1"
  elif [ -f "$here/$1.devices" ]; then
    printf '%s' "$here/$1.devices"
  else
    fail "there is no description '$1'; give a file, or one of: $(cd "$here" && echo *.devices | sed 's/\.devices//g')"
  fi
}

any_speed() {
  local name
  for name in "${names[@]}"; do
    if [ -n "${property[$name.speed]-}" ]; then return 0; fi
  done
  return 1
}

# processors: of this machine; nproc by itself prints OMP_NUM_THREADS where that is set.
processors() { env -u OMP_NUM_THREADS nproc; }

# settle_cores CORE_GFLOPS DILATION: turns speeds into processor shares, in device.cores. The dilation `max` is
# the one that uses nine tenths of this machine. Prints nothing; sets $dilation.
settle_cores() {
  local name total
  for name in "${names[@]}"; do
    property[$name.cores]=${property[$name.cpu]-$(awk -v p="${property[$name.speed]-}" -v g="$1" 'BEGIN { printf "%.6f", p / g }')}
  done
  total=$(cores_of_devices)
  dilation=$2
  [ "$dilation" != max ] || dilation=$(awk -v n="$(processors)" -v total="$total" 'BEGIN { printf "%.3g", 0.9 * n / total }')
  warn_of_too_few_processors "$(awk -v t="$total" -v k="$dilation" 'BEGIN { print t * k }')" '--dilate max is the largest that fits'
}

sum_of_lines() { awk '{ total += $1 } END { print total }'; }

# cores_of_devices: what all of them want of this machine, not dilated.
cores_of_devices() {
  local name
  for name in "${names[@]}"; do echo "${property[$name.cores]}"; done | sum_of_lines
}

# warn_of_too_few_processors WANTED ADVICE
warn_of_too_few_processors() {
  local here_for_them
  here_for_them=$(processors)
  [ "$wire_apart" = no ] || here_for_them=$((here_for_them - 1))
  awk -v n="$here_for_them" -v wanted="$1" 'BEGIN { exit !(wanted > n) }' || return 0
  warn "the devices want $(printf '%.2f' "$1") processors and this machine has $here_for_them for them: times will mean nothing; $2."
}

# warn_of_small_shares: where the quota of a device is used up in most periods.
warn_of_small_shares() {
  local name smallest
  smallest=$(for name in "${names[@]}"; do echo "${property[$name.cores]}"; done | sort -g | head -n 1)
  awk -v share="$smallest" -v k="$dilation" -v n="$(processors)" -v total="$(cores_of_devices)" 'BEGIN {
    most = 0.9 * n / total
    if (share * k < 0.1 && most > k)
      printf "With %.2g of a core a device stands still for most of the time, and single steps mean little; --dilate %.3g, or max, gives it %.2g.\n", share * k, most, share * most
  }'
}

# times NUMBER FACTOR
times() { awk -v number="$1" -v k="$2" 'BEGIN { printf "%.6g", number * k }'; }

# expect_dilated_rates: a dilation is not to take links out of what can be kept to.
expect_dilated_rates() {
  local name
  for name in "${names[@]}"; do
    is_rate "$(times "${property[$name.rate]}" "$dilation")" ||
      fail "$name has a link of ${property[$name.rate]} Mbit/s, which dilated by $dilation is not from $least_mbit to $most_mbit."
  done
}

# dilated NUMBER: as many times as the cluster is faster than its devices would be.
dilated() { times "$1" "$(<"$state/dilation")"; }
