"""What is assumed of a machine where it does not say and nothing is measured: one table.

The values for CPUs were measured on two to four cores of AMD EPYC and Intel Xeon under Intel's
OpenCL runtime, if nothing else is said; those for GPUs on an H100 where that is said, else they are
guesses.
docs/target.md shows the table.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal, TypeAlias

from fusionq.base.frozen import dataclass

Column: TypeAlias = Literal["cpu", "gpu"]


@dataclass(frozen=True, slots=True)
class Assumption:
    """A value for CPUs and one for GPUs, and where they come from; ``known``: what takes its place
    where the device says it or it has been measured."""

    cpu: int | float
    gpu: int | float
    source: str
    known: str = ""


_BY_HAND = "chosen by hand"
_FITTED = "fitted to lists on two cores of an EPYC (Zen 5), November 2026; for GPUs a guess"
_FITTED_GPU = (
    "fitted to the launches of the corpus on an H100 (447 that differ, median error 17 %), "
    "November 2026; for CPUs "
)
_FITTED_CHAINS = f"{_FITTED_GPU}not asked for: chain_seconds is 0"
_LANES = (
    "measured on an EPYC (Zen 5), AVX-512, against loads of four bytes side by side; not asked for "
    "on GPUs"
)
_FITTED_BUILDS = (
    "fitted to builds on an EPYC (benchmarks/build_cost.py); for GPUs to NVRTC 13.5's for sm_90"
)
_UNROLLED = f"{_FITTED_BUILDS}; CPUs' compilers unroll less, and call functions"
_TABLES = f"{_FITTED_BUILDS}, where tables are data"

ASSUMED: dict[str, Assumption] = {
    # Workers
    "sub_group_size": Assumption(
        16, 16, "lanes of float32 in AVX-512", "asked: the largest sub-group size up to 16"
    ),
    "worker_size": Assumption(16, 16, "one sub-group, as the protocol in OpenCL C has it"),
    # Work-groups
    "vector_width": Assumption(
        16, 32, "lanes of float32 in AVX-512; a warp",
        "asked: native vector width of float32, at least a sub-group",
    ),
    "preferred_work_group": Assumption(256, 256, "128 to 512 take the same time on an H100"),
    "largest_plain_group": Assumption(
        4096, 256, "one task of a CPU's scheduler: 4096 items ran 5 to 15 % faster than 256, 8192 "
        "no faster"
    ),
    "largest_barrier_group": Assumption(1024, 1024, "the largest block of a GPU"),
    "largest_tile_group": Assumption(4096, 1024, "as largest_plain_group; the largest block"),
    "groups_per_compute_unit": Assumption(
        4, 4, "the last groups then take a quarter of the time at most"
    ),
    "largest_launch": Assumption(
        2**31 - 1, 2**31 - 1, "SYCL's runtime refuses more: ids have to fit an int"
    ),
    # Memory
    "cache_line_bytes": Assumption(
        64, 128, "x86-64 and arm64; L2 of NVIDIA", "asked: global memory cache line"
    ),
    "worker_cache_bytes": Assumption(
        1 << 20, 128 << 10, "L2 of a core; half of an H100's L1",
        "asked on a CPU: global memory cache",
    ),
    "cache_bytes": Assumption(
        32 << 20, 50 << 20, "L3 of an EPYC; L2 of an H100",
        "asked: Linux on a CPU, at most 32 MiB a core; global memory cache on a GPU",
    ),
    "private_bytes": Assumption(512, 512, "128 registers of 32 bits; more spills"),
    # Joining in place of a launch
    "launch_operations": Assumption(
        1 << 14, 1 << 14, "two scalar operations a nanosecond, a launch of 8 µs"
    ),
    "launch_idle_items": Assumption(
        1 << 14, 1 << 14, "0.1 to 0.3 ns an idle item, a launch of 5 to 8 µs: two cores of an EPYC "
        "(Zen 5), November 2026"
    ),
    "free_streams": Assumption(
        8, 8, "sums over rows of memory: 15 GB/s of 8, 11 of 16, 8 of 32, 4 of 4,096, two cores of "
        "an EPYC (Zen 3), November 2026; not asked for on GPUs"
    ),
    "launch_masked_items": Assumption(
        4096, 4096, "256 stores of vectors of 20 ns (masked_store_seconds) are 5 µs; not asked for "
        "on GPUs"
    ),
    "side_by_side_launches": Assumption(
        32, 32, "a launch is all that it saves, and a work-group has as many registers as the "
        f"largest of the kernels needs; {_BY_HAND}"
    ),
    "side_by_side_share": Assumption(
        8, 8, "a decode step on an H100: the two products of a gated layer, of 33 MB each, one "
        "after the other in work-groups 1.224 ms, side by side 1.199"
    ),
    "machine_balance": Assumption(16, 16, _BY_HAND),
    # Tiles of persistent kernels
    "smallest_tile": Assumption(1024, 4096, f"{_BY_HAND}; 16 elements a thread on an H100"),
    "pipelined_tile": Assumption(1 << 12, 1 << 12, _BY_HAND),
    "unequal_tile": Assumption(1 << 14, 1 << 14, _BY_HAND),
    "largest_tile": Assumption(1 << 17, 1 << 17, _BY_HAND),
    "small_stage": Assumption(1 << 16, 1 << 16, _BY_HAND),
    "tiles_per_worker": Assumption(4, 4, "as groups_per_compute_unit"),
    "shortest_block": Assumption(8, 8, _BY_HAND),
    "small_stage_parts": Assumption(64, 64, f"{_BY_HAND}: stages over borders of grids"),
    "small_stage_rows": Assumption(2, 2, _BY_HAND),
    "worker_cache_share": Assumption(
        4, 4, "what is in the cache beside: arrays that no stage writes"
    ),
    "block_cache_share": Assumption(
        1,
        2,
        "of the corpus's fit half out of cache, fdtd_2d and shallow_water took 0.76 of the time "
        "that they took with half, seven others as long: two cores of an EPYC (Zen 5, 1 MiB of L2 "
        "each), November 2026; half on GPUs",
    ),
    "kept_tiles": Assumption(4, 4, _BY_HAND),
    "rounds_of_tiles": Assumption(8, 8, f"{_BY_HAND}: an eighth of a stage's time"),
    # Rows of launches whose inside has code of its own
    "shortest_split_row": Assumption(
        3, 3, "with two, kernels that read what they write took up to twice as long, with three "
        "five kernels of rows of 48 elements took 0.2 to 0.9 of the time: two cores of an EPYC "
        "(Zen 3, AVX2), November 2026; not asked for on GPUs"
    ),
    "least_split_share": Assumption(0.75, 0.75, f"{_BY_HAND}: the rest is done under masks"),
    # Overlapped tiles
    "overlapped_cache_share": Assumption(
        2, 4, "of nine programs out of cache, seven took 0.83 to 0.97 of the time that they took "
        "with a quarter, which cuts rows of three dimensions in two; two as long: two cores of an "
        "EPYC (Zen 3, 512 KiB of L2 each), November 2026; as worker_cache_share"
    ),
    "largest_overlapped_tile": Assumption(1 << 15, 1 << 15, _BY_HAND),
    "tile_rows": Assumption(64, 64, _BY_HAND),
    "row_parts": Assumption(64, 64, _BY_HAND),
    # Waiting
    "read_ahead_bytes": Assumption(
        0, 32 << 10, "a GPU only; on an H100 more delays what stages wait for: 32, 64 and 160 KB "
        "0.945, 1.008 and 1.024 ms"
    ),
    "streaming_lanes": Assumption(
        512, 512, "a GPU only: a quarter of an H100's multiprocessor, whose registers are then "
        "enough for what its stages keep"
    ),
    "slot_bytes": Assumption(
        8 << 10, 8 << 10, "a GPU only, half of it where a block has less than 128 KB; a decode "
        "step on an H200, of four rows a slot: 4, 6, 8 and 16 KB 0.951, 0.965, 0.933 and 0.993 "
        "ms, by copies of 16 bytes 4 and 8 KB 1.016 and 0.961; on an H100, when stages were more, "
        "4 and 8 KB 1.349 and 1.364"
    ),
    "streamed_bytes": Assumption(
        32 << 10, 32 << 10, "a GPU only; stages of row products by hand on an H100: 16, 32, 48, 64 "
        "and 160 KB 1.049, 0.945, 0.977, 1.008 and 1.024 ms; a decode step on an H200, by slots of "
        "4 KB, 24, 32, 48, 56 and 64 KB 1.140, 0.951, 0.949, 0.948 and 0.953"
    ),
    "start_spin_limit": Assumption(
        1000, 20_000, "9 µs on a CPU (Zen 5), where a thread that sleeps begins after 50 to 200 µs "
        "or never: with 20,000 such launches took 170 µs more"
    ),
    "start_polls_each": Assumption(
        4, 0, "36 ns on a CPU, a tenth of what the shortest instruction takes: 16 steps of 5-point "
        "means in 40 ms in place of 86 (two cores of a Xeon); GPUs start all workers at once"
    ),
    "polls_between_checks": Assumption(1024, 1024, "tens of microseconds on a CPU"),
    "idle_checks": Assumption(
        128, 128, f"{_BY_HAND}: a stall, of which others know nothing, is told in seconds"
    ),
    "polls_between_yields": Assumption(64, 64, "half a microsecond on a CPU, several yields"),
    "spin_limit": Assumption(
        1 << 27, 1 << 22, "four seconds: 32 ns a poll on a CPU, a microsecond on a GPU"
    ),
    # Profiles
    "counter_copies": Assumption(16, 16, _BY_HAND),
    "early_clock_ns": Assumption(100, 100, "out-of-order execution: up to 55 ns were seen"),
    "time_slice_ns": Assumption(
        1_000_000, 1_000_000, "Linux takes a core away for a millisecond or more (sched(7))"
    ),
    # Costs, until they are measured
    "launch_seconds": Assumption(
        20e-6, 9.3e-7, "order of magnitude of a small CPU; a kernel of a CUDA graph on an H100",
        "measured",
    ),
    "host_launch_seconds": Assumption(
        0.0, 4.8e-6, "as launch_seconds; through cuda.bindings on an H100's host"
    ),
    "instruction_seconds": Assumption(
        4e-7, 1.25e-6, "0.05 to 0.4 µs on a small CPU; tickets on an H100", "measured"
    ),
    "stage_seconds": Assumption(
        2e-6, 2e-6, "as launch_seconds; a counter of an H100's grid", "measured"
    ),
    "alone_seconds": Assumption(
        2e-7, 1.25e-6, "0.15 to 0.3 µs on a small CPU; a GPU has all its workers", "measured"
    ),
    "memory_bandwidth": Assumption(
        10e9, 2.9e12, "as launch_seconds; a copy on an H100", "measured"
    ),
    "cache_bandwidth": Assumption(40e9, 5e12, "as launch_seconds", "measured"),
    # Costs that no microbenchmark shows: fitted (benchmarks/cost_model.py)
    "access_efficiency": Assumption(0.7, 2.0, f"{_FITTED}: much of what is loaded again is in L1"),
    "function_seconds": Assumption(1.5e-9, 0.85e-9, f"{_FITTED_GPU}as the others"),
    "serial_seconds": Assumption(0.72e-9, 0.30e-9, f"{_FITTED_GPU}as the others"),
    "chain_seconds": Assumption(0.0, 3.1e-9, f"{_FITTED_GPU}not counted"),
    "serial_slowdown": Assumption(2.25, 1.0, _FITTED),
    "busy_items": Assumption(680, 680, _FITTED_CHAINS),
    "function_operations": Assumption(45.0, 45.0, _FITTED_CHAINS),
    "division_operations": Assumption(30.0, 30.0, _FITTED_CHAINS),
    "used_once_slowdown": Assumption(2.5, 2.5, _FITTED_CHAINS),
    "ordered_slowdown": Assumption(
        1.4, 1.4, "rows of a stencil on an H100 in 224 and 164 µs; for CPUs not asked for"
    ),
    "clamped_slowdown": Assumption(
        3.5, 1.0, "blurs of 256 x 320 floats that clamp as launches without and with code of their "
        "own for the inside of rows: 158, 45 µs of a core (EPYC, AVX-512); not asked for on GPUs"
    ),
    "vectors_slowdown": Assumption(
        3.0, 1.0, "products of a sparse matrix of 0 to 5 elements a row with a sum by work-groups "
        "behind them 2.4 times as long, products of rows of int8 with a function behind them 3.5 "
        "(EPYC, AVX-512); not asked for on GPUs"
    ),
    "scalars_slowdown": Assumption(
        8.0, 1.0, "scaling and GELU of 200 x 200 sums behind products of rows of int8 45 us by "
        "themselves, 330 in their launch (EPYC, AVX-512); not asked for on GPUs"
    ),
    "own_rows_share": Assumption(
        0.6, 1.0, "sums of 400 rows of 320 floats 0.45, 0.28 ns of a core an element, of 4,000 of "
        "1,000 0.54, 0.28, their largest absolute values 0.46, 0.46 and 0.52, 0.41 (EPYC, "
        "AVX-512); not asked for on GPUs"
    ),
    "columns_slowdown": Assumption(
        4.0, 1.0, "Maxwell's equations in 109 planes of 110 x 111 floats, in work-groups of 109 x "
        "1 x 16, 10.5 ms of a core, and 2.1 apart (EPYC, AVX-512); not asked for on GPUs"
    ),
    "start_launches": Assumption(1.3, 1.3, _FITTED),
    "masked_store_seconds": Assumption(
        2e-8, 2e-8, "kernels over 5,000 and 500,000 work-items in one launch, two cores of an EPYC "
        "(Zen 3) beside other work: 624 µs more than apart; not asked for on GPUs"
    ),
    "interior_speedup": Assumption(1.85, 1.0, _FITTED),
    "whole_tile_speedup": Assumption(
        1.0, 2.4, "3 and 5 points, 3 and 5 steps a launch, on an H100 2.1 to 2.8; not asked for on "
        "CPUs"
    ),
    "affinity_speedup": Assumption(1.55, 1.0, _FITTED),
    "saved_seconds": Assumption(
        1.5e-4, 1.5e-4, "0.1 to 0.3 s of planning and building on two cores of an EPYC, over 2,000 "
        "runs"
    ),
    "own_cache_speedup": Assumption(
        2.2, 1.0, "1.6 to 4 for eight lists of 16,000 work-items on two cores of an EPYC (Zen 3); "
        "not asked for on GPUs"
    ),
    "others_launches": Assumption(
        3.0, 0.0, "lists of 8 to 64 stages on two cores of an EPYC (Zen 3): 5 µs where runs follow "
        "each other; where each is waited for 15 to 20, and 40 to 100 from some thousand "
        "work-items on, as another thread waits then; GPUs start all workers at once"
    ),
    "split_saved_seconds": Assumption(
        5e-5, 5e-5, "0.3 s of building on two cores of an EPYC, over 6,000 launches; not asked for "
        "on GPUs"
    ),
    # What the cost model counts in: one operation's time in terms of another's
    "float_division": Assumption(0.3, 0.3, f"{_FITTED}; against a mathematical function"),
    "group_function": Assumption(0.6, 0.6, f"{_FITTED}; against a mathematical function"),
    "integer_division": Assumption(8.0, 8.0, f"{_FITTED}; against an element that is gathered"),
    "atomic_operation": Assumption(25.0, 25.0, f"{_FITTED}; against an element that is gathered"),
    "gathered_bytes": Assumption(16.0, 16.0, f"{_FITTED}; in loops"),
    "accessed_bytes": Assumption(4.0, 4.0, "most elements of the corpus are float32 or int32"),
    "lane_gathered": Assumption(10.0, 10.0, f"{_LANES}; sixteen elements in 4 to 5 ns"),
    "lane_scattered": Assumption(20.0, 20.0, f"{_LANES}; sixteen elements in 8 ns"),
    "lane_operation": Assumption(
        0.5, 0.5, f"{_LANES}; a loop's iteration with two loads and an addition takes 1.4 ns"
    ),
    "lane_function": Assumption(10.0, 10.0, _LANES),
    "lane_division": Assumption(10.0, 10.0, f"{_LANES}; of floats, a square root too"),
    "lane_integer_division": Assumption(100.0, 100.0, f"{_LANES}; lane by lane"),
    "tile_row": Assumption(
        0.15, 0.15, "7-point means in tiles of 16 x 16 x 64, 16 x 8 x 128 and 8 x 8 x 256 "
        "work-items on two cores of an EPYC: 1, 0.79 and 0.68 of the time; not asked for on GPUs"
    ),
    # Generated code
    "vector_kept_bytes": Assumption(256, 256, "64 registers of 32 bits on an H100; only there"),
    "shortest_vector": Assumption(4, 4, "two elements of 8 bytes were loaded as fast one by one"),
    "ahead_kept_bytes": Assumption(128, 128, "32 registers of 32 bits on an H100; only there"),
    "loads_at_once": Assumption(12, 12, "of 16 or 32 vector registers; only where lanes are one"),
    "jammed_bytes": Assumption(
        32, 32, "a vector times matrices of 52 MB, two cores of an EPYC (Zen 5): 18 GB/s a core by "
        "one vector of float32 at a time, 22 by 4, 26 by 8, 28 by 16; 8 of 32 registers; only "
        "where lanes are a vector"
    ),
    "jammed_temporaries": Assumption(
        256, 256, "a tridiagonal system in each of a million columns, eight values of float64 an "
        "iteration, two cores of an EPYC (Zen 3): by one vector 65 ms, 2 at a time 41, 4 45, 8 47; "
        "in cache 253 µs, 127, 157, 8 as 1; only where lanes are a vector"
    ),
    "jammed_iterations": Assumption(
        16, 16, "products of 1,024 x 16 and 16 x 1,024 floats on two cores of an EPYC (Zen 3): 0.7 "
        "of the time, of 8 in place of 16 1.4; of 4,096 x 16 on an H100 0.5 to 0.63"
    ),
    "jammed_row_iterations": Assumption(
        24, 24, "sums over columns of a million floats each, two cores of an EPYC (Zen 3): of 8 "
        "and 16 rows 1.5 times as long, of 20 0.92, 24 0.79, 32 0.61, 64 0.66; running sums of 8 "
        "rows 1.4 times, of 16 to 64 0.78 to 0.92; only where lanes are a vector"
    ),
    "strip_items": Assumption(256, 256, "columns of a few dozen bytes in an L1 of 32 KiB"),
    "shortest_segment": Assumption(16, 16, "a vector of float32 in AVX-512"),
    "shortest_interior": Assumption(128, 128, f"{_BY_HAND}: eight vectors of float32 in AVX-512"),
    "private_copies_bytes": Assumption(2048, 2048, f"{_BY_HAND}: a part of an L1 of 32 KiB"),
    "items_per_copy": Assumption(
        16, 16, "to combine an element takes as long as some atomic operations"
    ),
    "local_alignment": Assumption(64, 64, "a cache line of x86-64 and arm64"),
    "prefetch_distance": Assumption(
        4096, 4096, "6 to 24 KB are as good: 5-point means in tiles of 32 x 384 work-items"
    ),
    "most_prefetched_rows": Assumption(6, 6, _BY_HAND),
    "peeled_expressions": Assumption(400, 400, _BY_HAND),
    "scalar_operations": Assumption(
        5, 5, "lists of neighbours, without vectors: 4.2 times as fast at 1, 1.7 at 5, 0.8 at 6"
    ),
    "beside_scalars": Assumption(
        256, 256, "the five nearest of 2,000 points: 202, four times as fast"
    ),
    "own_rows_at_once": Assumption(4, 4, _BY_HAND),
    "own_row_iterations": Assumption(16, 16, _BY_HAND),
    "own_row_operations": Assumption(
        2, 2, "rows in the caches, without vectors: 1.0 to 1.7 times as fast at 2, 0.6 to 0.9 at 3"
    ),
    "streamed_expressions": Assumption(64, 64, _BY_HAND),
    "iterations_ahead": Assumption(16, 16, "an H100, where it is for"),
    "fewest_ahead": Assumption(4, 4, "an H100, where it is for"),
    "loads_ahead": Assumption(
        16, 16, "a decode step on an H100: none 1.93 ms, 16 1.81, 48 1.88, 80 1.90; only there"
    ),
    "iterations_together": Assumption(
        32, 32, "a decode step on an H100 of 119 keys: 1.274 ms, without 1.296; of 128 keys 1.282, "
        "with 16 1.283; only there"
    ),
    "streamed_together": Assumption(
        16, 16, "an H100: 0.2 to 1 of the time of ptxas' own choice, 4 iterations in half of the "
        "registers; only there"
    ),
    "masked_together": Assumption(
        16, 16, "the same of 119 keys: with 8 1.278 ms; of 128 keys with 32 1.286"
    ),
    "unrolled_expressions": Assumption(
        1600, 1600, "loops of an attention over keys and values, 32 times; NVRTC for sm_90 takes "
        "2.4 s for 1,984 and 0.9 for 992 in four loops of a stencil; five lists on an "
        "H100 took as long as without a bound; only there"
    ),
    "values_together": Assumption(80, 80, "of 128 registers of a thread; only on GPUs"),
    "few_items": Assumption(
        128, 128, "a warp for each of a multiprocessor's four schedulers; only on GPUs"
    ),
    "few_times_together": Assumption(
        2, 2, "sums of 4,096 float32 by a work-item of an H100 13.4 ns a term, 9.1 with 1, 6.8 "
        "with 2; of float64 14.9, 11.1 and 9.9; only there"
    ),
    "few_bytes": Assumption(512, 512, "half of a thread's 255 registers; only on GPUs"),
    "row_turns": Assumption(
        16, 16, "a whole row of the scores of an attention over 16 on an H100; only on GPUs"
    ),
    "kept_words": Assumption(
        64, 64, "of 128 registers of a thread. Rows of 2,048 on an H100: softmax of float32 55 us "
        "with 32, 79 with 16 (and the rest from memory), 120 without; entropy of float64 79 with "
        "64, 100 with 32, 144 without; only on GPUs"
    ),
    "kept_turns_together": Assumption(8, 8, "the same rows, where it is for"),
    "early_values": Assumption(
        64, 64, "of 128 registers of a thread. Chains of row products on an H100: with 64 0.85 of "
        "the time without, with 32 0.98; only there"
    ),
    "early_step": Assumption(32, 32, "a warp"),
    "block_planes": Assumption(
        64, 64, "threads of a block in z (CUDA C++ Programming Guide 13, Compute Capabilities)"
    ),
    "static_bytes": Assumption(
        48 << 10, 48 << 10, "static shared memory of a block (CUDA C++ Programming Guide 13)"
    ),
    "worker_threads": Assumption(
        256, 256, f"{_BY_HAND}: eight warps, of which an H100's multiprocessor has room for eight; "
        "only on GPUs"
    ),
    "copy_alignment": Assumption(16, 16, "what cp.async.bulk of NVIDIA asks for; only there"),
    "ring_alignment": Assumption(
        128, 128, "a decode step on an H100: 1.429 ms, 1.504 behind tables of any length; only "
        "there"
    ),
    "box_counters": Assumption(
        8, 8, "each look takes as long as memory is away, and pollers, which look at 32 at once, "
        "look at those of all waits of a tile: a decode step on an H100 takes 1.427 ms with as "
        "many as there are, 1.403 with 8, 1.409 with 4"
    ),
    "shortest_poll": Assumption(
        1e-8, 1e-8, f"{_BY_HAND}: less than a load past a processor's own caches"
    ),
    "near_words": Assumption(
        1536, 1536, "12 KiB, some 70 stages: eight workers of a multiprocessor of an H100 leave "
        "half of its memory to the level 1 cache"
    ),
    "most_near_words": Assumption(
        10 << 10, 10 << 10, "80 KiB: two workers of a multiprocessor of an H100 leave a quarter"
    ),
    "combined_together": Assumption(16, 16, "a vector of float32 in AVX-512; half a warp"),
    "combined_alone": Assumption(64, 64, f"{_BY_HAND}: a barrier takes longer"),
    # What the device's compiler takes, in seconds
    "build_program": Assumption(0.0291, 0.0665, _FITTED_BUILDS),
    "build_operation": Assumption(4.95e-5, 1.19e-4, _FITTED_BUILDS),
    "build_division": Assumption(6.52e-4, 0.0, _FITTED_BUILDS),
    "build_loop": Assumption(4.42e-3, 0.025, _FITTED_BUILDS),
    "build_condition": Assumption(9.33e-4, 8.07e-4, _FITTED_BUILDS),
    "build_array_pair": Assumption(1.27e-5, 2.77e-6, _FITTED_BUILDS),
    "build_region": Assumption(1.12e-2, 0.0, _FITTED_BUILDS),
    "build_workers": Assumption(0.230, 0.652, _FITTED_BUILDS),
    "build_body": Assumption(0.0176, 0.0, _FITTED_BUILDS),
    "build_wait": Assumption(3.94e-3, 0.273, _FITTED_BUILDS),
    "build_operand": Assumption(1.51e-3, 0.0, _TABLES),
    "build_unrolled": Assumption(0.0, 1.21e-4, _UNROLLED),
    "build_function": Assumption(0.0, 0.0221, _UNROLLED),
    "build_quotient": Assumption(0.0, 2.42e-3, _UNROLLED),
}


def assumed(kind: type[Any], column: Column) -> dict[str, Any]:
    """The assumed values of the fields of a dataclass that have one."""
    names = {f.name for f in fields(kind)}
    return {name: getattr(a, column) for name, a in ASSUMED.items() if name in names}
