# Reads the CSV of steps.sh for a table that follows as a further -f; wants median.awk before it. After it: names[1..partitions] in the order of the file, of
# each KEY (the first eight columns) get(KEY, COLUMN), and the medians of its rounds, measured[KEY], with least[KEY] and most[KEY].

# What a mean device spends a measured step with.
function is_spent(name) { return name ~ /^(computing|maps|statistics|sums|idle)_s$/ }

# spent(key, name): the median of its rounds, in seconds.
function spent(key, name) { return median_of(key SUBSEP name) }

function get(key, name) { return value[key, name] }

# largest(list): of numbers with spaces between them.
function largest(list,    i, n, part, most_of) {
  n = split(list, part, " ")
  for (i = 1; i <= n; ++i) if (part[i] > most_of) most_of = part[i] + 0
  return most_of
}

function mib(bytes) { return bytes == "" ? "" : sprintf("%.1f", bytes / 1048576) }
function ms(seconds) { return seconds == "" ? "" : sprintf("%.1f", 1e3 * seconds) }
function percent(share) { return share == "" ? "" : sprintf("%.1f %%", 100 * share) }

# spread(key): "12.0 (11.5 to 13.1)" ms.
function spread(key) {
  return count[key] ? sprintf("%s (%s to %s)", ms(measured[key]), ms(least[key]), ms(most[key])) : "not measured"
}

# error_of(key): of the prediction, relative to what was measured; empty where nothing was.
function error_of(key) { return count[key] ? get(key, "predicted_s") / measured[key] - 1 : "" }

function setting_of(key) {
  return get(key, "cluster") ", " get(key, "model") ", " get(key, "size") ", batch " get(key, "batch")
}

BEGIN { FS = "," }
FNR == 1 {
  for (i = 1; i <= NF; ++i) header[i] = $i
  columns = NF
  next
}
{
  key = $1 FS $2 FS $3 FS $4 FS $5 FS $6 FS $7 FS $8
  if (!(key in known)) { known[key] = 1; count[key] = 0; names[++partitions] = key }
  for (i = 1; i <= columns; ++i) if (header[i] != "peak_bytes" || $i != "") value[key, header[i]] = $i
  for (i = 1; i <= columns; ++i) if (is_spent(header[i]) && $i != "") times[key, header[i], ++count[key, header[i]]] = $i
  if (get(key, "measured_s") != "") times[key, ++count[key]] = get(key, "measured_s")
  if ($columns > load) load = $columns
}
END {
  for (p = 1; p <= partitions; ++p) if (count[names[p]]) measured[names[p]] = median_of(names[p])
}
