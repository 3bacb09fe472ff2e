"""Whether what a run holds stays flat: memory, descriptors, sockets and threads of its processes, files in memory, namespaces.

The supervisor and agents live as long as the run, while ranks are started anew after a fault. So each column of the samples is
compared over the whole run, and what each process holds over its own life.
"""

import os
import statistics
import threading
import time
from typing import NamedTuple

ROLES = {"run": "supervisor", "agent": "agent", "train": "rank"}  # by the first word after the program's name
MEASURES = ("rss", "descriptors", "sockets", "threads")
COMPARED = [f"{role}_{measure}" for role in ROLES.values() for measure in MEASURES] + [
    "memory_files", "memory_bytes", "namespaces", "processes", "other_processes", "zombies"]
COLUMNS = ["seconds", "ranks", *COMPARED]
LEAST_SAMPLES = 24  # six to a quarter: a median that two unlucky samples do not move
PAGE = os.sysconf("SC_PAGESIZE")


class Bound(NamedTuple):
    """What may be added to a value without being a leak: a share of it, and a fixed amount."""
    share: float
    fixed: float


# The kernel counts resident pages in batches, up to 256 KiB off for each processor or thread, and the allocator keeps what was freed.
MEMORY = Bound(0.02, 1 << 20)
# A device that is just being reached, or a partition that is being searched for.
COUNT = Bound(0.05, 2)


class Growth(NamedTuple):
    """Medians of the second and of the last quarter of some samples; the first quarter is the warm-up."""
    name: str
    before: float
    after: float

    @property
    def is_memory(self):
        return self.name.split()[0].endswith(("rss", "bytes"))

    @property
    def is_leak(self):
        bound = MEMORY if self.is_memory else COUNT
        return self.after - self.before > bound.share * self.before + bound.fixed

    def text(self, value):
        return f"{value / (1 << 20):.2f} MiB" if self.is_memory else f"{value:g}"

    def __str__(self):
        return f"{self.name} has grown from {self.text(self.before)} to {self.text(self.after)}"


def growth(name, values):
    """None where there are too few samples to compare."""
    if len(values) < LEAST_SAMPLES:
        return None
    quarter = len(values) // 4
    return Growth(name, statistics.median(values[quarter:2 * quarter]), statistics.median(values[-quarter:]))


class Process(NamedTuple):
    """From /proc/PID/stat; rss in bytes, `began` in ticks since the machine's start."""
    state: str
    parent: int
    threads: int
    began: int
    rss: int


def all_processes():
    """{pid: Process} of this machine."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        found[int(pid)] = Process(fields[0].decode(), int(fields[1]), int(fields[17]), int(fields[19]), int(fields[21]) * PAGE)
    return found


def words_of(pid):
    """The command line; empty where the process is gone, or a zombie."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def descriptors_of(pid):
    """(sockets, all others); None where the process is gone."""
    sockets = others = 0
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                is_socket = os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
            except FileNotFoundError:  # closed meanwhile
                continue
            sockets += is_socket
            others += not is_socket
    except OSError:
        return None
    return sockets, others


def memory_of(paths):
    """(files, bytes of memory) of these files and of all in these folders."""
    files = [path for path in paths if not os.path.isdir(path)]
    for path in paths:
        files += [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    size = count = 0
    for path in files:
        try:
            size += 512 * os.lstat(path).st_blocks
        except OSError:
            continue
        count += 1
    return count, size


class Life(NamedTuple):
    """What a process held, in the samples that are compared."""
    role: str
    held: dict


class Watch:
    """Samples a run in a thread of its own, as long as the `with` lasts.

    cluster: has `devices`, all_processes(device), memory_entries(device) and namespaces(). ranks: how many the run has where nothing is
    wrong. every: seconds from sample to sample; 0: there are none. write: called with each sample.
    """

    def __init__(self, cluster, program, ranks, every, write=None):
        self.cluster, self.program, self.ranks, self.every, self.write = cluster, os.path.basename(program), ranks, every, write
        self.samples, self.lives, self.error = [], {}, None
        self.begun = time.monotonic()
        self.done = threading.Event()
        self.thread = None

    def __enter__(self):
        self.begun = time.monotonic()
        if self.every:
            self.thread = threading.Thread(target=self.take_all, daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        if self.thread:
            self.thread.join()

    def take_all(self):
        try:
            while not self.done.wait(self.every):
                self.take()
        except Exception as error:  # told at the end of the run: nothing else would show that samples are missing
            self.error = error

    def take(self):
        """One sample."""
        known = all_processes()
        members, processes, other_processes, memory_files, memory_bytes = set(), 0, 0, 0, 0
        held = {}  # (pid, began): (role, values of MEASURES)
        for device in self.cluster.devices:
            for pid in self.cluster.all_processes(device):
                words = words_of(pid)
                if pid not in known or not words:
                    continue
                members.add(pid)
                if os.path.basename(words[0]) != self.program:
                    other_processes += 1
                    continue
                processes += 1
                role, open_here = ROLES.get(words[1] if len(words) > 1 else ""), descriptors_of(pid)
                if role and open_here:
                    process = known[pid]
                    held[pid, process.began] = role, (process.rss, open_here[1], open_here[0], process.threads)
            files, size = memory_of(self.cluster.memory_entries(device))
            memory_files += files
            memory_bytes += size
        sample = {"seconds": round(time.monotonic() - self.begun, 1), "ranks": sum(role == "rank" for role, _ in held.values()),
                  "memory_files": memory_files, "memory_bytes": memory_bytes, "namespaces": self.cluster.namespaces(), "processes": processes,
                  "other_processes": other_processes,
                  "zombies": sum(process.state == "Z" and process.parent in members for process in known.values())}
        for number, measure in enumerate(MEASURES):
            for role in ROLES.values():
                sample[f"{role}_{measure}"] = max((values[number] for of, values in held.values() if of == role), default=None)
        self.samples.append(sample)
        if self.is_compared(sample):
            for life, (role, values) in held.items():
                for measure, value in zip(MEASURES, values):
                    self.lives.setdefault(life, Life(role, {name: [] for name in MEASURES})).held[measure].append(value)
        if self.write:
            self.write(sample)

    def is_compared(self, sample):
        """Where a rank is missing, the others have more of the network, and connections are fewer."""
        return sample["ranks"] >= self.ranks

    def compared(self):
        return [sample for sample in self.samples if self.is_compared(sample)]

    def of_columns(self):
        """The growth of each column; none where there are too few samples. Of ranks only where all have lived as long as the run:
        those that are started again are of any age."""
        samples = self.compared()
        started_again = sum(life.role == "rank" for life in self.lives.values()) > self.ranks
        columns = [column for column in COMPARED if not (started_again and column.startswith("rank_"))]
        found = (growth(column, [sample[column] for sample in samples if sample[column] is not None]) for column in columns)
        return [each for each in found if each]

    def of_lives(self, role=None):
        """The growth within the life of each process, or of those of a role, that was there for long enough."""
        found = (growth(f"{life.role}_{measure} of process {pid}", values) for (pid, _), life in self.lives.items()
                 if role in (None, life.role) for measure, values in life.held.items())
        return [each for each in found if each]

    def problems(self):
        if self.error:
            return [f"the watch has ended early: {self.error!r}"]
        return [str(each) for each in self.of_columns() + self.of_lives() if each.is_leak]

    def row(self):
        """What came out, for a table of runs. A column is empty where there was nothing to compare."""
        columns = {each.name: each for each in self.of_columns()}
        row = {"hours": round(self.samples[-1]["seconds"] / 3600, 3) if self.samples else 0, "samples": len(self.samples),
               "compared": len(self.compared()), "flat": ("no" if self.problems() else "yes") if columns else ""}
        for name in COMPARED:
            each = columns.get(name)
            row[name], row[name + "_growth"] = (f"{each.before:.12g}", f"{each.after - each.before:.12g}") if each else ("", "")
        lives = self.of_rank_lives()
        row["rank_lives"], row["rank_life_rss_growth"] = len(lives), f"{max(lives):.12g}" if lives else ""
        return row

    def of_rank_lives(self):
        """By how many bytes the memory of each rank that was there for long enough has grown."""
        return [each.after - each.before for each in self.of_lives("rank") if each.is_memory]

    def __str__(self):
        lines = [f"{len(self.samples)} samples, {len(self.compared())} of them with all ranks"]
        columns = self.of_columns()
        if not columns:
            return lines[0] + f": too few to compare, {LEAST_SAMPLES} are needed"
        for each in columns:
            lines.append(f"{each.name:24} {each.text(each.before):>12} {each.text(each.after):>12}{'  GROWS' if each.is_leak else ''}")
        lives = self.of_rank_lives()
        if lives:
            lines.append(f"within the lives of {len(lives)} ranks, memory has grown by at most {max(lives) / (1 << 20):.2f} MiB")
        return "\n".join(lines)
