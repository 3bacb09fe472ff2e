# awk -f bench/median.awk -f bench/steps/rows.awk -f bench/prediction/table.awk CSV: each partition, then how right predictions are, by setting and over all.

# sorted(from, n, to): to[1..n] in rising order; returns nothing.
function sorted(from, n, to,    i, j) {
  for (i = 1; i <= n; ++i) {
    for (j = i - 1; j > 0 && to[j] > from[i]; --j) to[j + 1] = to[j]
    to[j + 1] = from[i]
  }
}

function middle(values, n,    order) {
  sorted(values, n, order)
  return n % 2 ? order[(n + 1) / 2] : (order[n / 2] + order[n / 2 + 1]) / 2
}

# ranks(values, n, of): of[i] is the place of values[i], the mean place where several are equal.
function ranks(values, n, of,    i, j, below, equal) {
  for (i = 1; i <= n; ++i) {
    below = equal = 0
    for (j = 1; j <= n; ++j) {
      below += values[j] < values[i]
      equal += values[j] == values[i]
    }
    of[i] = below + (equal + 1) / 2
  }
}

# spearman(x, y, n): Pearson's correlation of the ranks.
function spearman(x, y, n,    i, a, b, mean, xy, xx, yy) {
  if (n < 3) return "-"
  ranks(x, n, a)
  ranks(y, n, b)
  mean = (n + 1) / 2
  for (i = 1; i <= n; ++i) {
    xy += (a[i] - mean) * (b[i] - mean)
    xx += (a[i] - mean) ^ 2
    yy += (b[i] - mean) ^ 2
  }
  return xx * yy > 0 ? sprintf("%.3f", xy / sqrt(xx * yy)) : "-"
}

# memory_error(key): of what is planned, relative to what the process takes: that of the rank where it is largest.
function memory_error(key,    n, i, planned, peak, error, farthest) {
  n = split(get(key, "planned_bytes"), planned, " ")
  split(get(key, "peak_bytes"), peak, " ")
  for (i = 1; i <= n; ++i) {
    error = planned[i] / peak[i] - 1
    if (size_of(error) > size_of(farthest)) farthest = error
  }
  return farthest + 0
}

function size_of(error) { return error < 0 ? -error : error }

# summary(title, setting): of the partitions of a setting, or of all where it is empty.
function summary(title, setting,    p, n, key, error, predicted, actual, memory, worst, worst_memory, right, right_memory) {
  for (p = 1; p <= partitions; ++p) {
    key = names[p]
    if (!count[key] || (setting != "" && setting_of(key) != setting)) continue
    ++n
    predicted[n] = get(key, "predicted_s") + 0
    actual[n] = measured[key] + 0
    error[n] = size_of(error_of(key))
    memory[n] = size_of(memory_error(key))
    if (error[n] > worst) worst = error[n]
    if (memory[n] > worst_memory) worst_memory = memory[n]
    right += error[n] <= 0.1
    right_memory += memory[n] <= 0.05
  }
  if (n) printf "| %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", title, n, percent(middle(error, n)), percent(worst), percent(right / n),
    spearman(predicted, actual, n), percent(middle(memory, n)), percent(worst_memory), percent(right_memory / n)
}

END {
  print "| setting | partition | predicted, ms | measured, ms | error | planned, MiB | peak, MiB | error |"
  print "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
  for (p = 1; p <= partitions; ++p) {
    key = names[p]
    if (!(setting_of(key) in seen)) settings[++setting_count] = setting_of(key)
    seen[setting_of(key)] = 1
    printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", setting_of(key), get(key, "name"), ms(get(key, "predicted_s")), spread(key), percent(error_of(key)),
      mib(largest(get(key, "planned_bytes"))), mib(largest(get(key, "peak_bytes"))), count[key] ? percent(memory_error(key)) : ""
  }
  print "\n| setting | partitions | median error | largest | within 10 % | Spearman's rank correlation | memory: median error | largest | within 5 % |"
  print "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
  for (s = 1; s <= setting_count; ++s) summary(settings[s], settings[s])
  summary("all", "")
  printf "\nHighest load average before a measurement: %.2f\n", load
}
