#!/usr/bin/python3
"""Times a training step of a model file in Debian's Darknet: random pictures, forward, backward, update, as it trains itself.

    bench/peers/darknet_step.py MODEL.cfg --size 416x416 --batch 1 --steps 1 [--json]

Needs Debian's darknet package. A network that ends in no [softmax], [cost] or head is given a [cost], half the squared error against zeros;
heads are given one box in each picture.
The package is built without OpenMP and for any x86-64, so it runs on one thread with narrow vectors. Darknet takes sections and
activations that it does not know for others: models with those are refused.
"""

import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import random
import re
import resource
import statistics
import tempfile
import time

LIBRARY = "/usr/lib/darknet/libdarknet.so"
SECTIONS = {"net", "convolutional", "maxpool", "avgpool", "connected", "dropout", "softmax", "cost", "shortcut", "route",
            "upsample", "reorg", "crop", "yolo", "region"}
# Numbers that a head takes for each image: boxes of x, y, width, height and class, of which an x of 0 ends the list.
HEADS = {"yolo": 90 * 5, "region": 30 * 5}
BOX = (0.5, 0.5, 0.25, 0.375, 0)
ACTIVATIONS = {"linear", "relu", "leaky", "elu", "logistic", "tanh", "ramp"}


class Matrix(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_int), ("cols", ctypes.c_int), ("vals", ctypes.POINTER(ctypes.POINTER(ctypes.c_float)))]


class Data(ctypes.Structure):
    """`data` of darknet.h: pictures X and what they are to become y, a row each."""

    _fields_ = [("w", ctypes.c_int), ("h", ctypes.c_int), ("X", Matrix), ("y", Matrix), ("shallow", ctypes.c_int),
                ("num_boxes", ctypes.c_void_p), ("boxes", ctypes.c_void_p)]


@contextlib.contextmanager
def quiet():
    """Darknet prints its layers, and what heads find, to both standard streams."""
    kept = {stream: os.dup(stream) for stream in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in kept:
        os.dup2(nowhere, stream)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        for stream, copy in kept.items():
            os.dup2(copy, stream)
            os.close(copy)
        os.close(nowhere)


def model_text(path, size, batch):
    """The model file for another size and batch, with a loss at its end."""
    text = re.sub(r"[#;].*", "", pathlib.Path(path).read_text(encoding="utf-8"))
    kinds = re.findall(r"^\s*\[(\w+)\]", text, re.MULTILINE)
    activations = set(re.findall(r"^\s*activation\s*=\s*(\w+)", text, re.MULTILINE))
    unknown = [f"[{kind}]" for kind in kinds if kind not in SECTIONS] + sorted(activations - ACTIVATIONS)
    if unknown:
        raise SystemExit(f"Debian's Darknet does not have {', '.join(unknown)}")
    if size and "crop" in kinds:
        raise SystemExit("a model with [crop] has its own size")
    changed = {"batch": batch, "subdivisions": 1}
    if size:
        changed["height"], changed["width"] = size.split("x")
    for key, value in changed.items():
        text, count = re.subn(rf"^\s*{key}\s*=.*$", f"{key}={value}", text, count=1, flags=re.MULTILINE)
        if count == 0:
            text = text.replace("[net]", f"[net]\n{key}={value}", 1)
    if kinds[-1] not in ("softmax", "cost", *HEADS):
        text += "\n[cost]\ntype=sse\n"
    return text, kinds[-1]


def load_library():
    library = ctypes.CDLL(LIBRARY)
    library.parse_network_cfg.restype = ctypes.c_void_p
    library.parse_network_cfg.argtypes = [ctypes.c_char_p]
    for name in ("network_inputs", "network_outputs"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    library.train_network.restype = ctypes.c_float
    library.train_network.argtypes = [ctypes.c_void_p, Data]
    return library


def matrix(rows, cols, value):
    """Borrowed by Darknet: the arrays must outlive it, so they are returned too."""
    arrays = [(ctypes.c_float * cols)(*(value(column) for column in range(cols))) for _ in range(rows)]
    pointers = (ctypes.POINTER(ctypes.c_float) * rows)(*(ctypes.cast(a, ctypes.POINTER(ctypes.c_float)) for a in arrays))
    return Matrix(rows, cols, pointers), (arrays, pointers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--size")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    library = load_library()
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
        text, last = model_text(arguments.model, arguments.size, arguments.batch)
        file.write(text)
        file.flush()
        with quiet():
            network = library.parse_network_cfg(file.name.encode())
    random.seed(1)
    pictures, pictures_kept = matrix(arguments.batch, library.network_inputs(network), lambda _: random.random())
    if last in HEADS:
        truths, truths_kept = matrix(arguments.batch, HEADS[last], lambda column: float(BOX[column] if column < len(BOX) else 0))
    else:
        truths, truths_kept = matrix(arguments.batch, library.network_outputs(network), lambda column: float(column == 0))
    step_data = Data(X=pictures, y=truths)
    seconds = []
    with quiet():
        for _ in range(arguments.steps):
            start = time.perf_counter()
            library.train_network(network, step_data)
            seconds.append(time.perf_counter() - start)
    del pictures_kept, truths_kept
    result = {
        "step_s": {"median": statistics.median(seconds), "min": min(seconds), "max": max(seconds)},
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    if arguments.json:
        print(json.dumps(result))
    else:
        print(f"step {1e3 * result['step_s']['median']:.1f} ms, peak {result['peak_bytes'] / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
