"""OpenCL C's workers: work-groups of one sub-group.

Their lanes are a vector's, so that control flow is uniform, and primitives are sub-group functions.

Source: Khronos, The OpenCL C Specification 3.0, sections 6.15.12 (atomic functions) and 6.15.19
(sub-group functions); cl_intel_required_subgroup_size.
"""

from __future__ import annotations

from fusionq.base.target import Target
from fusionq.codegen.dialect import Groups
from fusionq.codegen.dialect.workers import AddOrder
from fusionq.codegen.opencl.unit import KERNEL_QUALIFIER
from fusionq.ir.nodes import Persistent


class OpenCLWorkers:
    """See ``Workers``."""

    word_pointer = "__global atomic_uint*"
    lane = "get_sub_group_local_id()"
    worker = "get_group_id(0)"
    barrier = "sub_group_barrier(CLK_GLOBAL_MEM_FENCE)"
    group_barrier = "sub_group_barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)"
    first_lane_takes = False
    pollers = 1
    lane_anew: tuple[str, ...] = ()
    pause = ""
    inline_function = "__attribute__((always_inline)) static"
    outlined_function = "FQ_OUTLINED"
    cold_function = outlined_function
    functions = """\
// What the first lane does alone is compiled as it stands: with optimisation Intel's compiler for
// CPUs makes a copy of each memory access for every lane, half of the time of building a kernel.
#ifdef __clang__
#define FQ_OUTLINED __attribute__((noinline, optnone)) static
#else
#define FQ_OUTLINED __attribute__((noinline)) static
#endif

"""
    unlikely = """\
#ifdef __clang__
#define FQ_UNLIKELY(condition) __builtin_expect((condition) ? 1 : 0, 0)
#else
#define FQ_UNLIKELY(condition) (condition)
#endif"""
    items_at_once = 1
    rolled_loop: tuple[str, ...] = ()
    counts_launches = False
    order_type = "memory_order"
    release_fence = ""

    rings = None

    def fitted(self, body: Persistent, target: Target) -> tuple[OpenCLWorkers, Target]:
        return self, target

    def worker_block(self, body: Persistent, target: Target) -> None:
        return None

    def kernel_qualifier(self, target: Target) -> str:
        sub_group = f"intel_reqd_sub_group_size({target.sub_group_size})"
        work_group = f"reqd_work_group_size({target.worker_size}, 1, 1)"
        return f"__attribute__(({sub_group}, {work_group}))\n{KERNEL_QUALIFIER}"

    def local_memory(self, name: str, nbytes: int) -> list[str]:
        return [
            f"__local ulong8 {name}_words[{-(-nbytes // 64)}];",
            f"__local uchar* const {name} = (__local uchar*){name}_words;",
        ]

    def groups_of(self, size: int) -> Groups:
        raise AssertionError("lanes of a vector are no work-group")

    def near_words(self, body: Persistent, target: Target) -> int:
        return 0

    def loads_at_once(self, body: Persistent, target: Target) -> int:
        return 0

    def broadcast(self, value: str) -> str:
        return f"sub_group_broadcast({value}, 0)"

    def poller_broadcast(self, value: str, lane: str) -> str:
        return value

    def copied_word(self, place: str, source: str) -> str:
        return f"*({place}) = *({source});"

    def words_copied(self) -> str:
        return ""

    def all_pollers(self, condition: str) -> str:
        return condition

    def read_ahead(self, address: str, nbytes: str) -> str:
        return ""

    def yield_processor(self, target: Target) -> str:
        """Intel's compiler looks up functions without a body among those of the process."""
        yields = target.device.yields_processor
        return "{ extern int sched_yield(void); sched_yield(); }" if yields else ""

    def order(self, order: AddOrder) -> str:
        return f"memory_order_{order}"

    def load_acquire(self, word: str) -> str:
        return f"atomic_load_explicit({word}, memory_order_acquire, memory_scope_device)"

    def load_relaxed(self, word: str) -> str:
        return f"atomic_load_explicit({word}, memory_order_relaxed, memory_scope_device)"

    def fetch_add(self, word: str, value: str, order: AddOrder) -> str:
        at = f"{self.order(order)}, memory_scope_device"
        return f"atomic_fetch_add_explicit({word}, {value}, {at})"

    def compare_exchange(self, word: str, seen: str, wanted: str) -> str:
        return f"""atomic_compare_exchange_strong_explicit(
        {word}, &{seen}, {wanted}, memory_order_acq_rel, memory_order_acquire,
        memory_scope_device)"""

    def store_relaxed(self, word: str, value: str) -> str:
        return f"""atomic_store_explicit(
    {word}, {value},
    memory_order_relaxed, memory_scope_device)"""

    def store_release(self, word: str, value: str) -> str:
        return f"""atomic_store_explicit(
    {word}, {value}, memory_order_release, memory_scope_device)"""
