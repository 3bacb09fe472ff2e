# Functions for reading metrics.jsonl: a flat JSON object a line.

# number(line, key): the value of a key of the JSON object in line, "" if it is absent or null.
function number(line, key,    at, rest) {
  at = index(line, "\"" key "\":")
  if (at == 0) return ""
  rest = substr(line, at + length(key) + 3)
  sub(/^[ \t]+/, "", rest)
  if (match(rest, /^[-+0-9.eE]+/) == 0) return ""
  return substr(rest, 1, RLENGTH)
}

function magnitude(x) { return x < 0 ? -x : x }
