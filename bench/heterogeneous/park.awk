# awk -f park.awk CSV: a line of a table for each run.

BEGIN {
  FS = ","
  print "| part | model | devices | way | batch | epoch | elapsed, s | step, ms | predicted, ms | star alone, ms | devices with work | accuracy | busy | memory, MiB | received, KB/s | sent, KB/s |"
  print "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
}
NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }

function get(name) { return $column[name] }
function times(name, factor, format) { return get(name) == "" ? "" : sprintf(format, factor * get(name)) }

{
  printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", get("part"), get("model"), get("devices"), get("way"),
    get("batch"), get("epoch"), get("elapsed_s"), times("step_s", 1e3, "%.1f"), times("predicted_s", 1e3, "%.1f"), times("star_s", 1e3, "%.1f"), get("working"),
    times("accuracy", 100, "%.1f %%"), times("busy", 100, "%.0f %%"), times("memory_bytes", 1 / 1048576, "%.1f"), times("received_bytes_per_s", 1e-3, "%.0f"),
    times("sent_bytes_per_s", 1e-3, "%.0f")
}
