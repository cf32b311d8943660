"""Where does a fused kernel spend its time?  Records inside the kernel tell.

The rows near the middle of the Mandelbrot set take longest, and here they come last.  In large
work-groups one worker is left alone with them: the profile says so, and what to change.

Run it with `python examples/profile_a_fusion.py`.
"""

from __future__ import annotations

import numpy as np
from example_tools import milliseconds, open_queue

import fusionq as fq

MOST_STEPS = 500


@fq.kernel
def escape(item: fq.NdItem, real, imaginary, steps):
    row, column = item.get_global_id(0), item.get_global_id(1)
    x, y = real[column], imaginary[row]
    k = 0
    while k < MOST_STEPS and x * x + y * y < 4:
        x, y = x * x - y * y + real[column], 2 * x * y + imaginary[row]
        k = k + 1
    steps[row, column] = k


@fq.kernel
def shade(item: fq.NdItem, steps, image):
    row, column = item.get_global_id(0), item.get_global_id(1)
    image[row, column] = np.float32(steps[row, column]) / np.float32(MOST_STEPS)


def in_numpy(real, imaginary):
    real, imaginary = np.broadcast_arrays(real, imaginary[:, np.newaxis])
    x, y = real.copy(), imaginary.copy()
    steps = np.zeros(x.shape, np.int32)
    for _ in range(MOST_STEPS):
        inside = x * x + y * y < 4
        steps[inside] += 1
        x, y = (
            np.where(inside, x * x - y * y + real, x),
            np.where(inside, 2 * x * y + imaginary, y),
        )
    return steps.astype(np.float32) / np.float32(MOST_STEPS)


queue, size = open_queue(256, small=8)
real = fq.Buffer(np.linspace(-2, 1, size, dtype=np.float32))
imaginary = fq.Buffer(np.linspace(1.5, 0, size, dtype=np.float32))
steps = fq.Buffer((size, size), np.int32, promote_private=True)
image = fq.Buffer((size, size), np.float32)


def draw(rows_in_a_group):
    space = fq.NdRange((size, size), (rows_in_a_group, size))
    with fq.fusion(queue) as fusion:
        queue.submit(escape, space, real, imaginary, steps)
        queue.submit(shade, space, steps, image)
    return fusion.event


large, small = size // 8, 1
with fq.profile(queue) as profile:
    for _ in range(5):
        draw(large)
print(profile)

equal = np.array_equal(image.numpy(), in_numpy(real.numpy(), imaginary.numpy()))
print("\nequal to NumPy, bit for bit:", equal)
before, after = milliseconds(lambda: draw(large), lambda: draw(small))
print(f"work-groups of {large} rows {before:.2f} ms, of {small} row {after:.2f} ms")
