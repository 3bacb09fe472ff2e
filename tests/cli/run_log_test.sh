#!/usr/bin/env bash
# What a run's folder tells beside its metrics: run.json, plan.json, events.jsonl, timing.jsonl, timeline.json, of runs that
# finish, are interrupted, fail, vanish and are resumed.
. tests/cli/support/harness.sh
. tests/cli/support/processes.sh

run=$folder/run
train=(train models/lenet5.cfg --data "$data" --batch 10 --schedule-steps 100 --run "$run")

# says KEY VALUE: run.json does.
says() { grep -qE "^ \"$1\": $2,?\$" "$run/run.json" || { fail "run.json should say $1: $2"; cat "$run/run.json"; }; }
# events KIND: how many there are.
events() { grep -c "\"kind\":\"$1\"" "$run/events.jsonl"; }

for ranks in 1 3; do
  rm -rf "$run"
  works "$ranks" "${train[@]}" --steps 12
  says state '"finished"'
  says exit_code 0
  says first_step 1
  says last_step 12
  says batch 10
  says model '"models/lenet5.cfg"'
  says training_pictures 60
  says predicted_step_s null
  says started '"20..-..-..T..:..:..Z"'
  says ended '"20..-..-..T..:..:..Z"'
  expect 'each rank has its place' test "$(grep -c '"threads": 1' "$run/run.json")" -eq "$ranks"
  for file in run.json plan.json timeline.json; do
    expect "$file is JSON" valid_json "$run/$file" whole
  done
  for file in events.jsonl timing.jsonl; do
    expect "each line of $file is JSON" valid_json "$run/$file"
  done
  works 1 plan models/lenet5.cfg --ranks "$ranks" --batch 10 --json
  expect 'plan.json has the groups that plan prints' \
    same_bytes <(sed 's/"memory".*//; s/.*"groups"/"groups"/' "$folder/out") <(sed 's/.*"groups"/"groups"/; s/"memory".*//' "$run/plan.json")
  expect 'each rank has its times' test "$(grep -c '"step":3,"steps":3,' "$run/timing.jsonl")" -eq "$ranks"
  expect 'the time line has each rank' test "$(grep -c process_name "$run/timeline.json")" -eq "$ranks"
  expect 'and what it computes' grep -q '"forward 0"' "$run/timeline.json"
  expect 'a run starts and finishes' test "$(events start)$(events finish)" = 11
  expect 'evaluations are events' test "$(($(events best) + $(events epoch)))" -eq 2
  expect 'checkpoints are events' test "$(events checkpoint)" -eq 2
done

# Goes on in its own folder: the log does, too.
started=$(grep '"started"' "$run/run.json")
works 2 "${train[@]}" --steps 18 --resume "$run/checkpoint.safetensors"
says state '"finished"'
says first_step 1
says last_step 18
expect 'its start is the first one' test "$started" = "$(grep '"started"' "$run/run.json")"
expect 'what happened before is kept' test "$(events start)$(events resume)" = 11
expect 'times go on' perl -ne '/"t_s":([0-9.e-]+)/ or next; exit 1 if $1 + 1e-9 < $last; $last = $1' "$run/events.jsonl"
works 1 "${train[@]}" --steps 2 --force --no-eval
expect 'a new run has a log of its own' test "$(events start)$(events resume)" = 10
works 1 top "$run"
expect 'top knows that it has finished' grep -q finished "$folder/out"
expect 'and its events' grep -q 'started on 1 rank' "$folder/out"

# A picture that cannot be read ends a run: it failed, and says why.
cut_data=$folder/cut
cp -r "$data" "$cut_data"
printf x >"$cut_data/train-labels-idx1-ubyte"
rm -rf "$run"
run 2 train models/lenet5.cfg --data "$cut_data" --batch 10 --steps 4 --run "$run"
expect 'a run that never began leaves no log' test ! -e "$run/run.json"

# Ctrl-C, and a kill.
start 2
kill -INT "$started_process"
ended
says state '"interrupted"'
says exit_code 130
says reason '"SIGINT after step .*--resume .*"'
expect 'the signal is an event' test "$(events signal)" -eq 1
start 2
# shellcheck disable=SC2046 # several numbers
kill -9 $(ranks_running) 2>/dev/null
ended
says state '"running"'
says exit_code null
works 1 top --once "$run"
expect 'a killed run was interrupted' grep -q interrupted "$folder/out"

# A rank that is stopped: the others say that it vanished.
start 3 --stall-timeout 2
stopped=$(rank 2)
kill -STOP "$stopped"
wait_until 'the others should end' grep -q '"failed"' "$run/run.json"
says reason '".*rank 2. has not answered for 2 s"'
says exit_code 75
kill -9 "$stopped" 2>/dev/null
ended
expect 'that is an event' test "$(events failure)" -eq 1
