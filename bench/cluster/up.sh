# Making a cluster and taking it down.
# shellcheck shell=bash

# read_up_options ARGUMENT...: sets the names and properties of the devices, and the variables below.
read_up_options() {
  local description='' devices='' equal=() key
  new_name='' own='' core_gflops='' wanted_dilation=1 slow_by=quota
  while [ $# -gt 0 ]; do
    case $1 in
      --devices | --rate | --speed | --cpu | --memory | --threads | --byte | --dilate | --slow-by | --name | --own | --core-speed | --model | --size | --program | --vectors)
        [ $# -ge 2 ] || fail "$1 needs a value: see --help." ;;
      -*) fail "unknown option '$1': see --help." ;;
      *) [ -z "$description" ] || fail "expected one description, not both '$description' and '$1'." ;;
    esac
    key=${1#--}
    case $1 in
      --devices) devices=$2 ;;
      --rate | --speed | --cpu | --memory | --threads | --byte) equal+=("$key=$2") ;;
      --dilate) wanted_dilation=$2 ;;
      --slow-by) slow_by=$2 ;;
      --name) new_name=$2 ;;
      --own) own=$2 ;;
      --core-speed) core_gflops=$2 ;;
      --model) model=$2 ;;
      --size) size=$2 ;;
      --program) program=$2 ;;
      --vectors) vectors=$2 ;;
      *) description=$1 && shift && continue ;;
    esac
    shift 2
  done
  check_up_options
  describe "$description" "$devices" "${equal[@]}"
}

check_up_options() {
  [ "$wanted_dilation" = max ] || is_positive "$wanted_dilation" || fail '--dilate: expected a positive number or max.'
  case $slow_by in quota | pace) ;; *) fail '--slow-by: expected quota or pace.' ;; esac
  [ -z "$own" ] || { own=$(readlink -e "$own") && [ -d "$own" ]; } || fail '--own: expected a folder that is there.'
  [ -z "$core_gflops" ] || is_positive "$core_gflops" || fail '--core-speed: expected a positive number, in GFLOP/s.'
}

# describe DESCRIPTION DEVICES PROPERTY=VALUE...: one of the first two is empty.
describe() {
  local description=$1 devices=$2 file
  shift 2
  if [ -n "$description" ]; then
    [ -z "$devices" ] && [ $# -eq 0 ] || fail 'a description cannot be combined with --devices, --rate, --speed, --cpu, --memory, --threads and --byte.'
    file=$(description_file "$description") || exit 2
    read_description "$file"
    : "${new_name:=$(basename "${file%.*}")}"
  else
    [ -n "$devices" ] || fail 'up: expected a description or --devices N: see --help.'
    describe_equal "$devices" "$@"
    : "${new_name:=pi}"
  fi
  [[ $new_name =~ $name_pattern ]] || fail "'$new_name' cannot name a cluster: use up to 15 lower-case letters, digits and hyphens, a letter first; choose another with --name."
}

# write_state: all that is known before anything runs.
write_state() {
  local name number=0 address
  echo "$dilation" >"$state/dilation"
  printf '%s' "$vectors" >"$state/vectors"
  printf '%s' "$own" >"$state/own"
  printf '%s\n' "${names[@]}" >"$state/names"
  echo '127.0.0.1 localhost' >"$state/hosts"
  for name in "${names[@]}"; do
    number=$((number + 1))
    address=10.77.0.$number
    mkdir -p "$state/devices/$name" ${own:+"$own/$name"}
    set_value "$name" address "$address"
    set_value "$name" cores "$(dilated "${property[$name.cores]}")"
    set_value "$name" memory_mib "${property[$name.memory]}"
    set_value "$name" rate_mbit "${property[$name.rate]}"
    set_value "$name" threads "${property[$name.threads]}"
    # A dilated device is done with a byte as many times sooner.
    [ "$wire_apart" = no ] || set_value "$name" byte_s "$(awk -v ns="${property[$name.byte]}" -v k="$dilation" 'BEGIN { printf "%.6g", ns * 1e-9 / k }')"
    echo "$address $name" >>"$state/hosts"
  done
}

bring_up() {
  local name
  require "${needed_by_up[@]}"
  read_up_options "$@"
  use_cluster "$new_name"
  [ ! -e "$state" ] || fail "$cluster is already up; take it down with 'cluster --cluster $cluster down', or give this one another --name."
  expect_no_namespaces switch "${names[@]}"
  measure_pace=no
  if [ -z "$core_gflops" ] && any_speed; then
    core_gflops=$(core_speed) || exit 2
    measure_pace=yes
  fi
  wire_apart=no
  settle_cores "${core_gflops:-1}" "$wanted_dilation"
  expect_dilated_rates
  if [ "$slow_by" = pace ] && leave_a_processor_for_the_wire; then wire_apart=yes; fi

  mkdir -p "$all_state"
  mkdir "$state" 2>/dev/null || fail "$cluster is being created by another process."
  trap 'warn "taking $cluster down again."; take_down' EXIT
  [ "$slow_by" = quota ] || build_pace_library
  # Also on INT, TERM and HUP: bash 5.2 can trip over a trap of theirs while it parses a substitution.
  write_state
  make_switch
  for name in "${names[@]}"; do
    make_groups "$name"
    set_quota "$name" "$(quota_of "$name")"
    set_memory_limit "$name" "$(value "$name" memory_mib)"
    switch_on "$name"
  done
  if [ "$slow_by" = pace ] && [ "$measure_pace" = yes ]; then settle_pace; fi
  trap - EXIT
  print_summary
}

# quota_of DEVICE: where its ranks keep to their share by themselves, a whole core for each thread.
quota_of() {
  if [ "$slow_by" = quota ]; then value "$1" cores; else value "$1" threads; fi
}

print_summary() {
  local name
  printf '%s: %d devices' "$cluster" "${#names[@]}"
  [ -z "$core_gflops" ] || printf ', on cores of %s GFLOP/s' "$core_gflops"
  printf '\n%-10s %-12s %12s %12s %10s %10s\n' device address 'speed' 'cores here' memory link
  for name in "${names[@]}"; do
    printf '%-10s %-12s %12s %12.4f %6s MiB %5s Mb/s\n' "$name" "$(value "$name" address)" \
      "${property[$name.speed]:+${property[$name.speed]} GFLOP/s}" "$(value "$name" cores)" \
      "$(value "$name" memory_mib)" "$(value "$name" rate_mbit)"
  done
  [ "$wire_apart" = no ] || echo 'The wire has a processor of its own; devices are charged for each byte instead.'
  [ ! -s "$state/paced" ] || echo "Shares are such that devices which compute all at once do so at these speeds; single runs had $(paced_range) of them."
  [ "$slow_by" = pace ] || warn_of_small_shares
  if [ "$dilation" = 1 ]; then
    echo 'Real time: a second here is a second on the devices.'
  else
    printf 'Dilated: quotas and links are %s times those of the devices, so multiply times by %s.\n' "$dilation" "$dilation"
  fi
}

# take_down: everything that this cluster has made, whatever state it is in.
take_down() {
  local name pid
  [ ! -f "$state/names" ] || for name in $(device_names); do
    switch_off "$name"
  done
  for pid in $(processes_on switch); do kill -KILL "$pid" 2>/dev/null || true; done
  ip netns delete "$(namespace_of switch)" 2>/dev/null || true
  remove_groups
  [ ! -s "$state/pace_library" ] || rm -f "$(<"$state/pace_library")"
  rm -rf "$state"
  rmdir "$all_state" 2>/dev/null || true
}
