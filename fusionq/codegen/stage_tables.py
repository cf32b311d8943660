"""What of a persistent kernel's stages is the same: numbers for the schedule and the code."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from fusionq.base.identity_cache import cached_by_identity
from fusionq.codegen import queue_layout as q
from fusionq.ir.nodes import ArrayParam, Expr, KernelParam, Param, Persistent, StageCode, TileWait
from fusionq.ir.walk import expressions, rewrite

Bounds = tuple[tuple[Expr, Expr], ...]
"""As those of a ``TileWait``."""


@dataclass(frozen=True, slots=True)
class WaitForms:
    """The closed forms of waits, each once, with parameters named by ``value_name``.

    ``of_codes``: for each code and each of its waits the form's number, -1 for a wait for all
    tiles, and the code's parameters that are its values.  ``values``: the most of them.
    """

    forms: tuple[Bounds, ...]
    of_codes: tuple[tuple[tuple[int, tuple[str, ...]], ...], ...]
    values: int


def value_name(number: int) -> str:
    """The parameter that is the value of that number of a wait's form."""
    return f"value_{number}"


@cached_by_identity
def code_bodies(body: Persistent) -> list[int]:
    """For each code the number of its body: codes that differ in their waits only share one."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(_without_waits(code), len(numbers)) for code in body.codes]


@dataclass(frozen=True, slots=True)
class StageOperands:
    """The arguments in which stages with one body differ, and where a worker finds their values: in
    64-bit cells of a table of its own, some for each of the kernel's parameters.

    ``varying``: for each body the positions of the parameters whose arguments differ.  ``cells``:
    the first cell of each of the kernel's parameters that is such an argument; ``count`` are
    there.  ``rows``: for each stage the first cells of these arguments.
    """

    varying: tuple[tuple[int, ...], ...]
    cells: dict[str, int]
    count: int
    rows: tuple[tuple[int, ...], ...]


@cached_by_identity
def operands_of(body: Persistent) -> StageOperands:
    """Where the stages of ``body`` find their arguments."""
    numbers = code_bodies(body)
    given: list[dict[int, set[str]]] = [{} for _ in set(numbers)]
    for stage in body.stages:
        for position, _ in _used_params(body.codes[stage.code]):
            arguments = given[numbers[stage.code]].setdefault(position, set())
            arguments.add(stage.arguments[position])
    varying = tuple(tuple(p for p, names in of.items() if len(names) > 1) for of in given)
    sizes: dict[str, int] = {}
    for stage in body.stages:
        for position in varying[numbers[stage.code]]:
            size = _cells(body.codes[stage.code].kernel.params[position])
            name = stage.arguments[position]
            sizes[name] = max(sizes.get(name, 0), size)
    cells: dict[str, int] = {}
    count = 0
    rows = []
    for stage in body.stages:
        for position in varying[numbers[stage.code]]:
            name = stage.arguments[position]
            if name not in cells:
                cells[name] = count
                count += sizes[name]
        rows.append(tuple(cells[stage.arguments[p]] for p in varying[numbers[stage.code]]))
    return StageOperands(varying, cells, count, tuple(rows))


def _cells(param: KernelParam) -> int:
    """How many cells an argument takes: of an array its address, its extents, and its strides
    where these do not follow from them."""
    if not isinstance(param, ArrayParam):
        return 1
    return 1 + param.ndim if param.contiguous else 1 + 2 * param.ndim


@cached_by_identity
def wait_forms(body: Persistent) -> WaitForms:
    """The closed forms of the waits of ``body``: waits that differ in their parameters only have
    one."""
    numbers: dict[Bounds, int] = {}

    def of_wait(wait: TileWait) -> tuple[int, tuple[str, ...]]:
        if wait.bounds is None:
            return -1, ()
        values: dict[str, int] = {}

        def numbered(expr: Expr) -> Expr:
            if not isinstance(expr, Param):
                return expr
            return replace(expr, name=value_name(values.setdefault(expr.name, len(values))))

        form = tuple((rewrite(a, numbered), rewrite(b, numbered)) for a, b in wait.bounds)
        return numbers.setdefault(form, len(numbers)), tuple(values)

    of_codes = tuple(tuple(map(of_wait, code.waits)) for code in body.codes)
    values = max((len(v) for of_code in of_codes for _, v in of_code), default=0)
    return WaitForms(tuple(numbers), of_codes, values)


def unwritten_parameters(body: Persistent, number: int) -> frozenset[str]:
    """The array parameters of the body of that number that stand for none that a stage writes."""
    bodies = code_bodies(body)
    uses = [stage for stage in body.stages if bodies[stage.code] == number]
    return frozenset(
        param.name
        for k, param in enumerate(body.codes[bodies.index(number)].kernel.params)
        if isinstance(param, ArrayParam)
        and {stage.arguments[k] for stage in uses}.issubset(body.unwritten)
    )


def _without_waits(code: StageCode) -> Hashable:
    """What the text of a code's body depends on; parameters that only the waits use do not
    count."""
    kernel = code.kernel
    text = kernel.body, kernel.arrays, kernel.variables, _used_params(code)
    return *text, code.extents, code.local_range, code.reduced, code.lanes, code.apart


def _used_params(code: StageCode) -> tuple[tuple[int, KernelParam], ...]:
    """The parameters of a code that its body may use, with their positions."""
    used = {e.name for e in expressions(code.kernel.body) if isinstance(e, Param)}
    return tuple(
        (position, param)
        for position, param in enumerate(code.kernel.params)
        if isinstance(param, ArrayParam) or param.name in used
    )


@cached_by_identity
def table_words(body: Persistent) -> int:
    """The words of a schedule in front of the order of instructions."""
    waits = sum(len(stage.producers) for stage in body.stages)
    of_wait = q.VALUES + wait_forms(body).values
    return words_before_waits(body) + of_wait * waits


@cached_by_identity
def words_before_waits(body: Persistent) -> int:
    """The words of a schedule in front of what stages wait for."""
    rows = sum(map(len, set(operands_of(body).rows)))
    return q.HEADER + q.RECORD * len(body.stages) + rows
