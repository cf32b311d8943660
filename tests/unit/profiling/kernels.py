"""Kernels for tests of profiling, some of them twice: with regions and without."""

import numpy as np

import fusionq as fq


@fq.kernel
def mul(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@fq.kernel
def sub(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] - b[i]


@fq.kernel
def scale(item: fq.Item, a, factor, out):
    i = item.get_id(0)
    out[i] = a[i] * factor


@fq.kernel
def copy_tile(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    out[i] = a[i]


@fq.kernel
def copy_below(item: fq.NdItem, a, limit, out):
    i = item.get_global_id(0)
    if i < limit:
        out[i] = a[i]


@fq.kernel
def copy_below_first(item: fq.NdItem, a, limit, out):
    i = item.get_global_id(0)
    if i < limit[0]:
        out[i] = a[i]


@fq.kernel
def flip_tile(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    place = item.get_local_id(0)
    size = item.get_local_range(0)
    out[i] = a[i - place + size - 1 - place]


@fq.kernel
def rows(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] + 1


@fq.kernel
def triangle(item: fq.Item, a, out):
    """Work-item i has i turns: the last work-groups take longest."""
    i = item.get_id(0)
    x = a[i]
    for _ in range(i):
        x = x * np.float32(0.5) + np.float32(1)
    out[i] = x


@fq.kernel
def turns(item: fq.Item, a, count, out):
    i = item.get_id(0)
    x = a[i]
    for k in range(count):
        with fq.region("turn"):
            x = x * np.float32(0.5) + np.float32(k)
    fq.mark("turns done", count)
    out[i] = x


@fq.kernel
def long_turns(item: fq.Item, a, count, out):
    """As ``turns``, each of them far longer than a clock read."""
    i = item.get_id(0)
    x = a[i]
    for k in range(count):
        with fq.region("turn"):
            for _ in range(1000):
                x = x * np.float32(0.5) + np.float32(k)
    fq.mark("turns done", count)
    out[i] = x


@fq.kernel
def few_turns(item: fq.Item, a, out):
    i = item.get_id(0)
    x = a[i]
    for k in range(3):
        with fq.region("turn"):
            x = x * np.float32(0.5) + np.float32(k)
    out[i] = x


def helper_with(x):
    with fq.region("helper"):
        if x > 3:
            return x * 2
        y = x + 1
    return y


def helper_without(x):
    if x > 3:
        return x * 2
    y = x + 1
    return y


def doubled(x):
    return x + x


@fq.kernel
def with_regions(item: fq.Item, a, out):
    i = item.get_id(0)
    with fq.region("outer"), fq.region("second"):
        s = a[i]
        for _j in range(10):
            with fq.region("inner"):
                s = s * 2
                if s > 100:
                    break
                if s < -100:
                    continue
                fq.mark("after", _j + doubled(_j))
        if s > 300:
            return
        if s < -300:
            with fq.region("nothing"):
                return
    fq.mark("end")
    out[i] = s + helper_with(s)


@fq.kernel
def without_regions(item: fq.Item, a, out):
    i = item.get_id(0)
    s = a[i]
    for _j in range(10):
        s = s * 2
        if s > 100:
            break
        if s < -100:
            continue
    if s > 300:
        return
    if s < -300:
        return
    out[i] = s + helper_without(s)


@fq.kernel
def neighbours(item: fq.Item, a, out):
    """A dependence on other tiles, and regions inside a persistent kernel's stage."""
    i = item.get_id(0)
    with fq.region("sum"):
        s = a[i]
        if i > 0 and i < a.shape[0] - 1:
            s = a[i - 1] + a[i] + a[i + 1]
    fq.mark("summed", 7)
    out[i] = s


@fq.kernel
def counted(item: fq.Item, a, count, out):
    """A region in a loop of unknown length; the other end's element."""
    i = item.get_id(0)
    s = a[a.shape[0] - 1 - i]
    for k in range(count):
        with fq.region("turn"):
            s = s + k
    out[i] = s


@fq.kernel
def slow(item: fq.Item, turns, out):
    """Work-item i takes ``turns[i]``."""
    i = item.get_id(0)
    x = np.float32(1)
    for _ in range(turns[i]):
        x = x * np.float32(0.999) + np.float32(0.5)
    out[i] = int(x)


@fq.kernel
def total(item: fq.Item, a, out):
    """Needs both its own element and that in the middle, which all need."""
    i = item.get_id(0)
    out[i] = a[i] + a[a.shape[0] // 2]
