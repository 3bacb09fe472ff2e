#!/usr/bin/env bash
# check: any partition computes what one tile computes.
. tests/cli/support/harness.sh

# equal RANKS ARGUMENT...: check passes, and says so.
equal() {
  local ranks=$1
  shift
  works "$ranks" check "$@"
  expect 'the partition is equal to one tile' grep -qx equal "$folder/out"
}

equal 1 models/lenet5.cfg
equal 3 models/lenet5.cfg --grid 1x3
equal 3 models/lenet5.cfg --grid 3x1 --groups 0-3,4-7 --data-parallel-from 4
equal 4 models/lenet5.cfg --grid 2x2 --groups 0-1,2-3 --reader 1
equal 4 models/lenet5.cfg --filter-parallel-from 2
equal 5 models/lenet5.cfg --grid 2x2 --batch 3 --seed 7
equal 4 models/lenet5.cfg --grid 2x2 --size 29x31

equal 2 models/fashion-resnet.cfg --grid 2x1
equal 4 models/fashion-resnet.cfg --grid 2x2 --groups 0-4,5-7
equal 4 models/fashion-resnet.cfg --grid 2x2 --groups 0-4,5-8 --data-parallel-from 9
equal 3 models/fashion-resnet.cfg --data-parallel-from 0 --batch 2
equal 6 models/yolov2-early.cfg --size 96x96 --grid 2x3 --groups 0-3,4-7,8-15 --batch 1
equal 4 models/yolov2-early-plain.cfg --size 64x64 --grid 2x2 --groups 0-7,8-15 --batch 1
