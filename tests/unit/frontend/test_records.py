"""Records: what kernels do with NumPy's structured arrays, byte for byte, padding included."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import run_function
from fusionq.base.errors import ArgumentError, KernelLanguageError
from fusionq.language.ranges import as_range
from tests.unit.frontend.running import define

POINT = np.dtype([("a", "i2"), ("b", "f4", (2,))], align=True)
PARTICLE = np.dtype(
    [
        ("tag", "i1"), ("x", "f4"), ("v", "f8", (3,)), ("pos", POINT), ("z", "c8"),
        ("ends", POINT, (2,)), ("on", "?"), ("size", "u8"),
    ],
    align=True,
)  # fmt: skip
ODD = np.dtype({"names": ["y", "x"], "formats": ["i2", "f4"], "offsets": [9, 4], "itemsize": 20})
EVEN = np.dtype({"names": ["y", "x"], "formats": ["i2", "f4"], "offsets": [10, 4], "itemsize": 20})
FIELD = "x"
N = 6


def particles(seed, dtype=PARTICLE, shape=(N,)):
    """Records with numbers in their fields and anything between them."""
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 256, int(np.prod(shape)) * dtype.itemsize, np.uint8).view(dtype)
    filled(made, rng)
    return made.reshape(shape)


def filled(array, rng):
    if array.dtype.names is not None:
        for name in array.dtype.names:
            filled(array[name], rng)
    elif array.dtype.kind in "fc":
        array[...] = rng.normal(size=array.shape)
    else:
        array[...] = rng.integers(0, 2 if array.dtype.kind == "b" else 9, array.shape)


def energy(r, k):
    return r.x * r["v"][k]


def moved(r, by):
    r.x += by
    r["pos"].b[1] = by
    return r


def function(*lines):
    body = "".join(f"    {line}\n" for line in ("i = item.get_id(0)", *lines))
    names = {"fq": fq, "energy": energy, "moved": moved, "FIELD": FIELD, "POINT": POINT,
             "PARTICLE": PARTICLE}  # fmt: skip
    return define(f"def k(item, p, q, out, n):\n{body}", **names)


def run_both(made, *arguments, items=N):
    """On the reference backend and as plain Python; all bytes are equal."""
    results = []
    for target in ("reference", None):
        own = [copied(a) if isinstance(a, np.ndarray) else a for a in arguments]
        if target is None:
            run_function(made, as_range(items), own)
        else:
            with fq.FusionQueue(target) as queue:
                queue.submit(fq.kernel(made), items, *own)
        results.append([bytes_of(a) for a in own if isinstance(a, np.ndarray)])
    assert results[0] == results[1]
    assert results[0] != [bytes_of(a) for a in arguments if isinstance(a, np.ndarray)]


def copied(array):
    """A copy with the same bytes between fields and the same strides."""
    whole = array if array.base is None else root(array)
    start = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    memory = np.frombuffer(bytearray(whole.tobytes()), np.uint8)
    return np.ndarray(array.shape, array.dtype, memory, start, array.strides)


def root(array):
    while array.base is not None and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def bytes_of(array):
    return root(array).tobytes()


BODIES = [
    ["p[i].x = q[i]['x'] * 2 + n", "p['tag'][i] = q.tag[i] + 1", "p[i].on = not q[i].on"],
    ["p[i]['v'][2] += q['v'][i, 1]", "p[i].v[0] = q[i].v[0] - p.v[i][1]"],
    ["r = q[i]", "p[i].pos.a = r.pos.a + r.tag", "p[i]['pos']['b'][1] = r.pos.b[0]"],
    ["p[i][FIELD] = q[i][FIELD] + 1", "p[i].z = q[i].z * 1j", "p[i].z *= 2"],
    ["p[i].ends[1].b[0] = q[i].ends[0]['a']", "p['ends'][i, 0]['a'] = q['ends']['a'][i, 1]",
     "p['ends']['b'][i, 1, 1] = q.ends.b[i][0, 0]"],
    ["p[i] = q[i]"],
    ["p[i] = q[n - 1 - i]", "p[i].x = p[i].x + 1"],
    ["p[i].pos = q[i].pos", "p[i].ends[0] = q[i].pos", "p[i]['ends'][1] = p[i].ends[0]"],
    ["p[i].pos = (3, q[i].pos.b)", "p[i].ends[1] = q[i].tag, 0.5"],
    ["p[i].pos = (p[i].pos.a + 1, p[i].pos.b)"],
    ["r = p[i]", "r.x, r.tag = r.tag, r.x"],
    ["p[i].v[:] = q[i].v * 2", "p[i].v[1:] += 1.5", "out[i] = len(p[i].v) + p.shape[0] + p.ndim"],
    ["p[i].v = q[i].v", "p[i].pos.b = 0.25", "p.v[i] = p.v[i] + q.v[i, 2]"],
    ["for k in range(3):", "    p[i].v[k] = energy(q[i], k)", "moved(p[i], n * 0.5)"],
    ["r = moved(p[i], 2)", "out[i] = r.x"],
    ["if q[i].on:", "    r = q[i]", "else:", "    r = q[n - 1 - i]", "out[i] = r.x * r.v[1]"],
    ["r = q[0]", "for k in range(n):", "    r = q[k]", "    if r.tag > 4:", "        break",
     "out[i] = r.x"],
    ["s = q[1:]", "out[i] = s[min(i, n - 2)].x", "t = q['v'][i, ::2]", "out[i] += t[1]"],
    ["p[i]['size'] = q[i]['size'] + 2", "out[i] = q.size + p['v'].size"],
    ["w = fq.PrivateArray(2, POINT, fill_zeros=True)", "w[1] = q[i].pos", "w[0].a = 7",
     "w[1].b[:] = w[1].b * w[0].a", "p[i].ends[0] = w[1]", "p[i].pos = w[0]"],
    ["w = fq.PrivateArray((1, 2), PARTICLE)", "w[0, 1] = q[i]", "w[0, 1].x += 1",
     "p[i] = w[0, 1]"],
    ["getattr(p[i], 'pos').b[n - 5] = getattr(q, 'x')[i]"],
    ["p[i].x += 1", "p[i]['x'] *= 2", "p.x[i] -= q[i].x", "p[i].v[n - 4] /= 3"],
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body[0])
def test_kernels_do_what_numpy_does(body):
    p, q = particles(1), particles(2)
    run_both(function(*body), p, q, np.zeros(N), N)


@pytest.mark.parametrize(
    "dtype", [EVEN, ODD, *(np.dtype([("x", "f4"), ("y", "i2")], align=a) for a in (True, False))]
)
def test_fields_lie_where_the_dtype_says(dtype):
    made = function("p[i].y = q[i].y + 1", "p[i]['x'] = q['x'][i]", "p[i].x *= 2")
    run_both(made, particles(3, dtype), particles(4, dtype)[::-1], np.ones(N), N)
    run_both(made, particles(3, dtype, (2 * N,))[1::2], particles(4, EVEN), np.ones(N), N)


def test_views_of_one_array_overlap_as_in_numpy():
    whole = particles(5, shape=(2 * N,))
    shift = define(
        "def k(item, p, x, v):\n"
        "    i = item.get_id(0)\n"
        "    p[i] = p[i + 6]\n"
        "    x[5 - i] = p[i].v[0] + 1\n"
        "    v[5 - i, 2] = p[i].x\n"
    )
    results = []
    for target in ("reference", None):
        memory = np.frombuffer(bytearray(whole.tobytes()), np.uint8).view(PARTICLE)
        given = [memory[::-1], memory["x"][N:], memory["v"][N:]]
        if target is None:
            run_function(shift, as_range(N), given)
        else:
            with fq.FusionQueue(target) as queue:
                queue.submit(fq.kernel(shift), N, *given)
        results.append(memory.tobytes())
    assert results[0] == results[1]


def test_two_dimensions_and_records_of_one_field():
    one = np.dtype([("only", "f8", (2, 2))])
    grid = define(
        "def k(item, p, q):\n"
        "    i, j = item.get_id(0), item.get_id(1)\n"
        "    p[i, j]['only'][1, 0] = q[j, i].only[0, 1] + q['only'][j, i, 1, 1]\n"
        "    p['only'][i, j, 0] = q[j]['only'][i, 1]\n"
    )
    run_both(grid, particles(1, one, (3, 2)), particles(2, one, (2, 3)), items=(3, 2))


def test_no_elements():
    with fq.FusionQueue("reference") as queue:
        made = fq.kernel(function("p[i].x = q[i].x"))
        assert queue.submit(made, 0, particles(1)[:0], particles(2)[:0], np.zeros(0), 0).complete


REFUSED = [
    ("p[i].xx = 1", r"p\[i\] has no field 'xx'.*\n.*\n.*\n  Did you mean x\?  Its fields: tag, x"),
    ("out[i] = q[i]['poss'].a", r"q\[i\] has no field 'poss'"),
    ("out[i] = q[i].pos.c", r"q\[i\].pos has no field 'c'"),
    ("out[i] = q[i]", 'a number is needed here, not a record'),
    ("p[i] = 3", "a number of type int for a record of 8 fields"),
    ("p[i].pos = (1, 2, 3)", "a tuple of 3 for a record of 2 fields, a, b"),
    ("p[i] += q[i]", "a number is needed here, not a record"),
    ("out[i] = p[i] == q[i]", "a number is needed here, not a record"),
    ("p[1:] = q[1:]", "an assignment to a 1-d array of records"),
    ("out[i] = p + 1", "not a 1-d array of records"),
    ("out[i] = len(p[i])", "len of a record"),
    ("out[i] = p[i][0]", "a record has no indices"),
    ("out[i] = p[i].size", "'size' is a field, and an attribute that NumPy's"),
    ("out.x = 1", "attributes cannot be assigned, but for fields of records"),
    ("out[i] = out['x'][i]", "a 1-d array has no field 'x'"),
    ("p[i].v[3] = 1", "the index 3 is outside"),
    ("fq.AtomicRef(p, i).fetch_add(1)", "there are no atomic operations on record"),
    ("r = p[i] if n > 2 else q[i]", "not a record"),
    ("out[i] = p[['x', 'tag']]", "lists are no indices"),
]


@pytest.mark.parametrize(("line", "message"), REFUSED, ids=[line for line, _ in REFUSED])
def test_what_is_no_part_of_the_language_says_so(line, message):
    made = function(line)
    with fq.FusionQueue("reference") as queue, pytest.raises(KernelLanguageError, match=message):
        queue.submit(fq.kernel(made), N, particles(1), particles(2), np.zeros(N), N)


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        (np.dtype([("a", [("s", "S4")])]), r"the field 'a.s': arrays of dtype \|S4 are not"),
        (np.dtype([("a", ">f4")]), "the field 'a'.*byte order"),
        (np.dtype([("a", "f4", (0,))]), "the field 'a' has no elements"),
        (np.dtype([]), "records without fields"),
    ],
)
def test_records_that_kernels_cannot_have(dtype, message):
    made = fq.kernel(function("p[i].a = 1"))
    with fq.FusionQueue("reference") as queue, pytest.raises(ArgumentError, match=message):
        queue.submit(made, N, np.zeros(N, dtype), particles(2), np.zeros(N), N)
    with pytest.raises(ArgumentError, match=message):
        fq.Buffer(N, dtype)


def test_a_single_record_is_no_argument():
    made = fq.kernel(function("out[i] = p.x"))
    with fq.FusionQueue("reference") as queue, pytest.raises(ArgumentError, match="array of one"):
        queue.submit(made, N, particles(1)[0], particles(2), np.zeros(N), N)


def test_a_read_only_field_is_named():
    p = particles(1)
    p.flags.writeable = False
    made = fq.kernel(function("p[i].v[1] = 1"))
    with fq.FusionQueue("reference") as queue, pytest.raises(ArgumentError) as error:
        queue.submit(made, N, p, particles(2), np.zeros(N), N)
    assert """stores to argument 'p["v"]'""" in str(error.value)


def test_an_index_outside_says_which_field():
    made = fq.kernel(function("p['v'][i + n, 0] = 1"))
    with fq.FusionQueue("reference") as queue, pytest.raises(ArgumentError) as error:
        queue.submit(made, N, particles(1), particles(2), np.zeros(N), N)
    assert "write outside array 'p[\"v\"]'" in str(error.value)
    assert f"shape ({N}, 3)" in str(error.value)
