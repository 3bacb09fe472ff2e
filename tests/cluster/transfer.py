"""Measures a TCP connection: `transfer.py receive PORT` prints Mbit/s of what `transfer.py send HOST PORT BYTES` sends."""

import socket
import sys
import time


def receive(port):
    with socket.create_server(("", port)) as server:
        server.settimeout(30)
        connection, _ = server.accept()
    with connection:
        connection.settimeout(30)
        count = len(connection.recv(1 << 16))
        start = time.monotonic()  # what has come by now came before the clock started
        count_timed = 0
        while part := connection.recv(1 << 16):
            count_timed += len(part)
        if count == 0:
            sys.exit("nothing came")
        print(f"{count_timed * 8e-6 / (time.monotonic() - start):.2f}")


def send(host, port, size):
    deadline = time.monotonic() + 10
    while True:
        try:
            connection = socket.create_connection((host, port), timeout=3)
            break
        except ConnectionRefusedError:  # the receiver is still starting
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    with connection:
        connection.sendall(bytes(size))


if sys.argv[1] == "receive":
    receive(int(sys.argv[2]))
else:
    send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
