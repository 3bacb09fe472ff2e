# awk -f bench/median.awk -f bench/steps/measured.awk: of the flat output of `tessera time --parts --json`, or of several one after the
# other, a flat one with the median of their medians, the least and the most, the median of each part, and the peak memory of each rank.

$1 == "step_s.median" { times["all", ++count["all"]] = $2 }
$1 == "step_s.min" && (shortest == "" || $2 < shortest) { shortest = $2 }
$1 == "step_s.max" && $2 > longest { longest = $2 }
$1 ~ /^parts\./ { times[$1, ++count[$1]] = $2; parts[$1] }
$1 ~ /^peak_bytes\./ { print "peak_bytes." peaks++, $2 }
END {
  if (!("all" in count)) exit
  print "step_s.median", median_of("all")
  print "step_s.min", shortest
  print "step_s.max", longest
  for (part in parts) print part, median_of(part)
}
