#!/usr/bin/env bash
# Checking the devices of a cluster and copying to them: what is refused, and this machine by itself. Clusters of several
# devices are in tests/cluster/setup_cases.sh.
. tests/cli/support/harness.sh

refused_alone '--hostfile is required' doctor
refused_alone 'nowhere: cannot be read' doctor --hostfile "$folder/nowhere"
: >"$folder/empty"
refused_alone 'names no host' doctor --hostfile "$folder/empty"
for name in '-oProxyCommand=reboot' 'pi1;reboot' '$(reboot)' 'pi1`reboot`' "pi'1"; do
  printf '%s\n' "$name" >"$folder/hosts"
  refused_alone 'is not a host name or address' doctor --hostfile "$folder/hosts"
  refused_alone 'is not a host name or address' deploy --hostfile "$folder/hosts"
done

# This machine alone: no remote shell is needed.
printf 'localhost:2\n' >"$folder/hosts"
works 1 doctor --hostfile "$folder/hosts" --remote-shell "$folder/no-shell"
expect 'one device has no problem' grep -q '^no problem' "$folder/out"
works 2 doctor --hostfile "$folder/hosts"
expect 'under mpiexec it is done once' test "$(grep -c '^no problem' "$folder/out")" -eq 1
works 1 doctor --hostfile "$folder/hosts" --json
expect 'JSON has the device' /usr/bin/python3 -c '
import json, sys
found = json.load(open(sys.argv[1]))
device = found["devices"][0]
assert found["well"] and not found["links"] and device["here"] and device["ranks"] == 2 and device["memory_bytes"] > 0
' "$folder/out"

# A remote shell that leads to this machine, under another name; 192.0.2.0/24 is for examples.
cat >"$folder/shell" <<'SHELL'
#!/bin/sh
[ "$1" = 192.0.2.77 ] || exit 64
shift
sh -c "$*" | sed -u 's/"host_name":"/&other-/'
SHELL
chmod +x "$folder/shell"
printf '192.0.2.77\n' >"$folder/hosts"
run 1 doctor --hostfile "$folder/hosts" --remote-shell "$folder/shell"
expect 'a problem ends with 1' test "$status" -eq 1
[ -z "$(hostname -I)" ] || # without any address there is nothing to compare
  expect 'an address that is another machine is told' grep -q '^problem: 192.0.2.77 resolves to 192.0.2.77 here, but' "$folder/out"
expect 'the problem has a remedy' grep -q '^  remedy: ' "$folder/out"

# What the shell there prints of its own accord keeps rsync from working, and is no answer.
sed -i 's/^sh/echo "{welcome"; sh/' "$folder/shell"
run 1 doctor --hostfile "$folder/hosts" --remote-shell "$folder/shell"
expect 'a greeting is told' grep -q 'prints something before a command starts' "$folder/out"

printf '#!/bin/sh\necho "evil \033[31m name" >&2\nexit 3\n' >"$folder/bad"
chmod +x "$folder/bad"
run 1 doctor --hostfile "$folder/hosts" --remote-shell "$folder/bad"
expect 'a shell that fails is a problem' test "$status" -eq 1
expect 'what it said is told' grep -q 'does not work: evil \\x1b\[31m name' "$folder/out"
run 1 doctor --hostfile "$folder/hosts" --remote-shell "$folder/no-shell"
expect 'a shell that is missing is told' grep -q 'there is no program .*/no-shell here' "$folder/out"

# Deploying: what is refused before anything is copied.
refused_alone '--hostfile is required' deploy
refused_alone '--data-map requires --data' deploy --hostfile "$folder/hosts" --data-map "$folder/map.toml"
printf 'localhost\n' >"$folder/hosts"
works 1 deploy --hostfile "$folder/hosts"
expect 'this machine needs nothing' grep -q '^all devices have what they need' "$folder/out"
: >"$folder/set.data"
refused_alone 'is a file that names others' deploy --hostfile "$folder/hosts" --data "$folder/set.data"
refused_alone 'map.toml: cannot be read' deploy --hostfile "$folder/hosts" --data "$folder/{rank}" --data-map "$folder/map.toml"
run 1 agent --examine </dev/null
expect 'an examiner that is asked nothing ends' test "$status" -eq 0
