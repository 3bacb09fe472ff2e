# awk -v dilation=K -f bench/median.awk -f bench/cluster/pace.awk: of lines DEVICE SPEED RATE, in GFLOP/s, a line DEVICE PART MEDIAN each:
# the rate by the speed that is wanted, and the median of that over all lines of this speed.
{
  device[NR] = $1
  speed[NR] = $2
  part[NR] = $3 / ($2 * dilation)
  times[$2, ++count[$2]] = part[NR]
}
END {
  for (i = 1; i <= NR; ++i) print device[i], part[i], median_of(speed[i])
}
