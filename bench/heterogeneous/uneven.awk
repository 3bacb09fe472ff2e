# awk -f bench/median.awk -f bench/steps/rows.awk -f bench/heterogeneous/uneven.awk CSV: two devices beside the sum of their speeds.

# share(both, fast, slow): of the sum of the speeds, where all three are seconds.
function share(both, fast, slow) { return both > 0 && fast > 0 && slow > 0 ? percent(1 / both / (1 / fast + 1 / slow)) : "" }

# largest_rest(key): what takes most beside computing, on a mean device.
function largest_rest(key,    i, part, seconds, most_s, name) {
  split("maps statistics sums idle", part, " ")
  for (i = 1; i <= 4; ++i) {
    seconds = spent(key, part[i] "_s")
    if (seconds > most_s) { most_s = seconds; name = part[i] }
  }
  return sprintf("%s %.0f %%", name, 100 * most_s / measured[key])
}

END {
  print "| workload | ratio | faster alone, ms | slower alone, ms | both, ms | predicted, ms | share of the sum | predicted | waiting most for |"
  print "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
  for (p = 1; p <= partitions; ++p) {
    key = names[p]
    if (get(key, "name") != "both") continue
    fast = slow = key
    sub(/both$/, "fast", fast)
    sub(/both$/, "slow", slow)
    if (!count[key] || !count[fast] || !count[slow]) continue
    printf "| %s %s, batch %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", get(key, "model"), get(key, "size"), get(key, "batch"), get(key, "cluster"),
      ms(measured[fast]), ms(measured[slow]), spread(key), ms(get(key, "predicted_s")), share(measured[key], measured[fast], measured[slow]),
      share(get(key, "predicted_s"), get(fast, "predicted_s"), get(slow, "predicted_s")), largest_rest(key)
  }
  printf "\nHighest load average before a measurement: %.2f\n", load
}
