#!/usr/bin/env python3
"""An answer over HTTP as it comes: status, headers, a blank line, the body, uncompressed.

    http.py METHOD URL [HEADER...]
"""

import gzip
import re
import socket
import sys

method, url, headers = sys.argv[1], sys.argv[2], sys.argv[3:]
host, port, path = re.fullmatch(r"http://\[?([^\]/]+?)\]?:(\d+)(/.*)", url).groups()
name = f"[{host}]" if ":" in host else host
if not any(header.lower().startswith("host:") for header in headers):
    headers.append(f"Host: {name}:{port}")
with socket.create_connection((host, int(port)), timeout=30) as connection:
    connection.sendall("".join(f"{line}\r\n" for line in [f"{method} {path} HTTP/1.1", *headers, "Connection: close", ""]).encode())
    answer = b""
    while part := connection.recv(1 << 16):
        answer += part
head, _, body = answer.partition(b"\r\n\r\n")
sys.stdout.buffer.write(head.replace(b"\r", b"") + b"\n\n" + (gzip.decompress(body) if b"Content-Encoding: gzip" in head else body))
