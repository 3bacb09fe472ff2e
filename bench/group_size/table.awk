# awk -f bench/median.awk -f bench/steps/rows.awk -f bench/group_size/table.awk CSV: a table for each setting, the fastest grouping first.

function title(key) {
  printf "%s%s: %s devices\n\n", printed++ ? "\n" : "", setting_of(key), get(key, "devices")
  print "| groups | predicted, ms | measured, ms | error | messages | sent, MiB | redundant | planned, MiB | peak, MiB | |"
  print "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
}

function row(key, is_best, is_best_predicted,    words) {
  words = is_best ? "fastest" : ""
  if (is_best_predicted) words = words (words == "" ? "" : ", ") "predicted to be"
  printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
    get(key, "name") == "auto" ? "auto: " get(key, "groups") : get(key, "name"), ms(get(key, "predicted_s")), spread(key),
    percent(error_of(key)), get(key, "messages"), mib(get(key, "bytes")), percent(get(key, "redundant")),
    mib(largest(get(key, "planned_bytes"))), mib(largest(get(key, "peak_bytes"))), words
}

# order(key): what rows are sorted by; those without a measurement come last.
function order(key) { return count[key] ? measured[key] : 1e30 + get(key, "predicted_s") }

END {
  for (p = 1; p <= partitions; ++p) {
    setting = setting_of(names[p])
    if (!(setting in size_of)) settings[++setting_count] = setting
    member[setting, ++size_of[setting]] = names[p]
  }
  for (s = 1; s <= setting_count; ++s) {
    setting = settings[s]
    soonest = ""
    for (i = 1; i <= size_of[setting]; ++i) {
      key = member[setting, i]
      if (soonest == "" || get(key, "predicted_s") < get(soonest, "predicted_s")) soonest = key
      for (j = i - 1; j > 0 && order(member[setting, j]) > order(key); --j) member[setting, j + 1] = member[setting, j]
      member[setting, j + 1] = key
    }
    title(soonest)
    for (i = 1; i <= size_of[setting]; ++i) row(member[setting, i], i == 1, member[setting, i] == soonest)
  }
  printf "\nHighest load average before a measurement: %.2f\n", load
}
