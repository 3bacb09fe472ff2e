# A Markdown table of what run.sh measured:
#   awk -f bench/median.awk -f bench/peers/peers_table.awk runs/peers.csv
# Of each peer the median of the rounds, their least and most, the time of the fastest PyTorch by its own, peak memory.

BEGIN { FS = "," }
FNR == 1 { next }
{
  setting = $1 FS $2 FS $3 FS $4
  key = setting FS $5
  if (!(setting in seen)) { seen[setting] = 1; settings[++setting_count] = setting }
  if (!(key in count)) peers[setting, ++peer_count[setting]] = $5
  times[key, ++count[key]] = $7
  if ($10 > peak[key]) peak[key] = $10
  if ($11 > load) load = $11
}

END {
  print "| model | size | batch | threads | | step, ms | least to most | times PyTorch | peak, MiB |"
  print "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |"
  for (s = 1; s <= setting_count; ++s) {
    setting = settings[s]
    best = 0
    for (p = 1; p <= peer_count[setting]; ++p) {
      key = setting FS peers[setting, p]
      step[key] = median_of(key)
      if (peers[setting, p] ~ /^torch/ && (best == 0 || step[key] < best)) best = step[key]
    }
    split(setting, words, FS)
    sub(/^.*\//, "", words[1])
    sub(/\.cfg$/, "", words[1])
    for (p = 1; p <= peer_count[setting]; ++p) {
      key = setting FS peers[setting, p]
      printf "| %s | %s | %s | %s | %s | %.1f | %.1f to %.1f | %s | %.0f |\n", words[1], words[2], words[3], words[4], peers[setting, p],
        1e3 * step[key], 1e3 * least[key], 1e3 * most[key], best ? sprintf("%.2f", best / step[key]) : "", peak[key] / 1048576
    }
  }
  printf "\nHighest load average before a measurement: %.2f\n", load
}
