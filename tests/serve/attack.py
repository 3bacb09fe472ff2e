#!/usr/bin/env python3
"""Attacks a `tessera top --serve` on the loopback, one way after the other, while somebody else looks at its page.

    attack.py PORT PID SECONDS    SECONDS: of each attack

Prints a line for each: what the server took meanwhile, and how long the viewer waited. Ends with 1 if a bound was passed, the
server ended, or the viewer was not answered soon after an attack was over. All addresses are of 127.0.0.0/8.
"""

import os
import random
import re
import resource
import select
import socket
import sys
import threading
import time

PORT, PID, SECONDS = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
MOST_GROWTH_MIB = 48  # answers on their way, and connections
MOST_DESCRIPTORS = 64 + 24
LONGEST_S = 25  # of a request
BACK_S = 10  # after an attack, within which a viewer is answered again
wrong = []


def connect(source, timeout=5.0, receive_bytes=0):
    """From an address of its own: limits are for each."""
    one = socket.socket()
    if receive_bytes:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    one.settimeout(timeout)
    one.bind((source, 0))
    one.connect(("127.0.0.1", PORT))
    return one


def source(number):
    return f"127.0.{1 + number // 250 % 200}.{1 + number % 250}"


def get(path="/", where="127.9.9.9", timeout=5.0, gzip=True):
    with connect(where, timeout) as one:
        coding = "Accept-Encoding: gzip\r\n" if gzip else ""
        one.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{coding}Connection: close\r\n\r\n".encode())
        answer = b""
        while part := one.recv(1 << 16):
            answer += part
    return answer


class Watch(threading.Thread):
    """What the server takes, and how long a viewer waits for an answer, from now on."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.memory = self.threads = self.descriptors = 0
        self.waited = []
        self.refused = 0

    def look(self):
        status = open(f"/proc/{PID}/status", encoding="utf-8").read()
        self.memory = max(self.memory, int(re.search(r"VmRSS:\s*(\d+)", status)[1]) / 1024)
        self.threads = max(self.threads, int(re.search(r"Threads:\s*(\d+)", status)[1]))
        self.descriptors = max(self.descriptors, len(os.listdir(f"/proc/{PID}/fd")))

    def run(self):
        while not self.ended.is_set():
            self.look()
            begin = time.monotonic()
            try:
                if b" 200 OK" in get("/changes?since=x", timeout=4)[:20]:
                    self.waited.append(time.monotonic() - begin)
                else:
                    self.refused += 1
            except OSError:
                self.refused += 1
            self.ended.wait(0.5)


def many_connections(end):
    """10,000, from 250 addresses, that say nothing."""
    held = []
    for number in range(10000):
        one = socket.socket()
        one.setblocking(False)
        one.bind((source(number % 250), 0))
        one.connect_ex(("127.0.0.1", PORT))
        held.append(one)
        if time.monotonic() > end + 20:
            break
    time.sleep(max(0.0, end - time.monotonic()))
    for one in held:
        one.close()
    return f"{len(held)} connections"


def slow_requests(end):
    """Slow loris: a byte of a header now and then, from 50 addresses, anew whenever one is closed."""
    held, made, longest = {}, 0, 0.0
    while time.monotonic() < end:
        for number in range(200):
            try:
                if number not in held:
                    held[number] = (connect(source(number % 50), 0.2), time.monotonic())
                    held[number][0].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-")
                    made += 1
                held[number][0].sendall(b"a")
                if select.select([held[number][0]], [], [], 0)[0] and not held[number][0].recv(1000):
                    raise ConnectionError
            except OSError:
                if number in held:
                    one, since = held.pop(number)
                    longest = max(longest, time.monotonic() - since)
                    one.close()
        time.sleep(0.5)
    for one, _ in held.values():
        one.close()
    if longest > LONGEST_S:
        wrong.append(f"a request that dribbled was borne for {longest:.0f} s")
    return f"{made} connections, the longest for {longest:.0f} s"


def slow_readers(end):
    """They ask for the page and read none of it, from 30 addresses."""
    held, made = [], 0
    while time.monotonic() < end:
        try:
            one = connect(source(made % 30), 0.5, receive_bytes=1024)
            one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
            held.append(one)
            made += 1
        except OSError:
            time.sleep(0.1)
        if len(held) > 200:
            held.pop(0).close()
    for one in held:
        one.close()
    return f"{made} connections"


def many_requests(end):
    """As fast as four clients can ask, one after the other and many at once."""
    count = [0] * 4

    def ask(client):
        while time.monotonic() < end:
            try:
                with connect(source(client), 2) as one:
                    while time.monotonic() < end:
                        one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n" * 5)
                        seen = b""
                        while seen.count(b"</html>") < 1 and len(seen) < 100_000:
                            part = one.recv(1 << 16)
                            if not part:
                                raise ConnectionError
                            seen += part
                        count[client] += 5
            except OSError:
                time.sleep(0.01)

    clients = [threading.Thread(target=ask, args=(client,)) for client in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return f"about {sum(count)} requests"


def short_connections(end):
    """Made and left at once, as fast as they come."""
    made = 0
    while time.monotonic() < end:
        try:
            connect(source(made % 250), 0.5).close()
            made += 1
        except OSError:
            pass
    return f"{made} connections"


def hostile_requests(_end):
    """Paths, methods and headers that nobody means well by: none gets anything, and none ends the server."""
    host = b"Host: localhost\r\n"
    random.seed(1)
    requests = [b"GET " + path + b" HTTP/1.1\r\n" + host + b"\r\n" for path in (
        b"/../../../../etc/passwd", b"/..%2f..%2fetc/passwd", b"/%2e%2e/%2e%2e/etc/passwd", b"/metrics.jsonl", b"/run.json", b"/%00", b"/live.js%00.html",
        b"//", b"/./", b"/.", b"/live.js/", b"/changes/", b"/?x=" + b"a" * 5000, b"/" + b"a" * 100_000, b"http://localhost/etc/passwd", b"*", b"/\xff\xfe", b"/'\"<script>")]
    requests += [method + b" / HTTP/1.1\r\n" + host + b"Content-Length: 5\r\n\r\nhello" for method in (
        b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT", b"PATCH", b"get", b"X" * 1000)]
    requests += [b"GET / HTTP/1.1\r\n" + header + b"\r\n" for header in (
        b"", b"Host: evil.example\r\n", b"Host: localhost.evil.example\r\n", b"Host: 127.0.0.1.evil.example:80\r\n", b"Host: [::1\r\n", b"Host: \r\n",
        b"Host: localhost@evil.example\r\n", host + b"X: " + b"a" * 100_000 + b"\r\n", host + b"X: y\r\n" * 5000)]
    requests += [b"GET / HTTP/9.9\r\n" + host + b"\r\n", b"GET /\r\n\r\n", b"\r\n" * 1000, b"\0" * 5000, b"GET", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                 b"GET / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n", b"GET / HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n",
                 b"GET / HTTP/1.1\r\n" + host + b"Content-Length: 99999999999999999999\r\n\r\n", b"GET / HTTP/1.1\r\n" + host + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n",
                 b"GET /etc/passwd HTTP/1.1\n" + host.replace(b"\r", b"") + b"\n", random.randbytes(20_000)]
    answers = {}
    for number, request in enumerate(requests):
        answer = b""
        try:
            with connect(source(number), 1) as one:
                one.sendall(request)
                while part := one.recv(1 << 16):
                    answer += part
                    if b"\r\n\r\n" in answer:
                        break
        except OSError:
            pass
        status = answer[9:12].decode("latin-1") or "none"
        answers[status] = answers.get(status, 0) + 1
        if status == "200" and b"/?x=" not in request and b"HTTP/9.9" not in request and b"Expect" not in request and b"Content-Length" not in request \
                and b"chunked" not in request:
            wrong.append(f"answered: {request[:60]!r}")
        if b"root:" in answer or b'"loss":' in answer:
            wrong.append(f"a file is served: {request[:60]!r}")
    return "answers " + ", ".join(f"{count}x {status}" for status, count in sorted(answers.items()))


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 12000), hard))
    os.nice(19)  # an attacker has a machine of its own
    get()
    quiet = Watch()
    quiet.look()
    for attack in (hostile_requests, many_connections, slow_requests, slow_readers, many_requests, short_connections):
        watch = Watch()
        watch.start()
        told = attack(time.monotonic() + SECONDS)
        watch.ended.set()
        watch.join()
        begin = time.monotonic()
        back = None
        while back is None and time.monotonic() - begin < BACK_S:
            try:
                get("/changes?since=x", timeout=2)
                back = time.monotonic() - begin
            except OSError:
                time.sleep(0.1)
        watch.look()
        answered = sorted(watch.waited)
        median = f"median {answered[len(answered) // 2]:.2f} s, longest {answered[-1]:.2f} s" if answered else "never"
        print(f"{attack.__name__.replace('_', ' ')}: {told}; server: {watch.memory:.0f} MiB ({quiet.memory:.0f} before), {watch.threads} threads, "
              f"{watch.descriptors} descriptors; viewer: {len(answered)} of {len(answered) + watch.refused} answers, {median}, "
              f"afterwards {'not at all' if back is None else f'after {back:.2f} s'}", flush=True)
        if back is None:
            wrong.append(f"{attack.__name__}: the viewer is not answered {BACK_S} s later")
        if watch.memory > quiet.memory + MOST_GROWTH_MIB or watch.threads > 1 or watch.descriptors > MOST_DESCRIPTORS:
            wrong.append(f"{attack.__name__}: more memory, threads or descriptors than there may be")
    for line in wrong:
        print("WRONG: " + line)
    sys.exit(1 if wrong else 0)


main()
