# median_of(key): of times[key, 1 .. count[key]]; least[key] and most[key] are the ends of their range.
function median_of(key,    n, i, j, kept, sorted) {
  n = count[key]
  for (i = 1; i <= n; ++i) {
    kept = times[key, i]
    for (j = i - 1; j > 0 && sorted[j] > kept; --j) sorted[j + 1] = sorted[j]
    sorted[j + 1] = kept
  }
  least[key] = sorted[1]
  most[key] = sorted[n]
  return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}
