# awk -v dilation=K -f bench/metrics.awk -f epochs.awk METRICS: a line EPOCH ELAPSED_S ACCURACY for each test of a run.
number($0, "accuracy") != "" { printf "%.0f %.4g %s\n", number($0, "epoch"), dilation * number($0, "t_s"), number($0, "accuracy") }
