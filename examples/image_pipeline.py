"""An image pipeline in six small kernels: grey, contrast, blur in both directions, sharpen, clip.

The kernels that work pixel by pixel share a launch with their neighbours.  The blurs read other
work-items' pixels; the report says where that keeps launches apart, and why.

Run it with `python examples/image_pipeline.py`.
"""

from __future__ import annotations

import numpy as np
from example_tools import milliseconds, open_queue

import fusionq as fq


@fq.kernel
def grey(item: fq.Item, image, out):
    y, x = item.get_id(0), item.get_id(1)
    red, green, blue = image[0, y, x], image[1, y, x], image[2, y, x]
    out[y, x] = red * np.float32(0.25) + green * np.float32(0.5) + blue * np.float32(0.25)


@fq.kernel
def contrast(item: fq.Item, image, factor, out):
    y, x = item.get_id(0), item.get_id(1)
    out[y, x] = (image[y, x] - np.float32(0.5)) * factor + np.float32(0.5)


@fq.kernel
def blur_rows(item: fq.Item, image, out):
    y, x = item.get_id(0), item.get_id(1)
    left, right = max(x - 1, 0), min(x + 1, image.shape[1] - 1)
    out[y, x] = (image[y, left] + image[y, x] + image[y, right]) / 3


@fq.kernel
def blur_columns(item: fq.Item, image, out):
    y, x = item.get_id(0), item.get_id(1)
    above, below = max(y - 1, 0), min(y + 1, image.shape[0] - 1)
    out[y, x] = (image[above, x] + image[y, x] + image[below, x]) / 3


@fq.kernel
def sharpen(item: fq.Item, image, blurred, out):
    y, x = item.get_id(0), item.get_id(1)
    out[y, x] = image[y, x] + (image[y, x] - blurred[y, x])


@fq.kernel
def clip(item: fq.Item, image, out):
    y, x = item.get_id(0), item.get_id(1)
    out[y, x] = min(max(image[y, x], np.float32(0)), np.float32(1))


queue, height = open_queue(1_080, small=8)
shape = height, height * 16 // 9
colours = fq.Buffer(np.random.default_rng(0).random((3, *shape), dtype=np.float32))
result = fq.Buffer(shape, np.float32)
# internal: the contents need not survive the pipeline; fusionq keeps in fast memory what it can.
greys, contrasted, in_rows, blurred, sharp = (
    fq.Buffer(shape, np.float32, internal=True) for _ in range(5)
)


def pipeline():
    queue.submit(grey, shape, colours, greys)
    queue.submit(contrast, shape, greys, np.float32(1.25), contrasted)
    queue.submit(blur_rows, shape, contrasted, in_rows)
    queue.submit(blur_columns, shape, in_rows, blurred)
    queue.submit(sharpen, shape, contrasted, blurred, sharp)
    return queue.submit(clip, shape, sharp, result)


def fused_pipeline():
    with fq.fusion(queue, promote="internal") as fusion:
        pipeline()
    return fusion.event


def in_numpy():
    red, green, blue = colours.numpy()
    image = red * np.float32(0.25) + green * np.float32(0.5) + blue * np.float32(0.25)
    image = (image - np.float32(0.5)) * np.float32(1.25) + np.float32(0.5)
    padded = np.pad(image, ((0, 0), (1, 1)), "edge")
    blurred = (padded[:, :-2] + image + padded[:, 2:]) / 3
    padded = np.pad(blurred, ((1, 1), (0, 0)), "edge")
    blurred = (padded[:-2] + blurred + padded[2:]) / 3
    return np.clip(image + (image - blurred), 0, 1)


fused_pipeline().wait()
report = queue.last_report
print(f"{report.headline} ({report.strategy})")
for number, stage in enumerate(report.stages):
    print(f"  launch {number}: {', '.join(kernel.kernel for kernel in stage.kernels)}")
for promotion in report.promotions:
    print(f"  {promotion.buffer}: {promotion.scope} memory")
if report.choice:
    print(f"  {report.choice}")
print("equal to NumPy, bit for bit:", np.array_equal(result.numpy(), in_numpy()))

apart, together = milliseconds(pipeline, fused_pipeline)
print(f"six launches {apart:.2f} ms, fused {together:.2f} ms")
