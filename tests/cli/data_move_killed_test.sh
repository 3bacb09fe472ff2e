#!/usr/bin/env bash
# train --data-map while samples move: ranks are killed at random moments, again and again. No sample is lost or
# doubled, and what is trained in the end has the same bits as if nothing had happened.
#
#   KILLS=6 SEED=1   how often, and which moments
. tests/cli/support/harness.sh
. tests/cli/support/processes.sh
kills=${KILLS:-6}
RANDOM=${SEED:-1}

# Three ranks with pictures of their own, no two of them alike.
perl -e '
  my ($folder, @counts) = @ARGV;
  for my $rank (0 .. $#counts) {
    for my $class ("cat", "dog") {
      mkdir "$folder/photos-$rank"; mkdir "$folder/photos-$rank/$_" for "train", "test", "train/$class";
    }
    for my $i (0 .. $counts[$rank] - 1) {
      my $class = $i % 2 ? "dog" : "cat";
      # A bitmap of 96x96 pixels of 24 bits, of one colour but for its first pixels.
      my $pixels = pack("N", $rank * 100000 + $i) . pack("C3", 40 + $i % 100, $rank * 50, $i % 2 ? 200 : 30) x (96 * 96);
      $pixels = substr($pixels, 0, 96 * 96 * 3);
      open my $file, ">:raw", "$folder/photos-$rank/train/$class/$i.bmp" or die;
      print {$file} "BM", pack("V v v V", 54 + length $pixels, 0, 0, 54), pack("V l l v v V V l l V V", 40, 96, 96, 1, 24, 0, length $pixels, 0, 0, 0, 0), $pixels;
      close $file or die;
    }
  }' "$folder" 2500 100 40
cat >"$folder/map.toml" <<'MAP'
samples = [2500, 100, 40]
share_while_moving = 0.02
[[move]]
from = 0
to = 1
begin = 700
end = 1500
[[move]]
from = 0
to = 2
begin = 1500
end = 2500
[[move]]
from = 1
to = 2
begin = 90
end = 100
MAP
make_colours_model "$folder/colours.cfg"
arguments=(train "$folder/colours.cfg" --data "$folder/photos-{rank}" --data-map "$folder/map.toml" --batch 64 --epochs 1 --no-eval)

works 3 "${arguments[@]}" --run "$folder/undisturbed"

# Digests of what ranks train on: their own files but those that the map takes, and what has arrived.
trained_on() {
  local rank
  for rank in 0 1 2; do
    (cd "$folder/photos-$rank" && find train -type f | LC_ALL=C sort) >"$folder/list"
    case $rank in
    0) sed -n '1,700p' "$folder/list" ;;
    1) sed -n '1,90p' "$folder/list" ;;
    2) cat "$folder/list" ;;
    esac | sed "s|^|$folder/photos-$rank/|"
    [ ! -d "$1/samples/rank-$rank" ] || find "$1/samples/rank-$rank" -type f
  done | tr '\n' '\0' | xargs -0 sha256sum | cut -d ' ' -f 1 | sort
}
all_there_are() { find "$folder"/photos-?/train -type f -print0 | xargs -0 sha256sum | cut -d ' ' -f 1 | sort; }

arrived_files() { find "$folder/killed/samples" -type f ! -name '*.partial' 2>/dev/null; }

# whole_files RUN: each file that is called as if it were there is one of those that were sent.
whole_files() {
  find "$1/samples" -type f ! -name '*.partial' -print0 2>/dev/null | xargs -0 -r sha256sum | cut -d ' ' -f 1 | sort >"$folder/arrived"
  [ -z "$(comm -23 "$folder/arrived" <(all_there_are))" ] && [ -z "$(uniq -d "$folder/arrived")" ]
}

in_the_middle=0
for ((kill = 1; kill <= kills; ++kill)); do
  command_line="kill $kill of a run"
  "$MPIEXEC" -n 3 "$program" "${arguments[@]}" --run "$folder/killed" >"$folder/out" 2>"$folder/err" </dev/null &
  launcher=$!
  # At times soon after the start, mostly somewhere in the move or behind it.
  wait_until 'ranks start' a_rank_runs
  if [ $((RANDOM % 4)) -eq 0 ]; then
    sleep "0.$(printf '%03d' $((RANDOM % 600)))"
  else
    before=$(arrived_files | wc -l)
    for ((looks = 0; looks < 1000; ++looks)); do
      [ "$(arrived_files | wc -l)" -eq "$before" ] || break
      a_rank_runs || break
      sleep 0.01
    done
    sleep "0.$(printf '%03d' $((RANDOM % 300)))"
  fi
  victim=$(rank $((RANDOM % 3)))
  [ -z "$victim" ] || kill -9 "$victim" 2>/dev/null || true
  wait "$launcher" 2>/dev/null || true
  wait_until 'no rank is left' all_are_gone
  there=$(arrived_files | wc -l)
  [ "$there" -eq 0 ] || [ "$there" -eq 1810 ] || in_the_middle=$((in_the_middle + 1))
  expect "what has arrived before kill $kill is whole" whole_files "$folder/killed"
  # A few are undone, so that there is something left to move.
  if [ "$there" -gt 900 ]; then
    arrived_files | LC_ALL=C sort | awk -v keep=$((RANDOM % 900)) 'NR > keep' | tr '\n' '\0' | xargs -0 rm -f
  fi
done
[ "$in_the_middle" -gt 0 ] || printf 'no rank was killed while samples moved\n'

works 3 "${arguments[@]}" --run "$folder/killed" --force
expect 'each sample is trained on by one rank' cmp -s <(trained_on "$folder/killed") <(all_there_are)
expect 'and the run has the bits of one that nobody disturbed' \
  same_bytes "$folder/killed/checkpoint.safetensors" "$folder/undisturbed/checkpoint.safetensors"
expect 'nothing half written is left' test -z "$(find "$folder/killed/samples" -name '*.partial')"
works 3 "${arguments[@]}" --run "$folder/killed" --force
expect 'then nothing is left to move' grep -qx 'moving 1810 samples between devices, 1810 of them are there already: 0 B' "$folder/out"
