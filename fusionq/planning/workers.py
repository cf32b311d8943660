"""How many workers a persistent kernel has for given sizes: as few as do its stages soonest."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import prod

from fusionq.backends.base import ArrayBinding, Binding
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.target import Target
from fusionq.ir.nodes import ArrayParam, Kernel, Persistent, StageCode
from fusionq.megakernel.launch import bound_bytes
from fusionq.megakernel.tiles import extents_by
from fusionq.planning.cost import PersistentPart, Work, fewest_workers, persistent_part, stays_near
from fusionq.planning.item_work import item_work
from fusionq.planning.known_values import Sizes
from fusionq.planning.list_work import inside_tiles

KEPT = 256
"""How many classes of sizes are kept for each kernel."""


def workers_for(kernel: Kernel, bindings: Mapping[str, Binding], target: Target) -> int:
    """The number for the persistent ``kernel``, bound so; all that run at once on ``target`` where
    memory does not stay in the caches, or work-items are threads that wait for their own
    operations: these need each other."""
    most = target.resident_workers
    body = kernel.body[0]
    assert isinstance(body, Persistent)
    if most == 1 or target.costs.chain_seconds:
        return most
    memory = bound_bytes(kernel, bindings)
    if memory > target.kept_bytes:
        return most
    arrays, integers = dict[str, tuple[int, ...]](), dict[str, int]()
    for param in kernel.params:
        binding = bindings.get(param.name)
        if isinstance(param, ArrayParam):
            if isinstance(binding, ArrayBinding):
                arrays[param.name] = binding.shape
        elif binding is not None and param.type.is_integer:
            assert not isinstance(binding, ArrayBinding)
            integers[param.name] = int(binding)
    near, names = stays_near(memory, target), _names(body)
    parts: list[PersistentPart] = []
    known: dict[Hashable, PersistentPart] = {}
    for stage in body.stages:
        key = stage.code, stage.arguments
        part = known.get(key)
        if part is None:
            of_stage = list(zip(names[stage.code], stage.arguments, strict=True))
            values = {own: integers[name] for own, name in of_stage if name in integers}
            shapes = {own: arrays[name] for own, name in of_stage if name in arrays}
            code = body.codes[stage.code]
            extent = extents_by(code, values)
            items = prod(extent)
            inside, whole = _work(body, stage.code, values, shapes, extent, target)
            groups = None if code.local_range is None else -(-items // prod(code.local_range))
            inside = None if inside is None else inside * items
            part = persistent_part(inside, whole * items, items, groups, near, target)
            known[key] = part
        parts.append(part)
    return fewest_workers(parts, target)[0]


@cached_by_identity
def _names(body: Persistent) -> list[list[str]]:
    """The names of each code's parameters."""
    return [[p.name for p in code.kernel.params] for code in body.codes]


@cached_by_identity
def _known_work(body: Persistent) -> dict[Hashable, tuple[Work | None, Work]]:
    """What is known of the stages' work-items, by what of the sizes it depends on."""
    return {}


def _work(
    body: Persistent,
    number: int,
    values: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    extent: tuple[int, ...],
    target: Target,
) -> tuple[Work | None, Work]:
    """What a work-item does inside of tiles, if that is less, and elsewhere, for sizes of about
    that magnitude."""
    known, code = _known_work(body), body.codes[number]
    values = {name: _magnitude(n) for name, n in values.items()}
    sides = {
        (name, d): _magnitude(n) for name, shape in shapes.items() for d, n in enumerate(shape)
    }
    range_ = tuple(map(_magnitude, extent))
    key = number, range_, *values.values(), *sides.values()
    found = known.get(key)
    if found is None:
        sizes = Sizes(values, sides, range_, code.local_range or ())
        found = _inside(code, sizes, target), item_work(code.kernel, sizes, target)
        if len(known) >= KEPT:
            known.clear()
        known[key] = found
    return found


def _inside(code: StageCode, sizes: Sizes, target: Target) -> Work | None:
    kernel = inside_tiles(code, target)
    return None if kernel is None else item_work(kernel, sizes, target)


def _magnitude(size: int) -> int:
    """``size`` where it is small, else one that stands for those with as many bits: what a
    work-item does is then found out once for them all."""
    return size if size < 8 else 3 << (size.bit_length() - 2)
