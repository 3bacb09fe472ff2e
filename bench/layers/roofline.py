"""The least time that arithmetic and memory allow a layer: the roofline of Williams, Waterman and Patterson (2009), pass by pass.

Either all of a pass's multiplications and additions at the rate of a large matrix product, or all that it has to read and write, once, at the rate
of a copy of as many bytes, whichever takes longer. Nobody can do better but by using what a cache still holds from before.
"""

import math
import time

import torch

SCALAR_BYTES = 4
PRODUCT_SIDE = 1024
COPY_BYTES = [1 << power for power in range(16, 29)]


def fastest(run, tries=7):
    """Seconds of a call: of several that together take about 10 ms, the fastest of some."""
    run()
    begin = time.perf_counter()
    run()
    calls = max(1, round(0.01 / max(time.perf_counter() - begin, 1e-7)))
    seconds = []
    for _ in range(tries):
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        seconds.append((time.perf_counter() - begin) / calls)
    return min(seconds)


class Roofline:
    """That of the machine, one thread."""

    def __init__(self):
        a, b, product = (torch.rand(PRODUCT_SIDE, PRODUCT_SIDE) for _ in range(3))
        self.flops_per_s = 2 * PRODUCT_SIDE**3 / fastest(lambda: torch.mm(a, b, out=product))
        self.bytes_per_s = []
        for count in COPY_BYTES:
            source, to = (torch.rand(count // SCALAR_BYTES // 2) for _ in range(2))
            self.bytes_per_s.append((count, count / fastest(lambda source=source, to=to: to.copy_(source))))

    def __str__(self):
        largest = self.bytes_per_s[-1][1]
        return f"roofline: a matrix product {self.flops_per_s / 1e9:.0f} GFLOP/s, a copy in memory {largest / 1e9:.1f} GB/s"

    def seconds(self, flops, values):
        count = SCALAR_BYTES * values
        rate = next((rate for size, rate in self.bytes_per_s if size >= count), self.bytes_per_s[-1][1])
        return max(flops / self.flops_per_s, count / rate)

    def of_layer(self, layer, batch):
        """Seconds forward and back."""
        inputs = batch * sum(map(math.prod, layer.inputs))
        output = batch * math.prod(layer.output)
        weights = math.prod(layer.parameters()["weight"]) if "weight" in layer.parameters() else 0
        # Each cell of a convolution's output, or a transposed one's input, meets the weights of its channel.
        cells, channels = (output, layer.output[0]) if layer.kind == "convolutional" else (inputs, layer.inputs[0][0])
        flops = 2 * cells * weights / channels
        # Where a layer normalises, what it normalises is kept for the way back.
        kept = output if layer.normalized else 0
        forward = self.seconds(flops, inputs + weights + kept + output)
        to_inputs = inputs if layer.input_gradient else 0
        read_again = inputs if weights else 0
        passes = (1 if weights else 0) + (1 if layer.input_gradient else 0)
        backward = self.seconds(passes * flops, output + kept + read_again + to_inputs + 2 * weights)
        return forward, backward
