#!/usr/bin/python3
"""Compares what OpenCV computes of files that `tessera export` has written with what this program computes.

    /usr/bin/python3 compare_onnx.py TESSERA FOLDER                        FOLDER: empty, for files
    /usr/bin/python3 compare_onnx.py TESSERA FOLDER RUN PICTURES           the same of a detector's run and pictures of its size

Layers by tests/golden and by `gradients`, classifiers and detectors by `predict`. Where Python's onnx is installed its checker
looks at each file, too. Exit code 77: OpenCV is not installed.
"""

import array
import json
import pathlib
import subprocess
import sys

try:
    import cv2
    import numpy
except ImportError as error:
    print(f"left out: {error}")
    sys.exit(77)
try:
    import onnx
except ImportError:
    onnx = None

ROOT = pathlib.Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "golden"))
from safetensors_file import read_safetensors, write_safetensors  # noqa: E402

TESSERA, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BOUND = 1e-4  # of the largest value; single precision on both sides
OVERLAP = 0.45  # of two boxes of a class that are one object: what `predict` takes
LEAST_SCORE = 0.02
ROWS, COLS = 12, 16

GOLDEN = """activation_elu activation_mish activation_ramp activation_swish activation_tanh avgpool_between connected_bn_after_vector
conv_4x4_pad_stride2 conv_depthwise frozen_bn_connected frozen_bn_conv_chain maxpool_2_1 maxpool_2_3_stride_beyond_size maxpool_4_3
network_lenet reorg_2_few_channels reorg_reverse route_grouped_several shortcut_alpha_beta shortcut_source_fewer_channels
shortcut_source_larger softmax_groups_of_map softmax_spatial softmax_temperature space_to_depth_3 upsample_scale""".split()
BATCH_STATISTICS = ["connected_bn_after_vector"]  # its golden outputs are of these: only whether it is read

random = numpy.random.RandomState(3)


def run(*command):
    done = subprocess.run([TESSERA, *map(str, command)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-800:]}{done.stderr[-800:]}")
    return done.stdout


def export(model, weights, name, *options):
    path = FOLDER / f"{name}.onnx"
    run("export", model, "--weights", weights, "--out", path, "--force", *options)
    if onnx:
        onnx.checker.check_model(str(path), full_check=True)
    return path


def outputs(path, values):
    network = cv2.dnn.readNetFromONNX(str(path))
    network.setInput(numpy.ascontiguousarray(values, numpy.float32))
    return network.forward(network.getUnconnectedOutLayersNames())


def expect_near(what, found, wanted, bound=BOUND):
    found, wanted = numpy.asarray(found, float), numpy.asarray(wanted, float)
    if found.size != wanted.size:
        sys.exit(f"{what}: {found.shape} values for {wanted.shape}")
    difference = abs(found.ravel() - wanted.ravel()).max() / abs(wanted).max()
    if not difference <= bound:
        sys.exit(f"{what}: values differ by {difference} of the largest")


def tensor(stored):
    return numpy.array(stored[1]).reshape(stored[0])


def restored_tensors(path, model):
    """The weights of what `convert` makes of an exported file: its model file is the one that it came from."""
    run("convert", path, "--out", FOLDER / "restored.cfg")
    if (FOLDER / "restored.cfg").read_text() != model.read_text():
        sys.exit(f"{path}: another model file comes back")
    return read_safetensors(FOLDER / "restored.safetensors")


def compare_golden():
    for name in GOLDEN:
        weights = ROOT / "golden" / f"{name}.safetensors"
        tensors = read_safetensors(weights)
        images = tensor(tensors["input"])
        path = export(weights.with_suffix(".cfg"), weights, name, "--batch", len(images))
        found = outputs(path, images)[0]
        restored = restored_tensors(path, weights.with_suffix(".cfg"))
        if name not in BATCH_STATISTICS:
            wanted = tensor(tensors["expected.output"])
            expect_near(name, found, wanted)
            write_safetensors(FOLDER / "again.safetensors", restored | {key: tensors[key] for key in ("input", "output_gradient")})
            run("gradients", FOLDER / "restored.cfg", "--in", FOLDER / "again.safetensors", "--out", FOLDER / "gradients.safetensors",
                "--batch-norm", "frozen")
            expect_near(f"{name}, converted back", tensor(read_safetensors(FOLDER / "gradients.safetensors")["output"]), wanted)


# All that golden files lack: activations, products, channels that are pooled, windows of several shapes; and preparation.
OTHER = """[net]
height=20
width=20
channels=3
[crop]
crop_height=12
crop_width=16
[convolutional]
batch_normalize=1
filters=8
size=3
pad=1
activation=hard_mish
[convolutional]
filters=8
size_x=3
size_y=1
padding_x=1
padding_y=0
activation=gelu
[convolutional]
filters=8
size=3
pad=1
dilation=2
groups=2
activation=relu6
[sam]
from=-2
[maxpool]
maxpool_depth=1
out_channels=3
[maxpool]
maxpool_depth=1
out_channels=1
[route]
layers=-1,-2,2
[convolutional]
filters=6
size=3
stride_x=2
stride_y=1
pad=1
activation=hard_swish
[shortcut]
from=-1,-1
activation=linear
[avgpool]
[convolutional]
filters=6
activation=hard_sigmoid
[scale_channels]
from=9
activation=relu
[convolutional]
filters=1
activation=logistic
[scale_channels]
from=12
scale_wh=1
[dropout]
[deconvolutional]
batch_normalize=1
filters=4
size=3
stride=2
padding=1
padding_end=0
activation=leaky
[channel_shuffle]
groups=2
[upsample]
mode=bilinear
[convolutional]
filters=6
size=5
stride=4
padding_end=1
activation=leaky
[connected]
batch_normalize=1
output=10
activation=mish
[connected]
output=5
activation=linear
[softmax]
temperature=2
[cost]
"""
OTHER_WEIGHTS = {1: (8, 3, 3, 3), 2: (8, 8, 1, 3), 3: (8, 4, 3, 3), 8: (6, 12, 3, 3), 11: (6, 6, 1, 1), 13: (1, 6, 1, 1), 16: (4, 6, 3, 3),
                 19: (6, 4, 5, 5), 20: (10, 576), 21: (5, 10)}
OTHER_NORMS = (1, 16, 20)


def compare_other_layers():
    model, weights = FOLDER / "other.cfg", FOLDER / "other.safetensors"
    model.write_text(OTHER)
    tensors = {}

    def store(name, shape, values):
        tensors[name] = (tuple(shape), array.array("f", values.ravel().tolist()))

    for layer, shape in OTHER_WEIGHTS.items():
        fan_in = numpy.prod(shape[1:])
        store(f"layers.{layer}.weight", shape, random.normal(0, 2 / fan_in**0.5, shape))
        store(f"layers.{layer}.bias", shape[:1], random.normal(0, 1, shape[0]))
        if layer in OTHER_NORMS:
            for kind, values in (("scale", random.uniform(0.5, 2, shape[0])), ("mean", random.normal(0, 1, shape[0])),
                                 ("variance", random.uniform(0.1, 2, shape[0]))):
                store(f"layers.{layer}.bn.{kind}", shape[:1], values)
    images = random.uniform(0, 1, (2, 3, ROWS, COLS)).astype(numpy.float32)
    store("input", images.shape, images * 2 - 1)
    store("output_gradient", (2, 5, 1, 1), numpy.zeros(10))
    write_safetensors(weights, tensors)
    run("gradients", model, "--in", weights, "--out", FOLDER / "gradients.safetensors", "--batch-norm", "frozen")
    wanted = tensor(read_safetensors(FOLDER / "gradients.safetensors")["output"])
    assert wanted.max() - wanted.min() > 0.1, "outputs tell something"
    for batch, count in ((2, 2), ("any", 1)):  # OpenCV 4.6 takes one image of any number
        for norm in ((), ("--keep-batch-norm",)):
            path = export(model, weights, "other", "--batch", batch, *norm)
            expect_near(f"other layers, batch {batch} {norm}", outputs(path, images[:count])[0], wanted[:count])
    logits = outputs(export(model, weights, "other", "--batch", 2, "--logits"), images)[0]
    shares = numpy.exp(logits) / numpy.exp(logits).sum(axis=1, keepdims=True)
    expect_near("logits", shares, wanted)


def compare_classifier():
    """Pictures of two colours, values with a mean and a deviation, and the same pictures as inputs for quantisation."""
    model = FOLDER / "colours.cfg"
    model.write_text("[net]\nheight=12\nwidth=12\nchannels=3\nbatch=4\nlearning_rate=0.01\n"
                     "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=3\npad=1\nactivation=relu\n"
                     "[connected]\noutput=2\nactivation=linear\n[softmax]\n")
    for part in ("train", "test"):
        for number, name in enumerate(("it's red", "blue")):
            (FOLDER / part / name).mkdir(parents=True)
            for i in range(4):
                picture = random.randint(0, 120, (12, 12, 3)).astype(numpy.uint8)
                picture[:, :, 2 - 2 * number] += 120
                cv2.imwrite(str(FOLDER / part / name / f"{i}.png"), picture)
    data = FOLDER / "set"
    data.mkdir()
    for part in ("train", "test"):
        (FOLDER / part).rename(data / part)
    run("train", model, "--data", data, "--run", FOLDER / "run", "--steps", 10, "--mean", ".5,.4,.3", "--std", ".2,.3,.25", "--monitor", "off")
    weights = FOLDER / "run" / "checkpoint.safetensors"
    path = export(model, weights, "colours", "--batch", "any", "--calibration", data, "--count", 6)
    inputs = numpy.load(path.with_suffix(".calibration.npy"))
    assert inputs.dtype == numpy.float32 and inputs.shape == (6, 3, 12, 12) and 0 <= inputs.min() < inputs.max() <= 1
    assert (FOLDER / "labels.txt").read_text() == "blue\nit's red\n"
    lines = run("predict", model, data / "test", "--weights", weights, "--json").splitlines()
    wanted = {}
    for line in map(json.loads, lines):
        picture = cv2.imread(line["picture"])[:, :, ::-1].transpose(2, 0, 1) / numpy.float32(255)
        found = outputs(path, picture[None])[0][0]
        expect_near(line["picture"], found, [p["value"] for p in sorted(line["predictions"], key=lambda p: p["class"])])
        wanted[numpy.float32(picture).tobytes()] = found
    assert len({image.tobytes() for image in inputs} & set(wanted)) == 6, "six of the eight pictures for testing"
    if onnx:
        described = {entry.key: entry.value for entry in onnx.load(str(path)).metadata_props}
        names = dict(enumerate(["blue", "it's red"]))
        assert eval(described["names"]) == names and described["imgsz"] == "[12, 12]", described


def overlap(one, others):
    """IoU of x, y, width, height (of the left top corner) with many."""
    corner = numpy.maximum(one[:2], others[:, :2])
    size = numpy.maximum(numpy.minimum(one[:2] + one[2:], others[:, :2] + others[:, 2:]) - corner, 0)
    common = size.prod(axis=1)
    return common / numpy.maximum(one[2:].prod() + others[:, 2:].prod(axis=1) - common, 1e-30)


def detections(output):
    """Boxes (left, top, width, height), scores and labels of [4 + C, N], the best first, suppressed class by class."""
    boxes = numpy.concatenate([output[:2] - output[2:4] / 2, output[2:4]]).T
    classes = len(output) - 4
    scores = output[4:].T.ravel()
    order = [i for i in numpy.argsort(-scores, kind="stable") if scores[i] >= LEAST_SCORE]
    kept = []
    for i in order:
        same = [j // classes for j in kept if j % classes == i % classes]
        if not same or overlap(boxes[i // classes], boxes[same]).max() <= OVERLAP:
            kept.append(i)
    return [(boxes[i // classes], scores[i], i % classes) for i in kept[:300]]


def expect_same_objects(what, found, wanted, rows, cols):
    if len(wanted) != len(found):
        sys.exit(f"{what}: {len(found)} objects for {len(wanted)}")
    for each in wanted:
        x, y, width, height = each["box"]
        box = numpy.array([(x - width / 2) * cols, (y - height / 2) * rows, width * cols, height * rows])
        near = [f for f in found if f[2] == each["class"] and abs(f[1] - each["score"]) < BOUND]
        if not near or overlap(box, numpy.array([f[0] for f in near])).max() < 0.99:
            sys.exit(f"{what}: {each} is not among {found}")


def yolo_like(text, keys, activation=None):
    text = text.replace("[yolo]\n", f"[yolo]\n{keys}\n")
    return text if activation is None else text.replace("activation=linear\n[yolo]", f"activation={activation}\n[yolo]")


def compare_detectors():
    folder = ROOT / "golden" / "detectors"
    yolo = (folder / "yolo.cfg").read_text()
    models = {"yolo": yolo, "scaled": yolo_like(yolo, "scale_x_y=1.2"),
              "new_coords": yolo_like(yolo, "scale_x_y=2\nnew_coords=1", "logistic"),
              **{name: (folder / f"{name}.cfg").read_text() for name in ("region_softmax", "region_logistic", "detection")}}
    for name, text in models.items():
        model = FOLDER / f"{name}.cfg"
        model.write_text(text)
        weights = folder / (f"{name}.safetensors" if name in ("region_softmax", "region_logistic", "detection") else "yolo.safetensors")
        rows, cols = tensor(read_safetensors(weights)["input"]).shape[2:]
        picture = random.randint(0, 255, (rows, cols, 3)).astype(numpy.uint8)
        cv2.imwrite(str(FOLDER / "seen.png"), picture)
        image = picture[None, :, :, ::-1].transpose(0, 3, 1, 2) / numpy.float32(255)
        (output,) = outputs(export(model, weights, name), image)
        wanted = json.loads(run("predict", model, FOLDER / "seen.png", "--weights", weights, "--threshold", LEAST_SCORE, "--json"))["objects"]
        assert wanted, "there is something to compare"
        expect_same_objects(name, detections(output[0]), wanted, rows, cols)
        restored_tensors(FOLDER / f"{name}.onnx", model)
        again = json.loads(run("predict", FOLDER / "seen.png", "--weights", FOLDER / "restored.safetensors", "--threshold", LEAST_SCORE, "--json"))
        assert [each["class"] for each in again["objects"]] == [each["class"] for each in wanted], "the same objects come back"
        if name == "yolo":
            raw = outputs(export(model, weights, "raw", "--raw", "--batch", "any"), image)
            assert [map.shape for map in raw] == [(1, 16, rows // 16, cols // 16), (1, 16, rows // 8, cols // 8)], "the maps before the heads"
            assert cv2.dnn.readNetFromONNX(str(FOLDER / "raw.onnx")).getUnconnectedOutLayersNames() == ("output0", "output1")


def compare_run(weights, pictures):
    path = FOLDER / "run.onnx"
    run("export", "--weights", weights, "--out", path)
    objects = 0
    for line in map(json.loads, run("predict", pictures, "--weights", weights, "--threshold", LEAST_SCORE, "--json").splitlines()):
        picture = cv2.imread(line["picture"])[:, :, ::-1]
        (output,) = outputs(path, picture.transpose(2, 0, 1)[None] / numpy.float32(255))
        expect_same_objects(line["picture"], detections(output[0]), line["objects"], *picture.shape[:2])
        objects += sum(each["score"] >= 0.25 for each in line["objects"])
    print(f"{objects} objects with a score of 0.25 or more")


if len(sys.argv) > 3:
    compare_run(*sys.argv[3:])
else:
    compare_golden()
    compare_other_layers()
    compare_classifier()
    compare_detectors()
