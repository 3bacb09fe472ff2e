#!/usr/bin/env python3
"""Writes the example cluster profiles of hostfiles/ from the predictions of step_times.py: step_times.csv, which has the convolutions of
YOLOv2's early layers, and loops.json, the cycles of inner loops, both beside this script.

    profiles.py            writes them
    profiles.py --check    changes nothing; names the files that are not up to date, and exits with 1 if there are any
"""
import argparse
import csv
import json
import pathlib
import re
import sys
from dataclasses import dataclass, replace

from step_times import BOARDS, PASSES, Convolution, Loops, convolution_work, rows_work, vgg16_seconds

HERE = pathlib.Path(__file__).resolve().parent
HOSTFILES = HERE.parent.parent / "hostfiles"
MIB = 2**20
SBC_BENCH = "https://github.com/ThomasKaiser/sbc-bench/blob/master/Results.md"
# Seconds that ncnn takes for VGG-16 on boards (README.md), by the processor of those that are taken to be as far from predictions, which are what
# loops and memory would allow: nobody has measured an A76.
NCNN_VGG16 = {"a53": ("3B+", 1.90), "a72": ("4B 1.5 GHz", 0.874), "a76": ("4B 1.5 GHz", 0.874)}
SMALLER = (1, 2, 4)  # sides of maps, divided: tiles are smaller than maps


@dataclass(frozen=True)
class Device:
    board: str        # of step_times.py
    key: str          # of the table of power
    memory_mib: int
    memory_source: str
    interface: float  # bytes per second
    interface_source: str
    message_s: float
    bandwidth_source: str


PI3 = Device("3B", "pi3b", 860, "909 MiB of a 3B+ (https://github.com/geerlingguy/sbc-reviews/issues/16) less about 50 MiB for the system, assumed",
             11.8e6, "94.4 Mbit/s, iperf (https://www.jeffgeerling.com/blogs/jeff-geerling/getting-gigabit-networking)", 5e-5,
             f"a 3B+, which has the same memory, copies 1.12 GB/s by tinymembench: as much is read and written\n# ({SBC_BENCH})")
PI4 = Device("4B 1.5 GHz", "pi4b", 3700, "4 GB less what firmware and system take, assumed", 117.6e6,
             "941 Mbit/s, iperf3 (https://mpr-projects.com/index.php/2023/12/15/rpi-nas-part-3-network-connections/)", 2.5e-5,
             f"copies 2.55 GB/s by tinymembench: as much is read and written\n# ({SBC_BENCH}).\n"
             "# STREAM's triad on one core: 4.84 GB/s (https://www.sci-pi.org.uk/bench/stream.html)")
PI5 = Device("5", "pi5", 7700, "8 GB less what firmware and system take, assumed", 117.6e6,
             "as a Pi 4's: Gigabit Ethernet, assumed", 1.5e-5,
             "8 GB board copies 5.56 GB/s by tinymembench: as much is read and written (https://github.com/raspberrypi/firmware/issues/1876)")
PI5_1GB = replace(PI5, memory_mib=PI3.memory_mib, memory_source="1 GB less what firmware and system take, assumed as much as of a Pi 3's",
                  bandwidth_source="an 8 GB board copies 5.56 GB/s by tinymembench, assumed of this one too: as much is read and written\n"
                                   "# (https://github.com/raspberrypi/firmware/issues/1876)")
ZERO = Device("Zero 2 W", "cm0", 400, "512 MB less what firmware and system take, assumed", 3.75e6, "30 Mbit/s of its wireless network, assumed", 6e-5,
              f"copies 1.3 GB/s by tinymembench: as much is read and written ({SBC_BENCH})")
# A profile has no radio channel that all share: the rates are those of four that send at the same time by an access point.
ZERO_OF_FOUR = replace(ZERO, interface=ZERO.interface / 8,
                       interface_source="an eighth of the 30 Mbit/s of one wireless channel, assumed: four devices send at the same time, and the access\n"
                                        "# point sends each byte once more")

# Name: what is said of it, devices.
CLUSTERS = {
    "pi3x2": ("Two Raspberry Pi 3 B on Fast Ethernet.", [(PI3, 2)]),
    "pi3x4": ("Four Raspberry Pi 3 B on Fast Ethernet.", [(PI3, 4)]),
    "pi3x6": ("Six Raspberry Pi 3 B on Fast Ethernet.", [(PI3, 6)]),
    "pi4x4": ("Four Raspberry Pi 4 B (1.5 GHz, 4 GB) on Gigabit Ethernet.", [(PI4, 4)]),
    "pi5x4": ("Four Raspberry Pi 5 (8 GB) on Gigabit Ethernet.", [(PI5, 4)]),
    "pi5x4-1gb": ("Four Raspberry Pi 5 (1 GB) on Gigabit Ethernet.", [(PI5_1GB, 4)]),
    "pi5x6-1gb": ("Six Raspberry Pi 5 (1 GB) on Gigabit Ethernet.", [(PI5_1GB, 6)]),
    "zero2x4": ("Four Raspberry Pi Zero 2 W on one wireless network (2.4 GHz, 802.11n).", [(ZERO_OF_FOUR, 4)]),
    "mixed": ("Two Raspberry Pi 3 B (pi1, pi2), a Pi 4 B (pi3) and a Pi Zero 2 W (pi4) on its wireless network.", [(PI3, 2), (PI4, 1), (ZERO, 1)]),
}
# Of a core for four cells, forward and for a slope: a polynomial of degree 6 with what it takes to reduce its argument, and a division.
EXPONENTIAL_CYCLES = (60, 70)
LATENCY_S, WIRELESS_S = 0.00015, 0.002


def distinct_convolutions(path):
    """{(Convolution, kernel)} of the layers of a CSV, in order."""
    found = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["pass"] in PASSES:
                channels, filters, size, rows, cols = map(int, re.fullmatch(r"(\d+)-(\d+) (\d+)x\3 (\d+)x(\d+)", row["shape"]).groups())
                shape = Convolution(channels, filters, rows, cols, size, int(row["stride"]))
                found[shape, "direct"] = True
                if row["kernel"] != "direct":
                    found[shape, row["kernel"]] = True
    return list(found)


def rate(value):
    return f"{float(f'{value:.3g}'):.0f}"


def times_slower(processor, cycles):
    name, seconds = NCNN_VGG16[processor]
    return round(seconds / vgg16_seconds(next(board for board in BOARDS if board.name == name), cycles), 1)


def device_text(device, names, convolutions, cycles):
    board = next(board for board in BOARDS if board.name == device.board)
    loops = Loops(board.processor, cycles[board.processor])
    slower = times_slower(board.processor, cycles)
    points, totals = [], {}
    for shape, kernel in convolutions:
        for smaller in SMALLER:
            tile = Convolution(shape.channels, shape.filters, shape.rows // smaller, shape.cols // smaller, shape.size, shape.stride)
            seconds = {passed: slower * convolution_work(tile, kernel, passed, loops, board).seconds(board) for passed in PASSES}
            points.append(f'  {{ kernel = "{kernel}", channels = {tile.channels}, filters = {tile.filters}, size = {tile.size}, stride = {tile.stride}, '
                          f"groups = 1, rows = {tile.rows}, cols = {tile.cols}, " +
                          ", ".join(f"{passed}_s = {value:.4g}" for passed, value in seconds.items()) + " },")
            if smaller == 1:
                flops, total = totals.get(kernel, (0, 0))
                totals[kernel] = (flops + 3 * shape.flops, total + sum(seconds.values()))
    speeds = {kernel: flops / seconds for kernel, (flops, seconds) in totals.items()}
    size = 16 * MIB
    after = {normalizes: [size / work.seconds(board) for work in rows_work(size, 0, loops, normalizes)] for normalizes in (True, False)}
    bus = board.bytes_per_s
    pair = lambda rates: f"{{ forward = {rate(rates[0])}, backward = {rate(rates[1])} }}"
    model = f"bench/pi/step_times.py: {board.processor.upper().replace('A', 'Cortex-A')} at {board.hertz / 1e9:.1f} GHz, times {slower} (bench/pi/README.md)"
    return "\n".join([
        "[[device]]",
        f"names = [{', '.join(json.dumps(name) for name in names)}]",
        f"memory_bytes = {device.memory_mib * MIB}  # {device.memory_source}",
        "program_bytes = 24117248  # measured on x86-64 (partitioner/cost/cluster_profile.h)",
        f"message_s = {device.message_s}  # assumed",
        f"# {device.bandwidth_source}",
        f"memory_bytes_per_s = {rate(bus)}",
        f"copied_bytes_per_s = {rate(bus / 2)}  # each byte is read and written",
        f"# {device.interface_source}",
        f"send_bytes_per_s = {rate(device.interface)}",
        f"receive_bytes_per_s = {rate(device.interface)}",
        f"# {model}, operations of all `convolutions` below over their seconds",
        f"direct_flops_per_s = {rate(speeds['direct'])}",
        f"winograd_flops_per_s = {rate(speeds['winograd4'])}",
        "# by the bandwidth: gradient, value and momentum are read, two of them written, and the gradient set to zero again",
        f"updated_weights_per_s = {rate(bus / 24)}",
        "# bench/pi/step_times.py: cycles or bytes, whichever takes longer",
        f"normalize_bytes_per_s = {pair(after[True])}",
        f"activate_bytes_per_s = {pair(after[False])}",
        f"# {' and '.join(map(str, EXPONENTIAL_CYCLES))} cycles for four cells, assumed",
        f"exponential_bytes_per_s = {pair([16 * board.cores * board.hertz / cycles for cycles in EXPONENTIAL_CYCLES])}",
        "# by the bandwidth: inputs and outputs once, on the way back also what is added to",
        f"pool_bytes_per_s = {pair((bus, bus / 2))}",
        f"elementwise_bytes_per_s = {pair((bus, bus / 2))}",
        f"# {model}",
        "convolutions = [", *points, "]",
        f'board = "{device.key}"', ""])


def cluster_text(name, convolutions, cycles):
    title, devices = CLUSTERS[name]
    kinds = [device for device, count in devices for _ in range(count)]
    names = [f"pi{i + 1}" for i in range(len(kinds))]
    latency, link = LATENCY_S, min(device.interface for device in kinds if device is not ZERO)
    latency_source, link_source = "assumed", "that of the interfaces below"
    if ZERO_OF_FOUR in kinds:
        latency, link = 2 * WIRELESS_S, ZERO.interface / 2
        latency_source, link_source = "assumed: to the access point and from there", "of a pair while no other device sends: each byte is sent twice"
    text = [f"# {title}",
            "# Predicted, measured on no Raspberry Pi: bench/pi/profiles.py writes this file from models and published figures, whose",
            "# sources stand beside the numbers. `tessera probe` measures yours. Device i, counted from 0, runs rank i; rates are per second,",
            "# times end in _s. A pair of bytes_per_s is forward and backward. `convolutions` are seconds for one image of rows x cols outputs:",
            "# those of models/yolov2-early.cfg for 608x608, whole and for tiles of a half and a quarter of the sides.",
            "", "[link]", f"latency_s = {latency}  # {latency_source}", f"bytes_per_s = {rate(link)}  # {link_source}", ""]
    first = 0
    for device, count in devices:
        text.append(device_text(device, names[first:first + count], convolutions, cycles))
        first += count
    if ZERO in kinds:
        zero = names[kinds.index(ZERO)]
        for start, end in [(name, zero) for name in names if name != zero] + [(zero, name) for name in names if name != zero]:
            text += ["[[between]]  # assumed", f'from = "{start}"', f'to = "{end}"', f"latency_s = {WIRELESS_S}", f"bytes_per_s = {rate(ZERO.interface)}", ""]
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a profile is not up to date")
    options = parser.parse_args()
    cycles = json.loads((HERE / "loops.json").read_text(encoding="utf-8"))
    convolutions = distinct_convolutions(HERE / "step_times.csv")
    outdated = []
    for name in CLUSTERS:
        path = HOSTFILES / f"{name}.cluster.toml"
        text = cluster_text(name, convolutions, cycles)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            outdated.append(path.name)
            if not options.check:
                path.write_text(text, encoding="utf-8")
    if options.check and outdated:
        sys.exit("not up to date, run bench/pi/profiles.py: " + ", ".join(outdated))


if __name__ == "__main__":
    main()
