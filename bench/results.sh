# What all benches do with their results: for scripts in bench/, which source this from the project's folder and set `bench`, their own path.
#
# A result is a CSV and, beside it, NAME.origin: machine, commit, date and command. Both go to runs/ unless --out says otherwise. With
# --commit-results they, and the figure, are copied to the bench's folder, and the tables of the READMEs are written anew.
# shellcheck shell=bash

commit_results=no
command_line=

# shellcheck disable=SC2154 # `bench` is set by the script that sources this
fail() {
  printf '%s: %s\n' "$bench" "$1" >&2
  exit 2
}

say() { printf '%s: %s\n' "$bench" "$1" >&2; }

# in_folder FILE: its folder is made.
in_folder() { mkdir -p "$(dirname "$1")" && printf '%s' "$1"; }

# note_command ARGUMENT...: what is measured, as it can be typed again, without options that only say where results go.
note_command() {
  command_line=$bench
  while [ $# -gt 0 ]; do
    case $1 in
      --commit-results) shift && continue ;;
      --out | --figure | --program) shift "$(($# < 2 ? $# : 2))" && continue ;;
      *[!-A-Za-z0-9_./=@,:+%]* | '') command_line+=" '$1'" ;;
      *) command_line+=" $1" ;;
    esac
    shift
  done
}

processors() { env -u OMP_NUM_THREADS nproc; }

# machine: what it is called, and how many processors it has.
machine() { printf '%s, %s processors' "$(sed -n 's/^\(model name\|Model\)[^:]*: *//p' /proc/cpuinfo | head -1)" "$(processors)"; }

# note_origin CSV: beside it, what measured it.
note_origin() {
  local commit
  commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
  [ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || commit+=' and changes'
  printf 'machine: %s\ncommit: %s\ndate: %s\ncommand: %s\n' "$(machine)" "$commit" "$(date -u +%Y-%m-%d)" "$command_line" >"${1%.csv}.origin"
}

# keep_results CSV [FIGURE] KEPT: with --commit-results, copies them and the CSV's origin to KEPT.csv, KEPT.svg, KEPT.origin.
keep_results() {
  local kept=${*: -1}
  [ "$commit_results" = yes ] || return 0
  [ "$1" -ef "$kept.csv" ] || cp "$1" "$kept.csv"
  if [ -s "${1%.csv}.origin" ]; then
    [ "${1%.csv}.origin" -ef "$kept.origin" ] || cp "${1%.csv}.origin" "$kept.origin"
  else
    printf 'machine: unknown machine\ncommit: unknown\ndate: unknown\ncommand: %s\n' "$bench" >"$kept.origin"
  fi
  [ $# -lt 3 ] || [ ! -s "$2" ] || [ "$2" -ef "$kept.svg" ] || cp "$2" "$kept.svg"
  bench/tables.py
  say "results are in $kept.csv; the tables of the READMEs are written anew"
}
