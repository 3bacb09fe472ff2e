#!/usr/bin/env python3
"""Holds the main thread of a training process, and no other one, as a disk that does not answer would: the process shows signs of
life, and does nothing. The first process is held that has a file below a folder open; until it is killed.

    hold_thread.py MARK FOLDER    MARK: in the environment of the process

Ends with 77 where this user may not hold a process, with 1 where none came within a minute.
"""

import ctypes
import os
import sys
import time

PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def reads(process, folder):
    try:
        return any(os.readlink(f"/proc/{process}/fd/{number}").startswith(folder) for number in os.listdir(f"/proc/{process}/fd"))
    except OSError:
        return False


def is_marked(process, mark):
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            marked = mark.encode() in file.read().split(b"\0")
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return marked and file.read().split(b"\0")[1:2] == [b"train"]
    except OSError:
        return False


def main():
    mark, folder = sys.argv[1], os.path.realpath(sys.argv[2]) + "/"
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for process in [p for p in os.listdir("/proc") if p.isdigit() and is_marked(p, mark)]:
            while is_marked(process, mark) and time.monotonic() < end:
                if reads(process, folder):
                    if libc.ptrace(PTRACE_SEIZE, int(process), None, None) != 0:
                        return 77
                    libc.ptrace(PTRACE_INTERRUPT, int(process), None, None)
                    while not os.WIFSIGNALED(os.waitpid(int(process), 0x40000000)[1]):  # __WALL
                        pass
                    return 0
        time.sleep(0.002)
    return 1


sys.exit(main())
