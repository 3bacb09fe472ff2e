#!/usr/bin/env bash
# Progress: a bar where a person looks, also under mpiexec, and a line per step where output goes to a file.
# shellcheck disable=SC2016 # the $ are perl's
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 40 10
train=(train models/lenet5.cfg --data "$data" --batch 10 --steps 8 --schedule-steps 100 --no-eval)

for ranks in 1 2; do
  works "$ranks" "${train[@]}" --run "$folder/plain$ranks"
  expect 'a file gets a line per step' test "$(grep -c '^step ' "$folder/out")" -eq 8
  expect 'and no bar' bash -c "! grep -q \$'\r' '$folder/out'"
done

# on_terminal COLUMNS WORDS: the same on a terminal of so many columns, with what came out in $folder/screen.
on_terminal() {
  command_line="on a terminal: $2"
  status=0
  timeout "$time_limit" script -qec "stty cols $1 rows 24 && $2" /dev/null </dev/null >"$folder/screen" 2>&1 || status=$?
  [ "$status" -eq 0 ] || fail 'it should work on a terminal'
}
if command -v script >/dev/null; then
  for columns in 60 80; do
    for ranks in 1 2; do
      launcher=''
      [ "$ranks" -eq 1 ] || launcher="$MPIEXEC -n $ranks"
      on_terminal "$columns" "$launcher $TESSERA ${train[*]} --run $folder/bar$columns-$ranks"
      expect 'a terminal gets a bar' grep -q $'\rstep 8/8\|\r\[=' "$folder/screen"
      expect 'that does not wrap' perl -0777 -ne '
        exit !!grep { length > '"$columns"' - 1 } map { split /\r/ } grep { /\rstep|\r\[/ } split /\r?\n/' "$folder/screen"
      on_terminal "$columns" "$launcher $TESSERA ${train[*]} --run $folder/piped$columns-$ranks | cat"
      expect 'behind a pipe there are lines' test "$(grep -c '^step ' "$folder/screen")" -eq 8
    done
  done
else
  echo 'there is no script(1): terminals are left out'
fi
