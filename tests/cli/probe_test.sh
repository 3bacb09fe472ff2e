#!/usr/bin/env bash
# probe: writes a profile of as many devices as there are ranks, says what it measured and what it left out.
. tests/cli/support/harness.sh

works 1 probe --seconds 1 --out "$folder/one.toml"
expect 'the table has a row for the device' grep -qE "^$(hostname) +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ [KMGT]iB +- +-$" "$folder/out"
expect 'links of one rank are left out' grep -qx 'links: there is only one rank' "$folder/out"
expect 'it says where the profile is' grep -qxF "written: $folder/one.toml" "$folder/out"
expect 'the profile says what was left out' grep -qx '# links: there is only one rank\.' "$folder/one.toml"
expect 'links of one rank take no time' grep -qx 'bytes_per_s = inf' "$folder/one.toml"

works 3 probe models/lenet5.cfg --seconds 2 --out "$folder/three.toml"
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
