# Prints a run's memory.json as a table, a column per rank, in MiB: awk -f memory_table.awk RUN/memory.json
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

# add_rank(object): one element of "ranks", brackets included.
function add_rank(object,    own) {
  ++count
  planned[count] = part(object, "planned")
  measured[count] = part(object, "measured")
  own = object
  gsub(/[{][^{}]*[}]/, "", own)
  rank[count] = field(own, "rank")
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

{ text = text $0 }

END {
  gsub(/[ \t\r]/, "", text)
  if (!sub(/^.*"ranks":\[/, "", text)) { print "  no \"ranks\" in " FILENAME; exit 1 }
  for (i = 1; i <= length(text); ++i) {
    character = substr(text, i, 1)
    if (character == "{" && depth++ == 0) begin = i
    if (character == "}" && --depth == 0) add_rank(substr(text, begin, i - begin + 1))
    if (character == "]" && depth == 0) break
  }
  if (count == 0) { print "  no rank in " FILENAME; exit 1 }
  printf "  %-18s", "MiB"
  for (i = 1; i <= count; ++i) printf " %9s", "rank " rank[i]
  printf "\n"
  row("weights", measured, "weights")
  row("gradients", measured, "gradients")
  row("optimizer", measured, "optimizer")
  row("activations", measured, "activations")
  row("workspace", measured, "workspace")
  row("messages", measured, "messages")
  row("these together", measured, "total")
  row("as planned", planned, "total")
  row("the whole process", measured, "peak_resident")
}
