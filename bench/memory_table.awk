# Prints a run's memory.json as a table in MiB, a column per rank, and beside it those of a second run, a rank alone:
#   awk -f memory_table.awk RUN/memory.json [SINGLE_RUN/memory.json]
# Reads {"ranks": [{"rank": R, "planned": {kind: bytes}, "measured": {kind: bytes}}]}, spaced and ordered in any way.

function field(object, key,    rest) {
  if (match(object, "\"" key "\":[-+0-9.eE]+") == 0) return ""
  rest = substr(object, RSTART, RLENGTH)
  sub(/^.*:/, "", rest)
  return rest
}

function part(object, key) {
  if (match(object, "\"" key "\":[{][^{}]*[}]") == 0) return ""
  return substr(object, RSTART, RLENGTH)
}

# add_rank(object, file): one element of "ranks", brackets included, of the first or the second file.
function add_rank(object, file,    own) {
  ++count
  planned[count] = part(object, "planned")
  measured[count] = part(object, "measured")
  own = object
  gsub(/[{][^{}]*[}]/, "", own)
  heading[count] = file == 1 ? "rank " field(own, "rank") : "alone"
}

# add_ranks(text, file): those of a whole file.
function add_ranks(text, file,    i, depth, begin, character) {
  gsub(/[ \t\r]/, "", text)
  if (!sub(/^.*"ranks":\[/, "", text)) return
  for (i = 1; i <= length(text); ++i) {
    character = substr(text, i, 1)
    if (character == "{" && depth++ == 0) begin = i
    if (character == "}" && --depth == 0) add_rank(substr(text, begin, i - begin + 1), file)
    if (character == "]" && depth == 0) break
  }
}

# row(name, parts, key): one line of the table; a value that is absent is a dash.
function row(name, parts, key,    i, bytes) {
  printf "  %-18s", name
  for (i = 1; i <= count; ++i) {
    bytes = field(parts[i], key)
    if (bytes == "") printf " %9s", "-"
    else printf " %9.2f", bytes / 1048576
  }
  printf "\n"
}

FNR == 1 { ++files }
{ texts[files] = texts[files] $0 }

END {
  for (file = 1; file <= files; ++file) add_ranks(texts[file], file)
  if (count == 0) { print "  no rank in " FILENAME; exit 1 }
  printf "  %-18s", "MiB"
  for (i = 1; i <= count; ++i) printf " %9s", heading[i]
  printf "\n"
  row("weights", measured, "weights")
  row("gradients", measured, "gradients")
  row("optimizer", measured, "optimizer")
  row("activations", measured, "activations")
  row("workspace", measured, "workspace")
  row("messages", measured, "messages")
  row("pictures", measured, "pictures")
  row("decoding", measured, "decoding")
  row("data", measured, "data")
  row("cache", measured, "cache")
  row("program", measured, "program")
  row("these together", measured, "total")
  row("as planned", planned, "total")
  row("the whole process", measured, "peak_resident")
}
