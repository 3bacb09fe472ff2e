# awk -f bench/median.awk -f bench/steps/rows.awk -f bench/memory/table.awk CSV: planned and measured memory of the processes that use the most and the least.

function smallest(list,    i, n, part, least_of) {
  n = split(list, part, " ")
  least_of = part[1]
  for (i = 2; i <= n; ++i) if (part[i] + 0 < least_of + 0) least_of = part[i]
  return least_of
}

# planned(bytes): of other programs nothing is.
function planned(bytes) { return bytes > 0 ? mib(bytes) : "" }

END {
  print "| workload | program | processes | planned, MiB | least to most | peak, MiB | least to most |"
  print "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
  for (p = 1; p <= partitions; ++p) {
    key = names[p]
    planned_list = get(key, "planned_bytes")
    peak_list = get(key, "peak_bytes")
    printf "| %s %s, batch %s | %s | %s | %s | %s | %s | %s |\n", get(key, "model"), get(key, "size"), get(key, "batch"), get(key, "name"),
      get(key, "devices"), planned(largest(planned_list)), planned_list == "" ? "" : mib(smallest(planned_list)) " to " mib(largest(planned_list)),
      mib(largest(peak_list)), mib(smallest(peak_list)) " to " mib(largest(peak_list))
  }
}
