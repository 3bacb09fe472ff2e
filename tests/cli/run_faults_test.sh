#!/usr/bin/env bash
# Forty random faults on one machine, the short form of bench/chaos: ranks, agents and supervisors are killed and stopped, also
# while they start, recover and write checkpoints; runs end well, with each step once and the losses of the undisturbed run to
# the bit.
. tests/cli/support/harness.sh

mkdir "$folder/digits"
make_digits "$folder/digits" 120 20
expect 'all faults are gone on after' timeout -k 5 400 python3 bench/chaos/chaos.py --local 4 --program "$TESSERA" --folder "$folder/chaos" \
  --data "$folder/digits" --grid 2x2 --every 0.4 --faults 40 --minutes 6 --steps 2500 --checkpoint-every 20 --tolerance 0 --out "$folder/faults.csv"
expect 'each is in the table' test "$(wc -l <"$folder/faults.csv")" -eq 41
