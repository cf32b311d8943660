"""Python that kernels may hold or not: expressions and statements for changed kernels.

``{a}`` and ``{b}`` stand for names of the kernel.
"""

from __future__ import annotations

EXPRESSIONS = """
0; 1; -1; 2 ** 31; 2 ** 63; -2 ** 63; 2 ** 64; 10 ** 40; 1e308; 1e999; 1j; 0.1; True; None; ...
'text'; b'bytes'; f'{{{a}}}'; (); ({a},); ({a}, {b}); [{a}]; {{}}; {{{a}}}; {{{a}: {b}}}
{a}; {b}; {a} + {b}; {a} @ {b}; {a} // 0; {a} % 0; 0 ** -1; 1 << 70; 1 << -1; {a} << {b}; {a} ** {b}
not {a}; ~{a}; -{a}; +{a}; {a} and {b}; {a} or {b}; {a} < {b} < {a}; {a} is {b}; {a} in {b}
{a} is None; {a} == None; {a} if {b} else 0; ({a} := {b}); ({a} := 3); lambda x: x; (lambda: 1)()
[x for x in range(3)]; {{x for x in {a}}}; sum(x for x in range(3)); (yield); (yield {a}); await {a}
{a}[0]; {a}[{b}]; {a}[-1]; {a}[0, 0]; {a}[0][0]; {a}[1:2]; {a}[::-1]; {a}[...]; {a}[None]; {a}[()]
{a}[{a}[0]]; {a}[2 ** 63]; {a}[1.5]; {a}[True]; {a}['x']; {a}[np.uint64(1)]; {a}[{b}, ...]
{a}.shape; {a}.shape[0]; {a}.shape[9]; {a}.shape[-1]; {a}.shape[{b}]; {a}.ndim; {a}.size; {a}.dtype
{a}.T; {a}.sum(); {a}.nonsense; {a}.__class__; {a}.real; {a}.get_id; {a}.get_id(0); {a}.get_id(7)
{a}.get_id(-1); {a}.get_id({b}); {a}.get_id(); {a}.get_id(0, 1); {a}.get_id(dim=0); {a}.get_range(0)
{a}.get_linear_id(); {a}.get_local_id(0); {a}.get_group(); {a}.get_group().leader
{a}.get_group().get_group_id(0); {a}.get_sub_group(); {a}(); {a}({b}); {a}(*{b}); {a}(**{b})
np; math; fq; np.float32; np.float32(1); np.float32({a}); np.int8(300)
np.uint8(-1); np.int64(2**63)
np.bool_({a}); np.float16(1e9); np.complex64(1); np.float32(1, 2); np.float32(); np.pi
np.nan; np.inf
np.sin({a}); np.sin; np.sin({a}, out={b}); np.sum({a}); np.where({a}, {b}, 0)
np.array([1]); np.nope
np.minimum({a}, {b}); np.array; np.random.rand(); np.zeros(3); np.float32.nope; np.linalg.norm({a})
math.sin({a}); math.nope({a}); math.pi; math.floor({a}); math.fma({a}, {b}, {a}); math.inf
min({a}, {b}); min(); max(1); min({a}, key={b}); abs({a}); abs(); round({a})
round({a}, 2); pow({a}, 2)
int({a}); int('3'); float({a}); float('nan'); bool({a}); len({a}); range(3)
range(0, 5, 0); sum({a})
range({a}); enumerate({a}); zip({a}, {b}); isinstance({a}, int); print({a}); open('x'); type({a})
globals(); locals(); super(); __name__; __class__; __import__('os'); kernel; kernel({a}); id({a})
fq.Item; fq.PrivateArray(4, np.float32); fq.PrivateArray(-1, np.int32); fq.PrivateArray({a}, {b})
fq.PrivateArray((2, 3), np.int64, fill_zeros=True); fq.PrivateArray(2 ** 40, np.float64)
fq.AtomicRef({a}, 0); fq.AtomicRef({a}, 0).fetch_add(1); fq.AtomicRef({a}, {b}).load()
fq.AtomicRef({a}, 0).compare_exchange({b}, 0, 1, 2); fq.AtomicRef({a}); fq.AtomicRef({a}, 0, {b})
fq.reduce_over_group({a}, {b}, 'add'); fq.reduce_over_group({a}.get_group(), {b}, fq.plus)
fq.group_broadcast({a}.get_group(), {b}, 0); fq.any_of_group({a}.get_group(), {b}); fq.nope
fq.MemoryOrder.RELAXED; fq.group_barrier({a}.get_group()); fq.LocalAccessor(4, np.int32)
"""

STATEMENTS = r"""
pass | return | return 1 | return {a} | return None | break | continue | global {a} | nonlocal {a}
del {a} | del {a}[0] | raise ValueError | raise | assert {a} | assert {a}, 'no' | import os
from math import sin | from math import * | {a}: int = 3 | {a}: int | {a}: 'np.float32' = 1.0
{a} = {b} = 3 | {a}, {b} = {b}, {a} | {a}, *{b} = 1, 2 | ({a}, ({b},)) = 1, (2,) | [{a}, {b}] = 1, 2
{a} = 3 | {a} = 0.5 | {a} = {b} | {a} = None | {a} = 'text' | {a} = (1, 2) | {a} = {b}.get_group()
{a} += {b} | {a} @= {b} | {a} //= 0 | {a} <<= 99 | {a} **= {b} | {a}[0] += {b} | {a}[{b}] = {a}
{a}[0] = {a}[0], 1 | {a}[0], {a}[1] = 1, 2 | {a}.shape = 1 | {a}.x = {b}
{a}[:] = 0 | {a}[0] = None
'text' | ... | {a} | print({a}) | lambda: 0 | {a} = lambda y: y | {a} = kernel | kernel({a})
np.float32(1) | fq.group_barrier({a}.get_group()) | fq.group_barrier({b}) | fq.atomic_fence()
fq.atomic_fence(fq.MemoryOrder.ACQ_REL, fq.MemoryScope.DEVICE)
{a} = fq.PrivateArray(4, np.float32)
{a} = fq.AtomicRef({b}, 0) | {a}.store(1) | {a}.fetch_add({b}) | (yield) | yield {a} | await {a}
for {a} in {b}: pass | for {a} in range(3): {b} = {a} | for {a} in range({b}): break
for {a} in range(9): continue | for {a} in range(2, 9, -1): pass | for {a}, {b} in range(3): pass
for {a}[0] in range(3): pass | for {a} in (1, 2): pass | for {a} in range(10 ** 9): pass
for _ in range(3):\n    pass\nelse:\n    {a} = 1 | while {a}: pass | while {a} < {b}: {a} += 1
while True: break | while 1: return | while False: {a} = 1 | while {a}[0]: {a}[0] -= 1
if {a}: return | if {a}: {b} = 1\nelse: {b} = 0.5 | if {a} is None: pass | if True: {a} = 1
with {a}: pass | with {a} as {b}: pass | try: pass\nfinally: {a} = 1 | try: {a} = 1\nexcept: pass
match {a}:\n    case 1: pass\n    case _: {b} = 1 | def {a}(x): return x | def f(): return {a}
class {a}: pass | async def f(): pass | if ({a} := {b}) > 1: pass | assert ({a}, 'always')
"""

EXTREMES = (
    0, -1, 2**31, 2**32, 2**63 - 1, -(2**63), 2**63, 2**64, 10**100, 1e-320, 1e308, float("inf"),
    float("nan"), 1j, True, None, "text", b"bytes", ...,
)  # fmt: skip


def expressions() -> tuple[str, ...]:
    """One text an expression."""
    return tuple(e.strip() for line in EXPRESSIONS.split("\n") for e in line.split("; ") if e)


def statements() -> tuple[str, ...]:
    """One text a statement."""
    lines = (line for line in STATEMENTS.split("\n") if line)
    return tuple(s.strip().replace("\\n", "\n") for line in lines for s in line.split(" | "))
