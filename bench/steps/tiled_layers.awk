# How many layers, from the first on, are cut into rows or columns: of a plan of single layers, flat.

function is_cut(group, dimension, extent,    path) {
  path = "groups." group ".ranks.0.owned." dimension
  return of[path ".1"] - of[path ".0"] < extent + 0
}

{ of[$1] = substr($0, length($1) + 2) }

END {
  for (g = 0; ("groups." g ".layers.1") in of; ++g) {
    last = of["groups." g ".layers.1"]
    if (!is_cut(g, "rows", of["layers." last ".output.1"]) && !is_cut(g, "cols", of["layers." last ".output.2"])) break
    tiled = last + 1
  }
  print tiled + 0
}
