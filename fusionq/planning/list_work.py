"""What the stages of a persistent kernel have to do, as the cost model sees it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from fusionq.analysis.item_space import global_range, largest
from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import ArrayArgument, ScalarArgument, Submission
from fusionq.base.frozen import dataclass
from fusionq.base.target import Target
from fusionq.codegen.along_rows import rows_of
from fusionq.codegen.interior import parted, parted_items
from fusionq.codegen.private_reductions import private_reductions, with_reductions
from fusionq.codegen.row_loops import lanes_of
from fusionq.codegen.row_segments import row_segments
from fusionq.ir.nodes import ArrayParam, Const, Kernel, Param, Persistent, StageCode
from fusionq.ir.side_by_side import side_by_side
from fusionq.ir.types import INT64
from fusionq.ir.walk import is_work_group_function
from fusionq.megakernel.evaluate import evaluate
from fusionq.megakernel.schedule import pipelined, tiling_of
from fusionq.megakernel.tiles import extents_of, tiled
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.sources import (
    ArgumentSource,
    ExtentSource,
    ParamSource,
    QueueSource,
    RangeSource,
)
from fusionq.passes.whole_tiles import may_be_whole
from fusionq.planning.cost import NOTHING, ListWork, StageWork, Work, chain_of
from fusionq.planning.item_work import item_work
from fusionq.planning.known_values import Sizes
from fusionq.planning.plan import OverlappedTiling, StagePlan, TiledPart
from fusionq.planning.work import operations


def list_work(
    questions: Questions,
    plan: StagePlan,
    launches: Sequence[Collection[int]],
    target: Target,
    are_along_rows: Callable[[tuple[int, ...]], bool] = lambda members: False,
) -> ListWork:
    """The work of a persistent kernel, with the tiles that it gets for its present sizes;
    ``launches``: the submissions of each that would do the list without it; ``are_along_rows``:
    whether a launch of some has code of its own for the inside of rows, too."""
    body = plan.kernel.body[0]
    assert isinstance(body, Persistent)
    arrays, integers = _arguments(questions, plan.kernel, plan.sources)
    insides, divided = zip(*(_inside(code, target) for code in body.codes), strict=True)
    are_cut = [each and target.device.jams_rows for each in divided]
    reducing = [_reducing(code, target) for code in body.codes]
    known: dict[Hashable, tuple[int, Work, Work | None, bool]] = {}
    found: list[tuple[int, Work, Work | None, bool]] = []
    params: list[dict[str, int]] = []
    memory: dict[Hashable, int] = {}
    for members, stage in zip(plan.inner, body.stages, strict=True):
        kernel = body.codes[stage.code].kernel
        names = dict(zip((p.name for p in kernel.params), stage.arguments, strict=True))
        values = {own: integers[name] for own, name in names.items() if name in integers}
        touched = {own: arrays[name] for own, name in names.items() if name in arrays}
        own_memory = {view: prod(a.shape) * a.dtype.nbytes for view, a in touched.values()}
        memory |= own_memory
        params.append(values)
        numbers = {view: number for number, view in enumerate(own_memory)}
        which = [(numbers[view], a.shape) for view, a in touched.values()]
        key = stage.code, *values.values(), *which
        if key not in known:
            shapes = {(own, d): n for own, (_, a) in touched.items() for d, n in enumerate(a.shape)}
            code, done = body.codes[stage.code], insides[stage.code]
            own = reducing[stage.code]
            if own is not None and own.holds(touched):
                done = own.inside
            range_ = tuple(evaluate(e, values) for e in code.extents)
            sizes = Sizes(values, shapes, range_, code.local_range or ())
            inside = None
            if done is not None:
                inside = item_work(done, sizes, target) * prod(range_)
            whole = inside
            if whole is None or not are_cut[stage.code]:
                whole = item_work(kernel, sizes, target) * prod(range_)
            along_rows = inside is not None and are_along_rows(members)
            known[key] = sum(own_memory.values()), whole, inside, along_rows
        found.append(known[key])
    extents = extents_of(body, params)
    pipeline = pipelined(body, extents, params, target.worker_size)
    in_all = sum(memory.values())
    tiling = tiling_of(body, extents, in_all, pipeline, target)
    launch_of = {s: k for k, launch in enumerate(launches) for s in launch}
    stages = tuple(
        StageWork(
            launch_of[members[0]],
            prod(extent),
            nbytes,
            whole,
            inside,
            tiled(extent, tile).tiles,
            _work_groups(prod(extent), body.codes[stage.code].local_range),
            along_rows=along_rows,
        )
        for members, extent, tile, (nbytes, whole, inside, along_rows), stage in zip(
            plan.inner, extents, tiling.tiles, found, body.stages, strict=True
        )
    )
    near = tiling.assignment in ("turns", "shares")
    return ListWork(stages, in_all, pipeline is not None, tiling.block, near)


def inside_tiles(code: StageCode, target: Target) -> Kernel | None:
    """What most work-items of a persistent kernel's stage do, if that is less than its kernel."""
    return _inside(code, target)[0]


def _inside(code: StageCode, target: Target) -> tuple[Kernel | None, bool]:
    """``inside_tiles``, and whether rows are cut for that where quotients of ids change, as those
    of launches are on devices whose launches go along rows."""
    body, interior = parted(code)
    if _is_by_vectors(code, target):
        segments = row_segments(code.kernel, body)
        if segments is not None:
            inside = replace(code.kernel, body=segments.counted(code.kernel))
            return inside, bool(segments.divisors)
    return None if interior is None else replace(code.kernel, body=interior.body), False


@dataclass(frozen=True)
class _Reducing:
    """What most work-items do where array reductions are done in private memory, which has room
    for ``most`` elements of each of ``arrays``."""

    inside: Kernel
    arrays: tuple[str, ...]
    most: int

    def holds(self, touched: Mapping[str, tuple[Hashable, ArrayArgument]]) -> bool:
        return all(prod(touched[name][1].shape) <= self.most for name in self.arrays)


def _reducing(code: StageCode, target: Target) -> _Reducing | None:
    if not code.reduced or not _is_by_vectors(code, target):
        return None
    body, _ = parted(code)
    found = private_reductions(code.kernel, body, code.reduced, target.worker_size)
    if found is None:
        return None
    own = replace(code, kernel=with_reductions(code.kernel, found))
    inside = inside_tiles(own, target) or own.kernel
    return _Reducing(inside, code.reduced, found.arrays[0].shape[0])


def _is_by_vectors(code: StageCode, target: Target) -> bool:
    """Whether lanes of a vector do a stage's work-items."""
    vectors = target.worker_size == target.sub_group_size
    return vectors and not is_work_group_function(code.kernel)


def launches_work(
    questions: Questions, plans: Sequence[StagePlan], target: Target
) -> tuple[tuple[StageWork, ...], int]:
    """What launches do on ``target``, and the bytes of all their arrays."""
    found: list[StageWork] = []
    memory: dict[Hashable, int] = {}
    for number, plan in enumerate(plans):
        arrays, integers = _arguments(questions, plan.kernel, plan.sources)
        own = {view: prod(a.shape) * a.dtype.nbytes for view, a in arrays.values()}
        memory |= own
        if plan.tiling is not None:
            tiled = _tiled_work(questions, plan, plan.tiling, number, sum(own.values()), target)
            found.append(tiled)
            continue
        shapes = {(name, d): n for name, (_, a) in arrays.items() for d, n in enumerate(a.shape)}
        whole, inside, chain = NOTHING, None, 0.0
        along_rows = None if plan.beside else _inside_of_rows(plan.kernel)
        for kernel, range_ in _parts(questions.submissions, plan):
            kernel = _counted(kernel)
            known = range_ if kernel.ndim == len(range_) else (prod(range_),)
            sizes = Sizes(integers, shapes, known, plan.local_range or ())
            each = item_work(kernel, sizes, target)
            whole += each * prod(range_)
            if along_rows is not None:
                inside = item_work(along_rows, sizes, target) * prod(range_)
            if target.costs.chain_seconds:
                chain = max(chain, chain_of(each, operations(kernel, sizes), target))
        items = plan.range_of(questions.submissions).size
        groups = _work_groups(items, plan.local_range)
        touched = sum(own.values())
        found.append(
            StageWork(
                number, items, touched, whole, inside, 0, groups, chain,
                along_rows=inside is not None,
            )
        )  # fmt: skip
    return tuple(found), sum(memory.values())


def has_inside(kernel: Kernel) -> bool:
    """Whether a launch of ``kernel`` has code of its own for the inside of rows."""
    return _inside_of_rows(kernel) is not None


def _inside_of_rows(kernel: Kernel) -> Kernel | None:
    """What that does."""
    rows = rows_of(kernel) if kernel.row_lanes and not kernel.cuts_rows else None
    if rows is None or rows.interior is None:
        return None
    return replace(kernel, body=rows.interior.body)


def _counted(kernel: Kernel) -> Kernel:
    """What most work-items of a launch of ``kernel`` do."""
    rows = rows_of(kernel) if kernel.cuts_rows else None
    if rows is None or rows.segments is None:
        return kernel
    return replace(kernel, body=rows.segments.counted(kernel))


def _parts(
    submissions: Sequence[Submission], plan: StagePlan
) -> Iterator[tuple[Kernel, tuple[int, ...]]]:
    """The kernels that run side by side in a launch, mostly one, and their ranges."""
    parts = side_by_side(plan.kernel.body) if plan.beside else None
    if parts is None:
        yield plan.kernel, tuple(plan.range_of(submissions))
        return
    for part, body in zip(plan.beside, parts.bodies, strict=True):
        range_ = tuple(global_range(submissions[part.geometry]))
        yield replace(plan.kernel, body=body), range_


def launch_operations(submissions: Sequence[Submission], plan: StagePlan) -> float:
    """The scalar operations of all work-items of a launch that is no persistent kernel."""
    if plan.tiling is not None:
        groups = _tiles(submissions, plan, plan.tiling)
        return sum(groups * prod(p.items) * p.operations for p in plan.tiling.parts)
    params: dict[str, int] = {}
    extents: dict[tuple[str, int], int] = {}
    for param, source in zip(plan.kernel.params, plan.sources, strict=True):
        if isinstance(param, ArrayParam):
            assert isinstance(source, ArgumentSource)
            array = submissions[source.submission].arguments[source.argument]
            assert isinstance(array, ArrayArgument)
            extents |= {(param.name, dim): n for dim, n in enumerate(array.shape)}
        elif param.type.is_integer:
            params[param.name] = _value(submissions, source)
    items = plan.range_of(submissions).size
    return items * operations(plan.kernel, Sizes(params, extents))


def stage_sizes(questions: Questions, fused: FusedKernel, whole: int) -> Sizes:
    """The sizes that the kernel of some submissions has, over the range of submission ``whole``."""
    sources = [fused.sources[p.name] for p in fused.kernel.params]
    arrays, integers = _arguments(questions, fused.kernel, sources)
    shapes = {(name, d): n for name, (_, a) in arrays.items() for d, n in enumerate(a.shape)}
    return Sizes(integers, shapes, tuple(global_range(questions.submissions[whole])))


def tiled_part(
    questions: Questions,
    fused: FusedKernel,
    members: tuple[int, ...],
    items: tuple[int, ...],
    target: Target,
    speedup: float | None,
    whole: bool = False,
) -> TiledPart:
    """The part of a launch by overlapped tiles on ``target`` that ``fused`` is; ``speedup``: of
    accesses where most work-items have code without the conditions that hold inside; None where
    they have not.  ``whole``: they have it in whole tiles."""
    kernel = fused.kernel
    sizes = stage_sizes(questions, fused, largest(questions.submissions, members))
    range_ = sizes.items
    named = {
        sizes.params[name]: Param(INT64, name)
        for name, source in fused.sources.items()
        if isinstance(source, RangeSource)
    }
    extents = tuple(named.get(n, Const(INT64, n)) for n in range_)
    interior = None if speedup is None else parted_items(kernel, extents)[1]
    if interior is not None and whole and not may_be_whole(interior, kernel):
        interior = None
    if speedup is None or interior is None:
        work = item_work(kernel, sizes, target)
        return TiledPart(members, items, work, operations(kernel, sizes))
    inside = replace(kernel, body=interior.body)
    work = item_work(inside, sizes, target)
    work = replace(work, accessed=work.accessed / speedup)
    return TiledPart(members, items, work, operations(inside, sizes))


def _tiled_work(
    questions: Questions,
    plan: StagePlan,
    tiling: OverlappedTiling,
    number: int,
    nbytes: int,
    target: Target,
) -> StageWork:
    """The work of launch ``number``, by overlapped tiles."""
    groups = _tiles(questions.submissions, plan, tiling)
    work = sum((part.work * (groups * prod(part.items)) for part in tiling.parts), NOTHING)
    items = plan.range_of(questions.submissions).size
    assert plan.local_range is not None, "tiles are of work-groups"
    chain = sum(
        chain_of(part.work, part.operations, target) * _rounds(part.items, plan.local_range)
        for part in tiling.parts
    )
    return StageWork(number, items, nbytes, work, None, 0, groups, chain)


def _rounds(items: tuple[int, ...], local_range: tuple[int, ...]) -> int:
    """How many of a box of ``items`` a work-item of a group does."""
    lanes = lanes_of(len(items), local_range)
    return prod(-(-n // side) for n, side in zip(items, lanes, strict=True))


def _work_groups(items: int, local_range: Sequence[int] | None) -> int | None:
    """Of a launch of so many work-items; None where their size is not fixed."""
    return None if local_range is None else -(-items // prod(local_range))


def _tiles(submissions: Sequence[Submission], plan: StagePlan, tiling: OverlappedTiling) -> int:
    extents = plan.range_of(submissions)
    return prod(-(-n // t) for n, t in zip(extents, tiling.tile, strict=True))


def _arguments(
    questions: Questions, kernel: Kernel, sources: Sequence[ParamSource]
) -> tuple[dict[str, tuple[Hashable, ArrayArgument]], dict[str, int]]:
    """The arrays, each with what is equal for equal views, and the integers that the parameters of
    a launch's kernel have."""
    identity = Identity(questions)
    arrays: dict[str, tuple[Hashable, ArrayArgument]] = {}
    integers: dict[str, int] = {}
    for param, source in zip(kernel.params, sources, strict=True):
        if isinstance(source, QueueSource):
            continue
        if isinstance(param, ArrayParam):
            assert isinstance(source, ArgumentSource)
            argument = questions.submissions[source.submission].arguments[source.argument]
            assert isinstance(argument, ArrayArgument)
            arrays[param.name] = identity(source), argument
        elif param.type.is_integer:
            integers[param.name] = _value(questions.submissions, source)
    return arrays, integers


def _value(submissions: Sequence[Submission], source: ParamSource) -> int:
    match source:
        case RangeSource(s, dim):
            return global_range(submissions[s])[dim]
        case ExtentSource(s, k, dim):
            argument = submissions[s].arguments[k]
            assert isinstance(argument, ArrayArgument)
            return argument.shape[dim]
        case ArgumentSource(s, k):
            scalar = submissions[s].arguments[k]
            assert isinstance(scalar, ScalarArgument)
            return int(scalar.value)
        case _:
            return 0


class Identity:
    """Equal for sources that have one value in every list that the plan serves."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    def __call__(self, source: ParamSource) -> Hashable:
        match source:
            case RangeSource() | ExtentSource():
                return "size", _value(self._questions.submissions, source)
            case ArgumentSource(s, k):
                argument = self._questions.submissions[s].arguments[k]
                if isinstance(argument, ScalarArgument):
                    return "scalar", s, k
                place = self._questions.place[s, k]
                return "view", place.group, place.view
            case _:
                return source

    def memory(self, source: ParamSource) -> Hashable:
        """Equal for arrays that may share memory, in some list that the plan serves."""
        assert isinstance(source, ArgumentSource), "the source of an array"
        return self._questions.place[source.submission, source.argument].group
