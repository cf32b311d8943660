"""A dialect that no compiler knows: each of its words is in capitals.

What a kernel printed in it has of other words, the printer wrote by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fusionq.base.target import Target
from fusionq.codegen.dialect import Define, Dialect
from fusionq.codegen.dialect.scalars import OwnOperators
from fusionq.codegen.literals import spelled
from fusionq.codegen.opencl.reserved import RESERVED
from fusionq.codegen.scoping import Body
from fusionq.ir.nodes import Const, Kernel, Persistent, Space
from fusionq.ir.text import Text
from fusionq.ir.types import FLOAT32, FLOAT64, ScalarType


class MarkerUnit:
    kernel_qualifier = "KERNEL"
    function_qualifier = "FUNCTION"

    scalar_items = "SCALAR_ITEMS "

    def sub_groups_of(self, size: int) -> str:
        return f"SUB_GROUPS_OF_{size} "

    def prologue(
        self, types: Iterable[ScalarType], fp: str, functions: Iterable[str] = ()
    ) -> list[str]:
        return ["#PROLOGUE"]

    loads_early = ""

    def first_lines(self, define: Define) -> list[str]:
        return []

    def build_options(self, fp: str) -> tuple[str, ...]:
        return ()

    def is_reserved(self, identifier: str) -> bool:
        return RESERVED.fullmatch(identifier) is not None  # lest a user's name be taken for one

    asks_for_ids_once = False

    def prepared(self, body: Body) -> Body:
        return body

    def loop_in_order(self) -> list[str]:
        return ["#LOOP_IN_ORDER"]

    packs_arguments = False
    eager_conditions = False
    loads_together = False

    def vector_step(self, target, other, symbol, type, lanes, define):
        return None

    def row_load(self, kept, first, type, define):
        return None

    def streaming_loop(self, iterations: int | None, most: int) -> list[str]:
        return ["#STREAMING_LOOP"]


class MarkerScalars(OwnOperators):
    size_type = "SIZE"
    restrict = restrict_constant = "RESTRICT"
    zero = "ZERO"
    kept_apart: frozenset[str] = frozenset()
    bits_of_float = "BITS_OF_FLOAT"
    float_of_bits = "FLOAT_OF_BITS"
    minimum = "MINIMUM"
    maximum = "MAXIMUM"
    array_parameters = False

    def type_name(self, type: ScalarType) -> str:
        return f"T_{type.name.upper()}"

    def storage_name(self, type: ScalarType) -> str:
        return f"S_{type.name.upper()}"

    def aliased_type(self, type: ScalarType) -> tuple[str, str]:
        return f"A_{type.name.upper()}", f"ALIASED(A_{type.name.upper()});"

    def unaligned_type(self, type: ScalarType, alignment: int) -> tuple[str, str]:
        name = f"U_{type.name.upper()}_{alignment}"
        return name, f"UNALIGNED({name});"

    def array_qualifier(self, space: Space) -> str:
        return f"ARRAY_IN_{space.upper()} "

    def table(self, name: str, type: ScalarType, elements: Sequence[Const]) -> str:
        values = " ".join(self.literal(element).text for element in elements)
        return f"TABLE_OF_{self.storage_name(type)}({name}, {values});"

    def local_pool(self, kernel: Kernel) -> None:
        return None

    def pointer(self, element: str, space: Space, constant: bool = False) -> str:
        return f"{'CONSTANT_' if constant else ''}POINTER_TO_{element}_IN_{space.upper()}"

    def literal(self, const: Const) -> Text:
        return spelled(const, f"_{const.type.name.upper()}", "INFINITE", "NOT_A_NUMBER")

    def function(self, name: str, type: ScalarType) -> str | None:
        exact = type in (FLOAT32, FLOAT64) or name in ("nextafter", "floor")
        return f"F_{name.upper()}_{type.name.upper()}" if exact else None

    def bits(self, function: str, type: ScalarType, value: str) -> str:
        return f"BITS_{function.upper()}({value})"

    def bit_cast(self, value: str, target: ScalarType) -> str:
        return f"BITS_AS_{target.name.upper()}({value})"

    def argument(self, value: str, source: ScalarType, target: ScalarType) -> str:
        return f"AS_{target.name.upper()}({value})"

    def saturating_cast(self, target: ScalarType, source: ScalarType) -> str:
        return f"return SATURATED_{target.name.upper()}(a);"


class MarkerItems:
    def query(self, query: str, dim: int, ndim: int) -> str:
        return f"{query.upper()}_{dim}_OF_{ndim}"

    def device_function(self, function: str, *arguments: str) -> str:
        return f"{function.upper()}({', '.join(arguments)})"


class MarkerGroups:
    """No group function but broadcasts, as in CUDA C++."""

    linear_local_id = "LINEAR_LOCAL_ID"
    linear_local_range = "LINEAR_LOCAL_RANGE"
    sub_group_local_id = "SUB_GROUP_LOCAL_ID"

    def barrier(self, global_memory: bool, local_memory: bool) -> str:
        return "BARRIER()"

    def fence(self, order: str, scope: str) -> str:
        return f"FENCE({order.upper()}, {scope.upper()})"

    def read_ahead(self, element: str, define: Define) -> str:
        return f"READ_AHEAD({element})"

    def atomic(
        self,
        op: str,
        type: ScalarType,
        space: Space,
        element: str,
        value: str | None,
        order: str,
        scope: str,
        define: Define,
        expected: str | None = None,
    ) -> str:
        name = f"AT_ONCE_{op.upper()}_{type.name.upper()}"
        define(name, f"DEFINED({name});")
        return f"{name}({element}, {expected or 'ANYTHING'}, {value or 'NOTHING'})"

    def collective_type(self, type: ScalarType) -> ScalarType:
        raise AssertionError("there are no collectives")

    def has_collective(self, function: str, op: str | None) -> bool:
        return False

    def collective(
        self, function: str, op: str | None, value: str, type: ScalarType, define: Define
    ) -> str:
        raise AssertionError("there are no collectives")

    def most_together(self, type: ScalarType) -> int:
        return 1

    def broadcast_type(self, type: ScalarType) -> ScalarType:
        return type

    def broadcast(
        self, value: str, type: ScalarType, source: str, ndim: int, define: Define
    ) -> str:
        return f"GROUP_BROADCAST({value}, {source})"

    def shuffle_type(self, type: ScalarType) -> ScalarType:
        return type

    def shuffle(self, value: str, type: ScalarType, place: str) -> str:
        return f"SHUFFLE({value}, {place})"


class MarkerWorkers:
    """Blocks of many threads, as in CUDA C++: their first lane polls."""

    word_pointer = "POINTER_TO_WORD"
    lane = "LANE"
    worker = "WORKER"
    barrier = "WORKER_BARRIER()"
    group_barrier = "WORKER_GROUP_BARRIER()"
    first_lane_takes = False
    pollers = 1
    lane_anew: tuple[str, ...] = ()
    pause = "PAUSE();"
    inline_function = "INLINE"
    outlined_function = "OUTLINED"
    cold_function = "COLD"
    functions = "FUNCTIONS\n"
    unlikely = "#define FQ_UNLIKELY(condition) UNLIKELY(condition)"
    order_type = "ORDER"
    release_fence = ""
    items_at_once = 1
    rolled_loop: tuple[str, ...] = ()
    counts_launches = False

    rings = None

    def fitted(self, body: Persistent, target: Target) -> tuple[Any, Target]:
        return self, target

    def worker_block(self, body: Persistent, target: Target) -> None:
        return None

    def kernel_qualifier(self, target: Target) -> str:
        return f"KERNEL_OF_WORKERS({target.worker_size})"

    def local_memory(self, name: str, nbytes: int) -> list[str]:
        return [f"BYTES {name}[{nbytes}];"]

    def near_words(self, body: Persistent, target: Target) -> int:
        return 0

    def loads_at_once(self, body: Any, target: Target) -> int:
        return 0

    def broadcast(self, value: str) -> str:
        return f"BROADCAST({value})"

    def poller_broadcast(self, value: str, lane: str) -> str:
        return f"POLLER_BROADCAST({value}, {lane})"

    def copied_word(self, place: str, source: str) -> str:
        return f"*({place}) = *({source});"

    def words_copied(self) -> str:
        return ""

    def all_pollers(self, condition: str) -> str:
        return f"ALL_POLLERS({condition})"

    def read_ahead(self, address: str, nbytes: str) -> str:
        return f"READ_AHEAD({address}, {nbytes});"

    def yield_processor(self, target: Target) -> str:
        return "YIELD_PROCESSOR();" if target.device.yields_processor else ""

    def order(self, order: str) -> str:
        return order.upper()

    def load_acquire(self, word: str) -> str:
        return f"LOAD_ACQUIRE({word})"

    def load_relaxed(self, word: str) -> str:
        return f"LOAD_RELAXED({word})"

    def fetch_add(self, word: str, value: str, order: str) -> str:
        return f"FETCH_ADD_{order.upper()}({word}, {value})"

    def compare_exchange(self, word: str, seen: str, wanted: str) -> str:
        return f"COMPARE_EXCHANGE({word}, {seen}, {wanted})"

    def store_relaxed(self, word: str, value: str) -> str:
        return f"STORE_RELAXED({word}, {value})"

    def store_release(self, word: str, value: str) -> str:
        return f"STORE_RELEASE({word}, {value})"


class MarkerStreaming:
    lanes = 4

    def vector_type(self, type: ScalarType) -> tuple[str, str]:
        name = f"V_{type.name.upper()}"
        return name, f"VECTOR({name});"

    def store(self, pointer: str, value: str, type: ScalarType) -> list[str]:
        return [f"STORE_VECTOR({pointer}, {value});"]


class BlockWorkers(MarkerWorkers):
    """Blocks of many threads."""

    first_lane_takes = True
    pollers = 8
    release_fence = "RELEASE_FENCE();"
    counts_launches = True

    def near_words(self, body: Persistent, target: Target) -> int:
        return 100


def marker_dialect(workers: Any) -> Dialect:
    """The dialect with these workers."""
    return Dialect(
        MarkerUnit(), MarkerScalars(), MarkerItems(), MarkerGroups(), workers,  # type: ignore[arg-type]  # broader arguments
        streaming=MarkerStreaming(),
    )  # fmt: skip
