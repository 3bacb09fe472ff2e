# awk -f bench/median.awk -f bench/steps/rows.awk -f bench/group_size/settings.awk -f bench/group_size/verdict.awk CSV: whether what --partition auto took is
# faster than every grouping of the cut, a line for all settings and one for each; nothing where auto was not measured.

END {
  for (s = 1; s <= setting_count; ++s) {
    setting = settings[s]
    key = automatic[setting]
    best = member[setting, 1]
    if (key == "" || !count[key] || size_of[setting] == 0 || !count[best]) continue
    ++judged
    won += measured[key] < measured[best]
    links = links_of(setting)
    lines = lines sprintf("  %s: auto %.2f s per step, %s %.2f s: %.2f times as long\n", links == "" ? setting : links, measured[key], display(get(best, "name")),
      measured[best], measured[key] / measured[best])
  }
  if (judged) printf "auto is faster than every grouping in %s of %d settings.\n%s\n", won == judged ? "all" : won + 0, judged, lines
}
