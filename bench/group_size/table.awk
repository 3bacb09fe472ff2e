# awk -f bench/median.awk -f bench/steps/rows.awk -f bench/group_size/settings.awk -f bench/group_size/table.awk CSV: a table for each setting, the fastest
# grouping first, what --partition auto took below.

function seconds(s) { return s == "" ? "" : sprintf("%.3f", s) }

function title(setting,    key, links) {
  key = member[setting, 1]
  links = links_of(setting)
  printf "%s%s: %s devices%s; cut: %s\n\n", printed++ ? "\n" : "", setting, get(key, "devices"), links == "" ? "" : ", " links, cut_of(setting)
  print "| groups | measured, s | least, most | predicted, s | computing | redundant | maps | statistics | gradients | idle | messages | sent, MiB | peak, MiB |"
  print "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
}

function row(key, name,    i, parts) {
  for (i = 1; i <= part_count; ++i) parts = parts " | " (count[key] ? seconds(part_of(key, part_name[i])) : "")
  printf "| %s | %s | %s | %s%s | %s | %s | %s |\n", name, count[key] ? seconds(measured[key]) : "not measured",
    count[key] ? seconds(least[key]) ", " seconds(most[key]) : "", seconds(get(key, "predicted_s")), parts, get(key, "messages"),
    mib(get(key, "bytes")), mib(largest(get(key, "peak_bytes")))
}

END {
  for (s = 1; s <= setting_count; ++s) {
    setting = settings[s]
    if (size_of[setting] == 0) continue
    title(setting)
    for (i = 1; i <= size_of[setting]; ++i) row(member[setting, i], (i == 1 ? "**" : "") display(get(member[setting, i], "name")) (i == 1 ? "**" : ""))
    if (setting in automatic) row(automatic[setting], "`auto`, cut as it likes: " get(automatic[setting], "groups"))
  }
  printf "\nHighest load average before a measurement: %.2f\n", load
}
