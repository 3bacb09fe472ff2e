# awk -v times=N -f repeat_blocks.awk MODEL: each residual block, from its comment to its shortcut, followed by N - 1 of the same output.

function end_block(    i) {
  printf "%s", block
  gsub(/\nstride=2/, "\nstride=1", block)
  for (i = 1; i < times; ++i) printf "%s", block
  block = ""
}

/^# Residual block/ || /^\[avgpool\]/ { if (block != "") end_block() }
/^# Residual block/ { inside = 1 }
/^\[avgpool\]/ { inside = 0 }
inside { block = block $0 "\n"; next }
{ print }
