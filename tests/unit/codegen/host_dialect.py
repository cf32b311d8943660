"""C11 with POSIX threads as a dialect: persistent kernels that any C compiler builds.

A worker is a group of threads, a lane one of them, as in CUDA C++.  A kernel is a function that
each thread calls; ``HostKernel.launch`` starts the threads.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusionq.base.target import Target
from fusionq.codegen.device_source import DeviceSource
from fusionq.codegen.dialect import Define, Dialect
from fusionq.codegen.dialect.scalars import OwnOperators
from fusionq.codegen.literals import spelled
from fusionq.codegen.scoping import Body
from fusionq.codegen.unaligned import unaligned_structure
from fusionq.ir.nodes import Const, Kernel, Persistent, Space
from fusionq.ir.text import Text
from fusionq.ir.types import ScalarType

COMPILER = shutil.which("cc")
MOST_WORKERS = 64
MOST_ASKED = 4096

_RUNTIME = f"""\
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static _Thread_local int host_lane, host_worker;
static pthread_barrier_t host_barriers[{MOST_WORKERS}];
static int64_t host_slots[{MOST_WORKERS}];

static void host_barrier(void) {{
    pthread_barrier_wait(&host_barriers[host_worker]);
}}

static int64_t host_broadcast(int64_t value) {{
    if (host_lane == 0) host_slots[host_worker] = value;
    host_barrier();
    const int64_t first = host_slots[host_worker];
    host_barrier();
    return first;
}}

static int64_t host_value_of(int64_t value, int lane) {{
    static int64_t values[{MOST_WORKERS}][64];
    values[host_worker][host_lane] = value;
    host_barrier();
    const int64_t found = values[host_worker][lane];
    host_barrier();
    return found;
}}

static bool host_all(bool mine) {{
    if (host_lane == 0) host_slots[host_worker] = 1;
    host_barrier();
    if (!mine) __atomic_store_n(&host_slots[host_worker], 0, __ATOMIC_RELAXED);
    host_barrier();
    const bool all = host_slots[host_worker] != 0;
    host_barrier();
    return all;
}}

static int64_t host_clock(void) {{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}}

// What was read ahead: addresses and bytes, in turn.
static uint64_t host_asked[{MOST_ASKED}][2];
static int host_asked_count;

static void host_read_ahead(uint64_t address, int64_t nbytes) {{
    const int at = __atomic_fetch_add(&host_asked_count, 1, __ATOMIC_RELAXED);
    if (at >= {MOST_ASKED}) abort();
    host_asked[at][0] = address;
    host_asked[at][1] = nbytes;
}}

int host_take_asked(uint64_t (**asked)[2]) {{
    const int count = host_asked_count;
    host_asked_count = 0;
    *asked = host_asked;
    return count;
}}

static int64_t host_min(int64_t a, int64_t b) {{ return b < a ? b : a; }}
static int64_t host_max(int64_t a, int64_t b) {{ return b > a ? b : a; }}
"""

_LAUNCH = """
typedef struct {{ int worker, lane; const uint64_t* a; }} host_thread;

static void* host_run(void* given) {{
    const host_thread* self = given;
    const uint64_t* a = self->a;
    host_worker = self->worker;
    host_lane = self->lane;
    {call};
    return NULL;
}}

// No more than ``resident`` workers run at once: the others start when those have ended.
void host_launch(int workers, int resident, int lanes, const uint64_t* a) {{
    pthread_t threads[{most} * 64];
    host_thread starts[{most} * 64];
    for (int first = 0; first < workers; first += resident) {{
        int count = 0;
        for (int w = first; w < workers && w < first + resident; w++) {{
            pthread_barrier_init(&host_barriers[w], NULL, lanes);
            for (int l = 0; l < lanes; l++, count++) {{
                starts[count] = (host_thread){{w, l, a}};
                if (pthread_create(&threads[count], NULL, host_run, &starts[count])) abort();
            }}
        }}
        for (int t = 0; t < count; t++) pthread_join(threads[t], NULL);
    }}
}}
"""


class _Unit:
    kernel_qualifier = "void"
    function_qualifier = "static inline"

    scalar_items = ""

    def sub_groups_of(self, size: int) -> str:
        raise AssertionError("stages have no sub-groups")

    def prologue(
        self, types: Iterable[ScalarType], fp: str, functions: Iterable[str] = ()
    ) -> list[str]:
        return _RUNTIME.splitlines()

    loads_early = ""

    def first_lines(self, define: Define) -> list[str]:
        return []

    def build_options(self, fp: str) -> tuple[str, ...]:
        return ("-O1", "-ffp-contract=off")

    def is_reserved(self, identifier: str) -> bool:
        return identifier.startswith(("fq_", "host_"))

    asks_for_ids_once = False

    def prepared(self, body: Body) -> Body:
        return body

    def loop_in_order(self) -> list[str]:
        return []

    packs_arguments = False
    eager_conditions = False
    loads_together = False

    def vector_step(self, target, other, symbol, type, lanes, define):
        return None

    def row_load(self, kept, first, type, define):
        return None

    def streaming_loop(self, iterations: int | None, most: int) -> list[str]:
        return []


class _Scalars(OwnOperators):
    size_type = "size_t"
    restrict = restrict_constant = "restrict"
    zero = "0"
    kept_apart: frozenset[str] = frozenset()
    array_parameters = True
    minimum = "host_min"
    maximum = "host_max"

    def type_name(self, type: ScalarType) -> str:
        if type.is_float:
            return {"float32": "float", "float64": "double"}[type.name]
        return "bool" if type.is_bool else f"{type.name}_t"

    def storage_name(self, type: ScalarType) -> str:
        return "uint8_t" if type.is_bool else self.type_name(type)

    def aliased_type(self, type: ScalarType) -> tuple[str, str]:
        name = f"aliased_{type.name}"
        return name, f"typedef {self.storage_name(type)} __attribute__((may_alias)) {name};"

    def unaligned_type(self, type: ScalarType, alignment: int) -> tuple[str, str]:
        return unaligned_structure(self.storage_name(type), alignment)

    def array_qualifier(self, space: Space) -> str:
        return ""

    def table(self, name: str, type: ScalarType, elements: Sequence[Const]) -> str:
        values = ", ".join(self.literal(element).text for element in elements)
        return f"static const {self.storage_name(type)} {name}[] = {{{values}}};"

    def local_pool(self, kernel: Kernel) -> None:
        return None

    def pointer(self, element: str, space: Space, constant: bool = False) -> str:
        return f"{'const ' if constant else ''}{element}*"

    def literal(self, const: Const) -> Text:
        suffix = {"int64": "LL", "uint32": "u", "uint64": "ULL", "float32": "f"}
        return spelled(const, suffix.get(const.type.name, ""), "INFINITY", "NAN")

    def function(self, name: str, type: ScalarType) -> str | None:
        return name

    def bits(self, function: str, type: ScalarType, value: str) -> str:
        return f"host_{function}({value})"

    def bit_cast(self, value: str, target: ScalarType) -> str:
        return f"__builtin_bit_cast({self.type_name(target)}, {value})"

    def argument(self, value: str, source: ScalarType, target: ScalarType) -> str:
        return value

    def saturating_cast(self, target: ScalarType, source: ScalarType) -> str:
        raise AssertionError("no kernel of these tests converts floats")


class _Items:
    def query(self, query: str, dim: int, ndim: int) -> str:
        raise AssertionError("ids are those of tiles")

    def device_function(self, function: str, *arguments: str) -> str:
        assert function == "clock"
        return "host_clock()"


class _Groups:
    """Nothing: stages have no groups."""

    linear_local_id = linear_local_range = sub_group_local_id = ""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"stages have no {name}")


class _Workers:
    """Blocks of threads."""

    word_pointer = "uint32_t*"
    lane = "host_lane"
    worker = "host_worker"
    barrier = "host_barrier()"
    group_barrier = "host_barrier()"
    first_lane_takes = True
    pollers = 4
    lane_anew: tuple[str, ...] = ()
    pause = "sched_yield();"
    inline_function = "static inline __attribute__((always_inline))"
    outlined_function = "static"
    cold_function = "static"
    functions = ""
    unlikely = "#define FQ_UNLIKELY(condition) __builtin_expect((condition) ? 1 : 0, 0)"
    order_type = "int"
    release_fence = "__atomic_thread_fence(__ATOMIC_RELEASE);"
    items_at_once = 2
    rolled_loop: tuple[str, ...] = ()
    counts_launches = True

    rings = None

    def fitted(self, body: Persistent, target: Target) -> tuple[Any, Target]:
        return self, target

    def worker_block(self, body: Persistent, target: Target) -> None:
        return None

    def kernel_qualifier(self, target: Target) -> str:
        return "void"

    def local_memory(self, name: str, nbytes: int) -> list[str]:
        words = -(-nbytes // 8)
        return [
            f"static uint64_t {name}_words[{MOST_WORKERS}][{words}];",
            f"uint8_t* const {name} = (uint8_t*){name}_words[host_worker];",
        ]

    def near_words(self, body: Persistent, target: Target) -> int:
        return 256

    def loads_at_once(self, body: Persistent, target: Target) -> int:
        return 0

    def broadcast(self, value: str) -> str:
        return f"host_broadcast({value})"

    def poller_broadcast(self, value: str, lane: str) -> str:
        return f"host_value_of({value}, {lane})"

    def copied_word(self, place: str, source: str) -> str:
        return f"*({place}) = *({source});"

    def words_copied(self) -> str:
        return ""

    def all_pollers(self, condition: str) -> str:
        return f"host_all({condition})"

    def read_ahead(self, address: str, nbytes: str) -> str:
        return f"host_read_ahead({address}, {nbytes});"

    def yield_processor(self, target: Target) -> str:
        return "sched_yield();"

    def order(self, order: str) -> str:
        return f"__ATOMIC_{order.upper()}"

    def load_acquire(self, word: str) -> str:
        return f"__atomic_load_n({word}, __ATOMIC_ACQUIRE)"

    def load_relaxed(self, word: str) -> str:
        return f"__atomic_load_n({word}, __ATOMIC_RELAXED)"

    def fetch_add(self, word: str, value: str, order: str) -> str:
        return f"__atomic_fetch_add({word}, {value}, {self.order(order)})"

    def compare_exchange(self, word: str, seen: str, wanted: str) -> str:
        orders = "__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE"
        return f"__atomic_compare_exchange_n({word}, &{seen}, {wanted}, false, {orders})"

    def store_relaxed(self, word: str, value: str) -> str:
        return f"__atomic_store_n({word}, {value}, __ATOMIC_RELAXED)"

    def store_release(self, word: str, value: str) -> str:
        return f"__atomic_store_n({word}, {value}, __ATOMIC_RELEASE)"


HOST = Dialect(_Unit(), _Scalars(), _Items(), _Groups(), _Workers())  # type: ignore[arg-type]  # broader arguments


@dataclass(frozen=True)
class HostKernel:
    """A persistent kernel built for the host."""

    library: ctypes.CDLL

    def launch(self, workers: int, resident: int, lanes: int, arguments: Sequence[int]) -> None:
        """Run it to its end; addresses and integers in the order of its slots."""
        values = (ctypes.c_uint64 * len(arguments))(*(a % 2**64 for a in arguments))
        self.library.host_launch(workers, resident, lanes, values)

    def asked(self) -> list[tuple[int, int]]:
        """The addresses and numbers of bytes that were read ahead since the last call."""
        places = ctypes.POINTER(ctypes.c_uint64)()
        count = self.library.host_take_asked(ctypes.byref(places))
        return [(places[2 * k], places[2 * k + 1]) for k in range(count)]


_BUILT: dict[str, HostKernel] = {}
"""By their texts: a kernel that serves other sizes and rows is compiled once."""


def built(source: DeviceSource, folder: Path) -> HostKernel:
    """Compile, with errors as the compiler says them."""
    assert COMPILER is not None
    arguments = ", ".join(f"a[{k}]" for k in range(len(source.slots)))
    call = f"{source.entry_point}({arguments})"
    text = source.text + _LAUNCH.format(call=call, most=MOST_WORKERS)
    if (known := _BUILT.get(text)) is not None:
        known.asked()  # what the run before has left
        return known
    path = folder / "kernel.c"
    path.write_text(text)
    options = [*_Unit().build_options("strict"), "-std=gnu11", "-pthread", "-shared", "-fPIC"]
    command = [COMPILER, *options, "-o", str(folder / "kernel.so"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kernel = _BUILT[text] = HostKernel(ctypes.CDLL(str(folder / "kernel.so")))
    return kernel
