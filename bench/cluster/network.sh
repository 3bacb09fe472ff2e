# The switch and the cables: a bridge in a network namespace of its own, and to each device a pair of virtual
# interfaces, `eth0` there and a port of the device's name here, shaped in both directions. The switch is the devices' router as
# well, which leads nowhere.
# shellcheck shell=bash

readonly router_address=10.77.0.254 router_hardware=02:00:0a:4d:00:fe

# namespace_of DEVICE: its name for `ip netns`. The switch is called so, too. Names of clusters and devices may have hyphens but no
# dots, so that no two clusters have a namespace in common.
namespace_of() { printf 'tessera-%s.%s' "$cluster" "$1"; }

# expect_no_namespaces DEVICE...: they are still to be made, and `down` is not to delete what somebody else made.
expect_no_namespaces() {
  local device
  for device in "$@"; do
    [ ! -e "/run/netns/$(namespace_of "$device")" ] || fail "another program uses the network namespace $(namespace_of "$device"): give another --name."
  done
}

make_switch() {
  local switch
  switch=$(namespace_of switch)
  ip netns add "$switch"
  ip -n "$switch" link add name bridge type bridge stp_state 0 forward_delay 0
  ip -n "$switch" link set dev bridge addrgenmode none address "$router_hardware" up
  ip -n "$switch" address add "$router_address/24" dev bridge
  # What is addressed to elsewhere is refused at once.
  ip -n "$switch" route add unreachable default
  nsenter --net="/run/netns/$switch" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
}

# split_network yes|no DEVICE...: another switch for these; `yes`: it has a cable to the router, too.
split_network() {
  local router=$1 switch device
  shift
  switch=$(namespace_of switch)
  join_network
  ip -n "$switch" link add name other type bridge stp_state 0 forward_delay 0
  ip -n "$switch" link set dev other addrgenmode none up
  # Addresses of the first bridge are answered for here, too, or not at all.
  if [ "$router" = yes ]; then
    ip -n "$switch" link set dev other address "$router_hardware"
  else
    nsenter --net="/run/netns/$switch" sh -c 'echo 1 >/proc/sys/net/ipv4/conf/other/arp_ignore'
  fi
  for device in "$@"; do
    ip -n "$switch" link set dev "$device" master other
    [ "$router" = no ] || ip -n "$switch" route add "$(value "$device" address)/32" dev other src "$router_address"
  done
}

# join_network: all devices on one switch again.
join_network() {
  local switch device
  switch=$(namespace_of switch)
  [ -n "$(ip -n "$switch" -o link show dev other 2>/dev/null)" ] || return 0
  for device in $(device_names); do
    ip -n "$switch" link set dev "$device" master bridge 2>/dev/null || true
  done
  ip -n "$switch" link delete dev other # and routes to it
}

# connect DEVICE ADDRESS: lays the cable between a device's network namespace and the switch.
connect() {
  local device=$1 address=$2 switch namespace
  switch=$(namespace_of switch)
  namespace=$(namespace_of "$device")
  ip link add name "$device" netns "$switch" type veth peer name eth0 netns "$namespace"
  # The same hardware address after each power cut: others remember it.
  ip -n "$namespace" link set dev eth0 address "$(printf '02:00:%02x:%02x:%02x:%02x' ${address//./ })"
  # No addresses of version 6: their chatter would be counted.
  with_few_frames_at_once "$switch" "$device"
  with_few_frames_at_once "$namespace" eth0
  ip -n "$switch" link set dev "$device" addrgenmode none master bridge up
  ip -n "$namespace" address add "$address/24" dev eth0
  ip -n "$namespace" link set dev lo up
  ip -n "$namespace" link set dev eth0 addrgenmode none up
  ip -n "$namespace" route add default via "$router_address"
  with_usual_tcp "$namespace"
}

# with_usual_tcp NAMESPACE: congestion control as on a Pi, or the one that is nearest and everywhere allowed; a namespace
# begins with that of this machine, which may be another.
with_usual_tcp() {
  local kind
  for kind in cubic reno; do
    nsenter --net="/run/netns/$1" sh -c "echo $kind >/proc/sys/net/ipv4/tcp_congestion_control" 2>/dev/null && return
  done
  fail "this kernel has neither cubic nor reno for TCP's congestion control."
}

# with_few_frames_at_once NAMESPACE INTERFACE: four frames of 1514 bytes cross the emulated wire together, half a millisecond of 100 Mbit/s. One at
# a time they would take several times as much of this machine's processors, and that of the ranks, which are charged for it
# as slow devices are. More would no longer pass between the tokens of half a millisecond.
with_few_frames_at_once() {
  nsenter --net="/run/netns/$1" ethtool -K "$2" tso on gso on gro off >/dev/null
  ip -n "$1" link set dev "$2" gso_max_segs 4
}

# set_rate DEVICE MBIT: as the wire has it, in both directions. A device queues what it sends in memory; a port
# of a switch has a buffer of 20 ms.
set_rate() {
  shape "$(namespace_of "$1")" eth0 "$2" 0.05 1500000
  shape "$(namespace_of switch)" "$1" "$2" 0.02 65536
}

# shape NAMESPACE INTERFACE MBIT QUEUE_S LEAST_QUEUE_BYTES
# A wire carries 24 bytes a frame that are not in its length here: preamble, checksum, gap. Tokens for half a
# millisecond, or two where timers are too coarse for the rate, but at least for two frames. %.0f, since mawk's %d ends at 2^31.
shape() {
  local rate burst limit
  read -r rate burst limit < <(awk -v mbit="$3" -v queue_s="$4" -v least="$5" 'BEGIN {
    bytes_per_s = mbit * 1e6 / 8
    burst = bytes_per_s * (mbit > 200 ? 2e-3 : 0.5e-3)
    limit = bytes_per_s * queue_s
    printf "%.0f %.0f %.0f\n", mbit * 1e6, burst < 3200 ? 3200 : burst, limit < least ? least : limit
  }')
  tc -n "$1" qdisc replace dev "$2" root tbf rate "${rate}bit" burst "$burst" limit "$limit" overhead 24
}

# set_cable DEVICE up|down
set_cable() { ip -n "$(namespace_of switch)" link set dev "$1" "$2"; }

# cable_is_in DEVICE
cable_is_in() { [ -n "$(ip -n "$(namespace_of switch)" -o link show dev "$1" up 2>/dev/null)" ]; }

# wire_bytes DEVICE: bytes sent and received, as the wire has them: frames that cross it together each with their headers, which an interface
# counts once for all of them.
wire_bytes() {
  echo "$(queued_bytes "$(namespace_of "$1")" eth0) $(queued_bytes "$(namespace_of switch)" "$1")"
}

# queued_bytes NAMESPACE INTERFACE: that have left its queue.
queued_bytes() { tc -n "$1" -s qdisc show dev "$2" root | awk '$1 == "Sent" { print $2 }'; }
