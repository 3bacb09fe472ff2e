#!/usr/bin/python3
"""Trains detectors for a few steps, exports them with `tessera convert`, and compares what this program, Debian's Darknet and
OpenCV compute with the exported .weights: outputs of heads, and detections after each one's own suppression.

    /usr/bin/python3 compare.py TESSERA [MODEL.cfg...]

Without models: small ones of each kind. Exit code 77: a program to compare with is not installed. See tests/README.md.
"""

import array
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

DARKNET, LIBRARY = "/usr/bin/darknet", "/usr/lib/darknet/libdarknet.so"

try:
    import cv2
    import numpy
except ImportError as error:
    print(f"left out: {error}")
    sys.exit(77)
if not (pathlib.Path(DARKNET).exists() and pathlib.Path(LIBRARY).exists()):
    print("left out: Debian's darknet is not installed")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "golden"))
from safetensors_file import read_safetensors, write_safetensors  # noqa: E402

BOUND = 1e-4  # single precision on both sides: of outputs relative to the largest, of scores, of boxes as far as they are larger
# Of scores and boxes beside OpenCV's, which adds 1e-6 to variances and not to their roots: with small ones that shows.
OPENCV_BOUND = 2e-3
OVERLAP = 0.45  # of two boxes of a class that are one object: what `predict` takes
STEPS = 12

NET = """[net]
batch=4
height=96
width=128
channels=3
learning_rate=0.002
adam=1
batch_norm_rate=0.3
"""
POOL = "[maxpool]\nsize=2\nstride=2\n"


def block(filters, size=3, stride=1, keys="batch_normalize=1\n", activation="leaky"):
    return f"[convolutional]\n{keys}filters={filters}\nsize={size}\nstride={stride}\npad=1\nactivation={activation}\n"


def yolo(mask, keys=""):
    return (
        block(2 * 8, 1, keys="", activation="linear")
        + f"[yolo]\nmask={mask}\nanchors=15,12, 30,28, 60,45, 90,70\nnum=4\nclasses=3\n{keys}"
    )


def region(keys):
    return (
        NET + block(8) + POOL + block(12) + POOL + block(16, stride=2) + POOL + block(16)
        + block(3 * 8, 1, keys="", activation="linear")
        + f"[region]\nanchors=1.1,0.9, 2.1,1.9, 3.5,3.1\nnum=3\nclasses=3\ncoords=4\n{keys}"
    )


SMALL = {
    "region": region("softmax=1\nbias_match=1\nrescore=1\n"),
    "region_logistic": region("softmax=0\n"),
    # A passthrough as in YOLOv2, whose reorg is Darknet's own order.
    "region_reorg": NET + block(8, stride=2) + block(8, stride=2) + block(12) + block(16, stride=2) + block(16)
    + "[route]\nlayers=2\n" + block(4, 1) + "[reorg]\nstride=2\n[route]\nlayers=-1,4\n" + block(16)
    + block(2 * 8, 1, keys="", activation="linear")
    + "[region]\nanchors=2.1,1.9, 3.5,3.1\nnum=2\nclasses=3\ncoords=4\nsoftmax=1\n",
    "detection": NET + block(8, stride=2) + POOL + block(12, stride=2) + POOL + block(16, stride=2)
    + f"[connected]\noutput={4 * 4 * (3 + 2 * 5)}\nactivation=linear\n"
    + "[detection]\nside=4\nnum=2\nclasses=3\ncoords=4\nsqrt=1\nrescore=1\ncoord_scale=5\nnoobject_scale=.5\n",
    "yolo": NET + block(8, stride=2) + block(12, stride=2) + block(8, 1) + block(12)
    + "[shortcut]\nfrom=-3\nactivation=linear\n"  # 4: stride 4
    + block(16, stride=2) + block(16, stride=2) + yolo("2,3")  # 8
    + "[route]\nlayers=-3\n" + block(8, 1) + "[upsample]\nstride=2\n[route]\nlayers=-1,5\n" + block(16) + yolo("0,1"),
    "yolo_same_pool": NET + block(8, stride=2) + block(12, stride=2) + POOL + block(16)
    + "[maxpool]\nsize=2\nstride=1\n" + block(16) + yolo("1,3"),
    # As YOLOv4-tiny: halves of channels, and a scale of x and y. Debian's Darknet has neither.
    "yolo_groups": NET + block(8, stride=2) + block(16, stride=2) + block(16)
    + "[route]\nlayers=-1\ngroups=2\ngroup_id=1\n" + block(8) + block(8) + "[route]\nlayers=-1,-2\n" + block(16, 1)
    + "[route]\nlayers=-6,-1\n" + POOL + block(16) + yolo("1,2", "scale_x_y=1.05\nbeta_nms=0.6\nnms_kind=greedynms\n"),
    # As YOLOv4-csp and v7: no exponential function, activated channels.
    "yolo_new_coords": NET + block(8, stride=2, activation="swish") + block(16, stride=2, activation="mish")
    + block(16, stride=2, activation="swish") + block(2 * 8, 1, keys="", activation="logistic")
    + "[yolo]\nmask=1,2\nanchors=15,12, 30,28, 60,45, 90,70\nnum=4\nclasses=3\nscale_x_y=2.0\nnew_coords=1\n",
}


def sections(text):
    """(name, keys) of each section; [net] is the first."""
    found = []
    for line in (line.split("#")[0].strip() for line in text.splitlines()):
        if line.startswith("["):
            found.append((line.strip("[]"), {}))
        elif "=" in line:
            key, value = (part.strip() for part in line.split("=", 1))
            found[-1][1].setdefault(key, value)
    return found


def heads_of(text):
    return [(i, *s) for i, s in enumerate(sections(text)[1:]) if s[0] in ("yolo", "region", "detection")]


def with_net(text, **keys):
    """The file with other values in [net]."""
    for key in keys:
        text = re.sub(rf"(?m)^{key}\s*=.*\n", "", text, count=1)
    return re.sub(r"\[net(work)?\]\s*\n", lambda m: m[0] + "".join(f"{k}={v}\n" for k, v in keys.items()), text, count=1)


def numbers(text):
    return [float(number) for number in text.split(",")]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-800:]}{done.stderr[-800:]}")
    return done.stdout


def make_pictures(folder, rows, cols, classes, count=8):
    """Rectangles of several colours on noise, as PNG of the network's size: nobody has to scale them."""
    random = numpy.random.RandomState(7)
    for part in ("images", "labels"):
        (folder / part).mkdir()
    for i in range(count):
        picture = random.randint(0, 120, (rows, cols, 3)).astype(numpy.uint8)
        lines = []
        for _ in range(3):
            label = random.randint(min(classes, 3))
            width, height = random.uniform(0.15, 0.5, 2)
            x, y = random.uniform(width / 2, 1 - width / 2), random.uniform(height / 2, 1 - height / 2)
            box = [int(v) for v in ((y - height / 2) * rows, (y + height / 2) * rows, (x - width / 2) * cols, (x + width / 2) * cols)]
            picture[box[0] : box[1], box[2] : box[3]] = numpy.roll([230, 90, 40], label)
            lines.append(f"{label} {x:.6f} {y:.6f} {width:.6f} {height:.6f}\n")
        cv2.imwrite(str(folder / "images" / f"{i}.png"), picture)
        (folder / "labels" / f"{i}.txt").write_text("".join(lines))
    paths = "".join(f"{folder}/images/{i}.png\n" for i in range(count))
    (folder / "list.txt").write_text(paths)
    (folder / "set.data").write_text(f"classes={classes}\ntrain={folder}/list.txt\nvalid={folder}/list.txt\n")


def planes(picture):
    """(3, H, W), red first, from 0 to 1."""
    image = cv2.imread(str(picture))[:, :, ::-1].transpose(2, 0, 1)
    return numpy.ascontiguousarray(image, numpy.float32) / numpy.float32(255)


class Ours:
    def __init__(self, program, folder, cfg, checkpoint):
        self.program, self.folder, self.cfg, self.checkpoint = program, folder, cfg, checkpoint

    def outputs(self, image, as_opencv=False):
        cfg = self.cfg
        tensors = {
            name: (shape, values)
            for name, (shape, values) in read_safetensors(self.checkpoint).items()
            if name.startswith("layers.")
        }
        import array

        def put(name, values):
            tensors[name] = (values.shape, array.array("f", values.astype(numpy.float32).tobytes()))

        if as_opencv:
            cfg = self.folder / "as_opencv.cfg"
            cfg.write_text(with_net(self.cfg.read_text(), batch_norm_epsilon=1e-6))
            for name in [name for name in tensors if name.endswith(".bn.variance")]:
                put(name, numpy.maximum(numpy.sqrt(numpy.array(tensors[name][1], float) + 1e-5) - 1e-6, 0) ** 2)
        put("input", image[None])
        put("boxes", numpy.full((1, 1, 5), -1))
        write_safetensors(self.folder / "in.safetensors", tensors)
        run(self.program, "gradients", cfg, "--in", self.folder / "in.safetensors", "--out", self.folder / "out.safetensors",
            "--batch-norm", "frozen")
        found = read_safetensors(self.folder / "out.safetensors")
        return {
            index: numpy.array(found[f"output.{index}"][1], numpy.float32).reshape(found[f"output.{index}"][0][1:])
            for index, _, _ in heads_of(self.cfg.read_text())
        }

    def detections(self, picture, weights, threshold):
        line = run(self.program, "predict", self.cfg, picture, "--weights", weights, "--threshold", threshold, "--json")
        return [(each["class"], each["score"], each["box"]) for each in json.loads(line)["objects"]]


class Box(ctypes.Structure):
    _fields_ = [(name, ctypes.c_float) for name in "xywh"]


class DarknetDetection(ctypes.Structure):
    _fields_ = [
        ("bbox", Box),
        ("classes", ctypes.c_int),
        ("prob", ctypes.POINTER(ctypes.c_float)),
        ("mask", ctypes.POINTER(ctypes.c_float)),
        ("objectness", ctypes.c_float),
        ("sort_class", ctypes.c_int),
    ]


class DarknetImage(ctypes.Structure):
    _fields_ = [("w", ctypes.c_int), ("h", ctypes.c_int), ("c", ctypes.c_int), ("data", ctypes.POINTER(ctypes.c_float))]


class Darknet:
    """What Debian's Darknet computes, through its library; it prints its layers to the standard error stream."""

    def __init__(self, cfg, weights, classes):
        self.library = ctypes.CDLL(LIBRARY)
        pointer, number, real = ctypes.c_void_p, ctypes.c_int, ctypes.c_float
        for name, result, arguments in (
            ("load_network", pointer, [ctypes.c_char_p, ctypes.c_char_p, number]),
            ("set_batch_network", None, [pointer, number]),
            ("network_predict", ctypes.POINTER(real), [pointer, pointer]),
            ("get_network_image_layer", DarknetImage, [pointer, number]),
            ("get_network_boxes", ctypes.POINTER(DarknetDetection),
             [pointer, number, number, real, real, pointer, number, ctypes.POINTER(number)]),
            ("do_nms_sort", None, [pointer, number, number, real]),
        ):
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        self.classes = classes
        sys.stderr.flush()
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        self.network = self.library.load_network(bytes(cfg), bytes(weights), 0)
        os.dup2(kept, 2)
        self.library.set_batch_network(self.network, 1)

    def outputs(self, image, heads):
        # Of the picture whose boxes are asked for; those of a [detection] are in pixels of it.
        self.size = (1, 1) if heads[0][1] == "detection" else image.shape[:0:-1]
        last = self.library.network_predict(self.network, image.ctypes.data)
        found = {}
        for index, name, keys in heads:
            if name == "detection":  # the last layer, a vector
                values = int(keys["side"]) ** 2 * (self.classes + 5 * int(keys["num"]))
                found[index] = numpy.ctypeslib.as_array(last, (values,)).reshape(-1, 1, 1).copy()
                continue
            layer = self.library.get_network_image_layer(self.network, index)
            shape = (layer.c, layer.h, layer.w)
            found[index] = numpy.ctypeslib.as_array(layer.data, (int(numpy.prod(shape)),)).reshape(shape).copy()
        return found

    def detections(self, threshold):
        """Of the image whose outputs were asked for last."""
        count = ctypes.c_int()
        cols, rows = self.size
        found = self.library.get_network_boxes(self.network, cols, rows, threshold, 0.5, None, 1, ctypes.byref(count))
        self.library.do_nms_sort(found, count, self.classes, OVERLAP)
        return [
            (label, found[i].prob[label], [getattr(found[i].bbox, name) for name in "xywh"])
            for i in range(count.value)
            for label in range(self.classes)
            if found[i].prob[label] > 0
        ]


def said_boxes(output, name, keys, image_shape):
    """Rows of a head's boxes as OpenCV gives them, by cell and anchor: x, y, width, height, objectness, scores. Of a [detection] the
    first four are its values as they are."""
    if name == "detection":
        cells, boxes, classes = int(keys["side"]) ** 2, int(keys["num"]), int(keys["classes"])
        shares, objectness, coordinates = numpy.split(output.ravel(), [cells * classes, cells * (classes + boxes)])
        scores = objectness.reshape(cells, boxes, 1) * shares.reshape(cells, 1, classes)
        return numpy.concatenate([coordinates.reshape(cells, boxes, 4), objectness.reshape(cells, boxes, 1), scores], axis=2).reshape(
            cells * boxes, -1)
    anchors = numpy.array(numbers(keys["anchors"])).reshape(-1, 2)
    if name == "yolo":
        anchors = anchors[[int(i) for i in numbers(keys["mask"])]] / [image_shape[2], image_shape[1]]
    _, rows, cols = output.shape
    if name == "region":
        anchors = anchors / [cols, rows]
    values = output.reshape(len(anchors), -1, rows, cols).transpose(2, 3, 0, 1).astype(float)
    y, x = numpy.mgrid[0:rows, 0:cols]
    size = 4 * values[..., 2:4] ** 2 if keys.get("new_coords") == "1" else numpy.exp(values[..., 2:4])
    boxes = numpy.concatenate(
        [
            ((values[..., 0] + x[..., None]) / cols)[..., None],
            ((values[..., 1] + y[..., None]) / rows)[..., None],
            size * anchors,
            values[..., 4:5],
            values[..., 4:5] * values[..., 5:],
        ],
        axis=-1,
    )
    return boxes.reshape(-1, boxes.shape[-1])


class OpenCv:
    def __init__(self, folder, text, weights):
        # Here `thresh` is the least score of a box that is given.
        text = re.sub(r"(?m)^thresh\s*=.*\n", "", text)
        text = re.sub(r"\[(yolo|region)\]\s*\n", lambda m: m[0] + "thresh=0\n", text)
        (folder / "opencv.cfg").write_text(text)
        self.network = cv2.dnn.readNetFromDarknet(str(folder / "opencv.cfg"), str(weights))
        self.network.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)

    def rows(self, image, heads):
        self.network.setInput(image[None])
        names = self.network.getUnconnectedOutLayersNames()
        found = {  # of a [region], the only one, the name has no number
            int(name.split("_")[-1]) if name.startswith("yolo_") else heads[0][0]: rows
            for name, rows in zip(names, self.network.forward(names))
        }
        return {index: found[index].reshape(-1, found[index].shape[-1]) for index, _, _ in heads}

    @staticmethod
    def detections(rows, threshold):
        boxes = numpy.concatenate(list(rows.values()))
        found = []
        for label in range(boxes.shape[1] - 5):
            scores = boxes[:, 5 + label]
            corners = numpy.concatenate([boxes[:, :2] - boxes[:, 2:4] / 2, boxes[:, 2:4]], axis=1)
            for i in cv2.dnn.NMSBoxes(corners.astype(float).tolist(), scores.astype(float).tolist(), threshold, OVERLAP):
                found.append((label, scores[i], boxes[i, :4]))
        return found


def difference(found, expected):
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert numpy.isfinite(found).all() and numpy.isfinite(expected).all()
    return float(numpy.abs(found.astype(float) - expected).max() / max(numpy.abs(expected).max(), 1e-30))


def choose_threshold(scores, most=40):
    """One that some boxes reach, in the middle of the widest gap nearby: rounding takes none across it."""
    ordered = numpy.sort(numpy.unique(scores.astype(numpy.float64)))[::-1]
    ordered = ordered[ordered < 0.99]  # those of a [detection] may be of any size
    few = ordered[: most + 1] if len(ordered) > most else ordered
    gaps = few[len(few) // 2 : -1] - few[len(few) // 2 + 1 :]
    at = len(few) // 2 + int(numpy.argmax(gaps / few[len(few) // 2 : -1]))
    return float((few[at] + few[at + 1]) / 2)


def detections_differ(ours, theirs, bound):
    """What is said by one alone, or None."""
    if len(ours) != len(theirs):
        return f"{len(ours)} boxes here, {len(theirs)} there"
    left = list(theirs)
    for label, score, box in ours:
        near = [
            other for other in left
            if other[0] == label and abs(other[1] - score) < bound
            and (numpy.abs(numpy.subtract(other[2], box)) < bound * numpy.maximum(1, numpy.abs(box))).all()
        ]
        if not near:
            return f"class {label} at {box} with {score} is found here alone"
        left.remove(near[0])
    return None


def compare(program, name, text, partial):
    """Returns what differs."""
    problems = []
    heads = heads_of(text)
    net = sections(text)[0][1]
    rows, cols = int(net["height"]), int(net["width"])
    classes = int(heads[0][2]["classes"])
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        make_pictures(folder, rows, cols, classes)
        cfg, weights = folder / "model.cfg", folder / "model.weights"
        cfg.write_text(text)
        large = rows * cols > 128 * 128
        training = with_net(text, batch=2, subdivisions=1, burn_in=0, learning_rate=1e-5, batch_norm_rate=1) if large else text
        (folder / "training.cfg").write_text(training)
        run(program, "train", folder / "training.cfg", "--data", folder / "set.data", "--run", folder / "run", "--no-eval", "--monitor",
            "off", "--progress", "none", "--steps", 2 if large else STEPS)
        checkpoint = folder / "run" / "checkpoint.safetensors"
        run(program, "convert", cfg, "--from", checkpoint, "--to", weights)
        one = with_net(text, batch=1, subdivisions=1)
        (folder / "one.cfg").write_text(one)
        picture = folder / "images" / "3.png"
        image = planes(picture)
        ours = Ours(program, folder, cfg, checkpoint)
        outputs = ours.outputs(image)

        def boxes_said(outputs):
            return {index: said_boxes(outputs[index], kind, keys, image.shape) for index, kind, keys in heads}

        threshold = choose_threshold(numpy.concatenate([each[:, 5:].ravel() for each in boxes_said(outputs).values()]))
        found = ours.detections(picture, weights, threshold)

        def check(what, value, good):
            print(f"{name:16} {what:44} {value}")
            if not good:
                problems.append(f"{name}: {what}: {value}")

        newer = re.search(r"(?m)^(groups|new_coords|scale_x_y)\s*=|activation\s*=\s*(mish|swish)", text)
        if not newer:
            darknet = Darknet(folder / "one.cfg", weights, classes)
            for index, output in darknet.outputs(image, heads).items():
                far = difference(outputs[index], output)
                check(f"head {index} and Darknet's, relative", f"{far:.1e}", far < BOUND)
            differs = detections_differ(found, darknet.detections(threshold), BOUND)
            check(f"{len(found)} detections and Darknet's", differs or "the same", differs is None)
        if heads[0][1] == "detection" or (heads[0][1] == "region" and heads[0][2].get("softmax") != "1"):
            return problems  # OpenCV knows a [region] with a softmax, and a [yolo]
        opencv = OpenCv(folder, one, weights)
        theirs = opencv.rows(image, heads)
        said = boxes_said(ours.outputs(image, as_opencv=True))
        for index, output in theirs.items():
            # Of a [region] it suppresses boxes by a threshold of its own, 0.4: their scores are 0.
            suppressed = (output == 0) if heads[0][1] == "region" else numpy.zeros(output.shape, bool)
            assert suppressed[:, :5].sum() == 0 and suppressed.mean() < 0.5
            # With new_coords it does not write the objectness, which scores are a product of.
            columns = [i for i in range(output.shape[1]) if i != 4 or heads[0][2].get("new_coords") != "1"]
            far = difference(numpy.where(suppressed, 0, said[index])[:, columns], output[:, columns])
            check(f"boxes of head {index} and OpenCV's, relative", f"{far:.1e}", far < BOUND)
        if heads[0][1] == "yolo":
            differs = detections_differ(found, opencv.detections(theirs, threshold), OPENCV_BOUND)
            check(f"{len(found)} detections and OpenCV's", differs or "the same", differs is None)
        if partial and not newer:
            problems += compare_partial(program, name, folder, cfg, weights, checkpoint, partial)
    return problems


def compare_partial(program, name, folder, cfg, weights, checkpoint, layers):
    """`darknet partial` and `convert --layers` cut out the same bytes, and training of a model with other heads starts with them."""
    theirs, ours = folder / f"theirs.conv.{layers}", folder / f"ours.conv.{layers}"
    run(DARKNET, "partial", folder / "one.cfg", weights, theirs, layers)
    run(program, "convert", cfg, "--from", checkpoint, "--to", ours, "--layers", layers)
    problems = []
    if theirs.read_bytes() != ours.read_bytes():
        problems.append(f"{name}: darknet partial and convert --layers {layers} differ")
    other = folder / "other.cfg"
    heads = re.sub(r"filters=16(\nsize=1\n.*\n.*\nactivation=linear)", r"filters=20\1", cfg.read_text())
    other.write_text(heads.replace("classes=3", "classes=5"))
    (folder / "other.data").write_text((folder / "set.data").read_text().replace("classes=3", "classes=5"))
    said = run(program, "train", other, "--data", folder / "other.data", "--run", folder / "fine", "--no-eval", "--monitor", "off",
               "--progress", "none", "--steps", 1, "--weights", theirs, "--freeze", "weights")
    if f"conv.{layers}: layers 0 to {layers - 1}\n" not in said:
        problems.append(f"{name}: training does not say that it takes {layers} layers: {said}")
    before, after = read_safetensors(checkpoint), read_safetensors(folder / "fine" / "checkpoint.safetensors")
    for tensor, (shape, values) in before.items():
        found = re.match(r"layers\.(\d+)\.", tensor)
        if found:
            same = shape == after[tensor][0] and numpy.allclose(values, after[tensor][1], rtol=1e-5, atol=1e-6)
            if same != (int(found[1]) < layers):
                problems.append(f"{name}: {tensor} is {'' if same else 'not '}that of before")
    print(f"{name:16} {f'the first {layers} layers and darknet partial':44} {'the same' if not problems else problems[0]}")
    return problems


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    cases = [(pathlib.Path(path).stem, pathlib.Path(path).read_text(), 0) for path in sys.argv[2:]]
    cases = cases or [(name, text, 6 if name == "yolo" else 0) for name, text in SMALL.items()]
    problems = [problem for name, text, partial in cases for problem in compare(sys.argv[1], name, text, partial)]
    for problem in problems:
        print(f"FAILED: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
