"""Memory goes in and out without a copy: NumPy, DLPack, dpctl.

Run it with `python examples/interop.py`.
"""

from __future__ import annotations

import numpy as np
from example_tools import milliseconds, open_queue

import fusionq as fq


@fq.kernel
def increment(item: fq.Item, x, out):
    i = item.get_id(0)
    out[i] = x[i] + 1


@fq.kernel
def square(item: fq.Item, x, out):
    i = item.get_id(0)
    out[i] = x[i] * x[i]


queue, n = open_queue(1_000_000, small=200)
x, out = np.arange(n, dtype=np.float32), np.empty(n, np.float32)
incremented = fq.Buffer(n, np.float32, promote_private=True)


# NumPy arrays are arguments like buffers: kernels work on their memory, also inside a fusion.
def on_numpy_arrays():
    with fq.fusion(queue) as fusion:
        queue.submit(increment, n, x, incremented)
        queue.submit(square, n, incremented, out)
    return fusion.event


on_numpy_arrays().wait()
print(f"NumPy in and out: {queue.last_report.headline},", end=" ")
print("equal to NumPy:", np.array_equal(out, (x + 1) ** 2))

# A buffer is an array for NumPy, and exports its memory by DLPack.
buffer = fq.Buffer(n, np.float32)
queue.submit(increment, n, x, buffer)
shared = np.from_dlpack(buffer)
print("DLPack out, no copy:", np.shares_memory(shared, buffer.numpy()), shared[:3])

# Whatever has __dlpack__ on the host comes in the same way.
adopted = fq.Buffer(np.from_dlpack(x), copy=False)
queue.submit(square, n, adopted, buffer).wait()
print("DLPack in, no copy:", np.shares_memory(adopted.numpy(), x), buffer.numpy()[:3])

# USM memory of dpctl, and of all that speak __sycl_usm_array_interface__, such as dpnp.
if queue.sycl_queue is None:
    print("dpctl: left out, it needs a SYCL device")
else:
    import dpctl.memory

    memory = dpctl.memory.MemoryUSMShared(n, queue=queue.sycl_queue)
    queue.submit(increment, n, np.arange(n, dtype=np.uint8), memory).wait()
    print("dpctl.memory in, no copy:", np.frombuffer(memory, np.uint8)[:3])

(fused,) = milliseconds(on_numpy_arrays)
print(f"two kernels fused on NumPy's memory: {fused:.2f} ms")
