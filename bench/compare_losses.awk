# Lays the losses of two runs side by side:
#   awk -v show="1 10 60" -v name_a=.. -v name_b=.. -f metrics.awk -f compare_losses.awk A/metrics.jsonl B/metrics.jsonl
# show: the steps to show; name_a, name_b: the headings.
# Ends with the largest difference over all steps that both runs took.

FNR == 1 { ++run }
{
  step = number($0, "step")
  loss = number($0, "loss")
  if (step == "" || loss == "") next
  losses[run, step] = loss
  rates[run, step] = number($0, "learning_rate")
  if (step + 0 > last) last = step + 0
}

END {
  wanted = split(show, steps, " ")
  for (i = 1; i <= wanted; ++i) shown[steps[i]] = 1
  printf "  %6s  %12s  %12s  %12s\n", "step", name_a, name_b, "difference"
  for (step = 1; step <= last; ++step) {
    if (!((1, step) in losses) || !((2, step) in losses)) continue
    ++both
    difference = magnitude(losses[1, step] - losses[2, step])
    if (both == 1 || difference > largest) { largest = difference; where = step }
    if (magnitude(rates[1, step] - rates[2, step]) > 1e-6 * magnitude(rates[1, step])) ++other_rates
    if (step in shown)
      printf "  %6d  %12.6f  %12.6f  %12.1e\n", step, losses[1, step], losses[2, step], difference
  }
  if (both == 0) { print "  The runs have no step in common."; exit 1 }
  printf "  largest difference over the %d steps that both took: %.1e (step %d)\n", both, largest, where
  if (other_rates) { print "  but their learning rates differ: these runs cannot be compared"; exit 1 }
}
