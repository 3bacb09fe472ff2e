# awk -v groups=0-3,4-7 -v layers=8: a grouping of the first layers in words, without commas, which a CSV would take amiss.

BEGIN {
  count = split(groups, item, ",")
  equal = 1
  for (i = 1; i <= count; ++i) {
    n = split(item[i], bound, "-")
    size = n == 2 ? bound[2] - bound[1] + 1 : 1
    if (bound[1] + 0 != covered) equal = 0
    covered += size
    if (i == 1) first = size
    if (size > first || (size < first && i < count)) equal = 0
    text = text (i > 1 ? " " : "") item[i]
  }
  if (covered < layers) print text " the rest alone"
  else if (count == 1) print "all " layers " layers"
  else if (equal && first == 1) print "each layer alone"
  else if (equal) print first " layers each"
  else print text
}
