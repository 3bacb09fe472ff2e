#!/usr/bin/env bash
# probe: writes a profile of as many devices as there are ranks, says what it measured and what it left out.
. tests/cli/support/harness.sh

works 1 probe --seconds 1 --out "$folder/one.toml"
expect 'the table has a row for the device' grep -qE "^$(hostname) +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ [KMGT]iB +- +-$" "$folder/out"
expect 'links of one rank are left out' grep -qx 'links: there is only one rank' "$folder/out"
expect 'it says where the profile is' grep -qxF "written: $folder/one.toml" "$folder/out"
expect 'the profile says what was left out' grep -qx '# links: there is only one rank\.' "$folder/one.toml"
expect 'links of one rank take no time' grep -qx 'bytes_per_s = inf' "$folder/one.toml"

works 3 probe models/lenet5.cfg --seconds 5 --out "$folder/three.toml"
expect 'ranks of one machine are told apart' grep -qx "names = \[\"$(hostname)\.2\"\]" "$folder/three.toml"
expect 'all-reduces are in it' grep -qx 'devices = 3' "$folder/three.toml"
expect 'so are convolutions of the model' grep -q 'kernel = "direct", channels = 6, filters = 16, size = 5,' "$folder/three.toml"
expect 'it says whose they are' grep -qx '# Convolutions: those of models/lenet5\.cfg\.' "$folder/three.toml"
expect 'there is a rate of each link' grep -qE '^link: [0-9.]+ ms, [0-9.]+ Mbit/s each way; ' "$folder/out"
expect 'it is measured, not infinite' bash -c "! grep -q '= inf' '$folder/three.toml'"

works 2 probe --seconds 1 --kernels direct --json --out "$folder/two.toml"
expect 'it is JSON' valid_json "$folder/out"
expect 'JSON has both devices' grep -qE '^\{"devices":\[\{"name":"[^"]*\.0",.*\{"name":"[^"]*\.1",.*"link":\{"latency_s":[^,]*,"bytes_per_s":' "$folder/out"
expect 'JSON has no more digits than measurements are exact to' grep -qE '"direct_flops_per_s":[1-9][0-9]{0,3}0*(\.0)?,' "$folder/out"
expect 'JSON says which are alike' grep -qE '"alike":\[\[0(,1\]|\],\[1\])\]' "$folder/out"
works 2 probe --seconds 1 --kernels direct --json --apart --out "$folder/apart.toml"
expect 'kept apart, none are' grep -qF '"alike":[]' "$folder/out"
expect 'nor in the profile' bash -c "! grep -q '^# Alike' '$folder/apart.toml'"

# With little time: how many convolutions it left out, in a line for each device.
works 2 probe models/yolov2-early.cfg --size 416x416 --seconds 1 --out "$folder/short.toml"
expect 'it says how many' grep -qE '^# [^ ]+: [0-9]+ convolutions? left out for lack of time or memory, such as [a-z]' "$folder/short.toml"

# Electric power: from a meter of a known power, which fails, or from the table.
echo '0 2.5' >"$folder/watts"
works 1 probe --seconds 1 --threads 2 --meter "file:$folder/watts" --out "$folder/power.toml"
expect 'the profile has a part on power' grep -q '^\[device\.power\]' "$folder/power.toml"
expect 'it has the watts of the meter' grep -qx 'idle_w = 2\.5' "$folder/power.toml"
expect 'and those of each number of threads' grep -qx 'busy_w = \[2\.5, 2\.5\]' "$folder/power.toml"
expect 'it says which meter' grep -qx 'source = "file"' "$folder/power.toml"
expect 'of one rank there is no link to measure' bash -c "! grep -q sending_w '$folder/power.toml'"
expect 'a person is told, too' grep -qx "power of $(hostname): 2\.50 W idle, 2\.50 W to 2\.50 W with 1 to 2 busy cores (file)" "$folder/out"
works 1 plan models/lenet5.cfg --cluster "$folder/power.toml" --ranks 1
works 1 probe --seconds 1 --threads 1 --meter table:pi3b --json --out "$folder/table.toml"
expect 'an estimate is called one' grep -qx 'estimated = true' "$folder/table.toml"
expect 'JSON has it' grep -qF '"power":{"source":"table:Raspberry Pi 3 Model B","scope":"device","estimated":true,"relative_error":0.25,"idle_w":1.4,"busy_w":[1.975],"sending_w":null,"receiving_w":null}' "$folder/out"
echo '-1 fail' >"$folder/broken"
works 1 probe --seconds 1 --threads 1 --meter "file:$folder/broken" --out "$folder/broken.toml"
expect 'a meter that fails is left out, and it says why' grep -qF "$(hostname): power: $folder/broken: there is no reading at this time" "$folder/out"
expect 'nor is it in the profile' bash -c "! grep -q 'device.power' '$folder/broken.toml'"
works 2 probe --seconds 1 --kernels direct --meter "file:$folder/watts" --json --out "$folder/shared.toml"
expect 'a meter that ranks share is not one of a device' grep -qF 'several ranks run on this machine' "$folder/out"
refused '--meter: "raple": there is no such kind of meter: did you mean `rapl`' probe --meter raple
refused '--meter cluster=command:echo 3: a profile has the power of each device' probe --meter 'cluster=command:echo 3' --out "$folder/none.toml"
refused 'nowhere=none: no rank runs on a machine called "nowhere"' probe --meter nowhere=none --out "$folder/none.toml"
run 1 probe --meter file:/nowhere/watts --out "$folder/none.toml"
expect_refusal '--meter file:/nowhere/watts: '
run 1 probe --meter 'command:exit 4' --out "$folder/none.toml"
expect_refusal '--meter command:exit 4: the command "exit 4" exits with 4'

# Beside the host file; not over what is there.
cp hostfiles/localhost "$folder/mine"
works 1 probe --seconds 1 --hostfile "$folder/mine"
expect 'the profile is beside the host file' test -s "$folder/mine.cluster.toml"
cp "$folder/mine.cluster.toml" "$folder/before.toml"
refused 'mine\.cluster\.toml: already exists: --force' probe --seconds 1 --hostfile "$folder/mine"
expect 'a refused probe changes nothing' same_bytes "$folder/before.toml" "$folder/mine.cluster.toml"
works 1 probe --seconds 1 --hostfile "$folder/mine" --force
refused 'nowhere: is not a file: give the host file' probe --hostfile "$folder/nowhere"
refused 'nowhere/a\.toml: ' probe --out "$folder/nowhere/a.toml"
refused '--seconds: "0"' probe --seconds 0
refused '--kernels: reference not in' probe --kernels reference
refused '--out excludes --hostfile|--hostfile excludes --out' probe --out a --hostfile b
refused '--size requires' probe --size 32x32
refused 'nowhere\.cfg: ' probe "$folder/nowhere.cfg" --out "$folder/none.toml"
expect 'a refused probe writes nothing' test ! -e "$folder/none.toml"
