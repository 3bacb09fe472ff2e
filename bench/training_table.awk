# Compares runs of one model that were trained with different numbers of ranks and seeds:
#   awk -f metrics.awk -f training_table.awk RUN/metrics.jsonl...      where RUN ends in RANKS-SEED, as 4-1 does
# Prints each run's accuracy, then for each seed how far the losses of 1 rank and of more ranks are apart, and the same
# between seeds, which is the noise to judge by. With -v csv=FILE the comparisons are written there too, a line for each seed.
# After 50 steps it is means of 100 steps that are compared.

# spread(a, b): sets first_50 (largest difference of the first 50 losses), window_mean and window_largest (of the means
# of 100 steps), windows.
function spread(a, b,    step, window, difference) {
  first_50 = window_mean = window_largest = windows = 0
  for (step = 1; step <= 50; ++step) {
    if (!((a, step) in losses) || !((b, step) in losses)) continue
    difference = magnitude(losses[a, step] - losses[b, step])
    if (difference > first_50) first_50 = difference
  }
  for (window = 0; counts[a, window] == 100 && counts[b, window] == 100; ++window) {
    difference = magnitude(sums[a, window] - sums[b, window]) / 100
    if (difference > window_largest) window_largest = difference
    window_mean += difference
    ++windows
  }
  if (windows) window_mean /= windows
}

function spread_row(label, a, b) {
  spread(a, b)
  if (csv != "" && ranks[b] != 1)
    printf "%s,%.2f,%.2f,%.1e,%.3f,%.4f\n", seeds[a], 100 * accuracy[a], 100 * accuracy[b], first_50, window_largest, window_mean >csv
  printf "  %-30s %12.1e %14.4f %14.4f\n", label, first_50, window_mean, window_largest
}

FNR == 1 {
  name = FILENAME
  sub(/\/[^\/]*$/, "", name)
  sub(/^.*\//, "", name)
  if (split(name, words, "-") != 2) { print "  the run " name " is not called RANKS-SEED"; wrong = 1; exit 1 }
  names[++runs] = name
  ranks[runs] = words[1]
  seeds[runs] = words[2]
}
{
  step = number($0, "step")
  loss = number($0, "loss")
  if (number($0, "accuracy") != "") accuracy[runs] = number($0, "accuracy")
  if (loss == "" || (runs, step) in losses) next
  losses[runs, step] = loss
  sums[runs, int((step - 1) / 100)] += loss
  ++counts[runs, int((step - 1) / 100)]
  seconds[runs] += number($0, "step_s")
  steps[runs] = step
}

END {
  if (wrong) exit 1
  printf "\n  %6s %6s %8s %14s %12s\n", "ranks", "seed", "steps", "test accuracy", "training s"
  for (i = 1; i <= runs; ++i)
    printf "  %6s %6s %8s %12.2f %% %12.0f\n", ranks[i], seeds[i], steps[i], 100 * accuracy[i], seconds[i]
  if (csv != "") print "seed,accuracy_1,accuracy_4,first_50_largest,window_largest,window_mean" >csv
  printf "\n  %-30s %12s %29s\n", "differences of the loss", "first 50", "means of 100 steps"
  printf "  %-30s %12s %14s %14s\n", "", "largest", "mean", "largest"
  for (i = 1; i <= runs; ++i)
    for (j = 1; j <= runs; ++j)
      if (ranks[i] == 1 && ranks[j] != 1 && seeds[i] == seeds[j])
        spread_row("seed " seeds[i] ", 1 and " ranks[j] " ranks", i, j)
  for (i = 1; i <= runs; ++i)
    for (j = i + 1; j <= runs; ++j)
      if (ranks[i] == 1 && ranks[j] == 1) spread_row("noise: seeds " seeds[i] " and " seeds[j] ", 1 rank", i, j)
  printf "\n"
}
