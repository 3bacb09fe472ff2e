# All groupings of LAYERS layers whose predicted time is at most WITHIN times that of the best, as "SECONDS 0-3,4,5-7".
# Input: "single SECONDS", of groups of one layer each, and lines "FIRST LAST SECONDS", of all these but one.
# What groups gain is added up, which leaves out only what they change for each other.

function visit(layer, sum, text,    last) {
  if (layer == layers) {
    printf "%.6g %s\n", single + sum, text
    return
  }
  for (last = layer; last < layers; ++last) {
    if (!((layer, last) in gain) || sum + gain[layer, last] + best[last + 1] > limit) continue
    visit(last + 1, sum + gain[layer, last], text (layer ? "," : "") (last > layer ? layer "-" last : layer))
  }
}

$1 == "single" { single = $2; next }
$3 != "" { gain[$1, $2] = $3 - single }

END {
  best[layers] = 0
  for (first = layers - 1; first >= 0; --first) {
    gain[first, first] = 0
    best[first] = best[first + 1]
    for (last = first + 1; last < layers; ++last) {
      if ((first, last) in gain && gain[first, last] + best[last + 1] < best[first]) best[first] = gain[first, last] + best[last + 1]
    }
  }
  limit = within * (single + best[0]) - single + 1e-12
  visit(0, 0, "")
}
