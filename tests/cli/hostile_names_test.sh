#!/usr/bin/env bash
# Names made to do harm: of hosts, programs, folders, classes, pictures and tensors. Nothing of them is run by a shell, taken for
# an option or written outside the folder that was given.
# shellcheck disable=SC2016,SC1003 # names are meant as they stand
. tests/cli/support/harness.sh

# A program in a folder, run in a folder, with a run folder and a model that a shell would trip over.
evil=$'it\'s "$(touch pwned)" `touch pwned`; touch pwned #\n-oX'
home=$folder/$evil
mkdir "$home"
cp "$TESSERA" "$home/tessera;touch pwned"
cp "$models/lenet5.cfg" "$home/$evil.cfg"
data=$home/digits
mkdir "$data"
make_digits "$data" 60 20
hostile_program=$home/'tessera;touch pwned'
cd "$home" || exit 2

# run_hostile ARGUMENT...: that program, as run() does it.
run_hostile() {
  command_line="tessera $*"
  status=0
  timeout -k 5 "$time_limit" "$hostile_program" "$@" >"$folder/out" 2>"$folder/err" </dev/null || status=$?
}
not_run() { expect "$1: no shell has run a part of a name" test -z "$(find "$folder" -name pwned)"; }

# A remote shell that keeps what it was called with, a line of JSON each, and runs the command here where it is told to.
calls=$folder/calls
cat >"$folder/shell" <<SHELL
#!/usr/bin/python3
import json, os, sys
with open("$calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\n")
if not os.path.exists("$folder/execute"):
    with open("$folder/hello", "w") as hello:
        hello.write(sys.stdin.readline())
    sys.exit(255)
command = " ".join(sys.argv[2:])
if not command.startswith("rsync "):  # as a device of another name
    command = "( " + command + " ) | sed -u 's/\"host_name\":\"/&other-/'"
os.execv("/bin/sh", ["sh", "-c", command])
SHELL
chmod +x "$folder/shell"

# Hosts that are options or commands: no command that reads a host file starts a shell for them.
training=(train "$evil.cfg" --data "$data" --batch 8 --no-eval --progress none --steps 4)
for name in '-oProxyCommand=touch${IFS}pwned' '--rsh=x' 'pi1;touch${IFS}pwned' '$(touch${IFS}pwned)' '`touch${IFS}pwned`' "pi'1" 'pi"1' 'pi1|x' \
  'pi1&' 'me@pi1' '[-oProxyCommand=x]' '../pi1' $'pi1\x1b[2J' 'pi1\'; do
  printf 'localhost\n%s\n' "$name" >"$folder/hosts"
  for command in doctor deploy; do
    refused_alone 'hosts, line 2: .* is not a host name or address' "$command" --hostfile "$folder/hosts" --remote-shell "$folder/shell"
  done
  refused_alone 'hosts, line 2: .* is not a host name or address' \
    run --hostfile "$folder/hosts" --remote-shell "$folder/shell" -- "${training[@]}" --run "$folder/none"
done
expect 'no remote shell was started' test ! -e "$calls"
not_run 'names of hosts'

# asked WHAT PYTHON: all calls of the remote shell are what the expression says of `words`; there was one at least.
asked() {
  expect "$1" /usr/bin/python3 -c '
import json, shlex, sys
calls = [json.loads(line) for line in open(sys.argv[1])]
home, program = sys.argv[2:4]
sys.exit(not calls or not all(eval(sys.argv[4]) for words in calls))
' "$calls" "$home" "$hostile_program" "$2"
}

# What follows a host in its line is refused.
printf 'localhost\n192.0.2.77 -oProxyCommand=touch${IFS}pwned;touch pwned\n' >"$folder/hosts"
refused_alone 'hosts, line 2: expected HOST:RANKS' \
  run --hostfile "$folder/hosts" --remote-shell "$folder/shell" -- "${training[@]}" --run "$folder/none"
expect 'no remote shell was started for it' test ! -e "$calls"
printf 'localhost\n192.0.2.77\n' >"$folder/hosts"
run_hostile run --hostfile "$folder/hosts" --remote-shell "$folder/shell" -- "${training[@]}" --run "$evil run"
expect 'a device that does not answer is told' grep -q '^tessera: 192.0.2.77 cannot be reached' "$folder/err"
run_number=$(sed -n 's/.*"run":"\([0-9a-f]*\)".*/\1/p' "$folder/hello")
expect 'its agent is told the number of the run' test -n "$run_number"
expect 'nothing of a run that has not begun stays in memory' test -z "$(find /dev/shm -maxdepth 1 -name "tessera-*-$run_number")"
asked 'the shell is given the host and one command of two words' \
  'len(words) == 2 and words[0] == "192.0.2.77" and shlex.split(words[1]) == [program, "agent"]'
not_run 'run'
run_hostile run -n 2 -- "${training[@]}" --run "$evil run"
expect 'a run with such names works' test "$status" -eq 0
expect 'its folder is where it should be' test "$(losses "$home/$evil run" | wc -l)" -eq 4
run_hostile run --continue "$evil run"
expect 'it goes on from its folder' test "$status" -eq 0
not_run 'run --continue'

# doctor and deploy, with a shell that runs what it is given.
: >"$folder/execute"
rm -f "$calls"
for command in doctor 'deploy --dry-run' deploy; do
  # shellcheck disable=SC2086 # words are meant
  run_hostile $command --hostfile "$folder/hosts" --remote-shell "$folder/shell"
  expect "$command ends by itself" test "$status" -le 1
  asked "$command: the shell is given the host first" 'words[0] == "192.0.2.77"'
  not_run "$command"
done
run_hostile deploy --hostfile "$folder/hosts" --remote-shell "$folder/shell" --data "$data" "$evil.cfg"
expect 'deploy of such paths ends by itself' test "$status" -le 1
expect 'rsync was called' grep -q '"rsync' "$calls"
not_run 'deploy of files'
rm "$folder/execute"

# Classes and pictures whose names are paths, options and commands; classes by a file of names, which may hold anything.
cd "$folder" || exit 2
make_colours_model "$folder/colours.cfg"
colours=$folder/colours
for class in '$(touch pwned)' $'x\n<script>..'; do
  mkdir -p "$colours/train/$class" "$colours/test/$class"
  for number in 1 2 3 4; do
    make_picture "$colours/train/$class/-rf $number.png" 12 "$((50 * number))" 0 200
    make_picture "$colours/test/$class/x;touch pwned $number.png" 12 "$((50 * number))" 0 200
  done
done
outside() { find "$folder" -mindepth 1 -not -path "$folder/run/*" -not -path "$folder/drawn/*" -not -name out -not -name err -not -name run -not -name drawn | sort; }
: >"$folder/after"
outside >"$folder/before"
works 1 train "$folder/colours.cfg" --data "$colours" --steps 8 --run "$folder/run" --progress none
works 1 report "$folder/run"
printf '../../../evil\n/etc/evil\n' >"$folder/after"
works 1 predict "$folder/colours.cfg" --weights "$folder/run/checkpoint.safetensors" --names "$folder/after" --out "$folder/drawn" "$colours/test"
expect 'pictures are drawn' test "$(find "$folder/drawn" -name '*.png' | wc -l)" -eq 8
outside >"$folder/after"
expect 'names of classes and pictures lead to no files elsewhere' diff "$folder/before" "$folder/after"
not_run 'names of classes'

# Tensors that are called like paths, in weights and in a checkpoint that a run goes on from.
perl "$support/make_tensors.pl" "$folder/run/evil.safetensors" '../../evil.weights:2,3' '/etc/evil:4' '$(touch pwned):1'
run 1 train "$folder/colours.cfg" --data "$colours" --steps 8 --run "$folder/run" --force --progress none --weights "$folder/run/evil.safetensors"
expect 'foreign tensors are refused' test "$status" -eq 2
perl -0777 -pe 's|"([^"/{}]+)":\{"dtype"|q(") . substr("../../../../../../evil" . "x" x 99, 0, length $1) . q(":{"dtype")|e' \
  "$folder/run/checkpoint.safetensors" >"$folder/run/changed.safetensors"
expect 'the name of a tensor was changed' test "$(cmp -l "$folder/run/checkpoint.safetensors" "$folder/run/changed.safetensors" | wc -l)" -gt 3
for option in --weights --resume; do
  run 1 train "$folder/colours.cfg" --data "$colours" --steps 9 --run "$folder/run/again" --progress none "$option" "$folder/run/changed.safetensors"
  expect "$option: a checkpoint with another name is refused" test "$status" -eq 2
done
outside >"$folder/after"
expect 'names of tensors lead to no files elsewhere' diff "$folder/before" "$folder/after"
