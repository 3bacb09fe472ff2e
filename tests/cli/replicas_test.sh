#!/usr/bin/env bash
# Replicas and what ties them, compressed gradients: what is said, what is the same as on one device, and going on from a checkpoint.
. tests/cli/support/harness.sh
. tests/cli/support/processes.sh

# The same without momentum and weight decay.
sed 's/^momentum=.*/momentum=0/; s/^decay=.*/decay=0/' models/lenet5.cfg >"$folder/sgd.cfg"

# train RANKS MODEL RUN ARGUMENT...
train() {
  local ranks=$1 model=$2 run=$3
  shift 3
  works "$ranks" train "$model" --data "$data" --run "$folder/$run" --batch 12 --seed 3 --no-eval "$@"
}

# near RUN RUN: losses and weights to rounding.
near() {
  expect "$1 has the losses of $2" same_losses "$folder/$1" "$folder/$2" 1e-4
  expect "$1 has the weights of $2" perl "$support/compare_tensors.pl" "$folder/$1/checkpoint.safetensors" \
    "$folder/$2/checkpoint.safetensors" 1e-4 '^(?!ranks\.)'
}
says() { expect "$1" grep -qE -e "$2" "${3:-$folder/out}"; }
first_line() { head -n 1 "$folder/out"; }

train 1 models/lenet5.cfg one --steps 10
train 1 models/fashion-resnet.cfg one-resnet --steps 6
train 1 "$folder/sgd.cfg" one-sgd --steps 10

# Tied by every step they are one model, tiled or not, with or without batch normalisation.
train 2 models/lenet5.cfg two --steps 10 --replicas 2
expect 'nothing is said of what is exact' test "$(grep -ci 'not exact' "$folder/out")" -eq 0
says 'the plan says that there are replicas' '2 ranks in 2 replicas'
near two one
train 4 models/lenet5.cfg tiles --steps 10 --replicas 2 --grid 2x1 --sync every-step
near tiles one
train 4 models/fashion-resnet.cfg resnet --steps 6 --replicas 2 --grid 1x2 --groups 0-3
near resnet one-resnet
works 4 check models/fashion-resnet.cfg --replicas 2 --grid 2x1 --batch 4
says 'check finds them equal' '^equal$'

# Without normalisation, averages of each step and a parameter rank that nobody runs ahead of are the same, too.
train 3 "$folder/sgd.cfg" averaged --steps 10 --replicas 3 --sync local:1
near averaged one-sgd
train 3 models/lenet5.cfg server --steps 10 --replicas 3 --sync parameter-rank:0
near server one
expect 'and that is exact' test "$(grep -ci 'not exact' "$folder/out")" -eq 0
train 4 models/lenet5.cfg tiled-server --steps 10 --replicas 2 --grid 1x2 --sync parameter-rank:0
near tiled-server one
train 2 models/lenet5.cfg first-part --steps 10 --replicas 2 --sync post-local:4 --local-after 10
near first-part one

# What is not exact says so first of all, and in run.json.
inexact() { # RUN PATTERN ARGUMENT...
  local run=$1 pattern=$2
  shift 2
  train 2 models/fashion-resnet.cfg "$run" --steps 4 "$@"
  expect "$run: the first line says it" grep -qE "^Not exact: .*$pattern" <<<"$(first_line)"
  says "$run: run.json says it" '"exact": false' "$folder/$run/run.json"
  says "$run: run.json says why" "$pattern" "$folder/$run/run.json"
  works 1 report "$folder/$run"
  says "$run: the report says why" "$pattern" "$folder/$run/report.html"
}
inexact local 'averaged every 2 steps \(local:2\)' --replicas 2 --sync local:2
inexact post-local 'post-local:2' --replicas 2 --sync post-local:2
inexact ahead '1 update behind \(parameter-rank:1\)' --replicas 2 --sync parameter-rank:1
inexact waits 'parameter-rank:0.*|batch statistics of each replica' --replicas 2 --sync parameter-rank:0
inexact gossip 'random pairs \(gossip\)' --replicas 2 --sync gossip
inexact half 'compressed messages \(half\)' --gradient-precision half
inexact topk 'compressed messages \(topk:0.1\)' --sums topk:0.1
inexact sign 'compressed messages \(sign\)' --sums sign
inexact low-rank 'compressed messages \(low-rank:2\)' --gradient-precision low-rank:2
inexact both 'local:2.*|compressed messages \(topk:0.1\)' --replicas 2 --sync local:2 --gradient-precision topk:0.1

# sent RUN: bytes of all steps.
sent() { sed -n 's/.*"sent_bytes": \([0-9]*\).*/\1/p' "$folder/$1/run.json"; }
train 2 models/fashion-resnet.cfg exact --steps 4
for run in half topk sign low-rank; do
  expect "$run sends less" test "$(sent "$run")" -lt "$(sent exact)"
done
expect 'both together send less than either' test "$(sent both)" -lt "$(sent topk)" -a "$(sent both)" -lt "$(sent local)"

# resumes NAME RANKS ARGUMENT...: 15 steps are 7 and 8 more, to the bit, also between two averages.
resumes() {
  local name=$1 ranks=$2
  shift 2
  train "$ranks" models/fashion-resnet.cfg "$name-whole" --steps 15 "$@"
  train "$ranks" models/fashion-resnet.cfg "$name-again" --steps 7 "$@"
  train "$ranks" models/fashion-resnet.cfg "$name-again" --steps 15 --resume "$folder/$name-again/checkpoint.safetensors" "$@"
  expect "$name: the same checkpoint" same_bytes "$folder/$name-whole/checkpoint.safetensors" "$folder/$name-again/checkpoint.safetensors"
}
resumes every 4 --replicas 2 --grid 1x2
resumes local 2 --replicas 2 --sync local:4
resumes post-local 2 --replicas 2 --sync post-local:3 --local-after 5
resumes ahead 2 --replicas 2 --sync parameter-rank:2
resumes gossip 3 --replicas 3 --sync gossip
resumes tiles 4 --replicas 2 --grid 2x1 --sync local:4
resumes topk 2 --gradient-precision topk:0.1 --grid 1x2
resumes local-sign 2 --replicas 2 --sync local:4 --gradient-precision sign
resumes ahead-low-rank 2 --replicas 2 --sync parameter-rank:1 --gradient-precision low-rank:2

# On other devices, all start from the weights that they had in common, and are told so.
train 3 models/fashion-resnet.cfg elsewhere --steps 17 --resume "$folder/local-again/checkpoint.safetensors" --replicas 3 --sync local:4
says 'it is said what is lost' 'warning: .*of another partition' "$folder/err"
train 1 models/fashion-resnet.cfg alone --steps 17 --resume "$folder/local-again/checkpoint.safetensors"
works 1 eval models/fashion-resnet.cfg --data "$data" --weights "$folder/gossip-again/checkpoint.safetensors"

# The partition of a run has its replicas: so does whoever takes it.
train 2 models/fashion-resnet.cfg from-file --steps 4 --partition "$folder/local-again/partition.toml"
says 'it is the same' 'local:4' "$folder/from-file/run.json"

# What the planner says of them.
works 1 plan models/lenet5.cfg --batch 12 --replicas 3 --sync local:8 --cluster hostfiles/pi3x6.cluster.toml
says 'the exchange is spread over steps' 'local:8: .* every 8 steps'
works 1 plan models/lenet5.cfg --batch 12 --ranks 6 --replicas 3 --sync parameter-rank:2 --cluster hostfiles/pi3x6.cluster.toml --json
says 'it is hidden' '"hidden":true'
expect 'one JSON object' valid_json "$folder/out"
works 1 plan models/lenet5.cfg --batch 12 --ranks 6 --replicas 3 --partition auto --cluster hostfiles/pi3x6.cluster.toml --json
says 'a search chooses what is exact' '"exact":true'

# What cannot be done.
refuses_replicas() { refused "$1" train models/lenet5.cfg --data "$data" --run "$folder/none" --batch 12 --steps 2 "${@:2}"; }
refuses_replicas '"0" is not an integer' --replicas 0
refuses_replicas 'cannot be divided into 8 replicas of equal size' --replicas 8
refuses_replicas 'cannot be divided into 3 replicas|1 ranks' --replicas 3
refuses_replicas 'none of every-step, local:H' --replicas 1 --sync often
refuses_replicas 'local:N with N from 1' --replicas 1 --sync local:0
refuses_replicas 'parameter-rank:N with N from 0' --replicas 1 --sync parameter-rank:-1
refuses_replicas '--sync gossip needs --replicas' --sync gossip
refuses_replicas 'none of exact, half, topk:F, sign, low-rank:R' --gradient-precision topk:2
refuses_replicas 'none of exact, half, topk:F, sign, low-rank:R' --sums low-rank:0
refuses_replicas '--local-after requires --sync post-local' --local-after 3
run 4 train models/lenet5.cfg --data "$data" --run "$folder/none" --batch 10 --steps 2 --replicas 4
expect_refusal '10 images per pass cannot be divided among 4 replicas: give a multiple of 4 .*12'
run 4 train models/lenet5.cfg --data "$data" --run "$folder/none" --batch 12 --steps 2 --replicas 3
expect_refusal '4 ranks cannot be divided into 3 replicas of equal size: start 3 or 6'
run 4 train models/lenet5.cfg --data "$data" --run "$folder/none" --batch 12 --steps 2 --replicas 2 --sync gossip --reader 0
expect_refusal 'rank 0 reads pictures for all'
run 4 train models/lenet5.cfg --data "$data" --run "$folder/none" --batch 12 --steps 2 --replicas 2 --sync gossip --sums topk:0.1
expect_refusal 'gossip send whole parameters'
run 4 check models/lenet5.cfg --partition "$folder/local-again/partition.toml"
expect_refusal 'another network'
expect 'nothing was begun' test ! -e "$folder/none"

# A replica that stops answering ends the run, as any rank does.
for sync in local:4 parameter-rank:2; do
  start 4 --stall-timeout 3 --checkpoint-every 2 --batch 12 --replicas 2 --sync "$sync"
  wait_until 'a checkpoint should be written' test -s "$folder/run/checkpoint.safetensors"
  kill -STOP "$(rank 3)"
  ended
  expect "$sync: exit code of a run that a replica has left" test "$status" -eq 75
  says "$sync: it is named" '\(rank 3\).* not answered for 3 s' "$folder/err"
  says "$sync: and the checkpoint" 'the last checkpoint is .*, after step [0-9]*; to continue' "$folder/err"
  nothing_left "$sync: a replica is stopped"
done

# A signal ends all replicas after the same step.
start 2 --batch 12 --replicas 2 --sync parameter-rank:2
kill -INT "$started_process"
ended
says 'it is saved' 'saved in .*checkpoint.safetensors; to continue' "$folder/err"
nothing_left 'a signal'
