# awk -f bench/median.awk -f bench/steps/rows.awk -f bench/speed/table.awk CSV: steps, speed-ups over one device, and what bounds them.

# kind(key): of devices, as "pi3" in the cluster "pi3x6-100".
function kind(key,    name) {
  name = get(key, "cluster")
  sub(/x[0-9]+-[0-9.]+$/, "", name)
  return name
}

function workload(key) { return kind(key) ", " get(key, "model") " " get(key, "size") ", batch " get(key, "batch") }

# times_as_fast(key, base): empty where one of them was not measured.
function times_as_fast(key, base) {
  return base != "" && count[key] && count[base] ? sprintf("%.2f", measured[base] / measured[key]) : ""
}

# predicted_times(key, base): the same by predictions, of which both are by one profile, however fast devices were when they were measured.
function predicted_times(key, base) {
  return base != "" && get(base, "predicted_s") > 0 ? sprintf("%.2f", get(base, "predicted_s") / get(key, "predicted_s")) : ""
}

# link_bound(key, base): how many times as fast as one device, if the busiest link were all that takes time.
function link_bound(key, base,    seconds) {
  if (base == "") return ""
  seconds = 8e-6 * get(key, "busiest_bytes") / get(key, "rate_mbit")
  return seconds > 0 ? sprintf("%.1f", measured[base] / seconds) : "-"
}

# loss(key, seconds): in ms, and what share of the step.
function loss(key, seconds) { return sprintf("%s (%.0f %%)", ms(seconds), 100 * seconds / measured[key]) }

# losses(key, one): what a step takes beyond an even share of what one of the devices takes by itself; several are compared with `one`.
function losses(key, one,    even) {
  even = measured[one] / get(key, "devices")
  printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", workload(key), get(key, "rate_mbit"), get(key, "devices"), get(key, "name"),
    ms(measured[key]), ms(even), loss(key, spent(key, "computing_s") - even), loss(key, spent(key, "maps_s")),
    loss(key, spent(key, "statistics_s")), loss(key, spent(key, "sums_s")), loss(key, spent(key, "idle_s"))
}

END {
  for (p = 1; p <= partitions; ++p) {
    key = names[p]
    if (!count[key]) continue
    if (get(key, "devices") == 1) alone[workload(key)] = key
    if (get(key, "name") == "each") beside[workload(key), get(key, "devices")] = key
  }
  print "| workload | Mbit/s | devices | partition | predicted, ms | measured, ms | times one of them | predicted | times one alone | bound of the work | of the link | sent, MiB | peak, MiB |"
  print "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
  for (p = 1; p <= partitions; ++p) {
    key = names[p]
    one = beside[workload(key), get(key, "devices")]
    several = get(key, "devices") > 1 && get(key, "name") != "each"
    printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", workload(key), several ? get(key, "rate_mbit") : "", get(key, "devices"),
      (get(key, "devices") > 1 ? get(key, "name") : "alone"), ms(get(key, "predicted_s")), spread(key),
      several ? times_as_fast(key, one) : "", several ? predicted_times(key, one) : "", times_as_fast(key, alone[workload(key)]),
      several ? get(key, "work_bound") : "", several ? link_bound(key, one) : "", several ? mib(get(key, "bytes")) : "",
      mib(largest(get(key, "peak_bytes")))
  }
  print "\n| workload | Mbit/s | devices | partition | step, ms | even share of one device | more computing | exchange of maps | batch statistics | gradient reduction | idle |"
  print "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
  for (p = 1; p <= partitions; ++p) {
    key = names[p]
    one = beside[workload(key), get(key, "devices")]
    if (one == "") one = alone[workload(key)]
    if (count[key] && one != "" && get(key, "devices") > 1 && get(key, "name") != "each") losses(key, one)
  }
  printf "\nHighest load average before a measurement: %.2f\n", load
}
