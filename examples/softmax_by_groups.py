"""Softmax of the rows of a matrix, a work-group a row, from three small kernels.

The kernels exchange values inside work-groups only.  fusionq proves that, joins them into one
kernel, puts a work-group barrier where one is needed, and keeps what lies between in fast memory.

Run it with `python examples/softmax_by_groups.py`.
"""

from __future__ import annotations

import numpy as np
from example_tools import milliseconds, open_queue

import fusionq as fq

COLUMNS = 256


@fq.kernel
def subtract_largest(item: fq.NdItem, x, out):
    row, column = item.get_global_id(0), item.get_global_id(1)
    largest = fq.reduce_over_group(item.get_group(), x[row, column], "max")
    out[row, column] = x[row, column] - largest


@fq.kernel
def exponential(item: fq.NdItem, x, out):
    row, column = item.get_global_id(0), item.get_global_id(1)
    out[row, column] = np.exp(x[row, column])


@fq.kernel
def divide_by_sum(item: fq.NdItem, x, out):
    row, column = item.get_global_id(0), item.get_global_id(1)
    total = fq.reduce_over_group(item.get_group(), x[row, column], "add")
    out[row, column] = x[row, column] / total


queue, rows = open_queue(8_192, small=4)
space = fq.NdRange((rows, COLUMNS), (1, COLUMNS))  # all work-items, in work-groups of one row
x = fq.Buffer(np.random.default_rng(0).normal(size=(rows, COLUMNS)).astype(np.float32))
out = fq.Buffer((rows, COLUMNS), np.float32)
# internal: the contents need not survive; fusionq picks private or local memory.
shifted, powers = (fq.Buffer((rows, COLUMNS), np.float32, internal=True) for _ in range(2))


def softmax():
    queue.submit(subtract_largest, space, x, shifted)
    queue.submit(exponential, space, shifted, powers)
    return queue.submit(divide_by_sum, space, powers, out)


def fused_softmax():
    with fq.fusion(queue, promote="internal") as fusion:
        softmax()
    return fusion.event


fused_softmax().wait()
print(queue.last_report.headline)
for promotion in queue.last_report.promotions:
    print(f"  {promotion.buffer}: {promotion.scope} memory, {promotion.reason}")

powers_in_numpy = np.exp(x.numpy() - x.numpy().max(axis=1, keepdims=True))
in_numpy = powers_in_numpy / powers_in_numpy.sum(axis=1, keepdims=True)
error = np.abs(out.numpy() - in_numpy).max()
print(f"greatest difference from NumPy, which adds in another order: {error:.1e}")

fused_result = out.numpy().copy()
softmax().wait()
print("equal to the unfused run, bit for bit:", np.array_equal(out.numpy(), fused_result))

apart, together = milliseconds(softmax, fused_softmax)
print(f"three launches {apart:.2f} ms, fused {together:.2f} ms")
