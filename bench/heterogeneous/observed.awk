# awk -v dilation=K -f bench/median.awk -f bench/metrics.awk -f observed.awk METRICS DEVICES: of a run, ELAPSED_S,STEP_S,BUSY,MEMORY_BYTES,RECEIVED_BYTES_PER_S,SENT_BYTES_PER_S.
# Elapsed and the median step; of a mean device, from its first sample to its last, the share of time in which it does not wait for messages, the largest
# resident set, and what its interface receives and sends.

FILENAME == ARGV[1] {
  step_s = number($0, "step_s")
  if (step_s == "") next
  times["step", ++count["step"]] = dilation * step_s
  elapsed_s = dilation * number($0, "t_s")
  next
}
{
  rank = number($0, "rank")
  if (!(rank in first)) { first[rank] = $0; ++ranks }
  last[rank] = $0
  if (number($0, "rss_bytes") > memory[rank]) memory[rank] = number($0, "rss_bytes") + 0
}

# gained(rank, key): from the first sample to the last.
function gained(rank, key) { return number(last[rank], key) - number(first[rank], key) }

END {
  for (rank in first) {
    seconds = gained(rank, "t_s")
    memory_sum += memory[rank]
    if (seconds <= 0) continue
    ++seen
    busy += 1 - gained(rank, "wait_s") / seconds
    received += gained(rank, "rx_bytes") / (dilation * seconds)
    sent += gained(rank, "tx_bytes") / (dilation * seconds)
  }
  if (!seen) seen = 1
  printf "%.4g,%.4g,%.4f,%.0f,%.0f,%.0f\n", elapsed_s, median_of("step"), busy / seen, memory_sum / ranks, received / seen, sent / seen
}
