# Links: rates, cables, what is counted.
# shellcheck shell=bash disable=SC2154,SC2016 # variables of run.sh and support.sh; shells on devices expand

test_link_carries_as_much_as_fast_ethernet_in_both_directions() {
  expect_between "$(mbit_per_s pi1 pi2 12000000)" 89 95.5
  expect_between "$(mbit_per_s pi2 pi1 12000000)" 89 95.5
}

test_link_takes_another_rate() {
  one link pi1 rate 20
  # For five seconds: of two, a packet that is lost costs a good part.
  expect_between "$(mbit_per_s pi1 pi2 12000000)" 16 19.5
  expect_between "$(mbit_per_s pi2 pi1 12000000)" 16 19.5
  one link pi1 rate 100
}

test_link_keeps_its_rate_where_another_is_refused() {
  local rate
  for rate in '' 0 0.0000000001 0.009 100001 fast; do
    expect_refusal 'a rate is a number from 0.01 to 100000' one link pi1 rate "$rate"
  done
  expect_equal "$(status_of pi1 rate_mbit)" 100
}

# kernel_rate: of the link of pi1 as the kernel has it.
kernel_rate() { ip netns exec tessera-test-one.pi1 tc qdisc show dev eth0 | grep -o 'rate [^ ]*'; }

test_link_takes_the_least_and_the_highest_rate() {
  one link pi1 rate 0.01
  expect_equal "$(kernel_rate)" 'rate 10Kbit'
  one link pi1 rate 100000
  expect_equal "$(kernel_rate)" 'rate 100Gbit'
  one link pi1 rate 100
}

test_link_counts_what_it_carries() {
  local before after
  before=$(status_of pi1 sent_bytes)
  mbit_per_s pi1 pi2 3000000 >/dev/null
  after=$(status_of pi1 sent_bytes)
  # Headers are 66 bytes in 1514.
  expect_between $((after - before)) 3100000 3300000
}

# Whatever this machine has been told to use.
test_link_avoids_congestion_as_a_pi_does() {
  [[ "$(one exec pi1 cat /proc/sys/net/ipv4/tcp_congestion_control)" =~ ^(cubic|reno)$ ]]
}

# connect_to DEVICE: why pi1 cannot connect to a port of it where nobody listens.
connect_to() {
  one exec pi1 "$python" -c "
import socket
try:
    socket.create_connection(('$1', 9), timeout=3) # nothing listens there, as an sshd may at 22
except OSError as error:
    print(error)"
}

# reaches DEVICE ADDRESS
reaches() { one exec "$1" ping -q -c 1 -W 1 "$2" >/dev/null; }

test_link_leads_to_the_router_and_no_further() {
  command -v ping >/dev/null || skip 'ping is not installed'
  reaches pi1 10.77.0.254
  expect_text "$(one exec pi1 ping -c 1 -W 5 192.0.2.1 || true)" 'Host Unreachable'
}

# expect_reached FROM ADDRESS..., or none of them:
expect_reached() {
  local from=$1 to
  for to in "${@:2}"; do reaches "$from" "$to" || { echo "$from does not reach $to" && return 1; }; done
}
expect_unreached() {
  local from=$1 to
  for to in "${@:2}"; do ! reaches "$from" "$to" || { echo "$from reaches $to" && return 1; }; done
}

test_link_of_a_split_network_leads_to_its_half_and_to_a_router_if_that_has_one() {
  command -v ping >/dev/null || skip 'ping is not installed'
  one split pi1 pi2
  expect_reached pi1 pi2 10.77.0.254
  expect_reached pi3 10.77.0.254
  expect_unreached pi1 pi3
  expect_unreached pi3 pi2
  one split --without-router pi3
  expect_reached pi1 pi2 10.77.0.254
  expect_unreached pi3 pi1 10.77.0.254
  expect_equal "$(one exec pi3 cat /sys/class/net/eth0/carrier)" 1
  one join
  wait_until reaches pi3 pi1 # which it takes for gone for some seconds
  expect_reached pi3 10.77.0.254
  expect_refusal 'which device?' one split --without-router
  expect_refusal "no device 'pi9'" one split pi1 pi9
}

test_link_without_its_cable_carries_nothing() {
  one link pi2 down
  expect_equal "$(status_of pi2 cable)" out
  expect_equal "$(one exec pi2 cat /sys/class/net/eth0/carrier)" 0
  # "No route to host" once pi1 has forgotten where pi2 is.
  [[ "$(connect_to pi2)" =~ ^('timed out'|.*'No route to host')$ ]]
  one link pi2 up
  expect_text "$(connect_to pi2)" 'Connection refused'
  expect_between "$(mbit_per_s pi1 pi2 1000000)" 60 96
}
