# awk -f bench/median.awk -f bench/steps/rows.awk -f bench/choice/table.awk CSV: of each setting the chosen partition, the fastest, and what the others took.

END {
  for (p = 1; p <= partitions; ++p) {
    key = names[p]
    setting = setting_of(key)
    if (!(setting in chosen)) { settings[++setting_count] = setting; chosen[setting] = "" }
    if (get(key, "name") == "auto") chosen[setting] = key
    if (!count[key]) continue
    ++tried[setting]
    if (!(setting in fastest) || measured[key] < measured[fastest[setting]]) fastest[setting] = key
  }
  print "| setting | partitions | chosen: groups | predicted, ms | measured, ms | fastest | measured, ms | chosen / fastest |"
  print "| --- | ---: | --- | ---: | ---: | --- | ---: | ---: |"
  for (s = 1; s <= setting_count; ++s) {
    setting = settings[s]
    key = chosen[setting]
    best = fastest[setting]
    if (key == "" || !count[key]) continue
    ratio = measured[key] / measured[best]
    if (ratio > worst) worst = ratio
    if (ratio <= 1.05) ++good
    ++judged
    printf "| %s | %d | %s | %s | %s | %s | %s | %.2f |\n", setting, tried[setting], get(key, "groups"), ms(get(key, "predicted_s")), spread(key),
      get(best, "name"), spread(best), ratio
  }
  if (judged) printf "\nWithin 5 %% of the fastest in %d of %d settings; %.2f times as long in the worst. Highest load average before a measurement: %.2f\n", good, judged, worst, load
}
