#!/usr/bin/env python3
"""The cable of each device in turn is out for some seconds while `tessera run` trains on emulated devices; see README.md beside it.

Prints what came of each, writes it as a row, and exits with 1 where anything is not as it has to be: a step is missing or there twice or
has another loss, more was repeated than the steps that a lost device may cost, two parts trained at the same time, a device does not take
part again, or a run does not end as it was told to.
"""

import argparse
import csv
import os
import signal
import subprocess
import sys
import time

from machines import Cluster, end_at_once, show, wait_for
from progress import Progress
from runs import STOPPED, Run, compare, events_in, left_in_the_end, losses_in, say_all

# The finished step whose loss the others have not exchanged yet, and the one before it where its second copies were on their way
# (engine/recovery/README.md).
MOST_REPEATED = 2
STEADY_S = 60  # within which a device whose cable is in again takes part
SETTLED_S = 30  # within which somebody goes on
SCHEDULE = ["--schedule-steps", "100000"]  # the same learning rates, however long a run is
COLUMNS = ["folders", "device", "leads", "seconds", "step", "went_on", "after_s", "led_by", "repeated", "halves", "again_s", "problems"]


class Cut:
    """One run, and the cable of one device during it."""

    def __init__(self, cluster, options, reference, device, seconds):
        self.cluster, self.options, self.reference, self.device, self.seconds = cluster, options, reference, device, seconds
        self.at_end = seconds is None
        self.problems = []
        steps = str(options.last_steps if self.at_end else 100000)
        self.run = Run(cluster, options, f"{device}-{'end' if self.at_end else f'{seconds:g}'}",
                       ["--hostfile", options.hostfile, "--remote-shell", cluster.ssh, *options.launcher],
                       [*training(options), "--steps", steps, "--grid", options.grid])

    def devices_again(self, progress, begin, seconds):
        """Seconds until all devices train together; None where they do not within so many."""
        def all_train():
            return any(devices == set(self.cluster.devices) for devices in progress.trained(begin, time.monotonic()).values())
        return round(time.monotonic() - begin, 1) if wait_for(all_train, seconds, 0.2) else None

    def result(self):
        """The row of this cut."""
        run = self.run
        with Progress(self.cluster) as progress:
            run.begin()
            needed = self.options.last_steps if self.at_end else 20
            if not wait_for(lambda: run.last_step() >= needed or run.ended(), 180, 0.005):
                self.problems.append(f"{needed} steps are not done after 180 s")
            row = {"folders": "own" if self.options.own else "shared", "device": self.device, "step": progress.last_step(),
                   "leads": "yes" if run.leader() == self.device else "no", "seconds": "at the end" if self.at_end else self.seconds}
            out = time.monotonic()
            self.cluster.call("link", self.device, "down")
            last = max(run.last_step(), progress.last_step())
            time.sleep(self.options.longest_cut if self.at_end else self.seconds)
            back = time.monotonic()
            alone = progress.trained(out + 1, back)
            row["led_by"] = " ".join(device for device in self.cluster.devices if self.cluster.processes(device, "run"))
            self.cluster.call("link", self.device, "up")
            row["went_on"] = " | ".join(sorted(" ".join(sorted(devices)) for devices in alone.values())) or "nobody"
            if self.at_end:
                again = self.end_of_finished(back)
            else:
                again = self.devices_again(progress, back, STEADY_S)
                if again is None:
                    self.problems.append(f"not all devices train together {STEADY_S} s after the cable was in again")
                run.stop()
            row["again_s"] = "" if again is None else again
        moves = [at for at, _, _, step in progress.moves if step > last + 1]
        row["after_s"] = round(min(moves) - out, 1) if moves else ""
        halves = progress.halves()
        row["halves"] = "yes" if halves else "no"
        row["repeated"] = self.repeated(progress)
        self.problems += halves
        self.judge(row)
        row["problems"] = "; ".join(self.problems)
        return row

    def end_of_finished(self, back):
        """Of a run that has done all of its steps: seconds until nobody has it any more."""
        ended = wait_for(self.run.ended, self.options.patience, 0.2)
        if not ended:
            self.problems.append("a run that has finished goes on")
        return round(time.monotonic() - back, 1) if ended else None

    def repeated(self, progress):
        """Steps that were finished before a fault, and again after it: the most of all faults. The first steps of ranks that were started
        again may have been over before they were seen, so the run's own word counts where it has one that fits."""
        resumed = [event["step"] for event in events_in(self.run.folder, "resume")]
        most, seen, highest = 0, set(), 0
        for _, _, number, step in progress.moves:
            if number not in seen:
                seen.add(number)
                begun = max((after for after in resumed if step - 10 < after < step), default=step - 1)
                most = max(most, highest - begun)
            highest = max(highest, step)
        return most

    def judge(self, row):
        run = self.run
        state, code = run.state()
        expected = ("finished", 0) if self.at_end else ("interrupted", STOPPED)
        if (state, code) != expected:
            self.problems.append(f"the run's folder says {state}, {code} instead of {expected[0]}, {expected[1]}")
        wrong, _ = compare(run.steps(), self.reference, self.options.tolerance)
        if wrong:
            self.problems.append(wrong)
        if self.at_end and run.last_step() != self.options.last_steps:
            self.problems.append(f"{run.last_step()} steps of {self.options.last_steps}")
        if row["repeated"] > MOST_REPEATED:
            self.problems.append(f"{row['repeated']} finished steps repeated")
        if not self.at_end and self.seconds >= 8 and row["went_on"] == "nobody":
            self.problems.append(f"nobody goes on within {self.seconds:g} s")

    def clean_up(self):
        """Ends what is still there, so that the next run is not disturbed by it."""
        self.problems += left_in_the_end(self.cluster)
        for device in self.cluster.devices:
            for pid in self.cluster.processes(device):
                end_at_once(pid)
            for entry in self.cluster.memory_entries(device):
                subprocess.run(["rm", "-rf", entry])
        if not self.problems:
            subprocess.run(["rm", "-rf", *self.run.folders.values()])


def training(options):
    return ["train", options.model, "--data", options.data, "--batch", "8", "--reader", "0", "--no-eval", "--progress", "none",
            "--checkpoint-every", str(options.checkpoint_every), *SCHEDULE]


def losses_of_one_device(options):
    """What the steps have to give, by one rank on this machine."""
    folder = os.path.join(options.folder, "reference")
    subprocess.run(["rm", "-rf", folder])
    subprocess.run([options.program, *training(options), "--steps", str(options.reference_steps), "--run", folder], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, OMP_NUM_THREADS="1"))
    return losses_in(folder)


def cut_all(options, reference, rows):
    """Each device, each length; what is wrong, a list."""
    problems = []
    cluster = Cluster(options)
    with open(options.hostfile, "w") as file:
        file.write("".join(device + "\n" for device in cluster.devices))
    try:
        for device in options.of or cluster.devices:
            for seconds in [*options.seconds, *([None] if options.at_end else [])]:
                cut = Cut(cluster, options, reference, device, seconds)
                row = cut.result()
                cut.clean_up()
                row["problems"] = "; ".join(cut.problems)
                rows.append(row)
                show(", ".join(f"{name} {row[name]}" for name in COLUMNS))
                problems += [f"{row['folders']}, {device}, {row['seconds']}: {problem}" for problem in cut.problems]
                if cut.problems and os.environ.get("KEEP_CLUSTER"):
                    return problems
    finally:
        if not problems or not os.environ.get("KEEP_CLUSTER"):
            cluster.down()
    return problems


def table(rows):
    widths = {name: max(len(name), *(len(str(row[name])) for row in rows)) for name in COLUMNS[:-1]}
    lines = ["  ".join(name.ljust(widths[name]) for name in widths)]
    for row in rows:
        lines.append("  ".join(str(row[name]).ljust(widths[name]) for name in widths) + (f"  {row['problems']}" if row["problems"] else ""))
    return "\n".join(lines)


def parse_options():
    parser = argparse.ArgumentParser(description="The cable of each device in turn is out while tessera run trains on emulated devices.")
    for name, kind, default, text in [
            ("devices", int, 4, "number of devices"), ("cpu", float, 0.25, "share of a core of each"), ("memory", int, 200, "MiB of each"),
            ("disk", int, 64, "MiB of the disk with the run's folder"), ("checkpoint-every", int, 50, "steps"),
            ("patience", float, 90, "seconds that a run may take to end"), ("tolerance", float, 0.02, "of losses, relative"),
            ("last-steps", int, 150, "steps of the runs whose cable is out at their end"),
            ("longest-cut", float, 25, "seconds for which that is out"),
            ("reference-steps", int, 6000, "with which losses are compared"), ("program", str, "build/release/tessera", "to test"),
            ("model", str, "models/lenet5.cfg", ""), ("data", str, "runs/cables/digits", "made if it is not there"),
            ("grid", str, "2x2", "of the partition"), ("folder", str, "runs/cables", "for all that it writes"),
            ("out", str, "runs/cables.csv", "a row for each cut")]:
        parser.add_argument("--" + name, type=kind, default=default, help=f"{text} ({default})")
    parser.add_argument("--of", nargs="*", default=[], metavar="DEVICE", help="whose cables (all)")
    parser.add_argument("--seconds", nargs="*", type=float, default=[2, 8, 25], help="how long (2 8 25)")
    parser.add_argument("--no-end", dest="at_end", action="store_false", help="none is out at the end of a run")
    parser.add_argument("--folders", nargs="*", default=["own", "shared"], choices=["own", "shared"], help="of runs (own shared)")
    parser.add_argument("--launcher", nargs="*", default=[], metavar="WORD", help="further options of tessera run, such as --witness=10.77.0.254")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    options.hostfile = os.path.abspath(os.path.join(options.folder, "hosts"))
    return options


def main():
    options = parse_options()
    os.makedirs(options.folder, exist_ok=True)
    if not os.path.isdir(options.data):
        os.makedirs(options.data)
        subprocess.run(["perl", "tests/cli/support/make_idx.pl", options.data, "600", "20"], check=True)
    reference = losses_of_one_device(options)
    problems, rows = [], []
    for folders in options.folders:
        options.own = folders == "own"
        problems += cut_all(options, reference, rows)
    with open(options.out, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    show(table(rows))
    return say_all(problems)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started ends with it, as on SIGINT
    sys.exit(main())
