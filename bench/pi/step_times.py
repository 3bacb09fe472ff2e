#!/usr/bin/env python3
"""How long a training step takes on Raspberry Pis, predicted without any: the cycles of the inner loops that each layer runs, by the
models of pipeline.py, times how often they turn, and the bytes that go to memory over its bandwidth, whichever takes longer.

    step_times.py [--tessera PROGRAM] [--size HxW] [--batch N] [--out FILE.csv] [--loops FILE.json] [MODEL]

Prints a line for each layer and pass of each Raspberry Pi, then a step of each. The shapes of layers and their kernels are those of
`tessera plan MODEL --json`. Compiles the kernels for 64-bit ARM (half a minute; Debian's g++-aarch64-linux-gnu and llvm-14), or takes
the cycles of loops from the file of --loops, which it otherwise writes. README.md says what the model leaves out, and has its sources.
"""
import argparse
import csv
import json
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import pipeline

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLOAT = 4
BLOCK = 16          # channels of a block: kBlockChannels
CHUNK_TERMS = 192   # kChunkTerms
PIECE_PIXELS = 128  # kPiecePixels
PART_BYTES = 2**20  # most of a map that are computed from at once: CacheBlocks
CALL_CYCLES = 60    # assumed: to call a kernel, look up what it gets and fill the pipeline


@dataclass(frozen=True)
class Board:
    name: str
    processor: str
    hertz: float
    bytes_per_s: float  # read or written, all cores together
    shared_cache: int   # bytes
    own_cache: int = 0  # bytes of each core's cache of the second level, 0 if that is the shared one
    cores: int = 4

    @property
    def part_bytes(self):
        """Of a map that a direct convolution goes through again: cache_blocks_for()."""
        return min(self.own_cache or self.shared_cache // 2, PART_BYTES)


# Sources of clocks, caches and bandwidths: README.md.
BOARDS = [Board("Zero 2 W", "a53", 1.0e9, 2.6e9, 512 << 10),
          Board("3B", "a53", 1.2e9, 2.24e9, 512 << 10),
          Board("3B+", "a53", 1.4e9, 2.24e9, 512 << 10),
          Board("4B 1.5 GHz", "a72", 1.5e9, 5.1e9, 1 << 20),
          Board("4B 1.8 GHz", "a72", 1.8e9, 5.16e9, 1 << 20),
          Board("5", "a76", 2.4e9, 11.1e9, 2 << 20, 512 << 10)]


def parts(count, most):
    """Sizes of runs as equal as can be of at most so many: for_each_run()."""
    runs = -(-count // most)
    return [count // runs + (run < count % runs) for run in range(runs)] if runs else []


def blocks(channels):
    return -(-channels // BLOCK)


# ---- cycles of loops ----


def turn_cycles(processor, block):
    """Of one turn of a loop, or of instructions that run once in a turn of a larger one."""
    if processor == "a53":
        return pipeline.cycles_of([pipeline.parse(line) for line in block])
    text = "\n".join(line for line in block if not pipeline.BRANCH.match(line.split()[0]))
    turns = 50
    said = subprocess.run(["llvm-mca-14", "-mtriple=aarch64", "-mcpu=cortex-a72", f"-iterations={turns}"], input=text + "\n", capture_output=True,
                          text=True, check=True).stdout
    cycles = int(re.search(r"Total Cycles:\s+(\d+)", said).group(1)) / turns
    # llvm-mca takes an A76 for an A57, too. It has twice the vector units, and decodes four instructions a cycle.
    return cycles if processor == "a72" else max(cycles / 2, len(block) / 4)


def basic_blocks(lines):
    """{function: [block, ...]} of an assembly file."""
    found, function = {}, None
    for line in lines:
        line = line.split("//")[0].rstrip()
        if name := re.match(r"^(_Z\w+[\w.]*):", line):
            function = name.group(1)
            found[function] = [[]]
        elif function and re.match(r"^\.L\w+:", line):
            found[function].append([])
        elif function and re.match(r"^\s+[a-z]", line):
            found[function][-1].append(line)
            if pipeline.BRANCH.match(line.split()[0]):
                found[function].append([])
    return found


def demangled(names):
    said = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.split("\n")
    return {name: re.sub(r"(\d)l\b", r"\1", re.sub(r"\((\w+::)+Kind\)|tessera::engine::|generic::|cortex_a53::", "", clear)).split("(")[0].split(" ", 1)[-1]
            for name, clear in zip(names, said)}


# Transforms of Winograd's squares, a vector of channels of one tile a turn: their loops have more than one basic block. The large one
# computes; the largest that does not loads or stores what lies inside the map.
TRANSFORMS = ["transform_input<float, 4>", "transform_gradient<float, 4>", "transform_sums<float, 4>"]
WANTED = re.compile(r"(sum_pixels|outer_terms|product_pixels|product_weights|normalize|gradient_statistics|pooled_gradient_statistics|unpool|"
                    r"pool_windows|activate|transform_filters<float, 4|transform_filter_gradients<float, 4)")


def compiled_loops(folder):
    """{processor: {loop: cycles of a turn}}. Of several loops of a function, that with the most instructions; of moments both large ones."""
    compiler = "g++" if platform.machine() == "aarch64" else "aarch64-linux-gnu-g++"
    cycles = {}
    for version, processors in (("cortex_a53", ["a53"]), ("generic", ["a72", "a76"])):
        assembly = folder / f"{version}.s"
        subprocess.run([compiler, "-std=c++20", "-O3", "-DNDEBUG", "-fopenmp", "-Wno-psabi", f"-I{ROOT}", "-S", "-o", assembly,
                        ROOT / f"engine/ops/simd/block_kernels_{version}.cpp"], check=True)
        lines = assembly.read_text(encoding="utf-8").split("\n")
        of_function = basic_blocks(lines)
        names = demangled(list(of_function))
        largest = {}
        moments = sorted((block for function, block in pipeline.loops_in(lines) if names.get(function) == "moments_row<float>"), key=len)
        for number, block in enumerate(moments[-2:]):
            largest[f"moments_row<float> ({number + 1})"] = block
        for function, block in pipeline.loops_in(lines):
            name = names.get(function, "")
            if WANTED.match(name) and "double" not in name and len(block) > len(largest.get(name, [])):
                largest[name] = block
        for processor in processors:
            cycles[processor] = {name: turn_cycles(processor, block) for name, block in largest.items()}
            for function, found in of_function.items():
                if names[function] in TRANSFORMS:
                    arithmetic = lambda block: sum(line.split()[0].startswith("f") for line in block)
                    moving = max((block for block in found if not arithmetic(block)), key=len)
                    cycles[processor][names[function]] = sum(turn_cycles(processor, block) for block in (max(found, key=len), moving))
    return cycles


class Loops:
    """Cycles of what kernels do, on one core."""

    def __init__(self, processor, cycles):
        self.cycles = cycles
        self.in_order = processor == "a53"
        self.pixels = 6 if self.in_order else 5
        # A vector of sums is loaded and stored once a call: two cycles and one.
        self.vector = 3 if self.in_order else 2

    def turn(self, *patterns):
        for pattern in patterns:
            found = [cycles for name, cycles in self.cycles.items() if re.fullmatch(pattern, name)]
            if found:
                return max(found)
        raise KeyError(patterns[0])

    def _tile(self, in_order, portable, count, turns):
        name = in_order if self.in_order else portable
        return self.turn(re.escape(name)) * turns + self.vector * count * 4 + CALL_CYCLES

    def weighted_sum(self, pixels, terms, step):
        """Sums of BLOCK channels for neighbouring pixels; `step` is that between pixels, 0 if not BLOCK."""
        return sum(self._tile(f"sum_pixels_in_order<16, {count}, {step}>", f"sum_pixels<float, 16, {count}, {step}, 1>", count, terms)
                   for count in parts(pixels, self.pixels))

    def outer_sum(self, terms, pixels):
        return sum(self._tile(f"outer_terms_in_order<16, {count}>", f"outer_terms<float, 16, {count}, 1>", count, pixels)
                   for count in parts(terms, self.pixels))

    def pixel_product(self, pixels, channels):
        return sum(self._tile(f"product_pixels_in_order<{count}>", f"product_pixels<float, {count}, 1>", count, channels)
                   for count in parts(pixels, self.pixels))

    def weight_product(self, pixels):
        """Of 4 input channels."""
        return self._tile("product_weights_in_order", "product_weights<float, 1>", 4, pixels)

    def transform(self, which):
        return self.turn(re.escape(f"transform_{which}<float, 4>"))

    def row(self, what):
        """Cycles for a vector of four floats."""
        kind = r"<(float, )?2>"  # leaky: others that need no exponential are as fast
        at_once = {"normalize": "normalize", "statistics": "gradient_statistics", "gradient": "normalize_gradient"}.get(what)
        if what == "moments":  # two loops, four cells a turn
            return (self.turn(r"moments_row<float> \(1\)") + self.turn(r"moments_row<float> \(2\)")) / 4
        if what == "pool":
            return self.turn(r"pool_windows<float, 2, 2>") / 4  # a window of four cells a turn
        if self.in_order:
            return self.turn(at_once + "_at_once" + kind) / 4
        return self.turn(at_once + "_row" + kind, at_once + "_any<float>")


# ---- work of layers ----


@dataclass
class Work:
    """Of a pass of a layer, all cores together."""
    cycles: float = 0
    bytes: float = 0  # to or from memory

    def seconds(self, board):
        return max(self.cycles / board.cores / board.hertz, self.bytes / board.bytes_per_s)

    def __add__(self, other):
        return Work(self.cycles + other.cycles, self.bytes + other.bytes)


@dataclass(frozen=True)
class Convolution:
    channels: int
    filters: int
    rows: int
    cols: int
    size: int
    stride: int
    images: int = 1

    @property
    def flops(self):
        return 2 * self.images * self.rows * self.cols * self.filters * self.channels * self.size**2

    @property
    def in_bytes(self):
        return FLOAT * self.images * self.channels * self.rows * self.cols * self.stride**2

    @property
    def out_bytes(self):
        return FLOAT * self.images * self.filters * self.rows * self.cols

    @property
    def weight_bytes(self):
        return FLOAT * self.filters * self.channels * self.size**2


def direct(shape, loops, board, to_data=False):
    """Forward, or back to the data: of `outs` channels, each a sum over `terms`. Blocks of 16 outputs run over a part of the map after
    the other; terms are summed in chunks. Where a line of the map is no more than a part, parts and their sums stay in the cache."""
    ins, outs = (shape.filters, shape.channels) if to_data else (shape.channels, shape.filters)
    read, written = (shape.out_bytes, shape.in_bytes) if to_data else (shape.in_bytes, shape.out_bytes)
    stride = shape.stride if to_data else 1
    lines = shape.images * shape.rows * stride
    terms = ins * shape.size**2 / (stride * stride)  # on the way back only the taps that meet a cell
    step = BLOCK if ins >= BLOCK and (to_data or shape.stride == 1) else 0
    chunks = parts(round(terms), CHUNK_TERMS)
    line = sum(loops.weighted_sum(shape.cols * stride, chunk, step) for chunk in chunks)
    runs = blocks(outs)
    line_bytes = read / lines + (0 if board.own_cache else FLOAT * BLOCK * shape.cols * stride)
    at_once = 1 if board.own_cache else max(1, board.cores // runs)  # threads of fewer runs are on several parts
    map_parts = min(max(1, -(-round(lines * line_bytes) // (board.part_bytes // at_once))), lines)
    if line_bytes * at_once <= board.part_bytes:
        moved = read + 2 * written + shape.weight_bytes * (1 if shape.weight_bytes <= board.shared_cache / 4 else map_parts)
    else:
        moved = read * runs + written * (2 + 3 * (len(chunks) - 1)) + shape.weight_bytes * map_parts
    copied = 3 * read if to_data and shape.size > 1 else 0  # into a frame of zeros
    return Work(runs * lines * line, moved + copied)


def direct_weights(shape, loops, board):
    """Each block of 16 filters meets all of the input, a chunk of terms at a time, in pieces of pixels. Threads that share the cache read
    what the input has for a chunk side by side, each for a block of its own."""
    rows = max(1, PIECE_PIXELS // shape.cols)
    pieces = shape.images * sum(1 for _ in parts(shape.rows, rows) for _ in parts(shape.cols, PIECE_PIXELS))
    pixels = shape.images * shape.rows * shape.cols / pieces
    chunks = parts(shape.channels * shape.size**2, CHUNK_TERMS)
    runs = blocks(shape.filters)
    return Work(runs * pieces * sum(loops.outer_sum(chunk, pixels) for chunk in chunks),
                shape.in_bytes * (runs if board.own_cache else -(-runs // board.cores)) + shape.out_bytes * len(chunks) + 2 * shape.weight_bytes)


@dataclass(frozen=True)
class Blocking:
    """Of a pass by Winograd's kernels: winograd_blocking.cpp."""
    tiles: int        # of a batch
    own: int          # of those, that a thread multiplies at once
    held: bool        # by the cache, from the transform of the input to that of the sums
    filters_held: bool
    kept: bool        # filters are transformed once, or a part of them at a time for each batch
    by_inputs: bool = False


def winograd_blocking(ins, outs, tiles, moves, board):
    """`moves`: how often a batch moves all filters to or from memory."""
    filters = 36 * ins * outs * BLOCK * BLOCK  # all in elements; ins and outs in blocks
    of_block = 36 * BLOCK
    whole, kept = filters <= 5 << 16, filters <= 1 << 21
    batch = min(max(14, min((1 << 21) // (of_block * (ins + (outs if whole else 4))), 56 if whole else 224)), tiles)
    room = board.shared_cache / FLOAT * (1 if board.own_cache else 7 / 8)
    own = max(1, batch // board.cores) if whole else batch
    part_blocks, part_channels = (outs, ins * BLOCK) if whole else (min(outs, 4), min(ins * BLOCK, 64))
    if of_block * (part_blocks * part_channels + batch * (ins + part_blocks)) <= room:
        return Blocking(batch, own, True, whole or not kept, kept)
    if kept and not board.own_cache:
        for by_inputs in (False, True)[:2 if moves == 1 else 1]:
            held = outs if by_inputs else ins  # all blocks of these and one of the others stay in the cache
            in_cache = min(int((room - of_block * held * BLOCK) / (of_block * (held + 1) + 16 * BLOCK)), batch)
            if in_cache >= 7 and moves * filters / in_cache < 3 * of_block * (ins + outs) + moves * filters / batch:
                return Blocking(in_cache, in_cache, True, False, kept, by_inputs)
    return Blocking(batch, own, False, not kept and of_block * part_blocks * part_channels <= room, kept)


def winograd(shape, loops, board, passed):
    """F(4x4, 3x3): squares are transformed, multiplied position by position, and transformed back, in batches of tiles."""
    to_data = passed == "backward_data"
    to_weights = passed == "backward_weights"
    ins, outs = (shape.filters, shape.channels) if to_data else (shape.channels, shape.filters)
    read, written = (shape.out_bytes, shape.in_bytes) if to_data else (shape.in_bytes, shape.out_bytes)
    tiles = shape.images * -(-shape.rows // 4) * -(-shape.cols // 4)
    in_vectors, out_vectors = 4 * blocks(ins) * tiles, 4 * blocks(outs) * tiles
    filters = 36 * blocks(ins) * BLOCK * blocks(outs) * BLOCK
    moves = 2 if to_weights else 1
    blocking = winograd_blocking(blocks(ins), blocks(outs), tiles, moves, board)
    own = blocking.own
    batches = -(-tiles // blocking.tiles)
    filter_vectors = filters / 36 / 4 * (1 if blocking.kept else batches)
    products = blocks(ins) * loops.pixel_product(own, BLOCK) if blocking.by_inputs else loops.pixel_product(own, blocks(ins) * BLOCK)
    if to_weights:
        cycles = (loops.transform("input") * in_vectors + loops.transform("gradient") * out_vectors +
                  loops.transform("filter_gradients") * filter_vectors +
                  36 * blocks(outs) * blocks(ins) * 4 * tiles / own * loops.weight_product(own))
    else:
        cycles = (loops.transform("input") * in_vectors + loops.transform("sums") * out_vectors + loops.transform("filters") * filter_vectors +
                  36 * blocks(outs) * tiles / own * products)
    moved = read + (written if to_weights else 2 * written) + 2 * shape.weight_bytes * (1 if blocking.kept else batches)
    if not blocking.held:  # written, of which the cache first reads what was there, and read
        moved += 3 * FLOAT * 36 * tiles * BLOCK * (blocks(ins) + blocks(outs))
    if not blocking.filters_held:
        moved += FLOAT * filters * (2 + moves * batches if blocking.kept else 3 * batches)
    return Work(cycles, moved)


def convolution_work(shape, kernel, passed, loops, board):
    if kernel.startswith("winograd"):
        return winograd(shape, loops, board, passed)
    if passed == "backward_weights":
        return direct_weights(shape, loops, board)
    return direct(shape, loops, board, passed == "backward_data")


def rows_work(size, pooled, loops, normalizes):
    """(forward, backward) of what follows a convolution, over a map of so many bytes: statistics, normalisation, activation and the
    pool right behind. `pooled`: the share of its cells that stays. Of what is written, the cache first reads what was there."""
    vectors = size / 16
    out = size * (pooled or 1)
    forward = Work(vectors * loops.row("normalize"), size + 2 * out)
    if pooled:
        forward.cycles += vectors * loops.row("pool")
    backward = Work(vectors * loops.row("gradient"), size + out + size)  # x is read, its gradient takes its place
    if normalizes:
        forward += Work(vectors * loops.row("moments"), 0)  # from the cache: right behind the convolution
        backward += Work(vectors * loops.row("statistics"), size + out)
    return forward, backward


# ---- a network ----


@dataclass
class Layer:
    index: int
    shape: Convolution
    kernels: dict
    normalizes: bool
    pooled: float      # the share of cells that a pool right behind it leaves, or 0
    first: bool


def sections(path):
    """[(name, {option: value})] of a .cfg file."""
    found = []
    for line in pathlib.Path(path).read_text(encoding="utf-8").split("\n"):
        line = line.split("#")[0].strip()
        if line.startswith("["):
            found.append((line.strip("[]"), {}))
        elif "=" in line:
            key, _, value = line.partition("=")
            found[-1][1][key.strip()] = value.strip()
    return found


def layers_of(program, model, size, batch):
    said = subprocess.run([program, "plan", model, "--ranks", "1", "--batch", str(batch), "--json"] + (["--size", size] if size else []),
                          capture_output=True, text=True, check=True).stdout
    plan = json.loads(said)
    specs = sections(model)[1:]
    kernels = {of["layer"]: of for of in plan["kernels"]}
    found, skipped = [], []
    outputs = [layer["output"] for layer in plan["layers"]]
    for layer, (kind, options) in zip(plan["layers"], specs):
        index, (filters, rows, cols) = layer["index"], layer["output"]
        grouped = kind == "convolutional" and int(options.get("groups", 1)) > 1
        if kind != "convolutional" or grouped:
            fused = kind == "maxpool" and index > 0 and kernels.get(index - 1, {}).get("fused_pool")
            skipped += [] if fused else [f"{index} ({'grouped' if grouped else kind})"]
            continue
        before = plan["image"] if index == 0 else outputs[index - 1]
        fused = bool(kernels[index]["fused_pool"])
        pooled = outputs[index + 1][1] * outputs[index + 1][2] / (rows * cols) if fused else 0
        found.append(Layer(index, Convolution(before[0], filters, rows, cols, int(options.get("size", 1)), int(options.get("stride", 1)), plan["batch"]),
                           kernels[index], options.get("batch_normalize") == "1", pooled, index == 0))
    return plan["model"], f"{plan['image'][1]}x{plan['image'][2]}", plan["batch"], found, skipped


# VGG-16's convolutions: input and output channels, side of the map. Others have measured how long it takes on boards: README.md.
VGG16 = [(3, 64, 224), (64, 64, 224), (64, 128, 112), (128, 128, 112), (128, 256, 56), (256, 256, 56), (256, 256, 56), (256, 512, 28), (512, 512, 28),
         (512, 512, 28), (512, 512, 14), (512, 512, 14), (512, 512, 14)]
VGG16_CONNECTED = 123_633_664  # weights, each read once


def vgg16_seconds(board, cycles):
    """Of one image, forward, without pools and activations."""
    loops = Loops(board.processor, cycles[board.processor])
    shapes = [Convolution(channels, filters, side, side, 3, 1) for channels, filters, side in VGG16]
    return (sum(convolution_work(shape, "winograd4" if shape.channels > 3 else "direct", "forward", loops, board).seconds(board) for shape in shapes)
            + FLOAT * VGG16_CONNECTED / board.bytes_per_s)


PASSES = ("forward", "backward_data", "backward_weights")
COLUMNS = ["board", "model", "size", "batch", "layer", "shape", "stride", "pass", "kernel", "flops", "cycles", "bytes", "seconds"]


def rows_of_board(board, cycles, layers):
    """A row for each layer and pass, then one for the update of all weights, with gradients set to zero again."""
    loops = Loops(board.processor, cycles)
    weights = 0

    def row(layer, passed, kernel, work, flops=0):
        shape = layer.shape if layer else None
        words = f"{shape.channels}-{shape.filters} {shape.size}x{shape.size} {shape.rows}x{shape.cols}" if shape else ""
        return {"board": board.name, "layer": layer.index if layer else "", "pass": passed, "kernel": kernel, "flops": flops, "shape": words,
                "stride": shape.stride if shape else "", "cycles": round(work.cycles), "bytes": round(work.bytes),
                "seconds": f"{work.seconds(board):.6f}"}

    for layer in layers:
        for passed in PASSES:
            if passed == "backward_data" and layer.first:
                continue
            kernel = layer.kernels[passed]
            yield row(layer, passed, kernel, convolution_work(layer.shape, kernel, passed, loops, board), layer.shape.flops)
        forward, backward = rows_work(layer.shape.out_bytes, layer.pooled, loops, layer.normalizes)
        yield row(layer, "rows_forward", "", forward)
        yield row(layer, "rows_backward", "", backward)
        weights += layer.shape.weight_bytes
    yield row(None, "update", "", Work(0, 6 * weights))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="models/yolov2-early.cfg")
    parser.add_argument("--tessera", default=str(ROOT / "build/release/tessera"), help="the program; default: that of the release build")
    parser.add_argument("--size", help="of the input, HxW; default: the model's")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--out", help="write all rows to this CSV")
    parser.add_argument("--loops", help="cycles of loops: read from this JSON file if it is there, else written to it")
    options = parser.parse_args()
    model, size, batch, layers, skipped = layers_of(options.tessera, options.model, options.size, options.batch)
    known = pathlib.Path(options.loops) if options.loops else None
    if known and known.exists():
        cycles = json.loads(known.read_text(encoding="utf-8"))
    else:
        with tempfile.TemporaryDirectory() as folder:
            cycles = compiled_loops(pathlib.Path(folder))
        if known:
            known.write_text(json.dumps(cycles, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    rows = [{"model": pathlib.Path(model).stem, "size": size, "batch": batch, **row} for board in BOARDS
            for row in rows_of_board(board, cycles[board.processor], layers)]
    if options.out:
        with open(options.out, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    for row in rows:
        rate = f"{row['flops'] / float(row['seconds']) / 1e9:6.1f} GFLOP/s" if row["flops"] else ""
        print(f"{row['board']:12} {row['layer']!s:3} {row['shape']:24} {row['pass']:17} {row['kernel']:10} {float(row['seconds']):9.4f} s  {rate}")
    for board in BOARDS:
        print(f"{board.name}: a step takes {sum(float(row['seconds']) for row in rows if row['board'] == board.name):.2f} s")
    if skipped:
        print(f"not counted: layers {', '.join(skipped)}", file=sys.stderr)


if __name__ == "__main__":
    main()
