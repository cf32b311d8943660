"""Group functions on each device, against NumPy: all types, operations and shapes of groups."""

from functools import cache

import numpy as np
import pytest

import fusionq as fq
from fusionq.language.combine import over_group
from tests.conformance.running import submit
from tests.unit.tables import defined

pytestmark = pytest.mark.usefixtures("group_functions")

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
UFUNCS = {
    "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
CASES = {
    **dict.fromkeys(INTEGERS, tuple(UFUNCS)),
    **dict.fromkeys(FLOATS, ("add", "mul", "min", "max")),
    "bool": ("and", "or", "xor"),
}
"""The operations on each type."""
FUNCTIONS = ("reduce", "inclusive_scan", "exclusive_scan")
GROUPS = [((16,), (1,)), ((24,), (8,)), ((21,), (7,)), ((4, 6), (2, 3)), ((4, 2, 6), (2, 1, 3))]


@cache
def made(line, ndim, parameters="x, out"):
    """A kernel that runs one line, with ``index``, ``group`` and ``own`` (linear local id)."""
    ids = ", ".join(f"item.get_global_id({d})" for d in range(ndim))
    text = (
        f"def k(item: fq.NdItem, {parameters}):\n    index = ({ids},)\n"
        f"    group = item.get_group()\n    own = item.get_local_linear_id()\n    {line}\n"
    )
    return defined(text)


def run(queue, line, space, x, dtype=None, *arguments, parameters="x, out"):
    """What each work-item stores, by work-group and linear local id; and ``x`` likewise."""
    out = fq.Buffer(x.shape, dtype or x.dtype)
    kernel = made(line, x.ndim, parameters)
    submit(queue, kernel, fq.NdRange(*space), x, *arguments, out)
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


@pytest.mark.parametrize("function", FUNCTIONS)
def test_reductions_and_scans(queue, function):
    """Every type with every operation: a row of ``x_int8`` an operation on int8.  A kernel has
    three types, since Intel's compiler (runtime 2026.21.7) crashes at times, and with
    ``MALLOC_PERTURB_`` always, on one of 32 group functions."""
    for first in range(0, len(CASES), 3):
        check_types(queue, function, list(CASES)[first : first + 3])


def check_types(queue, function, dtypes):
    inputs = {dtype: np.stack([numbers(24, dtype, op) for op in CASES[dtype]]) for dtype in dtypes}
    outputs = {dtype: fq.Buffer(x.shape, x.dtype) for dtype, x in inputs.items()}
    kernel = made(
        "\n    ".join(
            f"out_{dtype}[{row}, index[0]] = "
            f"fq.{function}_over_group(group, x_{dtype}[{row}, index[0]], '{op}')"
            for dtype in dtypes
            for row, op in enumerate(CASES[dtype])
        ),
        1,
        ", ".join(f"x_{dtype}, out_{dtype}" for dtype in dtypes),
    )
    arrays = [array for dtype in dtypes for array in (inputs[dtype], outputs[dtype])]
    submit(queue, kernel, fq.NdRange(24, 8), *arrays)
    for dtype in dtypes:
        for op, out, x in zip(CASES[dtype], outputs[dtype].numpy(), inputs[dtype], strict=True):
            with np.errstate(over="ignore"):
                check((by_group(out, (8,)), by_group(x, (8,))), function, op)


ORDERED = {
    13: (FLOATS, FUNCTIONS, ("add", "mul", "min", "max")),
    1: (("float32",), FUNCTIONS, ("add", "min")),
    2: (("float32",), FUNCTIONS, ("add", "min")),
    16: (("float32",), ("reduce", "inclusive_scan"), ("add",)),
    40: (FLOATS, FUNCTIONS, ("add", "max")),
    48: (("float32",), ("reduce", "exclusive_scan"), ("mul",)),
    1040: (("float64",), ("reduce", "inclusive_scan"), ("add",)),
}
"""By sizes of groups, types and functions: every type and function in one size, those whose order
shows in the others, which are less than 16 work-items, a multiple of 16, not one, and many."""


@pytest.mark.parametrize(
    "size", [pytest.param(n, marks=[pytest.mark.slow] * (n not in (13, 48))) for n in ORDERED]
)
def test_floats_are_combined_in_one_order(backend, queue, size):
    """Numbers whose sums and products show it; a NaN and zeros of two signs among the last."""
    if backend.target.device.float_groups == "unordered":
        pytest.skip("the backend has an order of its own")
    if size > backend.target.device.max_work_group_size:
        pytest.skip(f"work-groups of at most {backend.target.device.max_work_group_size}")
    rng = np.random.default_rng(size)
    dtypes, functions, ops = ORDERED[size]
    inputs = {dtype: (rng.random(2 * size) + 0.5).astype(dtype) for dtype in dtypes}
    for x in inputs.values():
        x[size:] -= 1
        x[size :: 3] = [0.0, -0.0, np.nan] * (len(x[size :: 3]) // 3) + [0.0] * (
            len(x[size :: 3]) % 3
        )
    cases = [(function, op) for function in functions for op in ops]
    outputs = {dtype: fq.Buffer((len(cases), 2 * size), dtype) for dtype in dtypes}
    kernel = made(
        "\n    ".join(
            f"out_{dtype}[{row}, index[0]] = "
            f"fq.{function}_over_group(group, x_{dtype}[index[0]], '{op}')"
            for dtype in dtypes
            for row, (function, op) in enumerate(cases)
        ),
        1,
        ", ".join(f"x_{dtype}, out_{dtype}" for dtype in dtypes),
    )
    arrays = [array for dtype in dtypes for array in (inputs[dtype], outputs[dtype])]
    submit(queue, kernel, fq.NdRange(2 * size, size), *arrays)
    with np.errstate(all="ignore"):
        for dtype, x in inputs.items():
            for (function, op), found in zip(cases, outputs[dtype].numpy(), strict=True):
                wanted = [
                    value
                    for part in (x[:size], x[size:])
                    for value in over_group(function, op, list(part), None)
                ]
                same_bits(found, np.array(wanted, dtype), f"{function} of {dtype} by {op}")


def same_bits(found, wanted, what):
    np.testing.assert_array_equal(found, wanted, what)
    numbers_ = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[numbers_], np.signbit(wanted)[numbers_], what)


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
    assert found.tobytes() == wanted.tobytes(), (
        f"{function} of {x.dtype} by {op}: {found} for {wanted}"
    )


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
def test_shapes_of_groups(queue, space):
    """The order is that of linear local ids, the last dimension fastest."""
    cases = [(function, op) for function in FUNCTIONS for op in ("add", "max", "xor")]
    line = "\n    ".join(
        f"out_{function}_{op}[index] = fq.{function}_over_group(group, x[index], op='{op}')"
        for function, op in cases
    )
    parameters = ", ".join(["x", *(f"out_{function}_{op}" for function, op in cases)])
    x = numbers(space[0], "int32")
    outputs = [fq.Buffer(x.shape, x.dtype) for _ in cases]
    submit(queue, made(line, x.ndim, parameters), fq.NdRange(*space), x, *outputs)
    for (function, op), out in zip(cases, outputs, strict=True):
        check((by_group(out.numpy(), space[1]), by_group(x, space[1])), function, op)


@pytest.mark.parametrize("space", GROUPS)
def test_broadcast_from_each_source(queue, space):
    line = "out[index] = fq.group_broadcast(group, x[index], source)"
    for source in range(int(np.prod(space[1]))):
        found, x = run(
            queue, line, space, numbers(space[0], "int32"), None, source,
            parameters="x, source, out",
        )  # fmt: skip
        assert (found == x[:, source : source + 1]).all()


def test_broadcast_of_each_type(queue):
    inputs = {dtype: numbers(12, dtype) for dtype in CASES}
    outputs = {dtype: fq.Buffer(12, dtype) for dtype in CASES}
    line = "\n    ".join(
        f"out_{dtype}[index] = fq.group_broadcast(group, x_{dtype}[index], group.get_group_id(0))"
        for dtype in CASES
    )
    kernel = made(line, 1, ", ".join(f"x_{dtype}, out_{dtype}" for dtype in CASES))
    arrays = [array for dtype in CASES for array in (inputs[dtype], outputs[dtype])]
    submit(queue, kernel, fq.NdRange(12, 4), *arrays)
    for dtype, x in inputs.items():
        wanted = np.repeat(by_group(x, (4,))[[0, 1, 2], [0, 1, 2]], 4)
        assert outputs[dtype].numpy().tobytes() == wanted.tobytes(), dtype


@pytest.mark.parametrize("space", GROUPS)
def test_any_and_all(queue, space):
    x = np.random.default_rng(2).integers(0, 100, space[0])
    line = (
        "some[index] = fq.any_of_group(group, x[index] < limit)\n"
        "    every[index] = fq.all_of_group(group, x[index] < limit)"
    )
    kernel = made(line, x.ndim, "x, limit, some, every")
    for limit in (0, 50, 90, 100):
        some, every = fq.Buffer(x.shape, bool), fq.Buffer(x.shape, bool)
        submit(queue, kernel, fq.NdRange(*space), x, limit, some, every)
        for function, out in ((any, some), (all, every)):
            found, values = by_group(out.numpy(), space[1]), by_group(x, space[1])
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
            run(queue, line.format("4 + 0 * own"), ((8,), (4,)), numbers(8, "int32"))


def test_a_broadcast_from_beyond_the_group_is_refused(queue):
    line = "out[index] = fq.group_broadcast(group, x[index], 4)"
    with pytest.raises(fq.ArgumentError, match=r"local id 4, .* of \(2, 2\) have the ids 0 to 3"):
        run(queue, line, ((4, 4), (2, 2)), np.ones((4, 4)))
    run(queue, line, ((8, 4), (4, 2)), np.ones((8, 4)))
