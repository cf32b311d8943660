"""The printer has no words of a language: all but C's own come from the dialect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fusionq.codegen
from fusionq.codegen import queue_layout as q
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C
from fusionq.codegen.opencl.reserved import RESERVED
from fusionq.ir.functions import (
    BIT_CAST,
    DEVICE_FUNCTIONS,
    FLOAT_FUNCTIONS,
    INTEGER_FUNCTIONS,
    PREDICATES,
)
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Atomic,
    Barrier,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Fence,
    For,
    GroupCall,
    InstructionRecords,
    ItemQuery,
    Kernel,
    Load,
    Param,
    Persistent,
    Prefetch,
    ScalarParam,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import (
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    SCALAR_TYPES,
    UINT8,
    UINT32,
    UINT64,
    ScalarType,
)
from fusionq.ir.walk import rewrite_body
from tests.unit.codegen.built_kernels import GOLDEN_KERNELS
from tests.unit.codegen.marker_dialect import BlockWorkers, MarkerWorkers, marker_dialect
from tests.unit.megakernel.cases import sum_then_scale
from tests.unit.megakernel.plans import persistent
from tests.unit.targets import TWO_CORES

MARKERS, BLOCKS = marker_dialect(MarkerWorkers()), marker_dialect(BlockWorkers())
OF_ALL = {
    "bool", "break", "case", "const", "continue", "default", "do", "else", "false", "for", "if",
    "int", "return", "switch", "true", "typedef", "void", "while",
}  # fmt: skip
"""What the C family shares."""
VARIABLES = {"remainder", "step"}
"""Of helper functions; OpenCL C has functions of these names, which are not called."""
ID = ItemQuery("global_id", 0)
INTEGERS = (INT8, INT32, INT64, UINT8, UINT32, UINT64)
FLOATS = (FLOAT16, FLOAT32, FLOAT64)


def foreign_words(text: str) -> set[str]:
    """Words of OpenCL C, and numbers with a C suffix, outside comments."""
    code = re.sub(r"//.*", "", text)
    words = {w for w in re.findall(r"\b[A-Za-z_]\w*", code) if not w.startswith("fq_")}
    numbers = set(re.findall(r"\b[\d.]+(?:e[+-]?\d+)?[uUlLfFhH]+\b", code))
    return {w for w in words - OF_ALL - VARIABLES if RESERVED.fullmatch(w)} | numbers


def one(type: ScalarType) -> Const:
    return Const(type, True if type.is_bool else 1.0 if type.is_float else 1)


def table(type: ScalarType) -> ArrayDecl:
    """A constant array, of floating types with all that is no number."""
    elements = [1, 0] if type.is_bool else [1, np.inf, np.nan] if type.is_float else [1, 2]
    contents = np.array(elements, type.dtype).tobytes().hex()
    return ArrayDecl(f"t_{type.name}", type, (len(elements),), "constant", contents=contents)


def everything() -> Kernel:
    """Every type, operation, function and statement that a kernel over a range can have."""
    params = [ArrayParam(f"a_{t.name}", t, 1) for t in SCALAR_TYPES.values()]
    scalars = [ScalarParam(f"s_{t.name}", t) for t in SCALAR_TYPES.values()]
    body = list(_statements())
    results = {s.result: s for s in body if isinstance(s, Atomic | GroupCall)}
    variables = tuple(
        (name, s.value.type if isinstance(s, GroupCall) else INT32)
        for name, s in results.items()
        if name is not None
    )
    decls = (
        ArrayDecl("here", FLOAT32, (4,), "private"),
        ArrayDecl("shared", INT32, (8,), "local"),
        ArrayDecl("bytes", UINT8, (8,), "local", "one"),
        ArrayDecl("floats", FLOAT32, (8,), "local", "one"),
        *(table(t) for t in SCALAR_TYPES.values()),
    )
    return Kernel(
        "everything", 1, (*params, *scalars), variables, tuple(body), decls, sub_group_size=32
    )


def _statements() -> Iterator[Stmt]:
    for at, value in enumerate(_values()):
        yield Store(f"a_{value.type.name}", (Const(INT64, at),), value)
    for type in SCALAR_TYPES.values():
        yield Store(f"a_{type.name}", (ID,), Load(type, f"t_{type.name}", (ID,)))
    yield Barrier()
    yield Fence("acq_rel", "device")
    yield Prefetch("a_float32", (ID,))
    for op in ("add", "sub", "min", "max", "exchange", "store", "load"):
        value = None if op == "load" else one(FLOAT32)
        yield Atomic(op, "a_float32", (ID,), value, None, "relaxed", "device")
    yield Atomic("xor", "shared", (Const(INT64, 0),), one(INT32), "old", "seq_cst", "work_group")
    for type in (FLOAT32, UINT64):
        yield Atomic(
            "compare_exchange", f"a_{type.name}", (ID,), one(type), None, "acq_rel", "device",
            expected=one(type),
        )  # fmt: skip
    calls = [(f, op) for f in ("reduce", "inclusive_scan", "exclusive_scan")
             for op in ("add", "mul", "min", "max", "and", "or", "xor")]  # fmt: skip
    for number, (function, op) in enumerate(calls):
        for type in (INT8, UINT64) if op in ("and", "or", "xor") else (INT8, UINT64, FLOAT16):
            result = f"r{number}_{type.name}"
            yield GroupCall(function, op, one(type), None, result)
    yield GroupCall("any", None, one(BOOL), None, "some")
    yield GroupCall("all", None, one(BOOL), None, "every")
    yield GroupCall("broadcast", None, one(FLOAT64), Const(INT64, 3), "sent")
    for number, (function, op) in enumerate(calls):
        for type in (INT8, UINT64) if op in ("and", "or", "xor") else (INT8, UINT64, FLOAT16):
            result = f"s{number}_{type.name}"
            yield GroupCall(function, op, one(type), None, result, sub_group=32)
    yield GroupCall("any", None, one(BOOL), None, "some_of_32", sub_group=32)
    yield GroupCall("all", None, one(BOOL), None, "all_of_32", sub_group=32)
    for read in ("broadcast", "shift_left", "shift_right", "permute_xor", "select"):
        yield GroupCall(read, None, one(FLOAT16), ID, f"{read}_of_32", sub_group=32)
    i = Var(INT64, "i")
    sums = (Store("here", (Const(INT64, 0),), Load(FLOAT32, "floats", (i,))),)
    yield For("i", Const(INT64, 0), Param(INT64, "s_int64"), Param(INT64, "s_int64"), sums)


def _values() -> Iterator[Expr]:
    for type in SCALAR_TYPES.values():
        element = Load(type, f"a_{type.name}", (ID,))
        yield from (Cast(other, element) for other in SCALAR_TYPES.values())
        alike = [t for t in SCALAR_TYPES.values() if t.bits == type.bits and not t.is_bool]
        if not type.is_bool:
            yield from (Call(other, BIT_CAST, (element,)) for other in alike)
        yield Param(type, f"s_{type.name}")
    for type in INTEGERS:
        element = Load(type, f"a_{type.name}", (ID,))
        for op in ("add", "sub", "mul", "floordiv", "mod", "pow", "shl", "shr", "and", "xor"):
            yield Binary(type, op, element, element)
        for function in ("abs", "sign", "minimum", "maximum", "fmin", "fmax", "pymin", "pymax"):
            arguments = (element,) if function in ("abs", "sign") else (element, element)
            yield Call(type, function, arguments)
        low = -(1 << type.bits - 1) if type.kind == "i" else (1 << type.bits) - 1
        yield Const(type, low)
    for type in SCALAR_TYPES.values():
        if type.is_integer:
            element = Load(type, f"a_{type.name}", (ID,))
            yield from (Call(type, function, (element,)) for function in INTEGER_FUNCTIONS)
    for type in FLOATS:
        element = Load(type, f"a_{type.name}", (ID,))
        for op in ("add", "truediv", "floordiv", "mod", "pow"):
            yield Binary(type, op, element, element)
        for function in ("abs", "sign", "minimum", "maximum", "fmin", "fmax", "pymin", "pymax"):
            arguments = (element,) if function in ("abs", "sign") else (element, element)
            yield Call(type, function, arguments)
        for function, number in FLOAT_FUNCTIONS.items():
            yield Call(type, function, (element,) * number)
        yield from (Call(BOOL, function, (element,)) for function in PREDICATES)
        yield Call(type, "ldexp", (element, Load(INT32, "a_int32", (ID,))))
        yield from (Const(type, x) for x in (0.1, float("inf"), float("-inf"), float("nan")))
    for name, (of, count) in DEVICE_FUNCTIONS.items():
        if name != "record_row":
            yield Call(SCALAR_TYPES[of], name, (ID,) * count)
    queries = ("global_id", "global_range", "local_id", "local_range", "group_id", "group_range")
    yield from (ItemQuery(query, 0) for query in queries)


def recorded() -> Kernel:
    """A persistent kernel that waits for boxes and for whole stages, with records."""
    kernel = persistent(*sum_then_scale(100)).stage.kernel
    body = kernel.body[0]
    assert isinstance(body, Persistent)
    records = InstructionRecords("clock", "kept", "base", "rows", 8, 6)
    more = (ArrayParam("kept", INT64, 1), ScalarParam("base", INT64), ScalarParam("rows", INT64))
    params = (*kernel.params, *more)
    return replace(kernel, params=params, body=(replace(body, records=records),))


KERNELS = {build.__name__: build for build in (*GOLDEN_KERNELS, everything, recorded)}


@pytest.mark.parametrize("name", KERNELS)
def test_the_printer_writes_no_word_of_opencl(name: str) -> None:
    text = generate(KERNELS[name](), "strict", TWO_CORES, MARKERS).text
    assert foreign_words(text) == set()
    assert "KERNEL" in text


@pytest.mark.parametrize("name", KERNELS)
def test_opencl_words_are_found_where_there_are_some(name: str) -> None:
    found = foreign_words(generate(KERNELS[name](), "strict", TWO_CORES, OPENCL_C).text)
    assert {"__kernel", "__global", "long"} <= found


def test_every_primitive_of_workers_is_in_a_persistent_kernel() -> None:
    words = {
        "LANE", "WORKER", "WORKER_BARRIER", "BROADCAST", "LOAD_ACQUIRE", "LOAD_RELAXED",
        "FETCH_ADD_RELAXED",
        "FETCH_ADD_RELEASE", "COMPARE_EXCHANGE", "STORE_RELAXED", "STORE_RELEASE", "PAUSE",
        "INLINE", "OUTLINED", "FUNCTIONS", "UNLIKELY", "ORDER", "POINTER_TO_WORD",
        "KERNEL_OF_WORKERS", "CLOCK",
    }  # fmt: skip
    text = generate(recorded(), "strict", TWO_CORES, MARKERS).text
    assert words <= set(re.findall(r"\w+", text))


def functions(text: str) -> dict[str, str]:
    """The bodies of the functions of a file, by name."""
    found = re.findall(r"^\S[^\n{}]*?\b(fq_\w+)\([^{}]*\) \{\n(.*?)^\}$", text, re.M | re.S)
    return dict(found)


def test_nontemporal_stores_are_beside_ordinary_ones() -> None:
    kernel = KERNELS["nontemporal"]()
    text = generate(kernel, "strict", TWO_CORES, MARKERS).text
    assert text.count("STORE_VECTOR(") == text.count("VECTOR(V_") == 2
    (condition,) = (line for line in text.splitlines() if "bool fq_streams" in line)
    for place in ("image_address % 8", "image_stride0 % 4", "out_address % 4", "out_shape1 % 4"):
        assert f"{place} == 0" in condition
    without = generate(kernel, "strict", TWO_CORES, replace(MARKERS, streaming=None)).text
    ordinary = replace(kernel, body=rewrite_body(kernel.body, stmt=_ordinary))
    assert without == generate(ordinary, "strict", TWO_CORES, MARKERS).text


def _ordinary(stmt: Stmt) -> tuple[Stmt, ...]:
    return (replace(stmt, nontemporal=False) if isinstance(stmt, Store) else stmt,)


def test_the_first_lane_polls_alone() -> None:
    """The others are at the broadcast behind the loop: inside there is nothing that they miss."""
    text = generate(recorded(), "strict", TWO_CORES, MARKERS).text
    found = functions(text)
    alone = {
        "fq_started", "fq_wait", "fq_wait_tiles", "fq_wait_all", "fq_tell_stall", "fq_publish",
        "fq_counter",
    }  # fmt: skip
    for name in (*alone, "fq_read", "fq_add", "fq_word", "fq_count_at_work"):
        assert "BROADCAST" not in found[name] and "BARRIER" not in found[name], name
        assert "lane" not in found[name], name
    outlined = alone - {"fq_wait"}
    assert set(re.findall(r"^OUTLINED \w+ (\w+)\(", text, re.M)) == outlined
    for name in outlined - {"fq_tell_stall", "fq_wait_tiles", "fq_counter"}:
        (call,) = re.findall(rf"if \((?:fq_)?lane == 0\)\s+(?:\w+ = )?{name}\(", text)
        assert call
    assert "fq_waited = BROADCAST(fq_waited);" in text
    assert "fq_instruction < 0 || fq_stalled(fq_control, fq_lane)" in text
    assert "{ PAUSE(); seen = fq_read(fq_word(control, line, 0)); }" in found["fq_wait"]


def test_a_worker_that_waits_for_long_gives_way_where_it_can() -> None:
    """Behind the first check, so that short waits cost nothing; not for ever where nobody is at
    work, so that a stall is told in bounded time."""
    here = replace(TWO_CORES, device=replace(TWO_CORES.device, yields_processor=True))
    wait = functions(generate(recorded(), "strict", here, MARKERS).text)["fq_wait"]
    (when,) = re.findall(r"if \((.*)\)\s+YIELD_PROCESSOR\(\);", wait)
    most = here.idle_checks * here.polls_between_checks
    assert when == f"!at_work && polls % {here.polls_between_yields} == 0 && idle < {most}"
    assert "YIELD_PROCESSOR" not in generate(recorded(), "strict", TWO_CORES, MARKERS).text


def test_the_first_of_many_threads_gets_an_instruction_alone() -> None:
    """Some look at counters with it, the others are at the broadcast behind: before, there is
    nothing that they miss."""
    text = generate(recorded(), "strict", TWO_CORES, BLOCKS).text
    assert foreign_words(text) == set()
    assert "BROADCAST" not in functions(text)["fq_now"] and "fq_stalled" not in text
    _, loop = text.split("    for (;;) {\n")
    _, alone, together = re.split(r"^        (?:if \(fq_lane < 8\) \{|\})$", loop, flags=re.M)[:3]
    assert "fq_wait_all(" in alone and "fq_stall_seen(fq_control" in alone
    assert not re.search(r"\bBROADCAST|BARRIER", alone)
    assert "POLLER_BROADCAST(fq_instruction, 0)" in alone
    assert alone.index("fq_told[2] = fq_first_0;") < alone.index("fq_wait_all(")
    assert alone.index("fq_told[1] = fq_counter(") < alone.index("fq_wait_all(")
    assert "ALL_POLLERS(mine)" in functions(text)["fq_wait_lines"]
    assert "fq_wait_lines(" in functions(text)["fq_wait_all"]
    assert together.startswith(
        "\n        WORKER_GROUP_BARRIER();\n        fq_instruction = fq_told[0];\n"
    )
    assert "BROADCAST" not in together and "fq_tile % " not in together
    last = TWO_CORES.worker_size - 1
    assert f"if (fq_lane == {last}) fq_publish(fq_record, fq_control, fq_counted);" in text
    published = functions(text)["fq_publish"]
    assert published.lstrip().startswith("RELEASE_FENCE();")
    assert "RELAXED" in published and "fq_add(" in published and "1, RELEASE" not in published


class ManyPollers(BlockWorkers):
    """As many as read the words of a list of instructions at once."""

    pollers = q.LISTED_WORDS


def test_waits_that_are_listed_are_not_worked_out() -> None:
    """A word each of the next instruction is copied before the waits, and read behind them."""
    text = generate(recorded(), "strict", TWO_CORES, marker_dialect(ManyPollers())).text
    assert foreign_words(text) == set()
    head, loop = text.split("    for (;;) {\n")
    assert "fq_list[1] = -1;" in head and "fq_stall_seen(fq_control) ? -1" in head
    alone = loop.partition("WORKER_GROUP_BARRIER();")[0]
    assert not re.search(r"\bBROADCAST|BARRIER", alone)
    read = alone.index("fq_entry = fq_ahead[fq_lane];")
    copied = alone.index("*(fq_ahead + fq_lane)")
    assert read < copied < alone.index("fq_wait_lines(") < alone.index("fq_wait_all(")
    assert f"if (fq_count != {q.BY_FORMS}) {{" in alone
    assert "fq_told[1] = fq_listed ? " in alone and " : fq_counter(" in alone
    assert "fq_list[0]++" in alone and alone.count("fq_list[0]") == 2, "where there is no list"
    few = generate(recorded(), "strict", TWO_CORES, BLOCKS).text
    assert "fq_listed" not in few and "fq_ahead" not in few


def test_only_their_callers_choose_a_dialect() -> None:
    """No module of the printer imports OpenCL C or CUDA C++."""
    package = Path(fusionq.codegen.__file__).parent
    for path in package.rglob("*.py"):
        if path.relative_to(package).parts[0] in ("opencl", "cuda"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [a.name for a in node.names] if isinstance(node, ast.Import) else []
            own = ("fusionq.codegen.opencl", "fusionq.codegen.cuda")
            assert not any(name.startswith(own) for name in names), path
