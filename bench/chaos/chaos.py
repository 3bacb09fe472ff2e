#!/usr/bin/env python3
"""Faults on an emulated cluster while `tessera run` trains on it; see bench/chaos/run.sh --help.

Writes a row per fault, and one about the run as a whole; exits with 1 where anything is not as it has to be: a run
that does not end, a step that is missing or there twice, a loss that differs from that of the undisturbed run, or
something that is left behind.
"""

import argparse
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


def show(text):
    print(text, file=sys.stderr, flush=True)


class Cluster:
    def __init__(self, options):
        self.tool = "bench/cluster/cluster"
        self.devices = [f"pi{i + 1}" for i in range(options.devices)]
        self.off = set()
        self.call("down", check=False)
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

    def processes(self, device, *parts):
        """Ids, as this machine counts them, of the device's processes whose command line has all these words."""
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
            if words and words[0].endswith("/tessera") and all(part in words for part in parts):
                found.append(int(pid))
        return found

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


class Run:
    """One training run, however many supervisors it has one after the other."""

    def __init__(self, cluster, options, folder, faulty):
        self.cluster, self.options, self.folder, self.faulty = cluster, options, folder, faulty
        self.log_path = folder + ".log"
        self.log = open(self.log_path, "ab")
        self.supervisor = None

    def words(self):
        options = self.options
        words = [options.program, "run", "--hostfile", options.hostfile, "--remote-shell", self.cluster.ssh, "--", "train",
                 options.model, "--data", options.data, "--batch", str(options.batch), "--steps", str(options.steps),
                 "--checkpoint-every", str(options.checkpoint_every), "--run", self.folder, "--reader", "0", "--no-eval",
                 "--progress", "none", "--grid", options.grid]
        return words + options.more

    def start(self, words, device="pi1"):
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        self.supervisor = subprocess.Popen([self.cluster.tool, "--cluster", CLUSTER, "exec", device, *words],
                                           stdout=self.log, stderr=subprocess.STDOUT, env=environment,
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
                for pid in self.cluster.processes(d, "train")
                if "run" not in open(f"/proc/{pid}/cmdline").read().split("\0")[1:2]]

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
        device = self.chance.choice(self.others())
        for pid in self.cluster.processes(device, "agent"):
            os.kill(pid, signal.SIGKILL)
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
        for pid in self.cluster.processes("pi1", "run"):
            os.kill(pid, signal.SIGKILL)
        run.supervisor.wait()
        return "pi1", (0, run.go_on)

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
         "power_off_all": 1, "damaged_checkpoint": 1}


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


def left_behind(cluster, options):
    """Processes and files in memory that a run has left on any device that is on."""
    left = []
    for device in cluster.devices:
        if device in cluster.off:
            continue
        for pid in cluster.processes(device):
            left.append(f"process {pid} on {device}")
        for name in cluster.on(device, "ls", "/dev/shm").split():
            if name.startswith("tessera-"):
                left.append(f"/dev/shm/{name} on {device}")
    return left


def disturbed(cluster, run, options, chance, rows):
    faults = Faults(cluster, options, chance)
    run.begin()
    if not wait_for(lambda: run.last_step() >= 3 or run.ended(), 120):
        return "no step within 120 s"
    begun, begun_step = time.monotonic(), run.last_step()
    pending = []  # (time, action)
    made = 0
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
            row, step = waiting
            if run.last_step() > step:
                row["seconds"] = round(now - row["at"], 2)
                waiting = None
            elif now > row["at"] + options.patience:
                return f"no step for {options.patience} s after: {row['fault']} on {row['where']}"
        if run.ended() and not pending:
            break
        if made < options.faults and now >= next_fault and not waiting and not pending and not run.ended():
            kind = chance.choices(kinds, shares)[0]
            step = run.last_step()
            at = time.monotonic()
            where, end = getattr(faults, kind)(run)
            if end:
                pending.append((time.monotonic() + end[0], end[1]))
            row = {"fault": kind, "where": where, "step": step, "at": at, "seconds": ""}
            rows.append(row)
            made += 1
            show(f"{made}: {kind} on {where} at step {step}")
            # What a cable or power does is over when training goes on, with or without the device.
            waiting = (row, run.last_step())
            next_fault = at + chance.uniform(0.2, 1.8) * options.every
        time.sleep(0.03)
    for _, action in pending:
        action()
    run.elapsed = time.monotonic() - begun
    run.counted_steps = run.last_step() - begun_step
    return ""


def main():
    parser = argparse.ArgumentParser()
    for name, kind, default in [("devices", int, 6), ("cpu", float, 0.25), ("memory", int, 300), ("faults", int, 40),
                                ("every", float, 15), ("steps", int, 2000), ("seed", int, 1), ("batch", int, 8),
                                ("patience", float, 90), ("longest", float, 1800), ("tolerance", float, 0.02),
                                ("checkpoint-every", int, 50), ("program", str, "build/release/tessera"),
                                ("model", str, "models/lenet5.cfg"), ("data", str, "runs/chaos/digits"),
                                ("grid", str, "2x3"), ("folder", str, "runs/chaos"), ("out", str, "runs/chaos.csv")]:
        parser.add_argument("--" + name, type=kind, default=default)
    parser.add_argument("--kinds", nargs="*", default=[])
    parser.add_argument("more", nargs="*")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    os.makedirs(options.folder, exist_ok=True)
    chance = random.Random(options.seed)
    if not os.path.isdir(options.data):
        os.makedirs(options.data)
        subprocess.run(["perl", "tests/cli/support/make_idx.pl", options.data, "600", "20"], check=True)
    cluster = Cluster(options)
    options.hostfile = os.path.abspath(os.path.join(options.folder, "hosts"))
    with open(options.hostfile, "w") as file:
        file.write("".join(device + "\n" for device in cluster.devices))
    problems, rows = [], []
    try:
        for name in ("whole", "faulty"):
            subprocess.run(["rm", "-rf", os.path.join(options.folder, name), os.path.join(options.folder, name + ".log")])
        whole = Run(cluster, options, os.path.abspath(os.path.join(options.folder, "whole")), False)
        whole.begin()
        wait_for(lambda: whole.last_step() >= 3 or whole.ended(), 120)
        begun, begun_step = time.monotonic(), whole.last_step()
        wait_for(whole.ended, options.longest)
        whole_step_s = (time.monotonic() - begun) / max(whole.last_step() - begun_step, 1)
        show(f"undisturbed: {whole.last_step()} steps in {time.monotonic() - begun:.1f} s, code {whole.supervisor.poll()}")
        undisturbed = whole.steps()
        with open(os.path.join(whole.folder, "metrics.jsonl")) as file:
            times = [json.loads(line).get("step_s") for line in file]
        times = sorted(t for t in times if t)
        step_s = times[len(times) // 2] if times else 0
        run = Run(cluster, options, os.path.abspath(os.path.join(options.folder, "faulty")), True)
        problem = disturbed(cluster, run, options, chance, rows)
        if problem:
            problems.append(problem)
        elif run.supervisor.poll() != 0:
            problems.append(f"exit code {run.supervisor.poll()}")
        cluster.poweron(*list(cluster.off))
        if not problem:
            wrong, worst = compare(run.steps(), undisturbed, options.tolerance)
            if wrong:
                problems.append(wrong)
            elif run.last_step() != options.steps:
                problems.append(f"ended at step {run.last_step()} of {options.steps}")
            goodput = run.counted_steps * whole_step_s / run.elapsed if run.elapsed else 0
            times = sorted(row["seconds"] for row in rows if row["seconds"] != "")
            median = times[len(times) // 2] if times else 0
            show(f"{len(rows)} faults, {run.counted_steps} steps in {run.elapsed:.1f} s, goodput {100 * goodput:.1f} %, "
                 f"median {median} s to the next step, median step {step_s:.3f} s, largest difference of a loss {worst:.2g}")
            wait_for(lambda: not left_behind(cluster, options), 20, 1)
            problems += left_behind(cluster, options)
        with open(options.out, "w", newline="") as file:
            writer = csv.DictWriter(file, ["fault", "where", "step", "seconds"], extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
    finally:
        if not problems or not os.environ.get("KEEP_CLUSTER"):
            cluster.call("down", check=False)
    for problem in problems:
        show("PROBLEM: " + problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
