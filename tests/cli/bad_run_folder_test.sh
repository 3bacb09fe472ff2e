#!/usr/bin/env bash
# A run folder that cannot be written, and a disk that fills up: training ends on all ranks with code 2 and one line, and the
# checkpoint that was there is as it was.
. tests/cli/support/harness.sh

model=models/lenet5.cfg
data=$folder/digits
mkdir "$data"
make_digits "$data" 60 20
training=(train "$model" --data "$data" --batch 8)

: >"$folder/file"
refused "^tessera: --run $folder/file: " "${training[@]}" --steps 2 --run "$folder/file"
refused "^tessera: --run $folder/file/run: " "${training[@]}" --steps 2 --run "$folder/file/run"
refused '^tessera: --run /proc/run: ' "${training[@]}" --steps 2 --run /proc/run
refused '^tessera: --run ' "${training[@]}" --steps 2 --run ''
mkdir -p "$folder/blocked/checkpoint.safetensors"
refused 'blocked/checkpoint\.safetensors: is a folder' "${training[@]}" --steps 2 --run "$folder/blocked"
mkdir -p "$folder/blocked2/metrics.jsonl"
refused 'blocked2/metrics\.jsonl: is a folder' "${training[@]}" --steps 2 --run "$folder/blocked2"

# --save and --out into folders that are not there.
refused_alone 'no/such/plan\.toml: ' plan "$model" --save "$folder/no/such/plan.toml"

# A standard output that cannot be written: training goes on to its end, of which the files tell; everything else says so.
# into_full ARGUMENT...
into_full() {
  command_line="tessera $* >/dev/full"
  status=0
  : >"$folder/out"
  timeout "$time_limit" "$TESSERA" "$@" >/dev/full 2>"$folder/err" </dev/null || status=$?
  expect_refusal '^tessera: standard output: '
}
command_line='tessera train >/dev/full'
status=0
timeout "$time_limit" "$TESSERA" "${training[@]}" --steps 4 --run "$folder/run" >/dev/full 2>"$folder/err" </dev/null || status=$?
expect 'training went to its end' test "$status" -eq 0 -a "$(losses "$folder/run" | wc -l)" -eq 4 -a -s "$folder/run/checkpoint.safetensors"
into_full plan "$model" --json
into_full eval "$model" --data "$data" --weights "$folder/run/checkpoint.safetensors"
into_full check "$model"

# A small disk of its own that fills up, where the tests run as root.
mkdir "$folder/disk"
if mount -t tmpfs -o size=800k tmpfs "$folder/disk" 2>/dev/null; then
  trap 'umount "$folder/disk"; finish' EXIT
  run_on_disk() { run "$1" "${training[@]}" --steps "$2" --run "$folder/disk/run" --no-eval "${@:3}"; }
  run_on_disk 4 2
  expect 'the first checkpoint fits' test "$status" -eq 0
  cp "$folder/disk/run/checkpoint.safetensors" "$folder/before"
  for ranks in 1 4; do
    # The old checkpoint has its place, a second one has none.
    run_on_disk "$ranks" 4 --resume "$folder/disk/run/checkpoint.safetensors"
    expect_refusal 'disk/run/checkpoint\.safetensors: .*free some space'
    expect 'the old checkpoint is as it was' same_bytes "$folder/before" "$folder/disk/run/checkpoint.safetensors"
    expect 'nothing half-written is left' test ! -e "$folder/disk/run/checkpoint.safetensors.partial"
  done
  rm "$folder/disk/run/"*
  head -c 2000000 /dev/zero >"$folder/disk/filler" 2>/dev/null
  for ranks in 1 4; do
    run_on_disk "$ranks" 40 --checkpoint-every 100
    expect_refusal 'disk/run/[a-z]*\.[a-z]*: .*free (some )?space'
  done
  # Room for the small files of a run, some lines of metrics and the beginning of another.
  truncate -s -131072 "$folder/disk/filler"
  for ranks in 1 4; do
    rm "$folder/disk/run/"*
    run_on_disk "$ranks" 2000 --checkpoint-every 10000
    expect_refusal 'disk/run/[a-z]*\.[a-z]*: .*free (some )?space'
    expect 'there are lines, all of them whole' test -s "$folder/disk/run/metrics.jsonl" -a -z "$(tail -c 1 "$folder/disk/run/metrics.jsonl")"
  done
else
  echo 'no small disk can be mounted here: that part is left out'
fi
