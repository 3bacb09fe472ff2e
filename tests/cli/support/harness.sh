# For the tests of the program from its command line, which are run from the root of the source tree and source
# this: a temporary folder, the program under a time limit, and what may be expected of it.
#
#   TESSERA  the program (default build/release/tessera)
#   SHOW=1   prints each message of refusal, for judging their wording
# shellcheck shell=bash

# shellcheck disable=SC2034 # used by the scripts that source this
TESSERA=$(realpath "${TESSERA:-build/release/tessera}")
MPIEXEC=${MPIEXEC:-mpiexec.mpich}
time_limit=${TIME_LIMIT:-120} # seconds for one command
export OMP_NUM_THREADS=1

[ -x "$TESSERA" ] || { echo "there is no program $TESSERA: build it, or set TESSERA" >&2; exit 2; }
models=$PWD/models
support=$PWD/tests/cli/support
folder=$(mktemp -d)
failures=0
command_line=''
status=0

finish() {
  rm -rf "$folder"
  [ "$failures" -eq 0 ] || { printf '%d failed\n' "$failures"; exit 1; }
}
trap finish EXIT

# fail WHAT: counts a failure and shows the last command with what it printed.
fail() {
  failures=$((failures + 1))
  printf 'FAILED: %s\n  command: %s\n  exit code: %d\n' "$1" "$command_line" "$status"
  [ ! -s "$folder/out" ] || tail -n 8 "$folder/out" | cut -c 1-300 | sed 's/^/  out: /'
  [ ! -s "$folder/err" ] || tail -n 8 "$folder/err" | cut -c 1-300 | sed 's/^/  err: /'
}

# run RANKS ARGUMENT...: the program on that many ranks, on one without mpiexec. Sets status; leaves its output in
# $folder/out and $folder/err.
run() {
  local ranks=$1 launcher=()
  shift
  [ "$ranks" -eq 1 ] || launcher=("$MPIEXEC" -n "$ranks")
  command_line="${launcher[*]} tessera $*"
  status=0
  timeout -k 5 "$time_limit" "${launcher[@]}" "$TESSERA" "$@" >"$folder/out" 2>"$folder/err" </dev/null || status=$?
}

# works RANKS ARGUMENT...: the same, and it must succeed.
works() {
  run "$@"
  [ "$status" -eq 0 ] || { fail 'it should work'; return 1; }
}

# expect_refusal PATTERN: the last run ended with code 2 and one line beside warnings, which matches.
expect_refusal() {
  local message
  message=$(grep -v '^tessera: warning: ' "$folder/err")
  [ -z "${SHOW:-}" ] || printf '%s\n' "${message//$folder\//}"
  if [ "$status" -ne 2 ]; then
    fail 'it should end with exit code 2'
  elif [ "$(printf '%s\n' "$message" | wc -l)" -ne 1 ] || [[ $message != 'tessera: '* ]]; then
    fail 'the refusal should be one line'
  elif ! grep -qE -e "$1" <<<"$message"; then
    fail "the refusal should say: $1"
  fi
}

# refused PATTERN ARGUMENT...: the program refuses these on 1 and on 4 ranks; what is wrong with the words of the command line
# is found before there are any other ranks, and tried on one.
refused() {
  local pattern=$1
  shift
  run 1 "$@"
  expect_refusal "$pattern"
  if ! grep -q '(see tessera [a-z-]* *--help)$' "$folder/err"; then
    refused_together "$pattern" "$@"
  fi
}

# refused_together PATTERN ARGUMENT...: the program refuses these on 4 ranks.
refused_together() {
  local pattern=$1
  shift
  run 4 "$@"
  expect_refusal "$pattern"
}

# refused_alone PATTERN ARGUMENT...: the same for commands that do not run on several ranks.
refused_alone() {
  local pattern=$1
  shift
  run 1 "$@"
  expect_refusal "$pattern"
}

# expect WHAT COMMAND...: the command succeeds.
expect() {
  local what=$1
  shift
  "$@" || fail "$what"
}

# same_bytes FILE FILE
same_bytes() { cmp -s "$1" "$2"; }

# losses RUN: a line "step loss" for each step of a run.
losses() { sed -n 's/^{"step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$1/metrics.jsonl"; }

# accuracy RUN: that of the run's last evaluation.
accuracy() { sed -n 's/.*"accuracy":\([^,}]*\).*/\1/p' "$1/metrics.jsonl" | tail -n 1; }

# same_losses RUN RUN TOLERANCE: both have the same steps, and no losses that differ by more.
same_losses() {
  paste -d ' ' <(losses "$1") <(losses "$2") | awk -v tolerance="$3" '
    NF != 4 || $1 != $3 || $2 - $4 > tolerance || $4 - $2 > tolerance { if (++bad <= 5) print "  step " $0 }
    END { exit bad > 0 || NR == 0 }'
}

# first_steps COUNT RUN FOLDER: a run of which the first steps of another one are all; that one was not tested meanwhile.
first_steps() {
  mkdir "$3"
  head -n "$1" "$2/metrics.jsonl" >"$3/metrics.jsonl"
}

# each_step_once RUN: from the first one on.
each_step_once() { [ "$(losses "$1" | sed 's/ .*//')" = "$(seq "$(losses "$1" | wc -l)")" ]; }

# soon COMMAND...: looks for it often, two minutes at most: whatever it is takes as long as a busy machine needs.
soon() {
  local end=$((SECONDS + 120))
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || { fail "this should come: $*"; return 1; }
    sleep 0.01
  done
}

# as_planned NAME: what the kernel counted on each rank is what was planned, within 5 % and a few MiB; or no more than a process
# takes for a moment while MPI starts.
as_planned() {
  # shellcheck disable=SC2016 # the $ are those of perl
  expect "$1: no more memory than planned" perl -0777 -ne '
    while (/"planned": \{.*?"total": (\d+).*?"peak_resident": (\d+)/gs) {
      $ranks++;
      next if $2 < 40 << 20 || $2 < 1.05 * $1 + (4 << 20);
      printf "  planned %.1f MiB, took %.1f\n", $1 / 2**20, $2 / 2**20;
      $bad = 1;
    }
    exit($bad || !$ranks)' "$folder/$1/memory.json"
}

# make_digits FOLDER TRAIN TEST: IDX files of that many small pictures that a network can learn.
make_digits() { perl "$support/make_idx.pl" "$@"; }

# make_picture FILE SIDE RED GREEN BLUE: a square PNG around that colour.
make_picture() { perl "$support/make_png.pl" "$@"; }

# make_colours_model FILE: a model that tells small pictures of two colours apart.
make_colours_model() {
  cat >"$1" <<'EOM'
[net]
height=12
width=12
channels=3
batch=4
learning_rate=0.01
max_batches=100
[convolutional]
batch_normalize=1
filters=4
size=3
pad=1
activation=relu
[connected]
output=2
activation=linear
[softmax]
EOM
}

# valid_json FILE: each line is JSON (with `whole` as second argument: the whole file is).
valid_json() { perl "$support/check_json.pl" "$@"; }
