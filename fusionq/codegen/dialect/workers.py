"""The vocabulary of a persistent kernel's workers: the primitives of the queue protocol.

A worker is what takes instructions: ``Target.worker_size`` work-items, its lanes, that go through
the protocol together and share a tile's work.  It may be a work-group of one sub-group, whose lanes
are a vector's, or, in CUDA C++, a block of many threads that is launched cooperatively, so that all
blocks are resident.

=====================  ==========================================  ==============================
primitive              OpenCL C                                    CUDA C++
=====================  ==========================================  ==============================
``lane``               ``get_sub_group_local_id()``                ``threadIdx.x``
``worker``             ``get_group_id(0)``                         ``blockIdx.x``
``broadcast``          ``sub_group_broadcast(x, 0)``               a ``__shared__`` variable between
                                                                   two ``__syncthreads()``
``barrier``            ``sub_group_barrier(…)``                    ``__syncthreads()``
``load_acquire``,      ``atomic_load_explicit(…)``                 ``__nv_atomic_load_n(…)`` and so
``load_relaxed``                                                   on, at device scope
``fetch_add``          ``atomic_fetch_add_explicit(…)``
``compare_exchange``   ``atomic_compare_exchange_strong_…``
``store_relaxed``,     ``atomic_store_explicit(…)``
``store_release``
``pause``              nothing                                     ``__nanosleep(20)``
``yield_processor``    ``sched_yield()``, on some CPUs             nothing
``items_at_once``      1                                           4
``counts_launches``    False                                       True
``read_ahead``         nothing                                     ``cp.async.bulk.prefetch.L2``
``unlikely``           ``__builtin_expect``                        ``__builtin_expect``
``first_lane_takes``   False                                       True
=====================  ==========================================  ==============================

``codegen.queue_protocol`` writes the protocol over these.  What it takes of them is what
docs/megakernel-protocol.md assumes: atomic operations at device scope on words of 32 bits, release
sequences, and barriers of a worker that make one lane's acquire and release count for all lanes.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from fusionq.base.target import Target
from fusionq.codegen.device_source import WorkerBlock
from fusionq.codegen.dialect.groups import Groups
from fusionq.codegen.dialect.rings import Rings
from fusionq.ir.nodes import Persistent

AddOrder: TypeAlias = Literal["relaxed", "release"]


class Workers(Protocol):
    """What lanes of a worker do together, and workers with words that they share.

    Values are texts: ``word`` of type ``word_pointer``, ``value`` a uint32.
    """

    word_pointer: str
    """The type of a pointer to a word of the control memory: an atomic uint32."""

    lane: str
    """The lane's number in its worker, from 0, as an int."""

    worker: str
    """The worker's number, from 0; the same for all its lanes."""

    barrier: str
    """All lanes of the worker wait for each other; what any of them wrote to or read from global
    memory before it comes before what any does behind it."""

    group_barrier: str
    """As ``barrier``, for local memory too."""

    first_lane_takes: bool
    """Whether the first lane gets the next instruction, and waits for all that it needs, while the
    others are at one broadcast, which is a barrier too; the last lane counts the instruction before
    as done meanwhile.  Else all lanes hear of each step."""

    pollers: int
    """How many lanes, the first ones, poll counters at once, where the first one gets the next
    instruction: those of a sub-group.  1: that one alone."""

    lane_anew: tuple[str, ...]
    """Lines that declare ``fq_lane`` for an instruction as a number that the compiler takes for
    another than the last, where a worker's threads need all registers for the work: else it keeps
    what follows of the lane for each stage through the work of all others.  None elsewhere."""

    pause: str
    """A statement that the loops that poll have in each iteration, or nothing."""

    inline_function: str
    """Before the return type of a function that must not be called, only inlined: primitives are
    uniform over a worker only as far as the compiler sees it."""

    outlined_function: str
    """Before the return type of a function that the first lane calls alone.  Where lanes are a
    vector's it is not inlined, nor optimised where the compiler can be told: an access or a loop of
    one lane alone would become as many copies under masks, all of which it has to build."""

    cold_function: str
    """Before the return type of a function that pollers call if a wait takes long: not inlined."""

    functions: str
    """Functions that the texts below call, or nothing."""

    unlikely: str
    """The lines that define the macro ``FQ_UNLIKELY(condition)``: true for ``condition``, which the
    compiler takes to be false."""

    items_at_once: int
    """How many work-items of a tile a lane does at once, at most, so that what they load is in
    flight together; a power of two, 1 where lanes are a vector's."""

    rolled_loop: tuple[str, ...]
    """The lines before a loop of few iterations, of which the compiler should not do several at
    once: that takes registers from all that the kernel does."""

    counts_launches: bool
    """Whether the number of a launch is kept in the control memory, where the last worker to leave
    counts it on: so launches need not differ, and may be part of a graph.  Else the host gives
    it."""

    release_fence: str
    """A statement behind which relaxed additions publish what the lane wrote before, or others did
    before a barrier; nothing where additions that release do as well: on a GPU each of those waits
    until the one before is done."""

    order_type: str
    """The type of a memory order that is passed to a function."""

    @property
    def rings(self) -> Rings | None:
        """How arrays that no stage writes come to its lanes ahead of all waits; None where they
        read them where they lie."""

    def fitted(self, body: Persistent, target: Target) -> tuple[Workers, Target]:
        """The workers of a kernel with ``body``, and the target with as many lanes as those have
        and as many as then run at once."""

    def worker_block(self, body: Persistent, target: Target) -> WorkerBlock | None:
        """Of such a kernel, where it is not the target's own."""

    def kernel_qualifier(self, target: Target) -> str:
        """Before the name of a persistent kernel: ``TranslationUnit.kernel_qualifier`` with what
        fixes the work-group to ``target.worker_size`` work-items (``__launch_bounds__`` in CUDA
        C++)."""

    def local_memory(self, name: str, nbytes: int) -> list[str]:
        """The lines that declare ``name``, a pointer to ``nbytes`` of memory that a worker's lanes
        share, aligned for all types."""

    def groups_of(self, size: int) -> Groups:
        """What work-items of a work-group do together, of which so many lanes of a worker, that
        many after the other, are the work-items: only where ``DeviceInfo.groups_in_workers``."""

    def near_words(self, body: Persistent, target: Target) -> int:
        """How many int64 of that memory a worker of a kernel has for tables that it would else find
        in global memory; 0 where caches do as well."""

    def loads_at_once(self, body: Persistent, target: Target) -> int:
        """How many values a work-item that is a lane loads before it uses them, at most; 0 where
        that is left to the compiler."""

    def broadcast(self, value: str) -> str:
        """The first lane's value of an int, uint32 or int64, for all lanes."""

    def poller_broadcast(self, value: str, lane: str) -> str:
        """The value of one of the ``pollers``, an int, uint32 or int64, for all of them, each of
        which may ask for another ``lane``."""

    def all_pollers(self, condition: str) -> str:
        """Whether ``condition`` is true for each of the ``pollers``, for all of them."""

    def copied_word(self, place: str, source: str) -> str:
        """A statement by which a lane has an int64 that nobody writes copied from ``source``, a
        pointer to global memory, to ``place``, one to the worker's own, while it goes on."""

    def words_copied(self) -> str:
        """A statement behind which a lane may read what it has had copied so; empty where that is
        there at once."""

    def read_ahead(self, address: str, nbytes: str) -> str:
        """A statement by which a lane asks for ``nbytes`` (int64) of global memory from ``address``
        (uint64) on, which no result depends on; nothing where caches look ahead themselves."""

    def yield_processor(self, target: Target) -> str:
        """A statement by which the first lane lets other threads run on its processor, if there are
        any; nothing where a device shares processors out otherwise."""

    def order(self, order: AddOrder) -> str:
        """A memory order, of ``order_type``."""

    def load_acquire(self, word: str) -> str:
        """The word's value."""

    def load_relaxed(self, word: str) -> str:
        """The word's value, which orders nothing: on a GPU what follows need not wait for it."""

    def fetch_add(self, word: str, value: str, order: AddOrder) -> str:
        """Add, and give the value before."""

    def compare_exchange(self, word: str, seen: str, wanted: str) -> str:
        """Store ``wanted`` if the word is ``seen``, a variable, which else takes the word's value;
        whether it did.  It acquires and releases, and does not fail spuriously."""

    def store_relaxed(self, word: str, value: str) -> str:
        """A store that orders nothing."""

    def store_release(self, word: str, value: str) -> str:
        """A store behind all that the lane wrote before."""
