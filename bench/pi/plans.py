#!/usr/bin/env python3
"""What `tessera plan models/yolov2-early.cfg` says of a step on the example clusters of hostfiles/, 608x608: for each of them, on other
links, for more images, and as a grid of tiles; and what it says of YOLOv4-tiny, 416x416, on six devices of a kind. A minute.

    plans.py [--tessera PROGRAM]            writes plans.csv and its origin beside this script
    plans.py [--tessera PROGRAM] --check    changes nothing; exits with 1 if plans.csv says something else

bench/tables.py makes the tables of README.md of it.
"""
import argparse
import csv
import datetime
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CSV = HERE / "plans.csv"
MODEL = ROOT / "models/yolov2-early.cfg"
MIB = 2**20
COLUMNS = ["table", "cluster", "ranks", "batch", "interface_bytes_per_s", "options", "step_s", "one_rank_s", "limited_by", "groups", "cut", "sent_mib",
           "gradients_mib"]
CLUSTERS = [("pi3x6", 1), ("pi4x4", 1), ("pi5x4", 1), ("pi3x2", 2), ("pi3x4", 4), ("pi3x6", 6), ("pi4x4", 4), ("pi5x4", 4),
            ("pi5x4-1gb", 4), ("pi5x6-1gb", 6), ("zero2x4", 4), ("mixed", 4)]
RATES = [1180000, 5900000, 11800000, 35400000, 118000000]  # bytes per second, of six Pi 3
BATCHES = [1, 2, 4, 8]
AUTO = ("--partition", "auto")
GRID = ("--grid", "2x3")
# The layers of YOLOv4-tiny for 416x416, in steps of 64 images, 8 at a time.
DETECTOR = ROOT / "models/yolov4-tiny-clothes.cfg"
DETECTOR_KEYS = {"batch": 64, "subdivisions": 8, "width": 416, "height": 416}
SIX_OF = ["pi3x6", "pi4x4", "pi5x4", "pi5x6-1gb"]


class Planner:
    """Asks the program, each question once."""

    def __init__(self, program, folder):
        self.program, self.folder, self.known = program, folder, {}

    def profile(self, cluster, rate):
        """That of hostfiles/, or a copy whose links and interfaces carry `rate` bytes per second."""
        path = ROOT / f"hostfiles/{cluster}.cluster.toml"
        if rate is None:
            return path
        text = re.sub(r"^((?:send_|receive_)?bytes_per_s = )\d+", rf"\g<1>{rate}", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        copy = self.folder / f"{cluster}-{rate}.cluster.toml"
        copy.write_text(text, encoding="utf-8")
        return copy

    def plan(self, cluster, ranks, batch=1, rate=None, options=AUTO):
        """(what --json says, how the network is cut)"""
        return self.ask((MODEL, "--batch", str(batch)), self.profile(cluster, rate), ranks, options)

    def ask(self, model, profile, ranks, options=AUTO):
        question = (model, profile, ranks, options)
        if question not in self.known:
            command = [self.program, "plan", *model, "--ranks", str(ranks), "--cluster", profile, *options]
            said = [subprocess.run([*command, *more], capture_output=True, text=True, check=True).stdout for more in ([], ["--json"])]
            cut = re.search(r"^cut +(.*(?:\n +.*)*)", said[0], re.MULTILINE).group(1)
            self.known[question] = json.loads(said[1]), " ".join(cut.split())
        return self.known[question]

    def detector(self, cluster):
        """A step of YOLOv4-tiny on six such devices."""
        model, profile = self.folder / "detector.cfg", self.folder / f"{cluster}-six.cluster.toml"
        text = DETECTOR.read_text(encoding="utf-8")
        for key, value in DETECTOR_KEYS.items():
            text = re.sub(rf"^{key}=\d+", f"{key}={value}", text, count=1, flags=re.MULTILINE)
        model.write_text(text, encoding="utf-8")
        names = ", ".join(f'"pi{number}"' for number in range(1, 7))
        text = (ROOT / f"hostfiles/{cluster}.cluster.toml").read_text(encoding="utf-8")
        profile.write_text(re.sub(r"^names = .*", f"names = [{names}]", text, flags=re.MULTILINE), encoding="utf-8")
        (six, cut), (one, _) = (self.ask((model,), profile, ranks) for ranks in (6, 1))
        return self.as_row(six, one, cut, table="detector", cluster=re.sub(r"x\d", "x6", cluster), ranks=6, batch=DETECTOR_KEYS["batch"],
                           interface_bytes_per_s="", options=" ".join(AUTO))

    def row(self, table, cluster, ranks, batch=1, rate=None, options=AUTO):
        plan, cut = self.plan(cluster, ranks, batch, rate, options)
        one, _ = self.plan(cluster, 1, batch, rate)
        return self.as_row(plan, one, cut, table=table, cluster=cluster, ranks=ranks, batch=batch, interface_bytes_per_s=rate or "",
                           options=" ".join(options))

    @staticmethod
    def as_row(plan, one, cut, **asked):
        prediction = plan["prediction"]
        gradients = sum(rank["sent"] for rank in plan["gradient_sum"])
        return {**asked, "step_s": f"{prediction['step_s']:.3g}", "one_rank_s": f"{one['prediction']['step_s']:.3g}", "limited_by": prediction["limited_by"],
                "groups": prediction["groups"], "cut": cut, "sent_mib": f"{prediction['bytes'] / MIB:.3g}", "gradients_mib": f"{gradients / MIB:.3g}"}


def rows(planner):
    for cluster, ranks in CLUSTERS:
        yield planner.row("clusters", cluster, ranks)
    for rate in RATES:
        yield planner.row("links", "pi3x6", 6, rate=rate)
    for batch in BATCHES:
        yield planner.row("batches", "pi3x6", 6, batch=batch)
    yield planner.row("grid", "pi3x6", 6)
    yield planner.row("grid", "pi3x6", 6, options=GRID)
    for cluster in SIX_OF:
        yield planner.detector(cluster)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", default=str(ROOT / "build/release/tessera"), help="the program; default: that of the release build")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if plans.csv says something else")
    options = parser.parse_args()
    text = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows(Planner(options.tessera, pathlib.Path(folder))))
    if options.check:
        known = CSV.read_text(encoding="utf-8").splitlines() if CSV.exists() else []
        found = text.getvalue().splitlines()
        if known != found:
            changed = [f"- {line}" for line in known if line not in found] + [f"+ {line}" for line in found if line not in known]
            sys.exit("\n".join(["plans.csv is not what the planner says, run bench/pi/plans.py and bench/tables.py:", *changed]))
        return
    CSV.write_text(text.getvalue(), encoding="utf-8")
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    CSV.with_suffix(".origin").write_text(f"machine: planned with the predicted profiles of hostfiles/, measured on no Raspberry Pi\n"
                                          f"commit: recorded with {commit or 'none'}\ndate: {datetime.date.today()}\n"
                                          "command: bench/pi/plans.py\n", encoding="utf-8")


if __name__ == "__main__":
    main()
