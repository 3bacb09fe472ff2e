# awk -f bench/median.awk -f bench/steps/rows.awk -f bench/group_size/settings.awk -f bench/group_size/conclusion.awk CSV: a sentence for each setting: which
# grouping is the fastest, what it is compared with, and which parts of a step make the difference.

function percent_more(key, than) { return sprintf("%.0f %%", 100 * (measured[key] / measured[than] - 1)) }

# reasons(other, best): the parts of a step that differ by more than a fiftieth of it, the largest first.
function reasons(other, best,    i, most, chosen, text, more, used) {
  for (;;) {
    most = 0.02 * measured[best]
    chosen = 0
    for (i = 1; i <= part_count; ++i) {
      more = part_of(other, part_name[i]) - part_of(best, part_name[i])
      if (!(i in used) && (more > most || -more > most)) {
        most = more > 0 ? more : -more
        chosen = i
      }
    }
    if (!chosen) return text == "" ? "" : " (" text ")"
    used[chosen]
    more = part_of(other, part_name[chosen]) - part_of(best, part_name[chosen])
    text = text (text == "" ? "" : ", ") sprintf("%s %s%.2f s", part_words[chosen], more > 0 ? "+" : "-", more > 0 ? more : -more)
  }
}

END {
  for (s = 1; s <= setting_count; ++s) {
    setting = settings[s]
    best = member[setting, 1]
    if (size_of[setting] == 0 || !count[best]) continue
    alike = compared = slowest = ""
    for (i = 2; i <= size_of[setting]; ++i) {
      key = member[setting, i]
      if (!count[key]) continue
      slowest = key
      if (measured[key] <= 1.02 * measured[best]) alike = alike (alike == "" ? "" : "; ") display(get(key, "name"))
      else if (get(key, "name") == "each layer alone") compared = key
    }
    if (compared == "" && slowest != "" && measured[slowest] > 1.02 * measured[best]) compared = slowest
    links = links_of(setting)
    printf "%s%s, batch %s: fastest is %s, %.2f s per step%s", get(best, "model"), links == "" ? "" : ", " links, get(best, "batch"),
      display(get(best, "name")), measured[best], alike == "" ? "" : " (within 2 %: " alike ")"
    if (compared != "") printf "; %s takes %s longer%s", display(get(compared, "name")), percent_more(compared, best), reasons(compared, best)
    print "."
  }
}
