# A row of the CSV from a plan and a measurement, both flat: awk ... -f row.awk PLAN MEASURED
# Times become those of the devices: they are multiplied by the dilation.

# list(path): the values PATH.0, PATH.1, ..., with spaces between them.
function list(path,    i, text) {
  for (i = 0; (path "." i) in of; ++i) text = text (i ? " " : "") of[path "." i]
  return text
}

# planned_bytes(): of each rank, without what decoding takes, since `tessera time` makes up its pictures.
function planned_bytes(    i, text) {
  for (i = 0; ("memory." i ".total") in of; ++i) text = text (i ? " " : "") sprintf("%.0f", of["memory." i ".total"] - of["memory." i ".decoding"])
  return text
}

# group_name(i): "0-3", or "8" of a single layer.
function group_name(i,    first, last) {
  first = of["groups." i ".layers.0"]
  last = of["groups." i ".layers.1"]
  return first == last ? first : first "-" last
}

# groups(): "0-3 4-7 8".
function groups(    i, text) {
  for (i = 0; ("groups." i ".layers.0") in of; ++i) text = text (i ? " " : "") group_name(i)
  return text
}

# recomputed(): the groups whose activations are computed again in the backward pass, as "0 2-3".
function recomputed(    i, text) {
  for (i = 0; ("groups." i ".layers.0") in of; ++i)
    if (of["groups." i ".recompute"] == "true") text = text (text == "" ? "" : " ") group_name(i)
  return text
}

# work_bound(): how many times as fast as one device the convolutions of a step can be, in whole tiles and blocks of channels, if the
# one with the most to do in each group is what the others wait for, and all else takes no time.
function work_bound(    g, r, most, path, sum) {
  for (g = 0; ("groups." g ".layers.0") in of; ++g) {
    most = 0
    for (r = 0; ("groups." g ".ranks." r ".rank") in of; ++r) {
      path = "groups." g ".ranks." r ".step_multiply_adds"
      if (of[path] + 0 > most) most = of[path] + 0
    }
    sum += most
  }
  return sum > 0 ? of["step_multiply_adds_of_one"] / sum : ""
}

function seconds(path) { return path in of ? sprintf("%.6g", dilation * of[path]) : "" }

{ of[$1] = substr($0, length($1) + 2) }

END {
  computing = of["prediction.forward_s"] + of["prediction.backward_data_s"] + of["prediction.backward_weights_s"] \
    + of["prediction.other_s"] + of["prediction.update_s"]
  printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%.4f,%.4g,%s,%s,%s,%s,%s,%s\n", key, groups(), round, seconds("prediction.step_s"),
    seconds("step_s.median"), seconds("step_s.min"), seconds("step_s.max"), seconds("parts.computing_s"), seconds("parts.maps_s"),
    seconds("parts.statistics_s"), seconds("parts.sums_s"), seconds("parts.idle_s"), of["prediction.messages"], of["prediction.bytes"],
    of["prediction.busiest_bytes"], (computing > 0 ? of["prediction.redundant_s"] / computing : 0), work_bound(),
    planned_bytes(), list("peak_bytes"), limited_by, recomputed(), settings, load
}
