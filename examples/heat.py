"""Time steps of the heat equation: each cell needs what its neighbours were one step before.

Such steps depend on each other across work-groups, so they cannot simply follow each other in one
kernel.  Where it is faster, fusionq makes one persistent kernel of them: a few workers that take
the cells tile by tile, and wait for exactly the tiles that they need.

Run it with `python examples/heat.py`.
"""

from __future__ import annotations

import numpy as np
from example_tools import milliseconds, open_queue

import fusionq as fq

STEPS = 32


@fq.kernel
def step(item: fq.Item, old, new, rate):
    y, x = item.get_id(0), item.get_id(1)
    if y > 0 and y < old.shape[0] - 1 and x > 0 and x < old.shape[1] - 1:
        around = old[y - 1, x] + old[y + 1, x] + old[y, x - 1] + old[y, x + 1]
        new[y, x] = old[y, x] + rate * (around - 4 * old[y, x])
    else:
        new[y, x] = old[y, x]


def step_in_numpy(old, new, rate):
    new[:] = old
    centre = old[1:-1, 1:-1]
    around = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
    new[1:-1, 1:-1] = centre + rate * (around - 4 * centre)


queue, side = open_queue(1_024, small=8)
rate = np.float32(0.1)
start = np.random.default_rng(0).random((side, side), dtype=np.float32)
grids = [fq.Buffer(start), fq.Buffer((side, side), np.float32)]


def simulate():
    for k in range(STEPS):
        event = queue.submit(step, (side, side), grids[k % 2], grids[1 - k % 2], rate)
    return event


def simulate_fused():
    with fq.fusion(queue) as fusion:
        simulate()
    return fusion.event


simulate_fused().wait()
print(queue.last_report)

expected = [start.copy(), np.empty_like(start)]
for k in range(STEPS):
    step_in_numpy(expected[k % 2], expected[1 - k % 2], rate)
print("\nequal to NumPy, bit for bit:", np.array_equal(grids[0].numpy(), expected[0]))

apart, together = milliseconds(simulate, simulate_fused)
print(f"{STEPS} launches {apart:.2f} ms, fused {together:.2f} ms")
