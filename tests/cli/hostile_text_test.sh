#!/usr/bin/env bash
# Texts made to do harm, or not texts at all: every one is answered or refused in one line, soon, and nothing of it
# reaches the terminal that is not fit for one.
. tests/cli/support/harness.sh

model=models/lenet5.cfg
escape=$'\x1b'

# harmless: neither stream of the last run holds a control character but line ends.
harmless() {
  ! LC_ALL=C grep -qP '[\x00-\x09\x0b-\x1f\x7f]' "$folder/out" "$folder/err" || fail 'a control character was printed'
}

# Control characters: in a line, a key, a section, a value, a name on the command line, a class, a device.
printf '[net]\n%s[2Jfoo\n' "$escape" >"$folder/model.cfg"
refused_alone 'model\.cfg:2: .*\\x1b\[2Jfoo' plan "$folder/model.cfg"
harmless
for line in "[${escape}c]" "$escape[2J=1" "[convolutional]
filters=$escape[31m4" "[net"$'\xe2\x80\xae'"=1"; do
  printf '[net]\nheight=8\nwidth=8\nchannels=3\n%s\n[avgpool]\n' "$line" >"$folder/model.cfg"
  run 1 plan "$folder/model.cfg"
  harmless
  expect 'no bidirectional override is printed' test -z "$(grep -F $'\xe2\x80\xae' "$folder/out" "$folder/err")"
done
cp "$model" "$folder/$escape[2J.cfg"
works 1 plan "$folder/$escape[2J.cfg"
harmless
refused_alone '\\x1b' plan "$folder/$escape[2J.none"
harmless
refused_alone 'x1b' plan "$model" "--grid=$escape[2J"
harmless
refused_alone 'x1b' plan "$model" "--$escape[2J"
harmless
works 1 plan "$model" --grid 1x2 --save "$folder/partition.toml"
sed "s/^reader/reader$escape[2J/" "$folder/partition.toml" >"$folder/edited.toml"
refused_alone 'edited\.toml:' plan "$model" --partition "$folder/edited.toml"
harmless
sed 's/"pi1"/"a\\u001b[2J"/' hostfiles/pi3x2.cluster.toml >"$folder/devices.toml"
works 1 plan "$model" --partition auto --cluster "$folder/devices.toml" --explain
harmless
mkdir "$folder/digits"
make_digits "$folder/digits" 20 10
works 1 choose "$model" --data "$folder/digits" --batch 4 --steps 2 --dry-run --cluster "$folder/devices.toml" --objective time
harmless
works 1 balance --cluster "$folder/devices.toml" --samples 10,0 --sample-bytes 10 --epochs 1 --seconds-per-sample 1,1 --out "$folder/map.toml"
harmless

# What is no file is refused at once.
mkfifo "$folder/pipe"
ln -s loop "$folder/loop"
for odd in "$folder/pipe" /dev/zero /dev/tty "$folder" "$folder/loop" /proc/kmsg /dev/full; do
  refused_alone '.' plan "$odd"
  refused_alone '.' plan "$model" --partition "$odd"
  refused_alone '.' plan "$model" --partition auto --cluster "$odd"
done
make_digits "$folder" 20 10
mkdir "$folder/run"
mkfifo "$folder/run/metrics.jsonl"
run 1 train "$model" --data "$folder" --run "$folder/run" --steps 1 --batch 2 --no-eval --progress none
expect 'a pipe in a run folder is not waited for' test "$status" -ne 124
if [ "$(id -u)" -ne 0 ]; then
  cp "$model" "$folder/locked.cfg"
  chmod 0 "$folder/locked.cfg"
  refused_alone 'locked\.cfg' plan "$folder/locked.cfg"
fi

# Of a file that is something else nothing is quoted.
for text in 'root:secret:19000:0:99999:7:::' 'password=secret' $'[client]\npassword = "secret"' '{"token": "secret"}'; do
  printf '%s\n' "$text" >"$folder/other"
  for options in "plan $folder/other" "plan $model --partition $folder/other" "plan $model --partition auto --cluster $folder/other"; do
    # shellcheck disable=SC2086 # words are meant
    refused_alone 'other' $options
    expect 'nothing of it is quoted' test -z "$(grep secret "$folder/err")"
  done
done

# Deep nesting, in every way that TOML has.
deep() { perl -e 'print "network = \"0\"\n", $ARGV[0] x 50000, $ARGV[1], "\n"' "$@" >"$folder/deep.toml"; }
for parts in 'a. a=1' '[ ]' '{a= }' '[a. x' 'a=[{ x'; do
  # shellcheck disable=SC2086
  deep $parts
  refused_alone 'deep\.toml:' plan "$model" --partition "$folder/deep.toml"
  refused_alone 'deep\.toml:' plan "$model" --partition auto --cluster "$folder/deep.toml"
done

# Encodings and line ends.
{ printf '\xef\xbb\xbf'; sed 's/$/\r/' "$model"; } >"$folder/windows.cfg"
works 1 plan "$folder/windows.cfg" && cp "$folder/out" "$folder/windows"
tr '\n' '\r' <"$model" >"$folder/mac.cfg"
works 1 plan "$folder/mac.cfg" && expect 'line ends of old Macs are line ends' diff -q <(sed 's/mac/windows/' "$folder/out") "$folder/windows"
perl -pe 's/(.)/$1\0/gs; BEGIN { binmode STDOUT; print "\xff\xfe" }' "$model" >"$folder/wide.cfg"
refused_alone 'wide\.cfg: .*UTF-16' plan "$folder/wide.cfg"

# Large and strange: soon answered, in little memory.
time_limit=30
truncate -s 1G "$folder/huge.cfg"
refused_alone 'huge\.cfg: ' plan "$folder/huge.cfg"
refused_alone 'huge\.cfg: ' plan "$model" --partition "$folder/huge.cfg"
head -c 7000000 /dev/zero | tr '\0' x >"$folder/line.cfg"
refused_alone 'line\.cfg:1: ' plan "$folder/line.cfg"
{ printf '[net]\nheight=8\nwidth=8\nchannels=3\n'; perl -e 'print "x$_=1\n" for 1 .. 500000'; } >"$folder/keys.cfg"
refused_alone 'keys\.cfg:[0-9]+: ' plan "$folder/keys.cfg"
for seed in 1 2 3 4 5 6 7 8; do
  perl -e 'srand(shift); print pack("C*", map { int rand 256 } 1 .. 3000)' "$seed" >"$folder/noise"
  refused_alone 'noise' plan "$folder/noise"
  harmless
  refused_alone 'noise' plan "$model" --partition "$folder/noise"
  harmless
  refused_alone 'noise' plan "$model" --partition auto --cluster "$folder/noise"
  harmless
done

# Threads beyond reason, or none at all.
for threads in 100000 -1 0 four 4x; do
  command_line="OMP_NUM_THREADS=$threads tessera time"
  status=0
  OMP_NUM_THREADS=$threads timeout 30 "$TESSERA" time "$model" --steps 1 >"$folder/out" 2>"$folder/all" </dev/null || status=$?
  grep -v '^libgomp\|^$' "$folder/all" >"$folder/err"
  expect_refusal 'OMP_NUM_THREADS: .*expected 1 to '
done
refused_alone 'threads' time "$model" --threads 100000
