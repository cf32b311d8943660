"""Arrays of records as arguments: buffers, NumPy's arrays, fields, fusion, promotion, commands."""

import numpy as np
import pytest

import fusionq as fq

PARTICLE = np.dtype(
    [("id", "i2"), ("x", "f4"), ("v", "f8", (3,)), ("box", [("low", "i4"), ("high", "i4")])],
    align=True,
)
PACKED = np.dtype([(name, PARTICLE[name]) for name in ("id", "x", "v")] + [
    ("box", [("on", "?"), ("low", "i4"), ("high", "i4")]), ("h", "f2"), ("z", "c8"),
])  # fmt: skip
N = 40


def particles(seed=0, n=N, dtype=PARTICLE):
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 256, n * dtype.itemsize, np.uint8).view(dtype)
    made["x"], made["v"] = rng.normal(size=n), rng.normal(size=(n, 3))
    made["box"]["low"] = made["box"]["high"] = 3
    return made


def copied(array):
    """With the bytes between the fields."""
    return np.frombuffer(bytearray(array.tobytes()), array.dtype)


@fq.kernel
def push(item, p, out):
    i = item.get_id(0)
    out[i].x = p[i].x * 2
    out[i].v[0] = p[i].v[1] + p[i].x
    out[i].box.low = p[i].id


@fq.kernel
def gather(item, tmp, p):
    i = item.get_id(0)
    p[i].x = tmp[i].x - np.float32(tmp[i].v[0])
    p[i]["box"]["high"] = tmp[i].box.low


@fq.kernel
def whole(item, a, b):
    i = item.get_id(0)
    b[i] = a[i]


@fq.kernel
def double(item, x):
    i = item.get_id(0)
    x[i] = x[i] * 2


@fq.kernel
def from_the_left(item, x, y):
    i = item.get_id(0)
    if i > 0:
        y[i] = x[i - 1]


@fq.kernel
def speeds(item, v, out):
    i = item.get_id(0)
    out[i] = v[i, 0] + v[i][2]


@fq.kernel
def rotate(item: fq.NdItem, p, box, out):
    """Each work-group hands its records round, through local memory; sums and counts."""
    i, k, n = item.get_global_id(0), item.get_local_id(0), item.get_local_range(0)
    box[k] = p[i]
    box[k].box.low = 0
    fq.group_barrier(item.get_group())
    out[i] = box[(k + 1) % n]
    fq.AtomicRef(box["box"]["low"], (k + 1) % n).fetch_add(2)
    fq.AtomicRef(out["box"]["high"], 0).fetch_add(1)
    fq.group_barrier(item.get_group())
    out[i].v[0] = fq.joint_reduce(item.get_group(), p["v"][:4, 1], "max")
    out[i].box.low = box[k].box.low


@pytest.fixture
def queue(target):
    with fq.FusionQueue(target) as made:
        yield made


def test_buffers_and_arrays_of_records(queue):
    p = particles()
    buffer, out = fq.Buffer(p), fq.Buffer(N, PARTICLE)
    assert (buffer.dtype, buffer.shape, buffer.nbytes) == (PARTICLE, (N,), p.nbytes)
    assert (buffer["v"].shape, buffer["v"].strides) == ((N, 3), (PARTICLE.itemsize, 8))
    assert buffer["box"]["high"].dtype == np.int32
    for given in (buffer, p, fq.Buffer(p, copy=False), fq.access(buffer)):
        queue.submit(push, N, given, out)
        queue.submit(push, N, given, out)
        np.testing.assert_array_equal(out.numpy()["x"], p["x"] * 2)
        np.testing.assert_array_equal(out["v"].numpy()[:, 0], p["v"][:, 1] + p["x"])
        assert not out.numpy()["v"][:, 1:].any()
        queue.fill(out["x"], 0)
    total = np.zeros(N // 2)
    queue.submit(speeds, N // 2, buffer[::-2]["v"], total)
    queue.wait()
    np.testing.assert_array_equal(total, (p["v"][:, 0] + p["v"][:, 2])[::-2])


def test_an_unknown_field_of_a_buffer_is_named():
    buffer = fq.Buffer(3, PARTICLE)
    with pytest.raises(fq.ArgumentError, match="no field 'boxx'; did you mean 'box'"):
        buffer["boxx"]
    with pytest.raises(fq.ArgumentError, match="elements have no fields"):
        buffer["x"]["x"]


@pytest.mark.parametrize("strategy", ["auto", "megakernel"])
def test_a_fused_list_is_the_unfused_one(queue, strategy):
    results = []
    for fused in (False, True):
        p = copied(particles())
        held = fq.Buffer(p, copy=False)
        tmp = fq.Buffer(N, PARTICLE, promote_private=True)
        last = fq.Buffer(copied(particles(1)), copy=False)

        def submit(held=held, tmp=tmp, last=last):
            queue.submit(push, N, held, tmp)
            queue.submit(gather, N, tmp, held)
            queue.submit(from_the_left, N, held["x"], last["x"])
            queue.submit(whole, N, held[::-1], last)

        if fused:
            with fq.fusion(queue, strategy=strategy) as f:
                submit()
            scopes = {d.buffer: d.scope for d in f.report.promotions}
            private = dict.fromkeys(['tmp["x"]', 'tmp["v"]', 'tmp["box"]["low"]'], "private")
            assert scopes == private, str(f.report)
            assert not tmp.is_allocated
        else:
            submit()
        queue.wait()
        results.append((p.tobytes(), last.numpy().tobytes()))
    assert results[0] == results[1]


def unaligned(array, by=1):
    """The same in memory that begins at an odd address."""
    memory = np.zeros(array.nbytes + by, np.uint8)
    memory[by:] = np.frombuffer(array.tobytes(), np.uint8)
    return memory[by:].view(array.dtype)


@fq.kernel
def other_types(item, p, q):
    i = item.get_id(0)
    p[i].h = q[N - 1 - i].h * 2
    p[i].z = q[i].z * (1 + 2j) + q[i].h
    p[i].box.on = not q[i].box.on


@pytest.mark.slow
def test_packed_records(queue):
    """Wherever the memory begins: alone, fused, in private memory."""
    first, second = (particles(k, dtype=PACKED) for k in range(2))
    for array in (first, second):
        array["h"], array["z"], array["box"]["on"] = 1.5, 2 - 1j, True
    results = []
    for strategy in (None, "fused", "sequence"):
        p, q = unaligned(first), unaligned(second, 2)
        held, last = fq.Buffer(p, copy=False), fq.Buffer(q, copy=False)
        tmp = fq.Buffer(N, PACKED, promote_private=True)

        def submit(held=held, last=last, tmp=tmp, p=p):
            queue.submit(push, N, held, tmp)
            queue.submit(gather, N, tmp, held)
            queue.submit(from_the_left, N, held["x"], last["x"])
            queue.submit(other_types, N, last, held)
            queue.submit(double, N // 2, last["v"][::2, 1])
            queue.fill(last["v"][1::2, 2], -1)

        if strategy is None:
            submit()
        else:
            with fq.fusion(queue, strategy=strategy) as f:
                submit()
            private = dict.fromkeys((d.buffer for d in f.report.promotions), "private")
            scopes = {d.buffer: d.scope for d in f.report.promotions}
            assert scopes == private, str(f.report)
            assert 'tmp["x"]' in private or strategy == "sequence", str(f.report)
        queue.wait()
        results.append((p.tobytes(), q.tobytes()))
        with pytest.raises(fq.ArgumentError, match=r"""atomic.*'out\["box"]\["high"]'.*of 1;"""):
            queue.submit(rotate, fq.NdRange(N, 8), held, fq.LocalAccessor(8, PACKED), last)
    assert results[0] == results[1] == results[2]
    made, given = (np.frombuffer(part, PACKED) for part in results[0])
    np.testing.assert_array_equal(
        made["x"], first["x"] * 2 - (first["v"][:, 1] + first["x"]).astype("f4")
    )
    np.testing.assert_array_equal(given["x"][1:], made["x"][:-1])
    assert (given["z"] == (2 - 1j) * (1 + 2j) + 1.5).all() and (given["h"] == 3).all()
    assert not given["box"]["on"].any() and (given["v"][1::2, 2] == -1).all()
    np.testing.assert_array_equal(given["v"][::2, 1], second["v"][::2, 1] * 2)


def test_arrays_at_odd_addresses(queue):
    """Arguments of one kernel, also from one line, and of a graph, lie where they lie."""
    plain, expected = np.arange(N, dtype=np.float32), np.arange(N) * 2.0
    arrays = [plain.copy(), unaligned(plain), unaligned(plain, 2), plain.copy(), unaligned(plain)]
    for array in arrays:
        queue.submit(double, N, array)
        queue.wait()
        np.testing.assert_array_equal(array, expected)
    graph, first = fq.Graph(), fq.Buffer(plain, copy=False)
    with graph.record(queue):
        queue.submit(double, N, first)
    with pytest.raises(fq.ArgumentError, match="whose alignment is None, not 2"):
        graph.update(first=fq.Buffer(arrays[2], copy=False))


def test_different_fields_do_not_depend_on_each_other(queue):
    p = fq.Buffer(particles())
    expected = p.numpy().copy()
    with fq.fusion(queue, strategy="fused") as f:
        queue.submit(double, N, p["x"])
        queue.submit(double, N, p["v"][:, 1])
        queue.submit(double, N, p["v"][::-1, 2])
    assert (f.report.strategy, f.report.dependences) == ("fused", ()), str(f.report)
    expected["x"] *= 2
    expected["v"][:, 1:] *= 2
    np.testing.assert_array_equal(p.numpy(), expected)
    with fq.fusion(queue) as f:
        queue.submit(push, N, p, p)
        queue.submit(double, N, p["x"])
    found = {(d.buffer, d.kind, d.scope) for d in f.report.dependences}
    assert found == {("p", kind, "ITEM") for kind in ("RAW", "WAR", "WAW")}


def test_commands_and_graphs(queue):
    p, q = fq.Buffer(particles(1)), fq.Buffer(particles(2))
    out = fq.Buffer(copied(particles(3)), copy=False)
    between = between_fields(out)
    for fused in (False, True):
        if fused:
            with fq.fusion(queue) as f:
                queue.memcpy(out, q)
                queue.submit(push, N, out, out)
            assert f.report.strategy == "fused", str(f.report)
            expected = q.numpy().copy()
            expected["x"] *= 2
            expected["v"][:, 0] = expected["v"][:, 1] + expected["x"]
            expected["box"]["low"] = expected["id"]
        else:
            queue.memcpy(out, p)
            expected = p.numpy()
        np.testing.assert_array_equal(out.numpy(), expected)
        assert between_fields(out) == between
    graph = fq.Graph()
    with graph.record(queue):
        queue.submit(whole, N, p, out)
    graph.update(p=q)
    graph.launch().wait()
    np.testing.assert_array_equal(out.numpy(), q.numpy())
    for other in (fq.Buffer(N, np.float32), fq.Buffer(N, np.dtype([("x", "f4")]))):
        with pytest.raises(fq.ArgumentError, match="like the one that was recorded"):
            graph.update(p=other)
    with pytest.raises(fq.ArgumentError, match=r"fill\(buffer\['id'\], value\)"):
        queue.fill(p, 3)


def between_fields(buffer):
    """The bytes that belong to no field."""
    used = np.zeros(PARTICLE.itemsize, bool)
    for name in PARTICLE.names:
        dtype, offset = PARTICLE.fields[name][:2]
        used[offset : offset + dtype.itemsize] = True
    assert not used.all()
    return buffer.numpy().view(np.uint8).reshape(N, -1)[:, ~used].tobytes()


def test_local_memory_atomic_operations_and_group_functions(queue):
    p, out = particles(), fq.Buffer(N, PARTICLE)
    queue.submit(rotate, fq.NdRange(N, 8), fq.Buffer(p), fq.LocalAccessor(8, PARTICLE), out)
    found = out.numpy()
    there = np.arange(N).reshape(-1, 8)
    there = np.roll(there, -1, axis=1).reshape(-1)
    np.testing.assert_array_equal(found["x"], p["x"][there])
    np.testing.assert_array_equal(found["v"][:, 1:], p["v"][there, 1:])
    assert (found["v"][:, 0] == p["v"][:4, 1].max()).all()
    assert (found["box"]["low"] == 2).all()
    with pytest.raises(fq.ArgumentError, match="the field 's' of a LocalAccessor"):
        fq.LocalAccessor(8, [("s", "S3")])


def test_usm_that_says_its_fields(queue):
    if queue.sycl_queue is None:
        pytest.skip("no USM")
    held = fq.Buffer(particles(2))

    class Foreign:
        __sycl_usm_array_interface__ = held.__sycl_usm_array_interface__

    out = fq.Buffer(N, PARTICLE)
    queue.submit(whole, N, Foreign(), out)
    np.testing.assert_array_equal(out.numpy(), held.numpy())
    np.testing.assert_array_equal(fq.Buffer(Foreign()).numpy(), held.numpy())


def test_checked_runs_know_which_fields_were_written(queue):
    tmp, p = fq.Buffer(N, PARTICLE), fq.Buffer(particles())
    with fq.fusion(queue, check="initialized"):
        queue.submit(push, N, p, tmp)
        queue.submit(gather, N, tmp, p)
    other = fq.Buffer(N, PARTICLE)
    said = pytest.raises(fq.ArgumentError, match=r"""of 'tmp\["v"\]' \(argument `other\["v"\]`""")
    with said, fq.fusion(queue, check="initialized"):
        queue.fill(other["x"], 1)
        queue.submit(gather, N, other, p)
