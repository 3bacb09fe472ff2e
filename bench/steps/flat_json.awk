# Prints a line "PATH VALUE" for each value of a JSON text: {"a": [{"b": 1}]} is "a.0.b 1".
# For JSON as `tessera` and `cluster` print it: no dots in keys, no closing braces in strings.

function path(    i, text) {
  for (i = 1; i <= depth; ++i) text = text (i > 1 ? "." : "") name[i]
  return text
}

# step(): the next value of an array has the next number.
function step() { if (is_array[depth]) name[depth] = count[depth]++ }

function open_value(array) {
  step()
  ++depth
  is_array[depth] = array
  count[depth] = 0
}

function take(token, follows) {
  if (token == "{") open_value(0)
  else if (token == "[") open_value(1)
  else if (token == "]") --depth
  else if (token != "," && token != ":") {
    if (token ~ /^"/) token = substr(token, 2, length(token) - 2)
    if (follows ~ /^[ \t\n]*:/) name[depth] = token
    else {
      step()
      print path(), token
    }
  }
}

# Records end at closing braces: they are short, and cutting tokens off a long text would take its square.
BEGIN { RS = "}" }
{
  text = $0
  while (match(text, /"([^"\\]|\\.)*"|[-+0-9.eE]+|true|false|null|[][{,:]/)) {
    token = substr(text, RSTART, RLENGTH)
    text = substr(text, RSTART + RLENGTH)
    take(token, text)
  }
  --depth
}
