#!/usr/bin/env bash
# Manual pages and completion, which are made of the same definitions as the help: every command and option is in them, pages
# are without mistakes in their markup, shells complete commands, options, words and files.
. tests/cli/support/harness.sh

pages=$(dirname "$TESSERA")/pages
[ -d "$pages" ] || { echo "there are no pages in $pages: build the target pages" >&2; exit 2; }

# options_in FILE: the options that begin lines of a help, without their values.
options_in() { sed -nE 's/^  ((-[a-z],)?--?[a-z][a-z-]*).*/\1/p' "$1" | tr ',' '\n' | sort -u; }

# page NAME: a manual page as plain text, a line as long as it needs.
page() { gzip -dc "$pages/$1.1.gz" | MANWIDTH=500 man --local-file - 2>/dev/null | col -bx; }

# manual_options: the same of a page on standard input.
manual_options() { sed -nE 's/^ {7}(-.*)/\1/p' | grep -oE '(^|, )--?[a-z][a-z-]*' | sed 's/^, //' | sort -u; }

works 1 --help
commands=$(sed -n 's/^  \([a-z][a-z-]*\)\( .*\)\{0,1\}$/\1/p' "$folder/out" | grep -vE '^(tessera|mpiexec)')
expect 'the help names commands' test "$(wc -w <<<"$commands")" -gt 15
works 1 help partitioning
options_in "$folder/out" >"$folder/cutting"

page tessera >"$folder/page"
for command in $commands; do
  expect "tessera(1) has $command" grep -qE "^ {7}$command( |$)" "$folder/page"
  expect "tessera(1) points to the page of $command" grep -q "tessera-$command(1)" "$folder/page"
done
expect 'there is a page for each command and no other' \
  test "$(find "$pages" -name 'tessera-*.1.gz' | wc -l)" -eq "$(wc -w <<<"$commands")"
for section in NAME SYNOPSIS DESCRIPTION COMMANDS OPTIONS 'EXIT STATUS' ENVIRONMENT EXAMPLES 'SEE ALSO'; do
  expect "tessera(1) has the section $section" grep -qx "$section" "$folder/page"
done

for command in $commands; do
  works 1 help "$command"
  options_in "$folder/out" >"$folder/help_options"
  page "tessera-$command" >"$folder/page"
  manual_options <"$folder/page" >"$folder/page_options"
  ! grep -q 'help partitioning' "$folder/out" || cat "$folder/cutting" >>"$folder/help_options"
  # Those about cutting which a command lacks are in the help of cutting all the same.
  expect "tessera-$command(1) has the options of the help" test -z "$(comm -23 <(sed '/^--/!d' "$folder/help_options" | sort -u) \
    <(cat "$folder/page_options" "$folder/cutting" | sort -u))"
  expect "tessera-$command(1) has no option beside those" test -z "$(comm -13 <(sort -u "$folder/help_options") "$folder/page_options")"
  sed -n '/^Examples:$/,$ s/^  //p' "$folder/out" >"$folder/examples"
  expect "tessera-$command(1) has the examples of the help" \
    test "$(sed -n '/^EXAMPLES$/,/^SEE ALSO$/ s/^       //p' "$folder/page")" = "$(cat "$folder/examples")"
done
# shellcheck disable=SC1003 # one backslash
for older in --sums --take-over --save-rivals --photos; do
  expect "$older is in no page" test -z "$(for file in "$pages"/*.gz; do gzip -dc "$file" | tr -d '\\' | grep -e "$older"; done)"
done

for file in "$pages"/*.1.gz; do
  gzip -dc "$file" >"$folder/page.1"
  name=$(basename "$file" .gz)
  ! command -v mandoc >/dev/null || expect "mandoc finds no mistakes in $name" mandoc -T lint "$folder/page.1"
  expect "man has no warnings of $name" \
    test -z "$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings --local-file -Tutf8 "$folder/page.1" 2>&1 >/dev/null)"
  expect "whatis finds the description of $name" lexgrog "$folder/page.1" >/dev/null
done

# completed WORD...: what bash completes the last of these to, and how it was told to complete beside that.
completed() {
  bash -c '
    compopt() { echo "compopt $*"; }
    . "$0"
    COMP_WORDS=(tessera "$@") COMP_CWORD=$#
    _tessera
    printf "%s\n" "${COMPREPLY[@]}"' "$pages/tessera" "$@"
}

# completes EXPECTED WORD...: the words that bash offers, by spaces.
completes() {
  local expected=$1 found
  shift
  found=$(completed "$@" | sed '/^$/d' | tr '\n' ' ')
  command_line="tessera $*"
  expect "bash completes '$*' to '$expected', not '$found'" test "${found% }" = "$expected"
}

completes 'train' tr
completes '--version' --v
completes '--grid' plan --gri
completes '--epochs' train models/lenet5.cfg --ep
completes 'auto line bar none' train m.cfg --progress ''
completes 'line' train m.cfg --progress li
completes 'line' train m.cfg --progress = li
completes 'auto line bar none' train m.cfg --progress =
completes '' train m.cfg --data '' # bash's own completion of files
completes '' train ''
completes 'compopt +o default +o bashdefault' train m.cfg --steps ''
completes 'predict' help pred
completes 'partitioning' help part
completes 'train' run -n 2 -- tr
completes '--epochs' run -n 2 -- train --ep
completes '--hostfile' run --host
completes '' wobble ''
for command in $commands; do
  expect "bash completes $command" test "$(completed "$command" | grep -cx "$command")" -eq 1
  works 1 help "$command"
  for option in $(options_in "$folder/out"); do
    expect "bash completes $command $option" grep -qxe "$option" <(completed "$command" "$option")
  done
done

if command -v fish >/dev/null; then
  # fish_completes EXPECTED LINE: the words that fish offers for a command line and that begin as its last word does, by spaces.
  # Behind them fish 4 lists words that merely have its letters, in their order.
  fish_completes() {
    local found
    # shellcheck disable=SC2016 # the $ are those of fish and awk
    found=$(HOME=$folder fish --private --no-config -c 'source $argv[1]; complete -C $argv[2]' "$pages/tessera.fish" "$2" | cut -f 1 |
      awk -v begun="${2##* }" 'index($0, begun) == 1 || begun == ""' | tr '\n' ' ')
    command_line=$2
    expect "fish completes '$2' to '$1', not '$found'" test "${found% }" = "$1"
  }
  fish_completes train 'tessera tr'
  fish_completes '--epochs' 'tessera train --ep'
  fish_completes 'auto bar line none' 'tessera train m.cfg --progress '
  fish_completes 'models/lenet5.cfg' 'tessera train models/len'
  fish_completes '' 'tessera train m.cfg --steps '
  fish_completes 'partitioning' 'tessera help part'
fi
if command -v zsh >/dev/null; then
  # What zsh is told of the options of a command.
  zsh_told() {
    zsh -f -c '
      _arguments() { print -l -- "$@" }
      _describe() { print -l -- $commands }
      words=(tessera "${@:2}") CURRENT=$#
      . "$1"' zsh "$pages/_tessera" "$@"
  }
  expect 'zsh learns the commands' grep -q '^train:train a model' <(zsh_told tr)
  expect 'zsh learns the options of a command' grep -qF -e '--progress[auto' <(zsh_told train --)
  expect 'zsh learns the words of an option' grep -q -e '^--progress.*(auto line bar none)$' <(zsh_told train --)
  expect 'zsh learns which options take files' grep -q -e '^--data\[.*_files$' <(zsh_told train --)
fi
