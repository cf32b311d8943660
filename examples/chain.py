"""A chain of element-wise kernels becomes one; the temporaries between them need no memory.

Run it with `python examples/chain.py`: out = a * b - (a - c) * d, as one kernel.
"""

from __future__ import annotations

import numpy as np
from example_tools import milliseconds, open_queue

import fusionq as fq


@fq.kernel
def multiply(item: fq.Item, x, y, out):
    i = item.get_id(0)  # a kernel says what one work-item does
    out[i] = x[i] * y[i]


@fq.kernel
def subtract(item: fq.Item, x, y, out):
    i = item.get_id(0)
    out[i] = x[i] - y[i]


queue, n = open_queue(8_000_000, small=500)
rng = np.random.default_rng(0)
a, b, c, d = (fq.Buffer(rng.random(n, dtype=np.float32)) for _ in range(4))
out = fq.Buffer(n, np.float32)
# Nobody needs these after the chain, so they may live in the work-items' private memory.
product, difference, scaled = (fq.Buffer(n, np.float32, promote_private=True) for _ in range(3))


def chain():
    queue.submit(multiply, n, a, b, product)
    queue.submit(subtract, n, a, c, difference)
    queue.submit(multiply, n, difference, d, scaled)
    return queue.submit(subtract, n, product, scaled, out)


def fused_chain():
    with fq.fusion(queue) as fusion:
        chain()
    return fusion.event


fused_chain().wait()
print(queue.last_report.headline)
for promotion in queue.last_report.promotions:
    print(f"  {promotion.buffer}: {promotion.scope} memory")
print("memory for the temporaries:", any(t.is_allocated for t in (product, difference, scaled)))

in_numpy = a.numpy() * b.numpy() - (a.numpy() - c.numpy()) * d.numpy()
print("equal to NumPy, bit for bit:", np.array_equal(out.numpy(), in_numpy))

apart, together = milliseconds(chain, fused_chain)
print(f"four launches {apart:.2f} ms, fused {together:.2f} ms")
