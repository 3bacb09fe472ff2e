# After rows.awk, before table.awk or conclusion.awk: settings[1..setting_count], of each the groupings by their time, member[SETTING, 1..size_of[SETTING]],
# and automatic[SETTING], which is what --partition auto took, if it was measured.

# order(key): what groupings are sorted by; those without a measurement come last.
function order(key) { return count[key] ? measured[key] : 1e30 + get(key, "predicted_s") }

# display(name): as name.awk has them, with commas.
function display(name,    rest) {
  if (name !~ /^[0-9]+(-[0-9]+)?( |$)/ || name ~ /each$/) return name
  rest = sub(/ the rest alone$/, "", name)
  gsub(/ /, ", ", name)
  return name (rest ? ", the rest alone" : "")
}

# told(key, name): what the settings of a row tell of NAME, as in "grid 2x2; tiled 8".
function told(key, name,    text) {
  text = "; " get(key, "settings") ";"
  if (!match(text, "; " name " [^;]*;")) return ""
  return substr(text, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
}

# cut_of(setting): "layers 0 to 7 in 2x2 tiles".
function cut_of(setting,    key) {
  key = member[setting, 1]
  return "layers 0 to " told(key, "tiled") - 1 " in " told(key, "grid") " tiles"
}

# links_of(setting): "links of 20 Mbit/s", where they are known.
function links_of(setting,    rate) {
  rate = get(member[setting, 1], "rate_mbit")
  return rate == "" ? "" : "links of " rate " Mbit/s"
}

# part_of(key, name): seconds that a mean device spends with it in a step. What it computes of what others compute as well is not measured apart:
# its share is taken to be the predicted one.
function part_of(key, name) {
  if (name == "redundant") return spent(key, "computing_s") * get(key, "redundant")
  if (name == "computing") return spent(key, "computing_s") - part_of(key, "redundant")
  return spent(key, name "_s")
}

BEGIN {
  part_count = split("computing redundant maps statistics sums idle", part_name, " ")
  split("computing|redundant computing|maps|statistics|gradient reduction|idle", part_words, "|")
}

END {
  for (p = 1; p <= partitions; ++p) {
    setting = setting_of(names[p])
    if (!(setting in size_of)) {
      settings[++setting_count] = setting
      size_of[setting] = 0
    }
    if (get(names[p], "name") == "auto") automatic[setting] = names[p]
    else member[setting, ++size_of[setting]] = names[p]
  }
  for (s = 1; s <= setting_count; ++s) {
    setting = settings[s]
    for (i = 2; i <= size_of[setting]; ++i) {
      key = member[setting, i]
      for (j = i - 1; j > 0 && order(member[setting, j]) > order(key); --j) member[setting, j + 1] = member[setting, j]
      member[setting, j + 1] = key
    }
  }
}
