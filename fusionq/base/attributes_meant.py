"""What to write for attributes that other libraries' arrays and queues have, and ours have not."""

from __future__ import annotations

from collections.abc import Mapping

_VIEWS = (
    "kernels index as they need to, and submit takes NumPy's views, such as those of numpy() where "
    "the host sees the memory"
)
_NUMPY = "numpy() is the contents, sharing their memory where the host sees it"
_SUBMIT = "submit(kernel, range, *arguments) runs a kernel"
_REDUCE = "submit a kernel with a Reduction, or take it of numpy()"

OF_BUFFERS: Mapping[str, str] = {
    **dict.fromkeys(("reshape", "ravel", "flatten", "T", "transpose", "swapaxes", "view"), _VIEWS),
    **dict.fromkeys(("sum", "prod", "min", "max", "mean", "any", "all", "dot"), _REDUCE),
    **dict.fromkeys(
        ("get", "to_numpy", "asnumpy", "copy_to_host", "to_host", "tolist", "item", "data"), _NUMPY
    ),
    **dict.fromkeys(("set", "copy_from_host", "assign"), "write(array) overwrites the contents"),
    "copy": "Buffer(buffer.numpy()) is a copy; queue.memcpy(dst, src) copies in a queue's order",
    "astype": "Buffer(buffer.numpy(), dtype) converts",
    "fill": "queue.fill(buffer, value) sets every element",
    "itemsize": "dtype.itemsize is the bytes of an element",
}

OF_QUEUES: Mapping[str, str] = {
    **dict.fromkeys(("copy", "copyto", "enqueue_copy"), "memcpy(dst, src) copies"),
    **dict.fromkeys(("memset", "enqueue_fill"), "fill(buffer, value) sets every element"),
    **dict.fromkeys(
        ("parallel_for", "single_task", "launch", "call_kernel", "enqueue", "run"), _SUBMIT
    ),
    **dict.fromkeys(("synchronize", "sync", "finish", "flush"), "wait() waits for all"),
    **dict.fromkeys(
        ("record", "record_event", "wait_event", "submit_barrier"),
        "submit returns an event, and barrier(depends_on=events) waits for others",
    ),
    "get_device": "device says what it runs on",
    "sycl_device": "device says what it runs on, sycl_queue is dpctl's queue",
}


def no_attribute(owner: object, name: str, meant: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that ``owner`` has not, with what is ``meant`` by some names."""
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if name in meant:
        text += f": {meant[name]}"
    return AttributeError(text, name=name, obj=owner)
