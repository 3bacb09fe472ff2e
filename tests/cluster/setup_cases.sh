# Setting up a cluster: tessera doctor finds what is wrong with it, tessera deploy copies what devices need.
# shellcheck shell=bash disable=SC2154 # variables of run.sh and support.sh

# begin_setup: a program of its own in a folder of its own, which each test may take away from devices.
begin_setup() {
  local program
  program=$(realpath -m "${TESSERA:-build/release/tessera}")
  [ -x "$program" ] || skip "$program is not there"
  [ -x /usr/sbin/sshd ] || skip 'sshd is not there'
  reach=$(one ssh)
  app=$folder/app-${FUNCNAME[1]}
  mkdir "$app"
  cp "$program" "$app/tessera"
  printf 'pi1\npi2\npi3\n' >"$app/hosts"
  cd "$app" || return
}

# from_pi1 ARGUMENT...: the program on the first device; sets code, said and, of doctor, its problems.
from_pi1() {
  code=0
  said=$(one exec pi1 "$app/tessera" "$@" 2>&1) || code=$?
}
# doctor [HOSTFILE [REMOTE_SHELL]]
doctor() {
  from_pi1 doctor --hostfile "${1:-hosts}" --remote-shell "${2:-$reach}"
  problems=$(grep -A 1 '^problem: ' <<<"$said" || true)
}
# hide DEVICE FOLDER: another, empty one lies over it there; reveal undoes that.
hide() { one exec "$1" mount -t tmpfs hidden "$2"; }
reveal() { one exec "$1" umount --lazy "$2"; } # this very command may have it as its working folder

# fake_shell NAME EDIT: a remote shell that changes what comes from pi2 before it gets here, by an edit of sed.
fake_shell() {
  # shellcheck disable=SC2016 # for that shell
  printf '#!/bin/sh\n[ "$1" = pi2 ] || exec %s "$@"\n%s "$@" | sed -u %s\n' "$reach" "$reach" "'$2'" >"$1"
  chmod +x "$1"
}

test_doctor_finds_no_problem_on_healthy_devices() {
  begin_setup
  doctor
  expect_equal "$problems" ''
  expect_equal "$code" 0
  from_pi1 doctor --hostfile hosts --remote-shell "$reach" --json
  expect_equal "$code" 0
  expect_equal "$("$python" -c '
import json, sys
found = json.load(sys.stdin)
rates = [link[way] for link in found["links"] for way in ("forward_bytes_per_s", "back_bytes_per_s")]
print(found["well"], len(rates), all(5e6 < rate < 13e6 for rate in rates),
      all(link["round_trip_s"] > 0 for link in found["links"]), [device["address"][-2:] for device in found["devices"]],
      all(abs(device.get("clock_offset_s", 0)) < 1 for device in found["devices"]))' <<<"$said")" \
    "True 6 True True ['.1', '.2', '.3'] True"
}

test_deploy_leaves_newer_files_of_other_content_alone() {
  begin_setup
  mkdir set
  echo ours | tee set/a set/b set/c >/dev/null
  touch -d yesterday set/a set/b
  hide pi2 "$app"
  from_pi1 deploy --hostfile hosts --remote-shell "$reach" set
  expect_equal "$code" 0
  one exec pi2 sh -c "echo theirs >$app/set/a; echo ours >$app/set/b"
  local how
  for how in --dry-run ''; do
    # shellcheck disable=SC2086 # nothing, or an option
    from_pi1 deploy --hostfile hosts --remote-shell "$reach" set $how
    expect_equal "$code" 1
    expect_text "$said" "pi2 has newer, different files in place of $app/set: a"
    expect_equal "$(one exec pi2 cat "$app/set/a")" theirs
  done
  from_pi1 deploy --hostfile hosts --remote-shell "$reach" set --overwrite
  expect_equal "$code" 0
  expect_equal "$(one exec pi2 cat "$app/set/a")" ours
  reveal pi2 "$app"
}

test_doctor_tells_names_and_addresses_that_lead_nowhere() {
  begin_setup
  printf 'pi1\nno-such-host.invalid\n%s.99\npi3\n' "$(one exec pi1 hostname -I | cut -d . -f 1-3)" >odd
  doctor odd
  expect_equal "$code" 1
  expect_equal "$(grep -c '^problem: ' <<<"$problems")" 2
  expect_text "$problems" 'the name no-such-host.invalid does not resolve'
  expect_text "$problems" '.99 cannot be reached'
  one poweroff pi3
  doctor
  one poweron pi3
  expect_equal "$code" 1
  expect_equal "$(grep -c '^problem: ' <<<"$problems")" 1
  expect_text "$problems" 'pi3 cannot be reached'
}

test_doctor_tells_why_ssh_does_not_let_it_in() {
  begin_setup
  local known=/run/tessera-cluster/test-one/ssh/known_hosts key=/run/tessera-cluster/test-one/ssh/user_key
  ssh_with() {
    printf '#!/bin/sh\nexec ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes -o ConnectTimeout=5 %s "$@"\n' "$*" >shell
    chmod +x shell
    doctor hosts ./shell
    expect_equal "$code" 1
    expect_equal "$(grep -c '^problem: ' <<<"$problems")" 2
  }
  ssh_with -i /dev/null -o "UserKnownHostsFile=$known"
  expect_text "$problems" 'ssh-copy-id pi2'
  expect_text "$problems" 'ssh-copy-id pi3'
  ssh_with -i "$key" -o UserKnownHostsFile=/dev/null
  expect_text "$problems" 'the host key of pi2 is not known yet'
  ssh-keygen -q -t ed25519 -N '' -f other
  sed "s|ssh-ed25519 .*|$(cut -d ' ' -f 1,2 other.pub)|" "$known" >other_hosts
  ssh_with -i "$key" -o "UserKnownHostsFile=$app/other_hosts"
  expect_text "$problems" 'ssh-keygen -R pi3'
  ssh_with -i "$key" -o "UserKnownHostsFile=$known" -p 2222
  expect_text "$problems" 'pi2 answers, but has no ssh server'
}

test_doctor_tells_a_program_that_is_missing_or_another_one() {
  begin_setup
  one exec pi2 mount --bind /bin/true "$app/tessera"
  hide pi3 "$app"
  doctor
  expect_equal "$code" 1
  expect_text "$problems" "tessera on pi2 is another version, or another program"
  expect_text "$problems" "pi3 has no $app/tessera"
  reveal pi2 tessera
  reveal pi3 "$app"
  fake_shell version 's/"version":"tessera [^"]*"/"version":"tessera 0.0.1"/'
  doctor hosts ./version
  expect_equal "$code" 1
  expect_equal "$(grep -c '^problem: ' <<<"$problems")" 1
  expect_text "$problems" 'pi2 has another version of the program: tessera 0.0.1'
}

test_doctor_tells_a_clock_that_is_wrong() {
  begin_setup
  fake_shell clock 's/"time_s":1/"time_s":2/'
  doctor hosts ./clock
  expect_equal "$code" 1
  expect_equal "$(grep -c '^problem: ' <<<"$problems")" 1
  expect_text "$problems" 'the clock of pi2 is '
  expect_text "$problems" ' s ahead of that of this machine'
  expect_text "$problems" 'timedatectl set-ntp true'
}

test_doctor_tells_a_folder_that_is_missing() {
  begin_setup
  mkdir -p other/work
  hide pi3 "$app/other"
  cd other/work || return
  doctor ../../hosts
  cd "$app" || return
  reveal pi3 "$app/other"
  expect_equal "$code" 1
  expect_equal "$(grep -c '^problem: ' <<<"$problems")" 1
  expect_text "$problems" "pi3 has no folder $app/other/work"
}

test_doctor_tells_names_that_mean_the_loopback() {
  begin_setup
  sed 's/^[0-9.]* pi1$/127.0.1.1 pi1/' /run/tessera-cluster/test-one/hosts >debian
  one exec pi1 mount --bind "$app/debian" /etc/hosts
  doctor
  one exec pi1 umount /etc/hosts
  expect_equal "$code" 1
  expect_equal "$(grep -c '^problem: ' <<<"$problems")" 1
  expect_text "$problems" 'the own name of this machine, pi1, resolves to 127.0.1.1'
  one exec pi2 mount --bind "$app/debian" /etc/hosts
  doctor
  one exec pi2 umount /etc/hosts
  expect_equal "$code" 1
  expect_text "$problems" 'pi2 resolves the name of this machine, pi1, to 127.0.1.1'
}

test_doctor_tells_a_link_that_carries_nothing() {
  begin_setup
  fake_shell ports 's/"port":[0-9]*/"port":1/'
  printf 'pi1\npi2\n' >two
  doctor two ./ports
  expect_equal "$code" 1
  expect_equal "$(grep -c '^problem: ' <<<"$problems")" 1
  expect_text "$problems" 'pi1 cannot connect to pi2 at '
  expect_text "$problems" ': Connection refused'
}

test_deploy_refuses_devices_of_another_architecture() {
  begin_setup
  hide pi2 "$app"
  fake_shell armhf 's/^tessera-device [^ ]* [^ ]* [^ ]*/tessera-device armv7l 32 armhf/'
  from_pi1 deploy --hostfile hosts --remote-shell ./armhf
  expect_equal "$code" 1
  expect_text "$said" 'pi2 is a device of armhf, this program is for '
  fake_shell none 's/^\(tessera-device .*\) 1 \([01]\)$/\1 0 \2/'
  from_pi1 deploy --hostfile hosts --remote-shell ./none
  expect_equal "$code" 1
  expect_text "$said" 'pi2 has no rsync'
  expect_equal "$(one exec pi2 ls "$app")" ''
  reveal pi2 "$app"
}

test_deployed_program_trains_on_deployed_data() {
  command -v rsync >/dev/null || skip 'rsync is not there'
  begin_setup
  mkdir "photos of  \$me" && perl "$OLDPWD/tests/cli/support/make_idx.pl" "photos of  \$me" 60 20
  cp "$OLDPWD/models/lenet5.cfg" .
  hide pi2 "$app"
  hide pi3 "$app"
  from_pi1 deploy --hostfile hosts --remote-shell "$reach" lenet5.cfg --data "photos of  \$me" --dry-run
  expect_equal "$code" 0
  expect_text "$said" 'pi3: '"$app"'/lenet5.cfg: would copy 1 file'
  expect_equal "$(one exec pi2 ls "$app")" ''
  from_pi1 deploy --hostfile hosts --remote-shell "$reach" lenet5.cfg --data "photos of  \$me"
  expect_equal "$code" 0
  expect_text "$said" 'all devices have what they need'
  doctor
  expect_equal "$problems" ''
  local training=(train lenet5.cfg --data "photos of  \$me" --grid 1x3 --batch 8 --steps 3 --no-eval)
  one exec pi1 timeout 120 mpiexec.mpich -launcher ssh -launcher-exec "$reach" -iface eth0 -bind-to none -f hosts -n 3 \
    "$app/tessera" "${training[@]}" --run mpiexec </dev/null
  from_pi1 run --hostfile hosts --remote-shell "$reach" -- "${training[@]}" --run run
  expect_equal "$code" 0
  expect_equal "$(wc -l <mpiexec/metrics.jsonl)" 3
  expect_equal "$(wc -l <run/metrics.jsonl)" 3
  from_pi1 deploy --hostfile hosts --remote-shell "$reach" lenet5.cfg
  expect_text "$said" 'lenet5.cfg: is there already'
  reveal pi2 "$app"
  reveal pi3 "$app"
}

test_deploy_gives_each_device_the_data_of_its_ranks() {
  command -v rsync >/dev/null || skip 'rsync is not there'
  begin_setup
  local rank
  for rank in 0 1 2 3; do mkdir "own-$rank" && echo "$rank" >"own-$rank/picture"; done
  printf 'pi1\npi2:2\npi3\n' >four
  hide pi2 "$app"
  hide pi3 "$app"
  from_pi1 deploy --hostfile four --remote-shell "$reach" --data 'own-{rank}'
  expect_equal "$code" 0
  expect_equal "$(one exec pi2 ls "$app" | tr '\n' ' ')" 'own-1 own-2 tessera '
  expect_equal "$(one exec pi3 ls "$app" | tr '\n' ' ')" 'own-3 tessera '
  rm -r own-3
  from_pi1 deploy --hostfile four --remote-shell "$reach" --data 'own-{rank}'
  expect_equal "$code" 2
  expect_text "$said" 'own-3: is not on this machine, pi1, to be copied to pi3'
  reveal pi2 "$app"
  reveal pi3 "$app"
}
