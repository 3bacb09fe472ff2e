"""Which devices train, and which of them together, by what their ranks keep in memory after each step.

Files of ranks that were started together have a number in common (engine/recovery/README.md): where files of two such numbers grow by
turns, two parts of a run train at the same time.
"""

import collections
import contextlib
import itertools
import os
import struct
import threading
import time

MAGIC, ENDING = b"tesslot2", ".kept"


def newest_step(path):
    """Of the two steps in such a file; 0 where there is none."""
    with open(path, "rb") as file:
        steps = []
        for place in (0, os.fstat(file.fileno()).st_size // 2):
            file.seek(place)
            head = file.read(16)
            if len(head) == 16 and head.startswith(MAGIC):
                steps.append(struct.unpack_from("<Q", head, 8)[0])
        return max(steps, default=0)


def kept_steps(entries):
    """{number: step} of the files in these folders."""
    found = collections.defaultdict(int)
    for entry in entries:
        with contextlib.suppress(OSError):
            for name in os.listdir(entry):
                if name.endswith(ENDING):
                    number = name[:-len(ENDING)].rpartition("-")[2]
                    with contextlib.suppress(OSError):
                        found[number] = max(found[number], newest_step(os.path.join(entry, name)))
    return {number: step for number, step in found.items() if step}


class Progress:
    """Samples a cluster in a thread of its own, as long as the `with` lasts; moves: (time, device, number, step), each step that was seen."""

    def __init__(self, cluster, every=0.1):
        self.cluster, self.every = cluster, every
        self.moves, self.last = [], {}
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.take_all, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def take_all(self):
        while not self.done.wait(self.every):
            self.take(time.monotonic())

    def take(self, now):
        for device in self.cluster.on():
            for number, step in kept_steps(self.cluster.memory_entries(device)).items():
                if step > self.last.get((device, number), 0):
                    self.last[device, number] = step
                    self.moves.append((now, device, number, step))

    def last_step(self):
        return max((step for _, _, _, step in self.moves), default=0)

    def trained(self, begin, end):
        """{number: set of devices} of those that have finished at least three steps in that time: one may be finished already while its
        ranks can no longer reach each other, and its copies another."""
        steps, devices = collections.defaultdict(set), collections.defaultdict(set)
        for at, device, number, step in self.moves:
            if begin <= at < end:
                steps[number].add((at, step))
                devices[number].add(device)
        return {number: devices[number] for number in steps if len({step for _, step in steps[number]}) >= 3}

    def halves(self):
        """What is to be said of parts that have trained at the same time; a list."""
        times, devices = collections.defaultdict(list), collections.defaultdict(set)
        for at, device, number, _ in self.moves:
            if not times[number] or times[number][-1] < at:
                times[number].append(at)
            devices[number].add(device)
        found = []
        for one, other in itertools.combinations(times, 2):
            if all(sum(at > times[second][0] for at in times[first]) >= 3 for first, second in ((one, other), (other, one))):
                found.append(f"{' '.join(sorted(devices[one]))} and {' '.join(sorted(devices[other]))} have trained at the same time")
        return found
