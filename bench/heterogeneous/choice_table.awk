# awk -f bench/heterogeneous/choice_table.awk CSV: by objective and in all, how often `tessera choose` chose the best set of devices, or one that
# is as good to 1 % (sets of like boards differ by less), how much worse what it chose was, and what trials took.

BEGIN { FS = "," }
NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
{
  add($column["objective"])
  add("all")
}

function add(name) {
  if (!(name in cases)) names[++count] = name
  ++cases[name]
  best[name] += $column["best"] == $column["chosen"]
  as_good[name] += $column["excess"] <= 0.01
  excess[name] += $column["excess"]
  if ($column["excess"] > worst[name]) worst[name] = $column["excess"]
  tried[name] += $column["tried"]
  sets[name] += $column["sets"]
  if ($column["trial_share"] > share[name]) share[name] = $column["trial_share"]
}

END {
  print "| objective | cases | the best was chosen | or as good to 1 % | worse than the best, mean | most | sets tried | of | trials, most of a run |"
  print "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
  for (i = 1; i <= count; ++i)
    if (names[i] != "all") line(names[i])
  if (count) line("all")
}

function line(name) {
  printf "| %s | %d | %.0f %% | %.0f %% | %.1f %% | %.1f %% | %.1f | %.1f | %.1f %% |\n", name, cases[name], 100 * best[name] / cases[name],
    100 * as_good[name] / cases[name], 100 * excess[name] / cases[name], 100 * worst[name], tried[name] / cases[name], sets[name] / cases[name], 100 * share[name]
}
