"""Group functions on each device, against NumPy: all types, operations and shapes of groups."""

import linecache
from functools import cache
from itertools import count

import numpy as np
import pytest

import fusionq as fq

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
UFUNCS = {
    "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
CASES = [(dtype, op) for dtype in INTEGERS for op in UFUNCS]
CASES += [(dtype, op) for dtype in FLOATS for op in ("add", "mul", "min", "max")]
CASES += [("bool", op) for op in ("and", "or", "xor")]
GROUPS = [((16,), (1,)), ((24,), (8,)), ((21,), (7,)), ((4, 6), (2, 3)), ((4, 2, 6), (2, 1, 3))]
_numbers = count()


@cache
def made(line, ndim, parameters="x, out"):
    """A kernel that runs one line, with ``index``, ``group`` and ``own`` (linear local id)."""
    ids = ", ".join(f"item.get_global_id({d})" for d in range(ndim))
    text = (
        f"def k(item: fq.NdItem, {parameters}):\n    index = ({ids},)\n"
        f"    group = item.get_group()\n    own = item.get_local_linear_id()\n    {line}\n"
    )
    file = f"<group test {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {"fq": fq, "np": np}
    exec(compile(text, file, "exec"), names)
    return fq.kernel(names["k"])


def run(queue, line, space, x, dtype=None, *arguments, parameters="x, out"):
    """What each work-item stores, by work-group and linear local id; and ``x`` likewise."""
    out = fq.Buffer(x.shape, dtype or x.dtype)
    kernel = made(line, x.ndim, parameters)
    queue.submit(kernel, fq.NdRange(*space), x, *arguments, out)
    return by_group(out.numpy(), space[1]), by_group(x, space[1])


def by_group(array, local):
    pairs = zip(array.shape, local, strict=True)
    split = [n for whole, part in pairs for n in (whole // part, part)]
    axes = [*range(0, 2 * array.ndim, 2), *range(1, 2 * array.ndim, 2)]
    return array.reshape(split).transpose(axes).reshape(-1, int(np.prod(local)))


def numbers(shape, dtype, op="add"):
    rng = np.random.default_rng(5)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        # Small whole numbers add up exactly, and so do few powers of two multiply.
        x = rng.integers(-8, 9, shape) if op != "mul" else 2.0 ** rng.integers(-1, 2, shape)
        return x.astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize(("dtype", "op"), CASES)
@pytest.mark.parametrize("function", ["reduce", "inclusive_scan", "exclusive_scan"])
def test_reductions_and_scans(queue, function, dtype, op):
    space = ((24,), (8,))
    line = f"out[index] = fq.{function}_over_group(group, x[index], '{op}')"
    with np.errstate(over="ignore"):
        check(run(queue, line, space, numbers(24, dtype, op)), function, op)


def check(found_and_x, function, op):
    """Bit for bit: integers wrap, and the floating numbers are chosen to be exact."""
    found, x = found_and_x
    ufunc = UFUNCS[op]
    totals = ufunc.accumulate(x, axis=1, dtype=x.dtype)
    if function == "reduce":
        wanted = np.repeat(totals[:, -1:], x.shape[1], axis=1)
    elif function == "inclusive_scan":
        wanted = totals
    else:
        first = np.full((len(x), 1), neutral(op, x.dtype), x.dtype)
        wanted = np.concatenate([first, totals[:, :-1]], axis=1)
    assert found.tobytes() == wanted.tobytes(), f"{found} for {wanted}"


def neutral(op, dtype):
    """What an exclusive scan starts from."""
    if op in ("min", "max"):
        limits = np.iinfo(dtype) if dtype.kind in "iu" else None
        least, greatest = (limits.min, limits.max) if limits else (-np.inf, np.inf)
        return greatest if op == "min" else least
    if op == "and":
        return True if dtype.kind == "b" else ~dtype.type(0)
    return 1 if op == "mul" else 0


@pytest.mark.parametrize("space", GROUPS)
@pytest.mark.parametrize("op", ["add", "max", "xor"])
@pytest.mark.parametrize("function", ["reduce", "inclusive_scan", "exclusive_scan"])
def test_shapes_of_groups(queue, function, op, space):
    """The order is that of linear local ids, the last dimension fastest."""
    line = f"out[index] = fq.{function}_over_group(group, x[index], op='{op}')"
    check(run(queue, line, space, numbers(space[0], "int32")), function, op)


@pytest.mark.parametrize("space", GROUPS)
def test_broadcast_from_each_source(queue, space):
    line = "out[index] = fq.group_broadcast(group, x[index], source)"
    for source in range(int(np.prod(space[1]))):
        found, x = run(
            queue, line, space, numbers(space[0], "int32"), None, source,
            parameters="x, source, out",
        )  # fmt: skip
        assert (found == x[:, source : source + 1]).all()


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
def test_broadcast_of_each_type(queue, dtype):
    line = "out[index] = fq.group_broadcast(group, x[index], group.get_group_id(0))"
    found, x = run(queue, line, ((12,), (4,)), numbers(12, dtype))
    assert found.tobytes() == np.repeat(x[[0, 1, 2], [0, 1, 2]], 4).tobytes()


@pytest.mark.parametrize("space", GROUPS)
@pytest.mark.parametrize("limit", [0, 50, 90, 100])
def test_any_and_all(queue, space, limit):
    x = np.random.default_rng(2).integers(0, 100, space[0])
    for function in (any, all):
        line = f"out[index] = fq.{function.__name__}_of_group(group, x[index] < limit)"
        found, values = run(queue, line, space, x, bool, limit, parameters="x, limit, out")
        assert [set(row) for row in found.tolist()] == [{function(r < limit)} for r in values]


def test_floating_results_are_within_the_bound_of_reordering(queue):
    x = np.random.default_rng(8).normal(size=256).astype("float32")
    for function in ("reduce", "inclusive_scan", "exclusive_scan"):
        line = f"out[index] = fq.{function}_over_group(group, x[index])"
        found, values = run(queue, line, ((256,), (64,)), x)
        sums = np.cumsum(values, axis=1, dtype="float64")
        wanted = {"reduce": sums[:, -1:], "inclusive_scan": sums}.get(function, sums - values)
        bound = 64 * np.finfo("float32").eps * np.abs(values).sum(axis=1, keepdims=True)
        assert (np.abs(found - wanted) <= bound).all()


def test_several_group_functions_in_loops(queue):
    line = (
        "total = x[index]\n    for k in range(3):\n"
        "        total = fq.reduce_over_group(group, total) - total\n"
        "        if k < 2:\n            total += fq.group_broadcast(group, total, k)\n"
        "    out[index] = fq.inclusive_scan_over_group(group, total, max)"
    )
    found, x = run(queue, line, ((12,), (4,)), numbers(12, "int16").astype("int64"))
    total = x
    for k in range(3):
        total = total.sum(axis=1, keepdims=True) - total
        total = total + total[:, k : k + 1] if k < 2 else total
    assert (found == np.maximum.accumulate(total, axis=1)).all()


def test_the_reference_checks_the_source_of_a_broadcast():
    with fq.FusionQueue("reference") as queue:
        line = "out[index] = fq.group_broadcast(group, x[index], {})"
        with pytest.raises(fq.DeviceError, match="from several"):
            run(queue, line.format("own"), ((8,), (4,)), numbers(8, "int32"))
        with pytest.raises(fq.DeviceError, match="linear local id 4 in a group of 4"):
            run(queue, line.format("4"), ((8,), (4,)), numbers(8, "int32"))
