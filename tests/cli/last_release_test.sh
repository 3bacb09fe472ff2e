#!/usr/bin/env bash
# A run of the last release, all of whose processes were killed after step 45 with a checkpoint of step 40, is read and goes on. Its
# folder is support/last_release, with @FOLDER@ where that stood in which it was started.
. tests/cli/support/harness.sh

here=$(realpath "$folder")
mkdir "$here/digits"
make_digits "$here/digits" 60 20
cp "$support/tiny.cfg" "$here"
cp -r "$support/last_release" "$here/run"
sed -i "s#@FOLDER@#$here#g" "$here"/run/*.json

works 1 report "$here/run" --out "$here/before.html"
expect 'its report says what it is' grep -q 'tiny.cfg' "$here/before.html"
works 1 top "$here/run" --once
expect 'and so does top' grep -q 'step 45 of 60' "$folder/out"

works 1 run --continue "$here/run"
cd "$here" || exit
works 1 train tiny.cfg --data digits --steps 60 --seed 3 --checkpoint-every 20 --progress none --run whole
for run in whole run; do cut -d, -f1-6 "$run/epochs.csv" >"$run.epochs"; done
expect 'it goes on with the losses that the run would have had' same_losses whole run 1e-4
expect 'each step is there once' each_step_once run
expect 'as many tests are there' test "$(wc -l <whole.epochs)" -eq "$(wc -l <run.epochs)"
expect 'it has finished' grep -q '"state": "finished"' run/run.json
