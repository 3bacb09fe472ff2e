# What the cases share: a cluster called test-one of three devices, 0.4 cores, 100 MiB, 100 Mbit/s each.
# shellcheck shell=bash disable=SC2154 # $folder is of run.sh

cluster_command=$PWD/bench/cluster/cluster
python=/usr/bin/python3

one() { "$cluster_command" --cluster test-one "$@"; }

take_all_down() {
  local name
  for name in test-one test-two test-two-more test-early test-pace test-run; do
    [ ! -d "/run/tessera-cluster/$name" ] || "$cluster_command" --cluster "$name" down
  done
}

skip() {
  echo "$1"
  exit 77
}

# expect_equal FOUND EXPECTED
expect_equal() {
  [ "$1" = "$2" ] || { printf 'found "%s", expected "%s"\n' "$1" "$2" && return 1; }
}

# expect_between NUMBER LOW HIGH
expect_between() {
  awk -v x="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(x >= low && x <= high) }' ||
    { printf '%s is not between %s and %s\n' "$1" "$2" "$3" && return 1; }
}

# expect_text TEXT PART
expect_text() {
  [[ $1 == *"$2"* ]] || { printf 'found "%s", which does not say "%s"\n' "$1" "$2" && return 1; }
}

# expect_refusal TEXT COMMAND...: it ends with 2 and one line that says so.
expect_refusal() {
  local text=$1 said code=0
  shift
  said=$("$@" 2>&1) || code=$?
  expect_equal "$code" 2
  expect_equal "$(wc -l <<<"$said")" 1
  expect_text "$said" "$text"
}

# wait_until COMMAND...: until it succeeds, 20 s at most.
wait_until() { within 20 "$@"; }

# within SECONDS COMMAND...: the same for so long.
within() {
  local seconds=$1 end
  end=$((SECONDS + seconds))
  shift
  until "$@" >/dev/null; do
    [ "$SECONDS" -lt "$end" ] || { echo "waited for $seconds s in vain for: $*" && return 1; }
    sleep 0.02
  done
}

# status_of DEVICE COLUMN
status_of() {
  one status --csv | awk -F, -v device="$1" -v column="$2" '
    NR == 1 { for (i = 1; i <= NF; ++i) if ($i == column) wanted = i }
    $1 == device { print $wanted }'
}

# mbit_per_s FROM TO BYTES
mbit_per_s() {
  one exec "$2" "$python" tests/cluster/transfer.py receive 5001 >"$folder/rate" &
  local receiver=$!
  one exec "$1" "$python" tests/cluster/transfer.py send "$2" 5001 "$3"
  wait "$receiver"
  cat "$folder/rate"
}

# traces NAME: all that is left of a cluster.
traces() {
  ip netns list | grep -F "tessera-$1." || true
  find /sys/fs/cgroup -maxdepth 2 -name "tessera-cluster-$1" 2>/dev/null
  find /run/tessera-cluster -maxdepth 1 -name "$1" 2>/dev/null || true
  grep -lz "^TESSERA_CLUSTER_INIT=$1/" /proc/[0-9]*/environ 2>/dev/null || true
}
