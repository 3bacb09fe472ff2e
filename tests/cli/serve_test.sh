#!/usr/bin/env bash
# top --serve: what it refuses, what it answers to whom, what it sends of a run that goes on, and that a browser shows it
# without moving its reader. Everything is on the loopback.
. tests/cli/support/harness.sh

mkdir "$folder/run"
perl "$support/make_run.pl" "$folder/run" 40 4 running
: >"$folder/run/run.lock"
exec 9>"$folder/run/run.lock"
flock 9

run 1 top "$folder/run" --serve '[::1]:99999'
if grep -q 'built without an HTTP server' "$folder/err"; then fail 'addresses are looked at first'; fi
expect_refusal '--serve: "\[::1\]:99999" is neither a port nor an address with one: expected a number'
refused_alone '--serve excludes --once|--once excludes --serve' top "$folder/run" --once --serve 0
refused_alone '--serve excludes --ascii|--ascii excludes --serve' top "$folder/run" --ascii --serve 0

# A build without libmicrohttpd says so, and that is all there is to see of it.
run 1 top "$folder/run/run.json" --serve 0
if grep -q 'built without an HTTP server: install libmicrohttpd-dev' "$folder/err"; then
  expect_refusal 'built without an HTTP server'
  [ -z "${CI:-}" ] || fail 'continuous integration builds without an HTTP server'
  echo 'there is no HTTP server in this build: it is left out'
  exit
fi
expect_refusal 'run\.json: is not a folder: give the folder of a run'
refused_alone '--serve 192\.0\.2\.1:0: this machine has no such address' top "$folder/run" --serve 192.0.2.1:0

servers=()
trap '[ "${#servers[@]}" -eq 0 ] || kill "${servers[@]}" 2>/dev/null; finish' EXIT
# serve WHERE: starts a server, and sets url when it says where it is.
serve() {
  local tenths
  command_line="tessera top --serve $1"
  rm -f "$folder/url"
  "$TESSERA" top "$folder/run" --serve "$1" >"$folder/url" 2>"$folder/err" 9>&- &
  servers+=($!)
  for ((tenths = 0; tenths < 300; ++tenths)); do
    [ ! -s "$folder/url" ] || break
    sleep 0.1
  done
  url=$(head -n 1 "$folder/url")
}
# answer METHOD PATH [HEADER...]: what the server says; status is 0.
answer() {
  command_line="$1 $2 ${*:3}"
  python3 -IS "$support/http.py" "$1" "${url%/}$2" "${@:3}" >"$folder/out" 2>"$folder/err"
}
answers() { # answers STATUS METHOD PATH [HEADER...]
  answer "${@:2}"
  expect "$2 $3 ${*:4}: $1" grep -q "^HTTP/1.1 $1 " "$folder/out"
}
body() { sed '1,/^$/d' "$folder/out"; }
mark() { sed -n 's/.*id="live" data-mark="\([^"]*\)".*/\1/p' "$folder/out"; }

find "$folder/run" -printf '%p %s %T@\n' | sort >"$folder/before"
serve 0
expect 'it says where it is' grep -qE '^http://127\.0\.0\.1:[0-9]+/$' "$folder/url"
port=${url##*:}
port=${port%/}
refused_alone "--serve 127\.0\.0\.1:$port: another program uses this port" top "$folder/run" --serve "$port"

answers 200 GET /
for header in "Content-Security-Policy: default-src 'none'; .*script-src 'self'" 'X-Content-Type-Options: nosniff' \
  'Referrer-Policy: no-referrer' 'Cache-Control: no-store' 'Content-Type: text/html; charset=utf-8'; do
  expect "it has the header $header" grep -q "^$header" "$folder/out"
done
page_mark=$(mark)
works 1 report "$folder/run" --out "$folder/report.html"
answer GET /
parts() { sed -n '/^<section/,/^<\/section>/p'; }
expect 'its sections are those of the report' same_bytes <(body | parts) <(parts <"$folder/report.html")
body >"$folder/plain"
answer GET / 'Accept-Encoding: br, gzip'
expect 'compressed it is the same' same_bytes <(body | grep -v 'id="live"') <(grep -v 'id="live"' "$folder/plain")
expect 'and shorter' test "$(sed -n 's/^Content-Length: //p' "$folder/out")" -lt "$(($(wc -c <"$folder/plain") / 3))"
answers 200 HEAD /
expect 'to HEAD there is no page' test -z "$(body)"
answers 200 GET /live.js
answers 200 GET "/changes?since=$page_mark"
expect 'nothing has changed' test "$(body | wc -l)" -eq 1
answers 200 GET /changes?since=other
expect 'who has seen nothing gets all' test "$(body | grep -c '^<div id="part-')" -eq "$(grep -c '^<div id="part-' "$folder/plain")"

for path in /run.json /metrics.jsonl /../run/run.json /%2e%2e/run.json //etc/passwd /live.js/ /%00; do answers 404 GET "$path"; done
expect 'what is not there is short' test "$(wc -c <"$folder/out")" -lt 700
for method in POST PUT DELETE OPTIONS TRACE get; do answers 405 "$method" /; done
expect 'it says which methods there are' grep -q '^Allow: GET, HEAD' "$folder/out"
for host in localhost localhost:1 127.0.0.1 '[::1]:80'; do answers 200 GET /changes "Host: $host"; done
for host in evil.example localhost.evil.example 127.0.0.1.evil.example:80 192.0.2.1; do answers 421 GET / "Host: $host"; done

# The run goes on: only what has changed is sent.
answer GET /
page_mark=$(mark)
# Ten steps more, from the one that is ten times its argument on.
cat >"$folder/more" <<'EOF'
steps=$(sed -n "s/^{\"step\":3\([0-9],\"loss\)/{\"step\":$2\1/p" "$1/metrics.jsonl")
printf '%s\n' "$steps" >>"$1/metrics.jsonl"
EOF
bash "$folder/more" "$folder/run" 43
for ((tenths = 0; tenths < 200; ++tenths)); do
  answer GET "/changes?since=$page_mark"
  ! body | grep -q '<dd>439' || break
  sleep 0.1
done
expect 'new steps are told' grep -q '<dd>439' "$folder/out"
expect 'and not what the run was started with' test "$(grep -c 'class="facts"' "$folder/out")" -eq 0
find "$folder/run" -printf '%p %s %T@\n' | sort >"$folder/after"
expect 'it leaves the folder alone' same_bytes <(grep -v 'metrics\|/run [0-9]' "$folder/before") <(grep -v 'metrics\|/run [0-9]' "$folder/after")

if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then
  command_line='browser.py watch'
  status=0
  timeout -k 5 120 python3 "$support/browser.py" watch "$url" \
    "bash '$folder/more' '$folder/run' 53" 539 >"$folder/out" 2>"$folder/err" || status=$?
  expect 'a browser shows what is new, and its reader stays where he is' test "$status" -eq 0
elif [ -n "${CI:-}" ]; then
  fail 'continuous integration has no chromium'
fi

# Beyond the loopback a word is part of the address: this one is the loopback's too, but not by its looks.
serve '[::ffff:127.0.0.1]:0'
expect 'a word of 128 bits is in the address' grep -qE '^http://\[::ffff:127\.0\.0\.1\]:[0-9]+/[0-9a-f]{32}/$' "$folder/url"
answers 200 GET /
answers 200 GET /live.js 'Host: any.example'
word=${url%/}
word=${word##*/}
url=${url%"$word"/}
answers 404 GET /
answers 404 GET /live.js
answers 404 GET "/${word%?}x/"
answers 404 GET "/${word^^}/"
answers 404 GET "/x/../$word/"
answers 200 GET "/$word"
