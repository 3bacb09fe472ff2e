#!/usr/bin/env bash
# A rank whose disk does not answer while pictures are read hangs: it gives signs of life, and nothing is done any more. Under a
# supervisor ranks are started again then, and no step is lost.
. tests/cli/support/harness.sh

python=/usr/bin/python3
[ -x "$python" ] || { echo "$python is not there"; exit 77; }
make_colours_model "$folder/m.cfg"
make_picture "$folder/red.png" 12 200 50 50
make_picture "$folder/blue.png" 12 50 50 200
# Many names of the same two pictures, so that reading them takes a while.
for half in train test; do
  for class in red blue; do
    mkdir -p "$folder/data/$half/$class"
    for i in $(seq "$([ "$half" = train ] && echo 6000 || echo 2)"); do ln "$folder/$class.png" "$folder/data/$half/$class/$i.png"; done
  done
done
training=(train "$folder/m.cfg" --data "$folder/data" --batch 4 --steps 20 --grid 1x2 --no-eval --progress none)
works 2 "${training[@]}" --run "$folder/whole"

export TESSERA_TEST=$folder
"$python" "$support/hold_thread.py" "TESSERA_TEST=$folder" "$folder/data/train" &
holder=$!
command_line='tessera run, of which a rank hangs while it reads pictures'
status=0
timeout -k 5 150 "$TESSERA" run -n 2 --silence 1 -- "${training[@]}" --run "$folder/held" >"$folder/out" 2>"$folder/err" </dev/null || status=$?
held=0
wait "$holder" || held=$?
[ "$held" -ne 77 ] || { echo 'this user may not hold a process'; exit 77; }
expect 'a rank was held until it was killed' test "$held" -eq 0
expect 'the run ends well' test "$status" -eq 0
expect 'it says what it has seen' grep -qE 'nothing was done for [0-9]+ s: rank [01] on localhost hangs: going on with the same devices' "$folder/err"
expect 'and that was the only fault' test "$(grep -c '"kind":"fault"' "$folder/held/events.jsonl")" -eq 1
expect 'its steps and losses are those of the undisturbed run' same_losses "$folder/whole" "$folder/held" 0
