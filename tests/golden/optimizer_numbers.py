#!/usr/bin/env python3
"""Prints the numbers of tests/engine/train/optimizer_test.cpp, from the formulas of PyTorch's documentation of SGD and Adam
(both with weight_decay, which is added to the gradient) and AdamW (whose weights shrink by it), written out for single
numbers."""
import math

GRADIENTS = [[0.5, -1.0], [0.25, 0.75], [-2.0, 0.125]]
START = [1.0, -2.0]
RATE, MOMENTUM, DECAY = 0.1, 0.9, 0.01
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


def momentum(value, gradients, decay):
    velocity = 0.0
    for gradient in gradients:
        velocity = MOMENTUM * velocity + (gradient + decay * value)
        value = value - RATE * velocity
    return value


def adam(value, gradients, decay):
    mean = square = 0.0
    for step, gradient in enumerate(gradients, 1):
        gradient = gradient + decay * value
        mean = BETA1 * mean + (1 - BETA1) * gradient
        square = BETA2 * square + (1 - BETA2) * gradient**2
        corrected_mean = mean / (1 - BETA1**step)
        corrected_square = square / (1 - BETA2**step)
        value = value - RATE * corrected_mean / (math.sqrt(corrected_square) + EPSILON)
    return value


def adamw(value, gradients, decay):
    mean = square = 0.0
    for step, gradient in enumerate(gradients, 1):
        value = value - RATE * decay * value
        mean = BETA1 * mean + (1 - BETA1) * gradient
        square = BETA2 * square + (1 - BETA2) * gradient**2
        corrected_mean = mean / (1 - BETA1**step)
        corrected_square = square / (1 - BETA2**step)
        value = value - RATE * corrected_mean / (math.sqrt(corrected_square) + EPSILON)
    return value


for rule in (momentum, adam, adamw):
    for decay in (0.0, DECAY):
        columns = zip(*GRADIENTS)
        print(rule.__name__, "decay", decay, [f"{rule(v, g, decay):.15g}" for v, g in zip(START, columns)])
