#!/usr/bin/env python3
"""Looks at the page of a `tessera top --serve` as a browser's script does, and says what that takes.

    viewer.py URL SECONDS PID    PID: of the server

Prints the bytes of the page, those a second after it, headers included, and the share of a processor that the server took.
"""

import gzip
import os
import re
import socket
import sys
import time
import urllib.parse

url, seconds, pid = urllib.parse.urlsplit(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
connection = socket.create_connection((url.hostname, url.port))


def get(path):
    """Bytes that went both ways, and the answer's text."""
    asked = f"GET {path} HTTP/1.1\r\nHost: {url.netloc}\r\nAccept-Encoding: gzip\r\n\r\n".encode()
    connection.sendall(asked)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(1 << 16)
    headers, _, body = answer.partition(b"\r\n\r\n")
    length = int(re.search(rb"content-length: *(\d+)", headers, re.I)[1])
    while len(body) < length:
        body += connection.recv(1 << 16)
    text = gzip.decompress(body) if re.search(rb"content-encoding: *gzip", headers, re.I) else body
    return len(asked) + len(headers) + 4 + length, text.decode()


def processor_s():
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


folder = url.path.rstrip("/")
page, text = get(folder + "/")
begin, before, total = time.monotonic(), processor_s(), 0
while time.monotonic() - begin < seconds:
    time.sleep(2)
    mark = re.search(r'data-mark="([^"]*)"', text)[1]
    size, text = get(f"{folder}/changes?since={urllib.parse.quote(mark)}")
    total += size
took = time.monotonic() - begin
print(f"page {page} bytes; then {total / took:.0f} bytes a second; {100 * (processor_s() - before) / took:.1f} % of a processor")
