#!/usr/bin/python3
"""Where predictions of computing err: each layer of networks on one rank of this machine, as predicted and as measured.

    bench/prediction/layers.py                              the networks of the part 'tuned' of pairs.py; a quarter of an hour
    bench/prediction/layers.py --only 'random-0|lenet'      some of them
    bench/prediction/layers.py --models 'FILE.cfg...'       others, with the size and batch that they name

Each is probed, planned as one tile and measured, with one thread. Prints the ratio of predicted to measured time for each kind of layer,
and how far off each network is. Without root, since nothing is emulated.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from cfg_network import read_network  # noqa: E402

PASSES = ("forward_s", "backward_s", "weights_s")


def networks(arguments, folder):
    """(name, file, size or None, batch or None) of each."""
    if arguments.models:
        return [(pathlib.Path(path).stem, path, None, None) for path in arguments.models.split()]
    rows = subprocess.run([HERE / "pairs.py", "--part", "tuned", "--models", folder, "--tabs"], check=True, capture_output=True, text=True).stdout
    settings = dict.fromkeys(tuple(row.split("\t")[:3]) for row in rows.splitlines())
    return [(name, f"{folder}/{name}.cfg", None if size == "own" else size, batch) for name, size, batch in settings if re.search(arguments.only, name)]


def measured(arguments, folder, model, size, batch):
    """What `tessera time --layers --json` says, with predictions."""
    sized = ["--size", size] if size else []
    batched = ["--batch", batch] if batch else []
    profile, partition = f"{folder}/cluster.toml", f"{folder}/partition.toml"
    run = lambda *words: subprocess.run([arguments.program, *words], check=True, capture_output=True, text=True,
                                        env={**os.environ, "OMP_NUM_THREADS": "1", "TESSERA_VECTORS": arguments.vectors}).stdout
    run("probe", model, *sized, "--seconds", str(arguments.seconds), "--out", profile, "--force")
    run("plan", model, *sized, *batched, "--cluster", profile, "--grid", "1x1", "--save", partition)
    return json.loads(run("time", model, *sized, *batched, "--steps", "5", "--cluster", profile, "--partition", partition, "--layers", "--json"))


def kind_of(layer):
    options = layer.options
    size = f"{options.get('size')}x{options.get('size')}"
    if layer.kind == "maxpool":
        return f"[maxpool] {size}, stride {options.get('stride')}"
    if layer.kind != "convolutional":
        return f"[{layer.kind}]"
    stride = f", stride {options['stride']}" if options.get("stride", "1") != "1" else ""
    groups = ", groups" if int(options.get("groups", 1)) > 1 else ""
    normalized = ", normalised" if options.get("batch_normalize", "0") == "1" else ""
    return f"{size}{stride}{groups}, {options.get('activation')}{normalized}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names that this regular expression is found in")
    parser.add_argument("--models", help="model files instead")
    parser.add_argument("--seconds", type=int, default=6, help="of each probe; default: %(default)s")
    parser.add_argument("--vectors", default="generic", help="TESSERA_VECTORS; default: %(default)s")
    parser.add_argument("--program", default=ROOT / "build/release/tessera")
    arguments = parser.parse_args()
    kinds = collections.defaultdict(lambda: [0] * 7)
    errors = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, model, size, batch in networks(arguments, folder):
            found = measured(arguments, folder, model, size, batch)["layers"]
            for layer, times in zip(read_network(model, size).layers, found):
                sums = kinds[kind_of(layer)]
                sums[6] += 1
                for place, key in enumerate(PASSES):
                    sums[place] += times["mean"][key]
                    sums[3 + place] += times["predicted"][key]
            of = lambda which: sum(times[which][key] for times in found for key in PASSES)
            errors[name, batch] = of("predicted") / of("mean") - 1
            print(f"{name}, batch {batch or 'own'}: {1e3 * of('mean'):.1f} ms, predicted {100 * errors[name, batch]:+.1f} %", file=sys.stderr, flush=True)
    print("| kind of layer | layers | forward, ms | predicted | backward, ms | predicted | weights, ms | predicted |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for kind, sums in sorted(kinds.items(), key=lambda item: -sum(item[1][:3])):
        cells = [f"{1e3 * sums[place]:.2f} | {f'{sums[3 + place] / sums[place]:.2f} times' if sums[place] else ''}" for place in range(3)]
        print(f"| {kind} | {sums[6]} | " + " | ".join(cells) + " |")
    within = sum(abs(error) <= 0.1 for error in errors.values())
    print(f"\n{within} of {len(errors)} networks within a tenth; the furthest {100 * max(errors.values(), key=abs):+.1f} %")


if __name__ == "__main__":
    main()
