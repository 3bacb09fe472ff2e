#!/usr/bin/env bash
# report: a page about a run that is going, finished, interrupted, damaged or large; in a browser every chart of it is
# drawn, at any width, light and dark, and it asks for nothing.
. tests/cli/support/harness.sh

# make_run NAME STEPS RANKS STATE [SECONDS]: a run folder as training leaves it.
make_run() {
  mkdir -p "$folder/$1"
  perl "$support/make_run.pl" "$folder/$1" "${@:2}"
  works 1 plan "$models/fashion-resnet.cfg" --ranks "$3" --json
  cp "$folder/out" "$folder/$1/plan.json"
}

page_of() { works 1 report "$folder/$1"; }
says() { expect "the page of $1 says: $2" grep -qF -- "$2" "$folder/$1/report.html"; }

browser=no
if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then browser=yes; fi
if [ "$browser" = no ] && [ -n "${CI:-}" ]; then fail 'continuous integration has no chromium'; fi

# drawn NAME LEAST: a browser finds nothing wrong with the page, and that many drawings at least.
drawn() {
  [ "$browser" = yes ] || return 0
  command_line="browser.py check $1/report.html"
  status=0
  timeout -k 5 300 python3 "$support/browser.py" check "$folder/$1/report.html" >"$folder/out" 2>"$folder/err" || status=$?
  expect "a browser finds nothing wrong with the page of $1" test "$status" -eq 0
  # shellcheck disable=SC2016
  expect "it has $2 drawings" awk -v least="$2" '/ drawings: / { count = $1 } END { exit !(count >= least) }' "$folder/out"
}

# A run that has ended: all there is.
make_run finished 300 4 finished
page_of finished
expect 'it says where the page is' grep -qF "finished/report.html (finished)" "$folder/out"
says finished '<p class="state finished">finished</p>'
says finished '&lt;b&gt;dog&lt;/b&gt;'
expect 'nothing of a name is an element' test "$(grep -c '<b>dog' "$folder/finished/report.html")" -eq 0
for figure in loss accuracy learning-rate step-parts step-time memory processor sent temperature power energy-by-device \
  classes-chart confusion timeline; do
  says finished "<figure id=\"$figure\""
done
says finished 'id="tile-cards"'
says finished 'Raspberry Pi 4, estimated'
drawn finished 22
cp "$folder/finished/report.html" "$folder/first"
page_of finished
expect 'the page of a run that has ended is the same again, but for its time' same_bytes \
  <(sed '/Made by tessera report/d' "$folder/first") <(sed '/Made by tessera report/d' "$folder/finished/report.html")

# A run that is going: the lock of its folder is held.
make_run going 120 2 running
: >"$folder/going/run.lock"
exec 9>"$folder/going/run.lock"
flock 9
page_of going
says going 'running, as of 2'
drawn going 18
# The same, killed: nobody holds the lock any more.
exec 9>&-
page_of going
says going '<p class="state interrupted">interrupted</p>'

make_run stopped 120 3 failed
page_of stopped
says stopped '<p class="state failed">failed</p>'
says stopped 'rank 3 on &lt;pi-4&gt; has not answered for 60 s'

# Nothing at all, and a run of an earlier version that has metrics alone.
mkdir -p "$folder/empty/runs/a" "$folder/old"
touch "$folder/empty/runs/a/run.json"
refused_alone 'empty: there is no run in this folder: give' report "$folder/empty"
refused_alone 'empty/runs: there is no run in this folder; did you mean .*empty/runs/a' report "$folder/empty/runs"
expect 'no page is written' test ! -e "$folder/empty/report.html"
cp "$folder/finished/metrics.jsonl" "$folder/old"
page_of old
says old '<figure id="loss"'
says old 'timing.jsonl is missing'
drawn old 5

# Files that were cut off, and nonsense in all of them.
make_run damaged 60 2 interrupted
for file in "$folder"/damaged/*.jsonl; do
  size=$(stat -c %s "$file")
  truncate -s $((size - 20)) "$file"
done
page_of damaged
says damaged 'could not be read'
drawn damaged 10
for file in "$folder"/damaged/*.json*; do printf '{"step":\0\377 nonsense\n[]\n{}\n' >"$file"; done
page_of damaged
says damaged 'Not shown'

# Many steps and ranks.
make_run large 10000 16 finished
page_of large
expect 'the page of 10,000 steps on 16 ranks has less than 3 MB' test "$(stat -c %s "$folder/large/report.html")" -lt 3000000
drawn large 22

# What the command line says.
works 1 report "$folder/finished" --out "$folder/other.html" --title 'Six <boards>'
expect 'the page has the title that was given' grep -qF '<title>Six &lt;boards&gt;</title>' "$folder/other.html"
works 3 report "$folder/finished" --out "$folder/three.html"
expect 'under mpiexec one rank writes it' test "$(grep -c three.html "$folder/out")" -eq 1
refused_alone 'nowhere.* does not exist' report "$folder/nowhere"
refused_alone 'is not a folder' report "$folder/other.html"
refused_alone 'no/such/place/a.html' report "$folder/finished" --out "$folder/no/such/place/a.html"
expect 'the old page is kept where a new one cannot be written' test -s "$folder/finished/report.html"

if [ "$browser" = no ] && [ "$failures" -eq 0 ]; then
  echo 'chromium is not installed: pages were made, but no browser has seen them'
  exit 77
fi
