#!/usr/bin/env bash
# time: a table for people, JSON of exactly the documented form for programs.
. tests/cli/support/harness.sh

number='[0-9.eE+-]+'
form='^\{"step_s":\{"median":N,"min":N,"max":N\},"forward_s":N,"backward_s":N,"update_s":N,"exchange_s":N,"gflops":N,"peak_bytes":\[P\]\}$'
form=${form//N/$number}

works 1 time models/lenet5.cfg --steps 2 --batch 4
expect 'the table has a median' grep -q 'median' "$folder/out"
works 1 time models/lenet5.cfg --steps 2 --batch 4 --threads 1 --json
expect 'JSON has exactly these keys' grep -qxE "${form/P/[0-9]+}" "$folder/out"
works 4 time models/lenet5.cfg --grid 2x2 --steps 3 --batch 4 --json
expect 'memory is that of each rank' grep -qxE "${form/P/[0-9]+(,[0-9]+)\{3\}}" "$folder/out"
# A network without a loss, of another size; fewer images than ranks.
works 4 time models/yolov2-early.cfg --size 64x96 --grid 2x2 --groups 0-7 --steps 1 --json
works 3 time models/yolov2-early-plain.cfg --size 64x64 --data-parallel-from 0 --batch 2 --steps 1 --json
expect 'it is JSON' valid_json "$folder/out"
