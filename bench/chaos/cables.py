#!/usr/bin/env python3
"""The cable of each device in turn is out for some seconds while `tessera run` trains on emulated devices; see README.md beside it.

Prints what came of each, writes it as a row, and exits with 1 where anything is not as it has to be: a step is missing or there twice or
has another loss, more was repeated than the steps that a lost device may cost, two parts trained at the same time, a finished run was
trained again, a device does not take part again, or a run does not end as it was told to.
"""

import argparse
import contextlib
import csv
import os
import signal
import subprocess
import sys
import time

from machines import CLUSTER, Cluster, end_at_once, show, wait_for
from progress import Progress
from runs import STOPPED, Run, compare, events_in, left_in_the_end, losses_in, make_digits, say_all

# The finished step whose loss the others have not exchanged yet, and the one before it where its second copies were on their way
# (engine/recovery/README.md).
MOST_REPEATED = 2
STEADY_S = 60  # within which a device whose cable is in again takes part
SCHEDULE = ["--schedule-steps", "100000"]  # the same learning rates, however long a run is
# Within which the others go on: after its silence is noticed; where it leads, once agents have waited for it and one has taken over.
GONE_ON_S = {"no": 8, "yes": 20}
AT_END = ["test", "finish"]  # after the last step: while it is tested, and when that is over
COLUMNS = ["folders", "device", "leads", "out", "step", "went_on", "after_s", "led_by", "repeated", "halves", "again_s", "problems"]


class Cut:
    """One run, and the cable of one device during it."""

    def __init__(self, cluster, options, reference, device, out):
        """out: seconds, or one of AT_END."""
        self.cluster, self.options, self.reference, self.device, self.out = cluster, options, reference, device, out
        self.at_end = out in AT_END
        self.problems = []
        more = ["--steps", str(options.last_steps)] if self.at_end else ["--steps", "100000", "--no-eval"]
        self.run = Run(cluster, options, f"{device}-{out if self.at_end else format(out, 'g')}", ["--hostfile", options.hostfile, "--remote-shell", cluster.ssh, *options.launcher],
                       [*training(options), *more, "--grid", options.grid])

    def is_time(self):
        if self.out == "finish":
            return self.run.state()[0] == "finished"
        return self.run.last_step() >= (self.options.last_steps if self.at_end else 20)

    def unplug(self):
        """Once it is time. A run that has finished ends soon: its supervisor is stopped meanwhile."""
        wait_for(lambda: self.run.last_step() > 0 or self.run.ended(), 180)
        supervisors = self.cluster.processes(self.cluster.devices[0], "run")
        if not wait_for(lambda: self.is_time() or self.run.ended(), 180, 0.001):
            self.problems.append("after 180 s it was not time yet")
        with contextlib.suppress(ProcessLookupError):
            for number in (signal.SIGSTOP, signal.SIGCONT):
                for pid in supervisors:
                    os.kill(pid, number)
                if number == signal.SIGSTOP:
                    subprocess.run(["ip", "-n", f"tessera-{CLUSTER}.switch", "link", "set", "dev", self.device, "down"], check=True)

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
            self.unplug()
            begin = time.monotonic()
            last = max(run.last_step(), progress.last_step())
            row = {"folders": "own" if self.options.own else "shared", "device": self.device, "step": last, "out": self.out if self.at_end else f"{self.out:g}",
                   "leads": "yes" if self.device == self.cluster.devices[0] else "no"}
            time.sleep(self.options.longest_cut if self.at_end else self.out)
            self.run.supervisor.send_signal(signal.SIGCONT)  # nsenter, which stops with the supervisor that it has started
            back = time.monotonic()
            alone = progress.trained(begin + 1, back)
            row["went_on"] = " | ".join(sorted(" ".join(sorted(devices)) for devices in alone.values())) or "nobody"
            row["led_by"] = " ".join(device for device in self.cluster.devices if self.cluster.processes(device, "run"))
            self.cluster.call("link", self.device, "up")
            if self.at_end:
                again = round(time.monotonic() - back, 1) if wait_for(run.ended, self.options.patience, 0.2) else None
            else:
                again = self.devices_again(progress, back, STEADY_S)
                if again is None:
                    self.problems.append(f"not all devices train together {STEADY_S} s after the cable was in again")
                run.stop()
        moves = [at for at, _, _, step in progress.moves if at > begin and step > last + 1]
        row.update(after_s=round(min(moves) - begin, 1) if moves else "", again_s="" if again is None else again,
                   halves="yes" if progress.halves() else "no", repeated=self.repeated(progress))
        self.judge(row, progress, begin)
        return row

    def repeated(self, progress):
        """Steps that were finished before a fault, and again after it: the most of all faults. The first steps of ranks that were started
        again may have been over before they were seen, so the run's own word counts where it has one that fits."""
        begins = [event["step"] for kind in ("start", "resume") for event in events_in(self.run.folder, kind)]
        most = max((event["repeated_steps"] for event in events_in(self.run.folder, "recovery")), default=0)
        seen, highest = set(), 0
        for _, _, number, step in progress.moves:
            if number not in seen:
                seen.add(number)
                begun = max((after for after in begins if step - 10 < after < step), default=step - 1)
                most = max(most, highest - begun)
            highest = max(highest, step)
        return most

    def judge(self, row, progress, begin):
        run = self.run
        self.problems += progress.halves()
        state, code = run.state()
        expected = ("finished", 0) if self.at_end else ("interrupted", STOPPED)
        if (state, code) != expected:
            self.problems.append(f"the run's folder says {state}, {code} instead of {expected[0]}, {expected[1]}")
        wrong, _ = compare(run.steps(), self.reference, self.options.tolerance)
        if wrong:
            self.problems.append(wrong)
        if row["again_s"] == "" and self.at_end:
            self.problems.append("a run that has done all of its steps goes on")
        if self.at_end and run.last_step() != self.options.last_steps:
            self.problems.append(f"{run.last_step()} steps of {self.options.last_steps}")
        if self.out == "finish" and any(at > begin + 1 for at, _, _, _ in progress.moves):
            self.problems.append("a finished run was trained again")
        if row["repeated"] > MOST_REPEATED:
            self.problems.append(f"{row['repeated']} finished steps repeated")
        if not self.at_end and self.out >= GONE_ON_S[row["leads"]] and row["went_on"] == "nobody":
            self.problems.append(f"nobody goes on within {self.out:g} s")

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
    return ["train", options.model, "--data", options.data, "--batch", "8", "--reader", "0", "--progress", "none",
            "--checkpoint-every", str(options.checkpoint_every), *SCHEDULE]


def losses_of_one_device(options):
    """What the steps have to give, by one rank on this machine."""
    folder = os.path.join(options.folder, "reference")
    subprocess.run(["rm", "-rf", folder])
    subprocess.run([options.program, *training(options), "--steps", str(options.reference_steps), "--no-eval", "--run", folder], check=True,
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
            for out in [*options.seconds, *options.at_end]:
                cut = Cut(cluster, options, reference, device, out)
                row = cut.result()
                cut.clean_up()
                row["problems"] = "; ".join(cut.problems)
                rows.append(row)
                show(", ".join(f"{name} {row[name]}" for name in COLUMNS))
                problems += [f"{row['folders']}, {device}, {row['out']}: {problem}" for problem in cut.problems]
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
            ("reference-steps", int, 2000, "with whose losses they are compared"), ("program", str, "build/release/tessera", "to test"),
            ("model", str, "models/lenet5.cfg", ""), ("data", str, "runs/cables/digits", "made if it is not there"),
            ("grid", str, "2x2", "of the partition"), ("folder", str, "runs/cables", "for all that it writes"),
            ("out", str, "runs/cables.csv", "a row for each cut")]:
        parser.add_argument("--" + name, type=kind, default=default, help=f"{text} ({default})")
    parser.add_argument("--of", nargs="*", default=[], metavar="DEVICE", help="whose cables (all)")
    parser.add_argument("--seconds", nargs="*", type=float, default=[2, 8, 25], help="how long (2 8 25)")
    parser.add_argument("--at-end", nargs="*", default=AT_END, choices=AT_END, help="or once the last step is done: during its test, or when that has "
                        f"finished ({' '.join(AT_END)})")
    parser.add_argument("--folders", nargs="*", default=["own", "shared"], choices=["own", "shared"], help="of runs (own shared)")
    parser.add_argument("--launcher", nargs="*", default=[], metavar="WORD", help="further options of tessera run, such as --witness=10.77.0.254")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    options.hostfile = os.path.abspath(os.path.join(options.folder, "hosts"))
    return options


def main():
    options = parse_options()
    os.makedirs(options.folder, exist_ok=True)
    make_digits(options.data, 600, 4000)
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
