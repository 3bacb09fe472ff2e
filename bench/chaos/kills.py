#!/usr/bin/env python3
"""Kills at tests, checkpoints, starts and recoveries of small runs on this machine; see README.md beside it.

Each run is killed several times and then ends; its steps, tests, epochs, best model, last evaluation and events have to be those of the
undisturbed run. Writes a row per kill, prints a table, and exits with 1 where anything differs.
"""

import argparse
import collections
import contextlib
import csv
import json
import os
import random
import signal
import subprocess
import sys
import time

from machines import OneMachine, end_at_once, show, wait_for
from runs import Run, events_in, last_step_in, left_in_the_end, lines_of, losses_in, make_digits, say_all

RANKS = 4
FOREVER_S = 120  # for a run, or for what was told to end
MEASURED = {"seconds", "images_per_s", "energy_j", "run_energy_j", "energy_by_rank_j", "run_energy_by_rank_j", "t_s"}
ORDERLY = {"TERM": signal.SIGTERM, "HUP": signal.SIGHUP, "INT": signal.SIGINT}
COLUMNS = ["run", "model", "launcher", "target", "moment", "step", "saved", "differed"]


class Killed(Run):
    """A run on this machine, under `tessera run`."""

    launcher_name = "tessera run"

    def begin(self):
        subprocess.run(["rm", "-rf", self.place])  # of a start that was killed before there was anything to go on from
        super().begin()

    def can_go_on(self):
        return os.path.exists(os.path.join(self.place, "supervisor.json"))

    def again(self):
        if self.can_go_on():
            self.go_on("here")
        else:
            self.begin()

    def ranks(self):
        return self.cluster.processes("here", "train")

    def starters(self):
        """What has started the ranks."""
        return self.cluster.processes("here", "run")

    def all(self):
        return self.cluster.all_processes("here")

    def is_writing(self):
        with contextlib.suppress(OSError):
            return any(name.endswith(".partial") for name in os.listdir(self.place))
        return False


class KilledWithMpiexec(Killed):
    """The same under plain mpiexec; somebody resumes it."""

    launcher_name = "mpiexec"

    def words(self):
        return ["mpiexec.mpich", "-n", str(RANKS), self.options.program, *self.training, "--run", self.place]

    def begin(self):
        subprocess.run(["rm", "-rf", self.place])
        self.start(self.words(), "here")

    def can_go_on(self):
        return any(os.path.exists(os.path.join(self.place, name)) for name in ("checkpoint.safetensors", "checkpoint.previous.safetensors"))

    def go_on(self, device, *words):
        self.start([*self.words(), "--resume", self.place, *words], device)

    def starters(self):
        return [self.supervisor.pid]


class Task:
    """A small model with its pictures, and what an undisturbed run of it gives."""

    def __init__(self, name, training, cluster, options):
        self.name, self.training, self.cluster, self.options = name, training, cluster, options
        self.expected, self.test_s, self.start_s, self.epoch_steps = None, 0, 0, 0

    def run(self, kind, name):
        return kind(self.cluster, self.options, name, ["-n", str(RANKS)], self.training)

    def undisturbed(self):
        """What is wrong, a list: runs of both kinds of launcher have to give the same."""
        for kind in (Killed, KilledWithMpiexec):
            run = self.run(kind, f"{self.name}-undisturbed-{kind.launcher_name.split()[0]}")
            began = time.monotonic()
            run.begin()
            wait_for(lambda: run.last_step() > 0 or run.ended(), FOREVER_S, 0.005)
            self.start_s = max(self.start_s, time.monotonic() - began)
            if not wait_for(run.ended, FOREVER_S) or run.supervisor.poll() != 0:
                return [f"{self.name}: the undisturbed run ends with code {run.supervisor.poll()}: {run.log_path}"]
            found = results(run.place)
            if self.expected is not None and found != self.expected:
                return [f"{self.name}: undisturbed runs differ: {', '.join(differences(found, self.expected))}"]
            self.expected = found
        summary = lines_of(os.path.join(run.place, "metrics.jsonl"))
        tests = [(row["step"], row["t_s"]) for row in summary if "test_loss" in row]
        at = {row["step"]: row["t_s"] for row in summary if "loss" in row}
        self.epoch_steps = tests[0][0]
        self.test_s = max(0.01, max(t_s - at[step] for step, t_s in tests))
        show(f"{self.name}: {len(at)} steps, {len(tests)} tests of {self.test_s:.3f} s at most, {self.start_s:.2f} s until the first step")
        return []


def results(folder):
    """What has to be the same: {name: value}. Checkpoints are written in the background: their events have no fixed place among others."""
    events = [(event.get("step"), event["kind"], event["text"]) for event in lines_of(os.path.join(folder, "events.jsonl"))
              if event["kind"] in ("epoch", "best", "checkpoint")]
    found = {"losses": losses_in(folder), "events": sorted(events)}
    found["tests"] = [{key: value for key, value in row.items() if key not in MEASURED}
                      for row in lines_of(os.path.join(folder, "metrics.jsonl")) if "test_loss" in row]
    with contextlib.suppress(OSError), open(os.path.join(folder, "epochs.csv"), newline="") as file:
        found["epochs.csv"] = [{key: value for key, value in row.items() if key not in MEASURED} for row in csv.DictReader(file)]
    with contextlib.suppress(OSError), open(os.path.join(folder, "best.safetensors"), "rb") as file:
        found["best.safetensors"] = file.read()
    with contextlib.suppress(OSError, ValueError), open(os.path.join(folder, "evaluation.json")) as file:
        found["evaluation.json"] = json.load(file)
    return found


def differences(found, expected):
    return [name for name in expected if found.get(name) != expected[name]]


class Kills:
    """Kills one run after another at planned moments."""

    def __init__(self, options, chance):
        self.options, self.chance = options, chance
        self.rows, self.problems = [], []

    def plan(self, orderly):
        """(target, moment) of each kill of a run. A recovery follows another kill."""
        if orderly:
            return [(self.chance.choice(list(ORDERLY)), self.chance.choice(["training", "test", "checkpoint"])) for _ in range(3)]
        moments = ["start"] * self.chance.randrange(2)
        while len(moments) < self.options.each:
            moments.append(self.chance.choice(["test", "test", "checkpoint", "recovery", "recovery"] if moments else ["test", "checkpoint"]))
        return [(self.chance.choice(["rank", "starter", "all"]), moment) for moment in moments]

    def wait_for_moment(self, run, task, moment, before):
        """Until that moment, and some time at random into it; False where the run has ended before. before: ranks that were killed."""
        def is_there():
            if run.ended():
                return True
            if moment == "checkpoint":
                return run.is_writing()
            if moment in ("start", "recovery"):
                return bool(set(run.ranks()) - before)
            step = last_step_in(run.place)
            return step > self.step and (moment == "training" or step % task.epoch_steps == 0)
        if not wait_for(is_there, FOREVER_S, 0.001) or run.ended():
            return False
        longest = {"test": 1.5 * task.test_s, "checkpoint": 0.005, "training": 0.1}.get(moment, task.start_s)
        time.sleep(self.chance.uniform(0, longest))
        return not run.ended()

    def strike(self, run, target):
        """Kills; the pids of the ranks that there were."""
        ranks = run.ranks()
        if target in ORDERLY:
            for pid in run.all():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, ORDERLY[target])
        else:
            for pid in {"rank": [self.chance.choice(ranks)] if ranks else [], "starter": run.starters(), "all": run.all()}[target]:
                end_at_once(pid)
        return set(ranks)

    def goes_on(self, run, target, row):
        """After a kill: somebody goes on with what does not by itself. False where there is no more to do, or that cannot be."""
        if target == "rank" and run.launcher_name == "tessera run":
            return True
        end = wait_for(lambda: run.supervisor.poll() is not None and not run.all(), FOREVER_S, 0.01)
        if not end:
            self.problems.append(f"run {row['run']}: not all has ended {FOREVER_S} s after {target} at {row['moment']}")
            for pid in run.all():
                end_at_once(pid)
            return False
        if target in ORDERLY:
            saved = [event["step"] for event in events_in(run.place, "checkpoint")]
            last = last_step_in(run.place)  # 0: there was nothing to save
            row["saved"] = "yes" if last == 0 or saved[-1:] == [last] else "no"
            if row["saved"] == "no":
                self.problems.append(f"run {row['run']}: saved after step {saved[-1:]}, not {last}, by {target} at {row['moment']}")
        if run.state()[0] == "finished":  # it was about to end: whoever would have removed what it kept in memory may be killed, too
            for entry in run.cluster.memory_entries("here"):
                subprocess.run(["rm", "-rf", entry])
            return False
        run.again()
        return True

    def one_run(self, number, task, kind, orderly):
        run = task.run(kind, f"{task.name}-{number}")
        self.step = 0
        mine, before = [], set()
        run.begin()
        for target, moment in self.plan(orderly):
            if not self.wait_for_moment(run, task, moment, before):
                break
            before = self.strike(run, target)
            row = {"run": number, "model": task.name, "launcher": run.launcher_name, "target": target, "moment": moment,
                   "step": last_step_in(run.place), "saved": "", "differed": ""}
            mine.append(row)
            self.step = row["step"]
            if not self.goes_on(run, target, row):
                break
        end = wait_for(run.ended, FOREVER_S)
        differed = differences(results(run.place), task.expected)
        if orderly and "events" in differed:  # what such a stop saves is a checkpoint more
            kinds = [[event for event in each["events"] if event[1] != "checkpoint"] for each in (results(run.place), task.expected)]
            differed = [name for name in differed if name != "events" or kinds[0] != kinds[1]]
        if not end or run.state() != ("finished", 0):
            differed.append(f"code {run.supervisor.poll()}")
        for pid in [] if end else run.all():
            end_at_once(pid)
        differed += left_in_the_end(run.cluster)
        for row in mine:
            row["differed"] = ", ".join(differed)
        self.rows += mine
        what = ", ".join(f"{row['target']} at {row['moment']} ({row['step']})" for row in mine)
        show(f"{len(self.rows)}: run {number}, {task.name}, {run.launcher_name}: {what}: {', '.join(differed) or 'the same'}")
        if differed:
            self.problems.append(f"run {number}, {task.name}, {run.launcher_name}: {', '.join(differed)} after {what}; see {run.place}")
        else:
            subprocess.run(["rm", "-rf", run.place, run.log_path])


def table(rows):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["launcher"], row["target"], row["moment"]].append(row)
    lines = [f"{'launcher':12} {'target':8} {'moment':11} {'times':>5} {'differed':>8}  what"]
    for key in sorted(groups):
        differed = [row["differed"] for row in groups[key] if row["differed"]] + ["not saved" for row in groups[key] if row["saved"] == "no"]
        lines.append(f"{key[0]:12} {key[1]:8} {key[2]:11} {len(groups[key]):5} {len(differed):8}  {'; '.join(sorted(set(differed)))}")
    return "\n".join(lines)


def tasks(cluster, options):
    digits, objects = (os.path.join(options.folder, name) for name in ("digits", "objects"))
    make_digits(digits, 80, 40)
    if not os.path.isdir(objects):
        subprocess.run([options.program, "make-detection-set", objects, "--pictures", "60", "--size", "48x48", "--seed", "5"], check=True,
                       stdout=subprocess.DEVNULL)
    common = ["--grid", "2x2", "--epochs", str(options.epochs), "--progress", "none", "--monitor", "off", "--checkpoint-every", "3"]
    every = {"classifier": ["train", "models/lenet5.cfg", "--data", digits, "--batch", "8", *common],
             "detector": ["train", "tests/cli/support/detector.cfg", "--data", os.path.join(objects, "detection.data"), *common]}
    return [Task(name, every[name], cluster, options) for name in options.models]


def parse_options():
    parser = argparse.ArgumentParser(description="Kills at tests, checkpoints, starts and recoveries of small runs on this machine.")
    for name, kind, default, text in [
            ("kills", int, 300, "in all runs"), ("each", int, 5, "of a run, at most"), ("seed", int, 1, "of the moments and of who is killed"),
            ("epochs", int, 6, "of each run, with a test each"), ("stops", float, 0.2, "share of the runs that are stopped by TERM, HUP and INT instead"),
            ("program", str, "build/release/tessera", "to test"), ("folder", str, "runs/kills", "for all that it writes"),
            ("out", str, "runs/kills.csv", "a row for each kill")]:
        parser.add_argument("--" + name, type=kind, default=default, help=f"{text} ({default})")
    for name, choices in (("models", ["classifier", "detector"]), ("launchers", ["run", "mpiexec"])):
        parser.add_argument("--" + name, nargs="*", default=choices, choices=choices, help=f"({' '.join(choices)})")
    options = parser.parse_args()
    options.local, options.patience = RANKS, FOREVER_S
    options.program, options.folder = os.path.abspath(options.program), os.path.abspath(options.folder)
    return options


def main():
    options = parse_options()
    os.makedirs(options.folder, exist_ok=True)
    cluster, chance = OneMachine(options), random.Random(options.seed)
    kills = Kills(options, chance)
    kinds = [{"run": Killed, "mpiexec": KilledWithMpiexec}[name] for name in options.launchers]
    try:
        all_tasks = tasks(cluster, options)
        kills.problems = [problem for task in all_tasks for problem in task.undisturbed()]
        number = 0
        while len(kills.rows) < options.kills and all(task.test_s for task in all_tasks) and number < options.kills:
            task, kind = all_tasks[number % len(all_tasks)], kinds[number // len(all_tasks) % len(kinds)]
            number += 1
            kills.one_run(number, task, kind, chance.random() < options.stops)
    finally:
        cluster.down()
    with open(options.out, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kills.rows)
    show(table(kills.rows))
    return say_all(kills.problems)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started ends with it, as on SIGINT
    sys.exit(main())
