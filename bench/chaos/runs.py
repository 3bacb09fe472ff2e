"""A training run under `tessera run`, whichever device has it, and what has to hold of it."""

import collections
import contextlib
import json
import math
import os
import signal
import subprocess
import time

from machines import CLUSTER, show, wait_for

STOPPED = 128 + signal.SIGTERM  # exit code of a run that was told to stop
PAUSED = 128 + signal.SIGUSR1  # of ranks that end so that more may start


def json_of(path):
    """What a JSON file holds; empty where there is none, or half of one."""
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def make_digits(folder, training, testing):
    """Pictures of digits to train on and to test with; does nothing where there are some."""
    if not os.path.isdir(folder):
        os.makedirs(folder)
        subprocess.run(["perl", "tests/cli/support/make_idx.pl", folder, str(training), str(testing)], check=True)


def lines_of(path, last_bytes=None):
    """The lines of a JSON lines file, or those in so many bytes at its end; half a line counts for nothing."""
    found = []
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
        if last_bytes and os.fstat(file.fileno()).st_size > last_bytes:
            file.seek(-last_bytes, os.SEEK_END)
            file.readline()
        for line in file:
            if line.endswith(b"\n"):
                found.append(json.loads(line))
    return found


def losses_in(folder, last_bytes=None):
    """(step, loss) of each step in the metrics."""
    return [(row["step"], row["loss"]) for row in lines_of(os.path.join(folder, "metrics.jsonl"), last_bytes) if "loss" in row and "step" in row]


def last_step_in(folder):
    """Asked often, in runs of hours: the end of the metrics is read."""
    found = losses_in(folder, 1 << 14) or losses_in(folder)
    return found[-1][0] if found else 0


def events_in(folder, kind):
    return [event for event in lines_of(os.path.join(folder, "events.jsonl")) if event.get("kind") == kind]


class Run:
    """One training run, however many supervisors it has one after the other.

    place: its folder, as devices see it. launcher: words of `tessera run` that say where it trains. training: those after `--`,
    without `--run`.
    """

    def __init__(self, cluster, options, name, launcher, training):
        self.cluster, self.options, self.launcher, self.training = cluster, options, launcher, training
        self.place = os.path.join(cluster.disk, name)
        self.folders = {device: os.path.join(view, name) for device, view in cluster.views.items()}
        self.log_path = self.place + ".log"
        self.supervisor = None
        self.clock = {}  # environment that lets the clock of the first device jump
        self.looked = 0

    def start(self, words, device):
        environment = dict(os.environ, OMP_NUM_THREADS="1", **(self.clock if device == self.cluster.devices[0] else {}))
        if self.cluster.is_one_machine:
            environment["TESSERA_CHAOS"] = self.cluster.disk
        else:
            words = [self.cluster.tool, "--cluster", CLUSTER, "exec", device, *words]
        with open(self.log_path, "ab") as log:
            self.supervisor = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True)

    def begin(self):
        self.start([self.options.program, "run", *self.launcher, "--", *self.training, "--run", self.place], self.cluster.devices[0])

    def go_on(self, device, *words):
        """As somebody would who finds that the run does not: with one command on that device."""
        self.start([self.options.program, "run", "--continue", self.place, *words], device)

    def leader(self):
        """The device with the supervisor: the one that has started ranks last, if there are several; None if there is none."""
        leaders = [device for device in self.cluster.on() if self.cluster.processes(device, "run")]
        return max(leaders, key=lambda device: age_of(self.folder_on(device)), default=None)

    def folder_on(self, device):
        return self.folders.get(device) or next(iter(self.folders.values()))

    def newest(self):
        """The device whose folder knows most: a supervisor that follows another counts one more, and writes before its copy does."""
        if len(self.folders) == 1:
            return next(iter(self.folders))
        return max(self.folders, key=lambda device: (age_of(self.folders[device]), last_step_in(self.folders[device])))

    def holders(self):
        """Devices whose folder is the run's own or the copy of that, the one that knows most first."""
        if len(self.folders) == 1:
            return self.cluster.on()
        newest = self.newest()
        return [newest, *(device for device in self.folders if device != newest and age_of(self.folders[device]) == age_of(self.folders[newest]))]

    @property
    def folder(self):
        return self.folders[self.newest()]

    def stop(self):
        """As somebody would who has had enough: the step is finished and saved."""
        for pid in self.cluster.processes(self.leader() or self.cluster.devices[0], "run"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        wait_for(self.ended, self.options.patience)

    def steps(self):
        return losses_in(self.folder)

    def last_step(self):
        return last_step_in(self.folder)

    def recoveries(self):
        """How often the run says that it has gone on after a fault."""
        return len(events_in(self.folder, "recovery"))

    def state(self):
        """running, finished, interrupted or failed, and the exit code."""
        summary = json_of(os.path.join(self.folder, "run.json"))
        return summary.get("state"), summary.get("exit_code")

    def ended(self):
        """The supervisor that was started here is gone, and none on another device has the run."""
        if self.supervisor.poll() is None:
            return False
        if self.cluster.is_one_machine or self.supervisor.poll() in (0, STOPPED):
            return True
        if time.monotonic() < self.looked + 0.5:  # it takes a while
            return False
        self.looked = time.monotonic()
        state, code = self.state()
        return state in ("finished", "interrupted") and code != PAUSED and self.leader() is None


def age_of(folder):
    """Of two copies of a run's folder the one with more is newer: starts of a supervisor, and devices that were chosen to have the copy."""
    record = json_of(os.path.join(folder, "supervisor.json"))
    return record.get("generation", 0), record.get("copies", 0)


def compare(steps, undisturbed, tolerance):
    """What is wrong with the losses, empty where nothing is, and the largest relative difference."""
    numbers = [step for step, _ in steps]
    if numbers != list(range(1, len(numbers) + 1)):
        missing = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
        twice = sorted(n for n, times in collections.Counter(numbers).items() if times > 1)
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
    for device in cluster.on():
        for pid in cluster.processes(device):
            left.append(f"process {pid} on {device}")
        left += [f"/dev/shm/{os.path.basename(path)} on {device}" for path in cluster.memory_entries(device)]
    return left


def left_in_the_end(cluster):
    """The same where a run has just ended: what ends with it may take some seconds, and devices that were cut off ask the others in turn."""
    wait_for(lambda: not left_behind(cluster), 20 if cluster.is_one_machine else 200, 1)
    return left_behind(cluster)


def say_all(problems):
    for problem in problems:
        show("PROBLEM: " + problem)
    return 1 if problems else 0
