# Who can reach what a run listens on: see hostfiles/README.md.
# shellcheck shell=bash disable=SC2154 # variables of run.sh and support.sh

# port_of_mpiexec DEVICE: that it listens on while something runs.
port_of_mpiexec() { one exec "$1" ss -ltnH | awk '$4 ~ /^0\.0\.0\.0:/ { sub(/.*:/, "", $4); print $4 }' | grep .; }

test_rules_of_the_host_files_keep_a_stranger_from_ending_a_run() {
  command -v nft >/dev/null || skip 'nft is not installed (package nftables)'
  local device port
  sed 's|192\.168\.1\.0/24|10.77.0.0/24|' hostfiles/cluster.nft >"$folder/rules.nft"
  for device in pi1 pi2; do
    one exec "$device" nft -f "$folder/rules.nft"
  done
  # What the third device says from an address that is not of the cluster's network is a stranger's.
  one exec pi1 ip address add 192.168.9.1/24 dev eth0
  one exec pi3 ip address add 192.168.9.3/24 dev eth0
  one run --timeout 60 -- -hosts pi1,pi2 -n 2 sh -c 'sleep 4; echo through' >"$folder/said" &
  wait_until port_of_mpiexec pi1
  port=$(port_of_mpiexec pi1)
  if one exec pi3 bash -c "exec 3<>/dev/tcp/192.168.9.1/$port"; then echo "a stranger reached port $port"; return 1; fi
  wait "$!"
  expect_equal "$(tr '\n' ' ' <"$folder/said")" 'through through '
  expect_text "$(one exec pi1 nft list table inet tessera)" 'packets 1 '
  for device in pi1 pi2; do
    one exec "$device" nft delete table inet tessera
  done
  one exec pi1 ip address delete 192.168.9.1/24 dev eth0
  one exec pi3 ip address delete 192.168.9.3/24 dev eth0
}
