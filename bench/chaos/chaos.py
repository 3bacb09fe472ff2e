#!/usr/bin/env python3
"""Faults on an emulated cluster while `tessera run` trains on it; see README.md beside it.

Writes a row per fault, and one about the run as a whole; exits with 1 where anything is not as it has to be: a run
that does not end, a step that is missing or there twice, a loss that differs from that of the undisturbed run,
something that is left behind, or, where the run is watched, something that grows.
"""

import argparse
import contextlib
import csv
import os
import random
import signal
import subprocess
import sys
import time

from faults import KINDS, ON_ONE_MACHINE, Faults
from machines import Cluster, OneMachine, busy_loops, show, wait_for
from progress import Progress
from runs import STOPPED, Run, compare, events_in, left_in_the_end, make_digits, say_all
from watch import COLUMNS, Watch

NOTICED_S = 5  # every fault that ends ranks is noticed by then


def run_called(name, cluster, options):
    where = ["-n", str(options.local)] if options.local else ["--hostfile", options.hostfile, "--remote-shell", cluster.ssh]
    return Run(cluster, options, name, where,
               ["train", options.model, "--data", options.data, "--batch", str(options.batch), "--steps", str(options.steps),
                "--checkpoint-every", str(options.checkpoint_every), "--reader", "0", "--no-eval", "--progress", "none",
                "--grid", options.grid, *options.more])


def watch_of(cluster, options, name):
    """The watch over a run; nothing is sampled where that is not asked for."""
    if not (options.watch or options.soak):
        return Watch(cluster, options.program, 0, 0)

    def write(sample):
        with open(options.watch, "a", newline="") as file:
            csv.DictWriter(file, ["run", *COLUMNS], lineterminator="\n").writerow({"run": name, **sample})

    return Watch(cluster, options.program, options.local or options.devices, options.watch_every, write if options.watch else None)


def after_watch(options, name, run, watch, **more):
    """Tells and writes what came out of a watch; what is wrong, a list."""
    if not watch.every:
        return []
    show(f"{name}, watched: {watch}")
    where = f"{options.local} ranks on one machine" if options.local else f"{options.devices} devices"
    if options.soak:
        add_row(options.soak, {"run": name, "where": where, "load": options.load, "steps": run.last_step(),
                               "faults": 0, "false_alarms": "", "false_alarms_per_hour": "", **more, **watch.row()})
    return [f"{name}: {problem}" for problem in watch.problems()]


def wait_while_it_trains(run, seconds, patience):
    """Until the run has ended or the time is over; what is wrong, empty where nothing is."""
    end = time.monotonic() + seconds
    step, moved = 0, time.monotonic()
    while time.monotonic() < end and not run.ended():
        now_at = run.last_step()
        if now_at != step:
            step, moved = now_at, time.monotonic()
        elif time.monotonic() > moved + patience:
            return f"no step for {patience} s"
        time.sleep(0.05)
    return ""


def undisturbed_run(cluster, options):
    """A run without faults, and what is wrong with it: a list that is empty where nothing is. If there are to be no faults at all,
    it is stopped when the time is over."""
    run = run_called("whole", cluster, options)
    with watch_of(cluster, options, "undisturbed") as watch:
        run.begin()
        wait_for(lambda: run.last_step() >= 3 or run.ended(), 120)
        begun, begun_step = time.monotonic(), run.last_step()
        with busy_loops(cluster, options.load):
            stall = wait_while_it_trains(run, options.longest if options.every else 60 * options.minutes, options.patience)
        elapsed = time.monotonic() - begun
        is_stopped = not options.every and not run.ended()
        if is_stopped:
            run.stop()
    run.whole_step_s = elapsed / max(run.last_step() - begun_step, 1)
    alarms = len(events_in(run.folder, "fault"))  # there was none
    show(f"undisturbed: {run.last_step()} steps in {elapsed:.1f} s, code {run.supervisor.poll()}, "
         f"{alarms} false alarms, {3600 * alarms / elapsed:.2f} an hour")
    wrong, _ = compare(run.steps(), run.steps(), 0)
    problems = [what for what in (stall, wrong) if what]
    if run.supervisor.poll() != (STOPPED if is_stopped else 0):
        problems.append(f"exit code {run.supervisor.poll()}")
    problems = [f"undisturbed: {what}" for what in problems + left_in_the_end(cluster)]
    return run, problems + after_watch(options, "undisturbed", run, watch, false_alarms=alarms,
                                       false_alarms_per_hour=round(3600 * alarms / elapsed, 2))


def disturbed(cluster, run, options, chance, rows, end_of_faults):
    """Trains with faults; what went wrong, or an empty text."""
    faults = Faults(cluster, options, chance)
    run.begin()
    if not wait_for(lambda: run.last_step() >= 3 or run.ended(), 120):
        return "no step within 120 s"
    begun, begun_step = time.monotonic(), run.last_step()
    pending = []  # (time, action)
    step, moved = 0, time.monotonic()
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
            row, step_before, recoveries = waiting
            moves = run.last_step() > step_before
            if moves and row["seconds"] == "":
                row["seconds"] = round(now - row["at"], 2)
            if run.recoveries() > recoveries:
                row["seconds"] = round(now - row["at"], 2)
                waiting = None
            elif moves and (now > row["at"] + NOTICED_S or run.ended()):
                waiting = None
        if run.ended() and not pending:
            break
        if step != run.last_step() or pending:  # back, too, where all go on from a checkpoint
            step, moved = run.last_step(), now
        elif now > moved + options.patience:
            return f"no step for {options.patience} s" + (f" after: {rows[-1]['fault']} on {rows[-1]['where']}" if rows else "")
        if next_fault <= now < end_of_faults and len(rows) < options.faults and not (waiting or pending or run.ended()):
            kind = chance.choices(kinds, shares)[0]
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
    run = run_called(f"faulty-{options.seed}", cluster, options)
    if options.clock and not options.local:
        run.clock = {"LD_PRELOAD": options.clock, "FAKETIME_TIMESTAMP_FILE": options.clock_file, "FAKETIME_NO_CACHE": "1",
                     "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    before = len(rows)
    with watch_of(cluster, options, f"seed {options.seed}") as watch, Progress(cluster) as progress:
        problem = disturbed(cluster, run, options, chance, rows, end_of_faults)
    made = len(rows) - before
    growths = after_watch(options, f"seed {options.seed}", run, watch, faults=made)
    growths += progress.halves()
    if problem:
        return [problem] + growths
    problems = [] if run.state() == ("finished", 0) else [f"the run's folder says {run.state()}"]
    if run.supervisor.poll() != 0 and options.local:
        problems.append(f"exit code {run.supervisor.poll()}")
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
    problems += left_in_the_end(cluster) + growths
    if not problems:
        subprocess.run(["rm", "-rf", *run.folders.values()])
    return problems


def write_rows(path, rows, columns):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def add_row(path, row):
    """To a file that may have rows of earlier calls."""
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, row, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow(row)


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
            ("every", float, 15, "mean seconds between faults; 0: none, one undisturbed run alone"),
            ("minutes", float, 25, "begin runs and make faults for so long; without faults, train for so long"),
            ("steps", int, 2000, "steps of each run"),
            ("seed", int, 1, "of the first run; the next has the next number"), ("batch", int, 8, "pictures of a step"),
            ("patience", float, 90, "seconds without a step that are a failure"),
            ("longest", float, 7200, "seconds for a run"), ("tolerance", float, 0.02, "of losses, relative"),
            ("checkpoint-every", int, 50, "steps"), ("program", str, "build/release/tessera", "to test"),
            ("model", str, "models/lenet5.cfg", ""), ("data", str, "runs/chaos/digits", "made if it is not there"),
            ("grid", str, "2x3", "of the partition"), ("folder", str, "runs/chaos", "for all that it writes"),
            ("clock", str, "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "libfaketime, for clocks that jump"),
            ("out", str, "runs/chaos.csv", "a row for each fault"), ("runs", str, "", "file for a row for each run"),
            ("disk", int, 64, "MiB of the disk with the run's folder, which takes as much of its device's memory; 1000 steps need half of one"),
            ("load", int, 0, "busy loops on each core while an undisturbed run trains; with --every 0"),
            ("watch", str, "", "file for samples of what the run holds; what grows is a problem"),
            ("watch-every", float, 5, "seconds from sample to sample"),
            ("soak", str, "", "file to which a row for each run that is watched is added")]:
        parser.add_argument("--" + name, type=kind, default=default, help=f"{text} ({default})")
    parser.add_argument("--own", action="store_true", help="each device has a folder of its own in the run's place, not one with the others")
    parser.add_argument("--kinds", nargs="*", default=[], choices=sorted(KINDS), metavar="FAULT", help=", ".join(KINDS))
    parser.add_argument("more", nargs="*", help="further options of tessera train")
    options = parser.parse_args()
    if options.load and options.every:
        parser.error("--load is for a run without faults: add --every 0")
    if options.local and options.own:
        parser.error("--own is for devices: leave out --local")
    if options.watch_every <= 0:
        parser.error("--watch-every: expected more than 0")
    if options.local:
        options.kinds = [kind for kind in options.kinds or KINDS if kind in ON_ONE_MACHINE]
    options.program = os.path.abspath(options.program)
    options.clock = options.clock if os.path.exists(options.clock) else ""
    options.clock_file = os.path.abspath(os.path.join(options.folder, "clock"))
    options.hostfile = os.path.abspath(os.path.join(options.folder, "hosts"))
    return options


def faulty_runs(cluster, options, whole):
    """Run after run until the time is over or there were enough faults; what is wrong, a list."""
    problems, rows, runs = [], [], []
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
    return problems


def main():
    options = parse_options()
    os.makedirs(options.folder, exist_ok=True)
    make_digits(options.data, 600, 20)
    cluster = OneMachine(options) if options.local else Cluster(options)
    with open(options.hostfile, "w") as file:
        file.write("".join(device + "\n" for device in cluster.devices))
    if options.watch:
        write_rows(options.watch, [], ["run", *COLUMNS])
    problems = []
    try:
        whole, problems = undisturbed_run(cluster, options)
        if options.every:
            problems = problems or faulty_runs(cluster, options, whole)
    finally:
        if not problems or not os.environ.get("KEEP_CLUSTER"):
            cluster.down()
    return say_all(problems)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started ends with it, as on SIGINT
    sys.exit(main())
