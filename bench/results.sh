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
      --out | --figure | --results | --program | --before) shift "$(($# < 2 ? $# : 2))" && continue ;;
      *[!-A-Za-z0-9_./=@,:+%]* | '') command_line+=" '$1'" ;;
      *) command_line+=" $1" ;;
    esac
    shift
  done
}

# take_options 'NAME...' ARGUMENT...: --NAME VALUE sets the variable NAME, with _ for -. Also knows --help, for which a bench defines
# show_help; --quick, where it defines be_quick; --commit-results; and its own_flag OPTION VALUE, which sets $taken to how many arguments
# it has used. What comes after options is left in `operands`.
take_options() {
  local known=" $1 " option
  shift
  note_command "$@"
  operands=()
  while [ $# -gt 0 ]; do
    taken=0
    case $1 in
      --help | -h) show_help || true; exit 0 ;;
      --commit-results) commit_results=yes && shift && continue ;;
      --quick) if declare -F be_quick >/dev/null; then be_quick && shift && continue; fi ;;
    esac
    if declare -F own_flag >/dev/null && own_flag "$@" && [ "$taken" -gt 0 ]; then
      shift "$taken"
      continue
    fi
    if [[ $1 != -* ]]; then
      operands=("$@")
      return
    fi
    option=${1#--}
    [[ $1 == --* && $known == *" $option "* ]] || fail "unknown option '$1': see --help."
    [ $# -ge 2 ] || fail "$1 needs a value: see --help."
    printf -v "${option//-/_}" '%s' "$2"
    shift 2
  done
}

# take_only_options 'NAME...' ARGUMENT...: the same where nothing comes after options.
take_only_options() {
  take_options "$@"
  [ ${#operands[@]} -eq 0 ] || fail "unknown option '${operands[0]}': see --help."
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
