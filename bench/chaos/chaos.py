#!/usr/bin/env python3
"""Faults on an emulated cluster while `tessera run` trains on it; see README.md beside it.

Writes a row per fault, and one about the run as a whole; exits with 1 where anything is not as it has to be: a run
that does not end, a step that is missing or there twice, a loss that differs from that of the undisturbed run, or
something that is left behind.
"""

import argparse
import contextlib
import csv
import json
import math
import os
import random
import signal
import subprocess
import sys
import time

CLUSTER = "chaos"
NOTICED_S = 5  # every fault that ends ranks is noticed by then


def show(text):
    print(text, file=sys.stderr, flush=True)


def end_at_once(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Cluster:
    def __init__(self, options):
        self.tool = "bench/cluster/cluster"
        self.devices = [f"pi{i + 1}" for i in range(options.devices)]
        self.off = set()
        self.call("down", check=False)
        self.disk = os.path.abspath(os.path.join(options.folder, "disk"))
        os.makedirs(self.disk, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tessera-chaos", self.disk], check=True)
        self.call("up", "--devices", str(options.devices), "--cpu", str(options.cpu), "--memory", str(options.memory),
                  "--rate", "100", "--name", CLUSTER)
        self.ssh = self.call("ssh").strip()

    def call(self, *words, check=True):
        done = subprocess.run([self.tool, "--cluster", CLUSTER, *words] if words[0] != "up" else [self.tool, *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if check and done.returncode != 0:
            raise RuntimeError(f"cluster {' '.join(words)}: {done.stdout}")
        return done.stdout

    def on(self, device, *words):
        return self.call("exec", device, *words, check=False)

    def processes(self, device, command=""):
        """Ids, as this machine counts them, of the device's processes, or of those that run this command."""
        found = []
        pids = subprocess.run(["ip", "netns", "pids", f"tessera-{CLUSTER}.{device}"], stdout=subprocess.PIPE, text=True)
        for pid in pids.stdout.split():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode(errors="replace").split("\0")
                with open(f"/proc/{pid}/exe", "rb"):
                    pass
            except OSError:
                continue
            if words[0].endswith("/tessera") and command in ("", words[1]):
                found.append(int(pid))
        return found

    def left_in_memory(self, device):
        return [name for name in self.on(device, "ls", "/dev/shm").split()
                if name.startswith(("tessera-", "mpich_shar_tmp", "ucx_shm_posix_"))]

    def down(self):
        self.call("down", check=False)
        subprocess.run(["umount", "--lazy", self.disk])

    def poweroff(self, *devices):
        devices = [device for device in devices if device not in self.off]
        if devices:
            self.call("poweroff", *devices)
            self.off.update(devices)

    def poweron(self, *devices):
        devices = [device for device in devices if device in self.off]
        if devices:
            self.call("poweron", *devices)
            self.off.difference_update(devices)


class OneMachine:
    """This machine alone, in place of an emulated cluster: processes can be killed and stopped, nothing else."""

    def __init__(self, options):
        self.devices, self.off = ["here"], set()
        self.disk = os.path.abspath(os.path.join(options.folder, "disk"))
        self.mark = f"TESSERA_CHAOS={self.disk}".encode()
        self.program = options.program
        os.makedirs(self.disk, exist_ok=True)

    def processes(self, _device, command=""):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode(errors="replace").split("\0")
                with open(f"/proc/{pid}/environ", "rb") as file:
                    marked = self.mark in file.read().split(b"\0")
            except OSError:
                continue
            if marked and words[0] == self.program and command in ("", words[1]):
                found.append(int(pid))
        return found

    def left_in_memory(self, _device):
        """Folders of memory of the runs here; each has a number, which the supervisor's record has too."""
        left = []
        for name in os.listdir(self.disk):
            try:
                with open(os.path.join(self.disk, name, "supervisor.json")) as file:
                    number = json.load(file)["run_number"]
            except (OSError, ValueError, KeyError):
                continue
            left += [folder for folder in os.listdir("/dev/shm") if folder.startswith("tessera-") and number in folder]
        return left

    def poweron(self, *devices):
        pass

    def down(self):
        for pid in self.processes("here"):
            end_at_once(pid)


class Run:
    """One training run, however many supervisors it has one after the other."""

    def __init__(self, cluster, options, folder, faulty):
        self.cluster, self.options, self.folder, self.faulty = cluster, options, folder, faulty
        self.log_path = folder + ".log"
        self.log = open(self.log_path, "ab")
        self.supervisor = None

    def words(self):
        options = self.options
        if options.local:
            where = ["-n", str(options.local)]
        else:
            where = ["--hostfile", options.hostfile, "--remote-shell", self.cluster.ssh]
        words = [options.program, "run", *where, "--", "train",
                 options.model, "--data", options.data, "--batch", str(options.batch), "--steps", str(options.steps),
                 "--checkpoint-every", str(options.checkpoint_every), "--run", self.folder, "--reader", "0", "--no-eval",
                 "--progress", "none", "--grid", options.grid]
        return words + options.more

    def start(self, words, device="pi1"):
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        if self.faulty and self.options.clock and device == "pi1" and not self.options.local:
            environment.update(LD_PRELOAD=self.options.clock, FAKETIME_TIMESTAMP_FILE=self.options.clock_file,
                               FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1")
        if self.options.local:
            environment["TESSERA_CHAOS"] = self.cluster.disk
        else:
            words = [self.cluster.tool, "--cluster", CLUSTER, "exec", device, *words]
        self.supervisor = subprocess.Popen(words, stdout=self.log, stderr=subprocess.STDOUT, env=environment,
                                           start_new_session=True)

    def begin(self):
        self.start(self.words())

    def go_on(self, device="pi1"):
        self.start([self.options.program, "run", "--continue", self.folder], device)

    def steps(self):
        """(step, loss) of each line of the metrics; half a line at the end counts for nothing."""
        found = []
        try:
            with open(os.path.join(self.folder, "metrics.jsonl")) as file:
                for line in file:
                    if line.endswith("\n"):
                        row = json.loads(line)
                        if "loss" in row and "step" in row:
                            found.append((row["step"], row["loss"]))
        except (OSError, ValueError):
            pass
        return found

    def last_step(self):
        found = self.steps()
        return found[-1][0] if found else 0

    def recoveries(self):
        """How often the run says that it has gone on after a fault."""
        try:
            with open(os.path.join(self.folder, "events.jsonl")) as file:
                return sum('"kind":"recovery"' in line for line in file)
        except OSError:
            return 0

    def ended(self):
        return self.supervisor.poll() is not None


def wait_for(condition, seconds, step=0.05):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(step)
    return False


class Faults:
    """Each function makes a fault and returns what ends it, or None."""

    def __init__(self, cluster, options, chance):
        self.cluster, self.options, self.chance = cluster, options, chance

    def others(self):
        return [d for d in self.cluster.devices[1:] if d not in self.cluster.off]

    def ranks(self):
        return [(d, pid) for d in self.cluster.devices if d not in self.cluster.off
                for pid in self.cluster.processes(d, "train")]

    def signal_rank(self, number):
        ranks = self.ranks()
        if not ranks:
            return "nobody"
        device, pid = self.chance.choice(ranks)
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return "nobody"
        return device

    def rank_killed(self, run):
        return self.signal_rank(signal.SIGKILL), None

    def rank_stopped(self, run):
        return self.signal_rank(signal.SIGSTOP), None

    def two_ranks_killed(self, run):
        return f"{self.signal_rank(signal.SIGKILL)} {self.signal_rank(signal.SIGKILL)}", None

    def killed_again_while_recovering(self, run):
        first = self.signal_rank(signal.SIGKILL)
        time.sleep(self.chance.uniform(0.1, 1.5))
        return f"{first} {self.signal_rank(signal.SIGKILL)}", None

    def agent_killed(self, run):
        device = self.chance.choice(self.others() or self.cluster.devices)
        for pid in self.cluster.processes(device, "agent"):
            end_at_once(pid)
        return device, None

    def cable_out(self, run):
        device = self.chance.choice(self.others())
        self.cluster.call("link", device, "down")
        return device, (self.chance.uniform(1, 15), lambda: self.cluster.call("link", device, "up", check=False))

    def slow_link(self, run):
        device = self.chance.choice(self.others())
        self.cluster.call("link", device, "rate", "3")
        return device, (self.chance.uniform(3, 10), lambda: self.cluster.call("link", device, "rate", "100", check=False))

    def power_off(self, run):
        device = self.chance.choice(self.others())
        self.cluster.poweroff(device)
        return device, (self.chance.uniform(1, 20), lambda: self.cluster.poweron(device))

    def lossy_link(self, run):
        """The switch's port to a device has room for two frames: what else comes meanwhile is dropped."""
        device = self.chance.choice(self.others())
        subprocess.run(["tc", "-n", f"tessera-{CLUSTER}.switch", "qdisc", "replace", "dev", device, "root", "tbf", "rate",
                        "20mbit", "burst", "3200", "limit", "3200", "overhead", "24"], check=True)
        return device, (self.chance.uniform(3, 10),
                        lambda: self.cluster.call("link", device, "rate", "100", check=False))

    def power_off_three(self, run):
        devices = self.chance.sample(self.others(), min(3, len(self.others())))
        self.cluster.poweroff(*devices)
        return " ".join(devices), (self.chance.uniform(1, 20), lambda: self.cluster.poweron(*devices))

    def memory_kill(self, run):
        ranks = self.ranks()
        if not ranks:
            return "nobody", None
        device, pid = self.chance.choice(ranks)
        limit = self.cluster_memory_file(pid)
        if limit is None:
            return "nobody", None
        with open(limit) as file:
            before = file.read().strip()
        for mebibytes in range(60, 4, -4):
            try:
                with open(limit, "w") as file:
                    file.write(str(mebibytes << 20))
            except OSError:
                continue
            if not os.path.exists(f"/proc/{pid}"):
                break
            time.sleep(0.05)
        return device, (0.2, lambda: open(limit, "w").write(before))

    def full_disk(self, run):
        """The disk with the run's folder is full for a while."""
        filler = os.path.join(self.cluster.disk, "filler")
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 16))
        return "pi1", (self.chance.uniform(1, 8), lambda: os.remove(filler))

    def clock_jump(self, run):
        """The clock of the first device is set forward or back by up to a day."""
        if not self.options.clock:
            return "nobody", None
        with open(self.options.clock_file, "w") as file:
            file.write(f"{self.chance.choice('+-')}{self.chance.uniform(10, 86400):.0f}s\n")
        return "pi1", None

    def killed_while_checkpointing(self, run):
        """Any rank, while a checkpoint is being written."""
        wait_for(lambda: run.ended() or any(name.endswith(".partial") for name in os.listdir(run.folder)), 20, 0.001)
        return self.signal_rank(signal.SIGKILL), None

    def killed_while_starting(self, run):
        """A rank is killed, and then one of those that are started again: it reads pictures, plans or restores."""
        first = self.signal_rank(signal.SIGKILL)
        wait_for(lambda: not self.ranks(), 5, 0.01)
        wait_for(self.ranks, 20, 0.01)
        time.sleep(self.chance.uniform(0, 0.5))
        return f"{first} {self.signal_rank(signal.SIGKILL)}", None

    @staticmethod
    def cluster_memory_file(pid):
        with open(f"/proc/{pid}/cgroup") as file:
            for line in file:
                number, controllers, path = line.rstrip("\n").split(":", 2)
                if "memory" in controllers.split(","):
                    return f"/sys/fs/cgroup/memory{path}/memory.limit_in_bytes"
                if number == "0" and os.path.exists(f"/sys/fs/cgroup{path}/memory.max"):
                    return f"/sys/fs/cgroup{path}/memory.max"
        return None

    def supervisor_killed(self, run):
        """A survivor takes over, or somebody continues with one command."""
        for pid in self.cluster.processes(self.cluster.devices[0], "run"):
            end_at_once(pid)
        run.supervisor.wait()
        return self.cluster.devices[0], (0, run.go_on)

    def power_off_all(self, run):
        self.cluster.poweroff(*self.cluster.devices)
        run.supervisor.wait()

        def back():
            self.cluster.poweron(*self.cluster.devices)
            run.go_on()

        return "all", (1, back)

    def damaged_checkpoint(self, run):
        """The newest checkpoint on disk is damaged, then everything loses its power."""
        path = os.path.join(run.folder, "checkpoint.safetensors")
        if os.path.exists(path):
            with open(path, "r+b") as file:
                size = os.path.getsize(path)
                file.seek(self.chance.randrange(size // 2, size))
                byte = file.read(1)
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte[0] ^ 255]))
        return self.power_off_all(run)


# Shares of each kind; those that need a person are rare.
KINDS = {"rank_killed": 8, "rank_stopped": 4, "two_ranks_killed": 2, "killed_again_while_recovering": 3, "agent_killed": 3,
         "cable_out": 4, "slow_link": 2, "power_off": 4, "power_off_three": 1, "memory_kill": 2, "supervisor_killed": 1,
         "power_off_all": 1, "damaged_checkpoint": 1, "lossy_link": 2, "full_disk": 2, "clock_jump": 2,
         "killed_while_checkpointing": 2, "killed_while_starting": 3}


ON_ONE_MACHINE = ["rank_killed", "rank_stopped", "two_ranks_killed", "killed_again_while_recovering", "agent_killed",
                  "supervisor_killed", "killed_while_checkpointing", "killed_while_starting"]


def compare(steps, undisturbed, tolerance):
    """What is wrong with the losses; empty where nothing is."""
    numbers = [step for step, _ in steps]
    if numbers != list(range(1, len(numbers) + 1)):
        missing = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
        twice = sorted({n for n in numbers if numbers.count(n) > 1})
        return f"steps missing: {missing[:5]}, twice: {twice[:5]}", 0
    worst = 0
    for (step, loss), (_, expected) in zip(steps, undisturbed):
        difference = abs(loss - expected) / max(abs(expected), 1e-3)
        worst = max(worst, difference)
        if not math.isfinite(loss) or difference > tolerance:
            return f"step {step}: loss {loss} instead of {expected}", worst
    return "", worst


def left_behind(cluster):
    """Processes and files in memory that a run has left on any device that is on."""
    left = []
    for device in cluster.devices:
        if device in cluster.off:
            continue
        for pid in cluster.processes(device):
            left.append(f"process {pid} on {device}")
        left += [f"/dev/shm/{name} on {device}" for name in cluster.left_in_memory(device)]
    return left


def false_alarms(run):
    """How often the supervisor has seen a fault where there was none."""
    try:
        with open(os.path.join(run.folder, "events.jsonl")) as file:
            return sum(json.loads(line).get("kind") == "fault" for line in file)
    except OSError:
        return 0


def undisturbed_run(cluster, options):
    run = Run(cluster, options, os.path.join(cluster.disk, "whole"), False)
    run.begin()
    wait_for(lambda: run.last_step() >= 3 or run.ended(), 120)
    begun, begun_step = time.monotonic(), run.last_step()
    wait_for(run.ended, options.longest)
    elapsed = time.monotonic() - begun
    run.whole_step_s = elapsed / max(run.last_step() - begun_step, 1)
    show(f"undisturbed: {run.last_step()} steps in {elapsed:.1f} s, code {run.supervisor.poll()}, "
         f"{false_alarms(run)} false alarms")
    return run


def disturbed(cluster, run, options, chance, rows, end_of_faults):
    """Trains with faults; what went wrong, or an empty text."""
    faults = Faults(cluster, options, chance)
    run.begin()
    if not wait_for(lambda: run.last_step() >= 3 or run.ended(), 120):
        return "no step within 120 s"
    begun, begun_step = time.monotonic(), run.last_step()
    pending = []  # (time, action)
    kinds, shares = zip(*((k, s) for k, s in KINDS.items() if not options.kinds or k in options.kinds))
    next_fault = time.monotonic() + chance.uniform(0.2, 1.8) * options.every
    waiting = None  # for the first step after a fault
    deadline = time.monotonic() + options.longest
    while True:
        now = time.monotonic()
        if now > deadline:
            return f"the run has not ended after {options.longest} s"
        for entry in [entry for entry in pending if entry[0] <= now]:
            pending.remove(entry)
            entry[1]()
        if waiting:
            # A step that was all but done when the fault came is no sign of going on: the run itself says when it does, unless
            # the fault has ended nothing, or all.
            row, step, recoveries = waiting
            moves = run.last_step() > step
            if moves and row["seconds"] == "":
                row["seconds"] = round(now - row["at"], 2)
            if run.recoveries() > recoveries:
                row["seconds"] = round(now - row["at"], 2)
                waiting = None
            elif moves and (now > row["at"] + NOTICED_S or run.ended()):
                waiting = None
            elif not moves and now > row["at"] + options.patience:
                return f"no step for {options.patience} s after: {row['fault']} on {row['where']}"
        if run.ended() and not pending:
            break
        if next_fault <= now < end_of_faults and len(rows) < options.faults and not (waiting or pending or run.ended()):
            kind = chance.choices(kinds, shares)[0]
            step = run.last_step()
            at = time.monotonic()
            where, end = getattr(faults, kind)(run)
            if where.split()[0] == "nobody":  # ranks are just being started, or have ended
                next_fault = time.monotonic() + 0.2
                continue
            if end:
                pending.append((time.monotonic() + end[0], end[1]))
            row = {"seed": options.seed, "fault": kind, "where": where, "step": step, "at": at, "seconds": ""}
            rows.append(row)
            show(f"{len(rows)}: {kind} on {where} at step {step}")
            # What a cable or power does is over when training goes on, with or without the device.
            waiting = (row, run.last_step(), run.recoveries())
            next_fault = at + chance.uniform(0.2, 1.8) * options.every
        time.sleep(0.03)
    run.elapsed = time.monotonic() - begun
    run.counted_steps = run.last_step() - begun_step
    return ""


def one_run(cluster, options, whole, rows, runs, end_of_faults):
    """A run with faults, and what is wrong with it: a list that is empty where nothing is."""
    chance = random.Random(options.seed)
    with open(options.clock_file, "w") as file:
        file.write("+0s\n")
    run = Run(cluster, options, os.path.join(cluster.disk, f"faulty-{options.seed}"), True)
    before = len(rows)
    problem = disturbed(cluster, run, options, chance, rows, end_of_faults)
    made = len(rows) - before
    if problem:
        return [problem]
    problems = [] if run.supervisor.poll() == 0 else [f"exit code {run.supervisor.poll()}"]
    cluster.poweron(*list(cluster.off))
    wrong, worst = compare(run.steps(), whole.steps(), options.tolerance)
    if wrong:
        problems.append(wrong)
    elif run.last_step() != options.steps:
        problems.append(f"ended at step {run.last_step()} of {options.steps}")
    goodput = run.counted_steps * whole.whole_step_s / run.elapsed
    runs.append({"seed": options.seed, "faults": made, "steps": run.counted_steps, "seconds": round(run.elapsed, 1),
                 "goodput": round(goodput, 4), "largest_difference": f"{worst:.2g}"})
    show(f"seed {options.seed}: {made} faults, {run.counted_steps} steps in {run.elapsed:.1f} s, "
         f"a fault every {run.elapsed / max(made, 1):.1f} s, goodput {100 * goodput:.1f} %, largest difference of a loss {worst:.2g}")
    wait_for(lambda: not left_behind(cluster), 20, 1)
    problems += left_behind(cluster)
    if not problems:
        subprocess.run(["rm", "-rf", run.folder])
    return problems


def write_rows(path, rows, columns):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def table(rows):
    """Kinds with the seconds until the next finished step: how many, median, longest."""
    lines = []
    for kind in sorted({row["fault"] for row in rows}) + ["all"]:
        seconds = sorted(row["seconds"] for row in rows if row["seconds"] != "" and kind in (row["fault"], "all"))
        if seconds:
            lines.append(f"{kind:30} {len(seconds):5} {seconds[len(seconds) // 2]:8.2f} {seconds[-1]:8.2f}")
    return "\n".join([f"{'fault':30} {'times':>5} {'median':>8} {'longest':>8}"] + lines)


def parse_options():
    parser = argparse.ArgumentParser(description="Faults on an emulated cluster while tessera run trains on it.")
    for name, kind, default, text in [
            ("local", int, 0, "so many ranks on this machine instead of a cluster; only processes have faults then"),
            ("devices", int, 6, "number of devices"), ("cpu", float, 0.25, "share of a core of each"),
            ("memory", int, 300, "MiB of each"), ("faults", int, 1000000, "in all runs, at most"),
            ("every", float, 15, "mean seconds between faults"), ("minutes", float, 25, "begin runs and make faults for so long"),
            ("steps", int, 2000, "steps of each run"),
            ("seed", int, 1, "of the first run; the next has the next number"), ("batch", int, 8, "pictures of a step"),
            ("patience", float, 90, "seconds without a step that are a failure"),
            ("longest", float, 7200, "seconds for a run"), ("tolerance", float, 0.02, "of losses, relative"),
            ("checkpoint-every", int, 50, "steps"), ("program", str, "build/release/tessera", "to test"),
            ("model", str, "models/lenet5.cfg", ""), ("data", str, "runs/chaos/digits", "made if it is not there"),
            ("grid", str, "2x3", "of the partition"), ("folder", str, "runs/chaos", "for all that it writes"),
            ("clock", str, "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "libfaketime, for clocks that jump"),
            ("out", str, "runs/chaos.csv", "a row for each fault"), ("runs", str, "", "file for a row for each run")]:
        parser.add_argument("--" + name, type=kind, default=default, help=f"{text} ({default})")
    parser.add_argument("--kinds", nargs="*", default=[], choices=sorted(KINDS), metavar="FAULT", help=", ".join(KINDS))
    parser.add_argument("more", nargs="*", help="further options of tessera train")
    options = parser.parse_args()
    if options.local:
        options.kinds = [kind for kind in options.kinds or KINDS if kind in ON_ONE_MACHINE]
    options.program = os.path.abspath(options.program)
    options.clock = options.clock if os.path.exists(options.clock) else ""
    options.clock_file = os.path.abspath(os.path.join(options.folder, "clock"))
    options.hostfile = os.path.abspath(os.path.join(options.folder, "hosts"))
    return options


def main():
    options = parse_options()
    os.makedirs(options.folder, exist_ok=True)
    if not os.path.isdir(options.data):
        os.makedirs(options.data)
        subprocess.run(["perl", "tests/cli/support/make_idx.pl", options.data, "600", "20"], check=True)
    disk = os.path.join(options.folder, "disk")
    subprocess.run(["umount", "--lazy", disk], stderr=subprocess.DEVNULL)
    subprocess.run(["rm", "-rf", disk], check=True)
    cluster = OneMachine(options) if options.local else Cluster(options)
    with open(options.hostfile, "w") as file:
        file.write("".join(device + "\n" for device in cluster.devices))
    problems, rows, runs = [], [], []
    try:
        whole = undisturbed_run(cluster, options)
        begun = time.monotonic()
        while time.monotonic() < begun + 60 * options.minutes and len(rows) < options.faults and not problems:
            problems = one_run(cluster, options, whole, rows, runs, begun + 60 * options.minutes)
            options.seed += 1
        if len(rows) < options.faults < 1000000 and not problems:
            problems = [f"{len(rows)} faults of {options.faults} within {options.minutes} minutes"]
        show(f"{len(runs)} runs, {len(rows)} faults in {(time.monotonic() - begun) / 60:.1f} minutes")
        show(table(rows))
        write_rows(options.out, rows, ["seed", "fault", "where", "step", "seconds"])
        if options.runs:
            write_rows(options.runs, runs, ["seed", "faults", "steps", "seconds", "goodput", "largest_difference"])
    finally:
        if not problems or not os.environ.get("KEEP_CLUSTER"):
            cluster.down()
    for problem in problems:
        show("PROBLEM: " + problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
