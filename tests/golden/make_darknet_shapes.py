#!/usr/bin/env python3
"""Writes darknet_shapes.txt and darknet_rates.txt: what Debian's Darknet (package `darknet`) makes of its own
files of classifiers and detectors, layer by layer, and of each learning-rate policy. Needs that package and a C compiler.

    python3 tests/golden/make_darknet_shapes.py
"""

import pathlib
import subprocess
import tempfile

PACKAGE = pathlib.Path("/usr/lib/darknet")
FILES = pathlib.Path("/usr/share/darknet/cfg")
HERE = pathlib.Path(__file__).parent
MODELS = """alexnet cifar darknet darknet19 darknet19_448 darknet53 darknet53_448 densenet201 extraction
resnet18 resnet34 resnet50 resnet101 resnet152 resnext50 resnext101-32x4d resnext152-32x4d strided tiny vgg-16
yolov1 yolov1-tiny yolov2 yolov2-voc yolov2-tiny yolov2-tiny-voc yolov3 yolov3-openimages yolov3-spp
yolov3-tiny yolov3-voc""".split()

# Prints every layer's kind, output shape and number of values, then the rate before each of the given steps.
PROBE = r"""
#include <stdio.h>
#include <stdlib.h>
#include "darknet.h"
network *parse_network_cfg(char *name);
char *get_layer_string(LAYER_TYPE type);
float get_current_rate(network *net);
int main(int count, char **arguments) {
  network *net = parse_network_cfg(arguments[1]);
  for (int i = 0; count == 2 && i < net->n; ++i) {
    const layer l = net->layers[i];
    printf("%d %s %d %d %d %d\n", i, get_layer_string(l.type), l.out_c, l.out_h, l.out_w, l.outputs);
  }
  for (int i = 2; i < count; ++i) {
    *net->seen = (size_t)atol(arguments[i]) * net->batch * net->subdivisions;
    printf("%s %.9g\n", arguments[i], get_current_rate(net));
  }
  return 0;
}
"""

# Steps are unsigned numbers there: a -1 among `steps` ends the list instead of counting at once, and sigmoid gives 0
# before `step`. Both are left out here.
POLICIES = [
    "policy=constant",
    "policy=constant burn_in=100 power=2",
    "policy=step step=70 scale=0.3",
    "policy=steps steps=50,50,200 scales=10,0.5,0.1",
    "policy=steps steps=60,100,300 scales=0.1,10,0.1 burn_in=80",
    "policy=exp gamma=0.99",
    "policy=poly power=4",
    "policy=poly power=1 burn_in=10",
    "policy=sigmoid gamma=0.05 step=1",
]
STEPS = [1, 2, 9, 10, 11, 49, 50, 51, 69, 70, 99, 100, 101, 119, 120, 140, 150, 199, 200, 299, 300, 350, 399, 400]


def run(probe, *arguments):
    result = subprocess.run([probe, *map(str, arguments)], check=True, capture_output=True, text=True)
    return result.stdout.splitlines()


def write_shapes(probe):
    lines = ["# file, then per layer: index kind channels rows columns values (0 0 0: Darknet keeps the number only)"]
    for model in MODELS:
        found = run(probe, FILES / f"{model}.cfg")
        lines.append(f"{model} {len(found)}")
        lines += found
    (HERE / "darknet_shapes.txt").write_text("\n".join(lines) + "\n")


def write_rates(probe, folder):
    lines = ["# keys of [net], of which learning_rate=0.1 max_batches=400, then per step: step rate"]
    for policy in POLICIES:
        cfg = folder / "rate.cfg"
        keys = ["batch=6", "subdivisions=2", "height=4", "width=4", "channels=1", "learning_rate=0.1", "max_batches=400"]
        cfg.write_text("\n".join(["[net]", *keys, *policy.split(), "[avgpool]", ""]))
        lines.append(policy)
        lines += run(probe, cfg, *STEPS)
    (HERE / "darknet_rates.txt").write_text("\n".join(lines) + "\n")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "probe.c").write_text(PROBE)
        probe = folder / "probe"
        link = [f"-L{PACKAGE}", f"-Wl,-rpath,{PACKAGE}", "-ldarknet"]
        subprocess.run(["cc", f"-I{PACKAGE / 'include'}", folder / "probe.c", "-o", probe, *link], check=True)
        write_shapes(probe)
        write_rates(probe, folder)


if __name__ == "__main__":
    main()
