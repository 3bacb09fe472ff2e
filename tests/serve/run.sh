#!/usr/bin/env bash
# Usage: tests/serve/run.sh [-h|--help]
# Trains on four ranks of this machine while a `tessera top --serve` of the run is attacked (attack.py), then as many steps alone,
# and compares: the same losses, step times, what the server took. TESSERA=PROGRAM (default build/release/tessera),
# SECONDS_EACH=25 for each attack. Everything stays on the loopback. Ends with 1 if anything is wrong.
set -eu
cd "$(dirname "$0")/../.."
case ${1-} in -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit ;; esac
tessera=$(realpath "${TESSERA:-build/release/tessera}")
[ -x "$tessera" ] || { echo "there is no program $tessera: build it, or set TESSERA" >&2; exit 2; }
folder=$(mktemp -d)
server='' training=''
trap 'kill $server $training 2>/dev/null || true; rm -rf "$folder"' EXIT
export OMP_NUM_THREADS=1

# train NAME STEPS: in a folder of that name, in place of this process.
train() {
  exec "$tessera" run -n 4 -- train models/fashion-resnet.cfg --data "${DATA:-/usr/share/datasets/fashion-mnist}" --grid 2x2 --batch 64 \
    --steps "$2" --schedule-steps 100000 --no-eval --run "$folder/$1" >"$folder/$1.out" 2>&1
}
losses() { sed -n 's/^{"step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$folder/$1/metrics.jsonl"; }
# times NAME: of steps, quartiles.
times() {
  sed -n 's/.*"step_s":\([^,]*\),.*/\1/p' "$folder/$1/metrics.jsonl" | sort -g | awk '{ s[NR] = 1000 * $1 } END {
    printf "%d steps, quartiles %.1f, %.1f, %.1f ms\n", NR, s[int(NR / 4) + 1], s[int(NR / 2) + 1], s[int(3 * NR / 4) + 1] }'
}

(train served 100000) &
training=$!
until [ -s "$folder/served/metrics.jsonl" ]; do sleep 0.2; done
"$tessera" top "$folder/served" --serve 0 >"$folder/url" &
server=$!
until [ -s "$folder/url" ]; do sleep 0.1; done
port=$(sed 's/.*:\([0-9]*\).*/\1/' "$folder/url")
wrong=0
python3 tests/serve/attack.py "$port" "$server" "${SECONDS_EACH:-25}" || wrong=1
kill -0 "$server" || { echo 'WRONG: the server has ended'; wrong=1; }
kill -TERM "$training" || { echo 'WRONG: the run has ended'; wrong=1; }
wait "$training" || [ $? -eq 143 ] || { echo 'WRONG: the run has failed'; tail -n 3 "$folder/served.out"; wrong=1; }
training=''
(train alone "$(losses served | wc -l)")
if cmp -s <(losses alone) <(losses served); then
  echo "losses of $(losses served | wc -l) steps have the same bits"
else
  echo 'WRONG: the losses differ'
  wrong=1
fi
echo "alone:    $(times alone)"
echo "attacked: $(times served)"
exit "$wrong"
