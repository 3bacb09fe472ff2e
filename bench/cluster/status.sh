# What the devices have used so far.
# shellcheck shell=bash

readonly status_columns='device power cable cores cpu_s periods throttled_periods throttled_s memory_bytes memory_peak_bytes memory_limit_bytes oom_kills rate_mbit sent_bytes received_bytes'

# status_rows: the columns above, a device a line; ? for what a device that is off does not have.
status_rows() {
  local name power cable wire
  for name in $(device_names); do
    power=off wire='? ?'
    if device_pid "$name" >/dev/null; then
      power=on
      wire=$(wire_bytes "$name")
    fi
    cable=out
    if cable_is_in "$name"; then cable=in; fi
    echo "$name $power $cable $(value "$name" cores) $(processor_use "$name") $(memory_use "$name")" \
      "$(out_of_memory_kills "$name") $(value "$name" rate_mbit) $wire"
  done
}

status_table() {
  awk 'function mib(bytes) { return bytes == "?" ? "?" : sprintf("%.1f", bytes / 1048576) }
    BEGIN {
      format = "%-10s %-5s %-5s %7s %9s %10s %9s %9s %9s %5s %6s %11s %11s\n"
      printf format, "device", "power", "cable", "cores", "used", "throttled", "memory", "at most", "limit", "kills", "rate", "sent", "received"
      printf format, "", "", "", "", "s", "periods", "MiB", "MiB", "MiB", "", "Mbit/s", "MiB", "MiB"
    }
    { printf format, $1, $2, $3, sprintf("%.4f", $4), $5, ($6 > 0 ? sprintf("%.0f %%", 100 * $7 / $6) : "-"), mib($9), mib($10), mib($11), $12, $13, mib($14), mib($15) }'
}

status_csv() {
  tr ' ' ',' <<<"$status_columns"
  sed 's/?//g; s/ /,/g'
}

status_json() {
  awk -v columns="$status_columns" -v cluster="$cluster" -v dilation="$(<"$state/dilation")" 'BEGIN {
      count = split(columns, key, " ")
      printf "{\"cluster\": \"%s\", \"dilation\": %s, \"devices\": [", cluster, dilation
    }
    {
      printf "%s\n  {", (NR > 1 ? "," : "")
      for (i = 1; i <= count; ++i) {
        text = $i == "?" ? "null" : (i <= 3 ? "\"" $i "\"" : $i)
        printf "%s\"%s\": %s", (i > 1 ? ", " : ""), key[i], text
      }
      printf "}"
    }
    END { print "\n]}" }'
}

show_status() {
  [ $# -eq 0 ] || expect_no_more "status $1" "${@:2}"
  case ${1-} in
    '') printf '%s, %s times as fast as its devices\n' "$cluster" "$(<"$state/dilation")" && status_rows | status_table ;;
    --csv) status_rows | status_csv ;;
    --json) status_rows | status_json ;;
    *) fail "unknown option '$1': status accepts --csv and --json." ;;
  esac
}
