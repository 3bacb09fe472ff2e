# awk -f bench/steps/rows.awk -f bench/speed/table.awk CSV: steps, speed-ups over one device, and what bounds them.

function workload(key) { return get(key, "model") " " get(key, "size") ", batch " get(key, "batch") }

# link_bound(key, alone): how many times as fast as one device, if the busiest link were all that takes time.
function link_bound(key, alone,    seconds) {
  seconds = 8e-6 * get(key, "busiest_bytes") / get(key, "rate_mbit")
  return seconds > 0 ? sprintf("%.1f", measured[alone] / seconds) : "-"
}

END {
  for (p = 1; p <= partitions; ++p) {
    if (count[names[p]] && get(names[p], "devices") == 1) single[workload(names[p])] = names[p]
  }
  print "| workload | Mbit/s | devices | partition | predicted, ms | measured, ms | times one device | bound of the work | of the link | sent, MiB | peak, MiB |"
  print "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
  for (p = 1; p <= partitions; ++p) {
    key = names[p]
    alone = single[workload(key)]
    several = get(key, "devices") > 1
    printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", workload(key), several ? get(key, "rate_mbit") : "", get(key, "devices"),
      several ? get(key, "name") : "", ms(get(key, "predicted_s")), spread(key),
      several && alone != "" && count[key] ? sprintf("%.2f", measured[alone] / measured[key]) : "",
      several ? get(key, "work_bound") : "", several && alone != "" ? link_bound(key, alone) : "", several ? mib(get(key, "bytes")) : "",
      mib(largest(get(key, "peak_bytes")))
  }
  printf "\nHighest load average before a measurement: %.2f\n", load
}
