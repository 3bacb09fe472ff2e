# awk -f bench/median.awk -f bench/steps/rows.awk -f bench/speed/detectors.awk CSV: time and memory of a step on several devices, beside one of them.

function seconds(value) { return value == "" ? "" : sprintf("%.1f", value) }

# measured_seconds(key): what was measured, or why nothing was.
function measured_seconds(key) {
  if (count[key]) return seconds(measured[key])
  return get(key, "limited_by") == "memory" ? "too little memory" : "failed"
}

# range(list): in MiB, of numbers with spaces between them, "212 to 230".
function range(list,    i, n, part, least, most) {
  n = split(list, part, " ")
  if (n == 0) return ""
  least = most = part[1] + 0
  for (i = 2; i <= n; ++i) {
    if (part[i] + 0 < least) least = part[i] + 0
    if (part[i] + 0 > most) most = part[i] + 0
  }
  least = sprintf("%.0f", least / 1048576)
  most = sprintf("%.0f", most / 1048576)
  return least == most ? most : least " to " most
}

END {
  print "| model | devices | predicted, s | measured, s | times one of them | predicted | planned, MiB each | peak, MiB each | sent, MiB |"
  print "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
  for (p = 1; p <= partitions; ++p) {
    key = names[p]
    if (get(key, "name") == "each") one[setting_of(key)] = key
  }
  for (p = 1; p <= partitions; ++p) {
    key = names[p]
    base = one[setting_of(key)]
    alone = get(key, "name") == "each"
    as_fast = predicted = ""
    if (!alone && base != "") {
      if (count[key] && count[base]) as_fast = sprintf("%.2f", measured[base] / measured[key])
      predicted = sprintf("%.2f", get(base, "predicted_s") / get(key, "predicted_s"))
    }
    printf "| %s %s, batch %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", get(key, "model"), get(key, "size"), get(key, "batch"),
      (alone ? 1 : get(key, "devices")), seconds(get(key, "predicted_s")), measured_seconds(key), as_fast, predicted,
      range(get(key, "planned_bytes")), range(get(key, "peak_bytes")), (alone ? "" : mib(get(key, "bytes")))
  }
  printf "\nHighest load average before a measurement: %.2f\n", load
}
