"""Minima of negations where NVRTC would lose the minus: which are found, and what is compiled
instead."""

from __future__ import annotations

import pytest

from fusionq.backends.cuda import compiler
from fusionq.backends.cuda.compiler import advice, compiled
from fusionq.backends.cuda.lost_minus import UNOPTIMISED, happens, kept_apart, may_be_lost

HELPERS = """\
static __device__ inline T fq_pymin(T a, T b) {
    return min(a, b);
}

static __device__ inline T fq_combine_max(T a, T b) {
    return b > a ? b : a;
}
"""
KERNEL = """
extern "C" __global__ void k(T* out, const T* xs, const T* ys) {
    const int i = threadIdx.x;
    const T x = xs[i], y = ys[i];
    out[i] = VALUE;
}
"""
OF_FUNCTIONS = [
    "fq_pymin(fq_pymin(x, -x), y)",
    "fq_pymin(fq_pymin(-y, -x), y)",
    "fq_pymin(y, fq_pymin(x, 0 - y))",
    "fq_pymin(fq_pymin(x, -(x + y)), y)",
    "fq_combine_max(fq_combine_max(x, ~y + 1), y)",
]
OF_A_CONDITION = "(-x < y ? -x : y) < x ? (-x < y ? -x : y) : x"
UNHARMED = [
    "fq_pymin(x, -y)",
    "fq_pymin(fq_pymin(x, y), 7)",
    "-fq_pymin(x, fq_pymin(y, 7))",
    "fq_pymin(fq_combine_max(x, -y), y)",
]


def function(*lines: str) -> str:
    return ".visible .entry k(\n)\n{\n" + "\n".join(f"\t{line};" for line in lines) + "\n}\n"


def text_of(value: str, type: str = "int") -> str:
    return f"typedef {type} T;\n{HELPERS.replace('T ', f'{type} ')}{KERNEL}".replace("VALUE", value)


def ptx_of(text: str) -> str:
    return compiler._made(text, "sm_90", ()).ptx


MINIMUM = ("min.s32 \t%r3, %r1, %r2", "min.s32 \t%r5, %r3, %r4")


@pytest.mark.parametrize(
    "lines",
    [
        ("neg.s32 \t%r2, %r1", *MINIMUM),
        ("neg.s32 \t%r1, %r2", *MINIMUM),
        ("neg.s32 \t%r9, %r1", "mov.u32 \t%r8, %r9", "mov.b32 \t%r2, %r8", *MINIMUM),
        ("neg.s32 \t%r2, %r1", MINIMUM[0], "mov.b32 \t%r9, %r3", "min.s32 \t%r5, %r4, %r9"),
        ("sub.s32 \t%r2, 0, %r1", *MINIMUM),
        ("mov.b32 \t%r7, 0", "sub.s32 \t%r2, %r7, %r1", *MINIMUM),
        ("neg.s16 \t%rs2, %rs1", "max.s16 \t%rs3, %rs1, %rs2", "max.s16 \t%rs5, %rs3, %rs4"),
        # A loop's, of which iterations may follow each other.
        ("$L__BB0_1:\tneg.s32 \t%r2, %r1", "min.s32 \t%r3, %r9, %r2", "mov.u32 \t%r9, %r3"),
    ],
)
def test_a_minus_that_may_be_lost(lines: tuple[str, ...]) -> None:
    assert may_be_lost(function(*lines))


@pytest.mark.parametrize(
    "lines",
    [
        MINIMUM,
        ("neg.s32 \t%r9, %r5", *MINIMUM),
        ("neg.s32 \t%r4, %r6", *MINIMUM),
        ("neg.f32 \t%f2, %f1", "min.f32 \t%f3, %f1, %f2", "min.f32 \t%f5, %f3, %f4"),
        ("neg.s32 \t%r2, %r1", MINIMUM[0], "max.s32 \t%r5, %r3, %r4"),
        ("neg.s32 \t%r2, %r1", MINIMUM[0], "or.b32 \t%r6, %r3, %r7", "min.s32 \t%r5, %r6, %r4"),
        ("sub.s32 \t%r2, %r6, %r1", *MINIMUM),
    ],
)
def test_none_that_is(lines: tuple[str, ...]) -> None:
    assert not may_be_lost(function(*lines))


def test_functions_have_registers_of_their_own() -> None:
    assert not may_be_lost(function("neg.s32 \t%r2, %r1") + function(*MINIMUM))


@pytest.mark.parametrize("value", OF_FUNCTIONS)
@pytest.mark.parametrize("type", ["int", "short"])
def test_helpers_are_kept_apart(nvrtc: object, value: str, type: str) -> None:
    text = text_of(value, type)
    found = may_be_lost(ptx_of(text))
    assert found or type == "short"  # those minima are of 32 bits, behind conversions
    assert not may_be_lost(ptx_of(kept_apart(text)))


@pytest.mark.parametrize("value", UNHARMED)
def test_others_are_compiled_as_they_are(nvrtc: object, value: str) -> None:
    assert not may_be_lost(ptx_of(text_of(value)))


def test_floats_have_no_part_in_it() -> None:
    text = text_of("fq_pymin(fq_pymin(x, -x), y)", "float")
    assert kept_apart(text) == text


def test_what_is_compiled(nvrtc: object, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, tuple[str, ...]]] = []
    make = compiler._made

    def recorded(text: str, architecture: str, options: tuple[str, ...]):
        made.append((text, options))
        return make(text, architecture, options)

    monkeypatch.setattr(compiler, "_made", recorded)
    monkeypatch.setattr(compiler, "nvrtc_version", lambda: (13, 3))
    unharmed, by_function, by_condition = map(
        text_of, (UNHARMED[0], OF_FUNCTIONS[0], OF_A_CONDITION)
    )
    compiled(unharmed, "sm_90", ())
    compiled(by_function, "sm_80", ())
    assert made == [(unharmed, ()), (by_function, ())]
    compiled(by_function, "sm_90", ())
    assert made[2:] == [(by_function, ()), (kept_apart(by_function), ())]
    compiled(by_condition, "sm_90", ())
    assert made[-1] == (by_condition, UNOPTIMISED)


def test_versions() -> None:
    assert happens((13, 0), "sm_90") and happens((13, 3), "sm_90")
    assert not happens((13, 4), "sm_90") and not happens((13, 0), "sm_100")


def test_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    for version, found in (((13, 0), "does not end"), ((13, 3), "13.4 and newer"), ((13, 4), None)):
        monkeypatch.setattr(compiler, "nvrtc_version", lambda v=version: v)
        text = advice()
        assert text is None if found is None else text is not None and found in text
