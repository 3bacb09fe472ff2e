#!/usr/bin/python3
"""Makes detectors/NAME.cfg and NAME.safetensors: a step of training of small detectors, from Debian's Darknet.

    cc -I/usr/lib/darknet/include darknet_step.c -L/usr/lib/darknet -ldarknet -lm \\
      -Wl,-rpath,/usr/lib/darknet -o /tmp/darknet_step
    /usr/bin/python3 make_detector_golden.py /tmp/darknet_step [NAME...]

Needs Debian's darknet and python3-numpy. See README.md.
"""

import array
import pathlib
import sys
import zlib

import numpy

from detector_step import Model, darknet_step, draw, net_lines, shipped_model
from safetensors_file import write_safetensors

FOLDER = pathlib.Path(__file__).parent / "detectors"
BATCH = 2
ROWS, COLS = 32, 64
# No value of a whole model comes nearer to where its slope changes, and no tensor differs by more of its largest element
# where Darknet takes the images in the other order: so rounding neither flips a slope nor adds up to much.
LEAST_MARGIN = 2e-6
MOST_ROUNDING = 6e-5
MOST_ATTEMPTS = 5000

NET = net_lines(BATCH, ROWS, COLS)


def conv(filters, size=3, stride=1, activation="leaky"):
    return f"[convolutional]\nfilters={filters}\nsize={size}\nstride={stride}\npad=1\nactivation={activation}\n"


POOL = "[maxpool]\nsize=2\nstride=2\n"


def region(classes, keys):
    return (
        NET + conv(8) + POOL + conv(12) + POOL + conv(16, stride=2) + POOL
        + conv(3 * (5 + classes), size=1, activation="linear")
        + f"[region]\nanchors=0.7,0.9, 2.1,1.2, 3.5,3.1\nnum=3\nclasses={classes}\ncoords=4\n{keys}"
    )


def yolo(classes):
    def head(mask):
        return (
            f"[yolo]\nmask={mask}\nanchors=9,12, 20,17, 30,41, 61,35\nnum=4\nclasses={classes}\n"
            "ignore_thresh=.5\ntruth_thresh=1\niou_normalizer=1\n"
        )

    filters = 2 * (5 + classes)
    return (
        NET + conv(8, stride=2) + conv(12, stride=2) + conv(16, stride=2)  # 2: a cell of 8 pixels
        # What a route reads, too, is read by filters of 3 x 3: this Darknet's 1 x 1 filters forget what the route sent.
        + conv(16, stride=2) + conv(12) + conv(filters, size=1, activation="linear") + head("2,3")  # 6
        + "[route]\nlayers=-4\n" + conv(8, size=1) + "[upsample]\nstride=2\n"  # 9
        + "[route]\nlayers=-1,2\n" + conv(12) + conv(filters, size=1, activation="linear")
        + head("0,1")  # 13
    )


def detection(side, boxes, classes, keys):
    outputs = side * side * (classes + 5 * boxes)
    return (
        NET + conv(6, stride=2) + POOL + conv(8, stride=2) + POOL
        + f"[connected]\noutput=24\nactivation=leaky\n[connected]\noutput={outputs}\nactivation=linear\n"
        + f"[detection]\nside={side}\nnum={boxes}\nclasses={classes}\ncoords=4\n{keys}"
    )


CASES = {
    "region_softmax": (region(4, "softmax=1\nbias_match=1\nrescore=1\nobject_scale=5\nthresh=.6\n"), 4),
    "region_logistic": (region(3, "thresh=.2\ncoord_scale=2\nnoobject_scale=.5\nclass_scale=1.5\n"), 3),
    "yolo": (yolo(3), 3),
    "detection": (
        detection(3, 2, 4, "sqrt=1\nrescore=1\nobject_scale=1\nnoobject_scale=.5\nclass_scale=1\ncoord_scale=5\n"), 4),
    "detection_softmax": (detection(2, 3, 3, "softmax=1\nsqrt=0\nrescore=0\ncoord_scale=2\n"), 3),
}
# Layer for layer what Debian ships, with a sixteenth of the filters (a thirty-second in the largest), on small images.
WHOLE = {
    "yolov1-tiny": (shipped_model("yolov1-tiny", BATCH, 128, 192, 16, classes=5, side=3), 5),
    "yolov2": (shipped_model("yolov2", BATCH, 64, 96, 32, classes=5), 5),
    "yolov2-tiny": (shipped_model("yolov2-tiny", BATCH, 64, 96, 16, classes=5), 5),
    "yolov3-tiny": (shipped_model("yolov3-tiny", BATCH, 64, 96, 16, classes=5), 5),
}


def rounding_of(program, model, tensors, boxes, expected):
    """How far Darknet's own gradients, and its loss, are from those of the images in the other order."""
    turned = [(model.batch - 1 - int(box[0]), *box[1:]) for box in boxes]
    other, _ = darknet_step(program, model, {**tensors, "input": tensors["input"][::-1]}, turned)
    return max(
        float(numpy.abs(other[name] - values).max() / (numpy.abs(values).max() or 1))
        for name, values in expected.items()
        if name.startswith("layers.") or name == "loss"
    )


def step_of(program, name, text, classes):
    """Of the first attempt that keeps to the bounds above, where they are asked for."""
    model = Model(text)
    for attempt in range(MOST_ATTEMPTS):
        random = numpy.random.RandomState((zlib.crc32(name.encode()) + attempt) % 2**32)
        tensors, boxes = draw(random, model, classes)
        expected, margin = darknet_step(program, model, tensors, boxes)
        if name not in WHOLE:
            return tensors, expected, f"margin {margin:.1e}"
        if margin >= LEAST_MARGIN:
            rounding = rounding_of(program, model, tensors, boxes, expected)
            if rounding <= MOST_ROUNDING:
                return tensors, expected, f"margin {margin:.1e}, rounding {rounding:.1e}, attempt {attempt}"
    sys.exit(f"{name}: none of {MOST_ATTEMPTS} attempts keeps to the bounds")


def make(program, name, text, classes):
    tensors, expected, how = step_of(program, name, text, classes)
    tensors.update({f"expected.{key}": value for key, value in expected.items()})
    (FOLDER / f"{name}.cfg").write_text(text)
    write_safetensors(
        FOLDER / f"{name}.safetensors",
        {key: (value.shape, array.array("f", value.astype(numpy.float32).tobytes())) for key, value in tensors.items()})
    print(f"{name}: cost {float(expected['loss'][0]):.6g}, {how}", flush=True)


if __name__ == "__main__":
    for case, (model_text, class_count) in {**CASES, **WHOLE}.items():
        if case in sys.argv[2:] or len(sys.argv) == 2:
            make(sys.argv[1], case, model_text, class_count)
