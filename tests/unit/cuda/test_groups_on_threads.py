"""The text of reductions in CUDA C++, run on the host with a thread for each work-item: several
values together have the bits of each alone, and those of the documented order."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from fusionq.codegen.cuda.groups import CudaGroups
from fusionq.codegen.cuda.worker_groups import CudaWorkerGroups
from fusionq.codegen.dialect import Groups
from fusionq.ir.nodes import GroupOp
from fusionq.ir.types import FLOAT32, FLOAT64, INT8, INT64, ScalarType
from fusionq.language.combine import over_group
from tests.in_turn import one_in

HOST = """\
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#define __device__
#define __forceinline__ inline
#define __shared__ static
struct Three { unsigned x, y, z; };
static thread_local Three threadIdx = {0, 0, 0};
static Three blockDim = {1, 1, 1};
static pthread_barrier_t of_block, of_group[16], of_warp[32];
static unsigned long long exchanged[1024];
static void __syncthreads() { pthread_barrier_wait(&of_block); }
static void __barrier_sync_count(unsigned number, unsigned) {
    pthread_barrier_wait(&of_group[number]);
}
static int __clz(unsigned value) { return __builtin_clz(value); }
template <class T> static T from(T value, unsigned lane) {
    const unsigned id = threadIdx.x, first = id / 32 * 32;
    *(T*)&exchanged[id] = value;
    pthread_barrier_wait(&of_warp[id / 32]);
    const bool there = lane < 32 && first + lane < blockDim.x;
    const T found = there ? *(T*)&exchanged[first + lane] : value;
    pthread_barrier_wait(&of_warp[id / 32]);
    return found;
}
template <class T> static T __shfl_down_sync(unsigned, T value, unsigned apart) {
    return from(value, threadIdx.x % 32 + apart);
}
template <class T> static T __shfl_sync(unsigned, T value, unsigned lane) {
    return from(value, lane);
}
"""
"""Of C's headers alone: those of C++ for threads take a second of each compilation."""

MAIN = """\
static unsigned block, group;
static TYPE in[MANY * 1024], found[2 * MANY * 1024];

static void* work_item(void* number) {
    const unsigned id = threadIdx.x = (unsigned)(size_t)number;
    unsigned fq_turn = 0;
    (void)fq_turn;
    TYPE own[MANY];
    for (int again = 0; again < 3; again++) {  // in either half of the memory
        for (int k = 0; k < MANY; k++) own[k] = in[k * block + id];
        TOGETHER;
    }
    for (int k = 0; k < MANY; k++) found[k * block + id] = own[k];
    for (int k = 0; k < MANY; k++) own[k] = in[k * block + id];
    ALONE
    for (int k = 0; k < MANY; k++) found[(MANY + k) * block + id] = own[k];
    return NULL;
}

int main() {
    if (fread(&block, 4, 1, stdin) != 1 || fread(&group, 4, 1, stdin) != 1) return 1;
    if (fread(in, sizeof(TYPE) * block, MANY, stdin) != MANY) return 1;
    blockDim.x = block;
    pthread_barrier_init(&of_block, NULL, block);
    for (unsigned k = 0; k < block / group; k++)
        pthread_barrier_init(&of_group[1 + k], NULL, group);
    for (unsigned k = 0; 32 * k < block; k++)
        pthread_barrier_init(&of_warp[k], NULL, block - 32 * k < 32 ? block - 32 * k : 32);
    static pthread_t threads[1024];
    for (size_t id = 0; id < block; id++)
        if (pthread_create(&threads[id], NULL, work_item, (void*)id)) return 1;
    for (unsigned id = 0; id < block; id++) pthread_join(threads[id], NULL);
    fwrite(found, sizeof(TYPE) * block, 2 * MANY, stdout);
}
"""
C_TYPES = {FLOAT32: "float", FLOAT64: "double", INT8: "signed char", INT64: "long long"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where programs are built."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    return tmp_path_factory.mktemp("groups")


def built(folder: Path, groups: Groups, type: ScalarType, op: GroupOp, many: int) -> Path:
    """The program that reduces ``many`` values of each work-item together, then each alone."""
    helpers: dict[str, str] = {}
    own = [f"own[{k}]" for k in range(many)]
    joint = groups.joint_reduction(op, own, type, helpers.setdefault)
    alone = [f"{v} = {groups.collective('reduce', op, v, type, helpers.setdefault)};" for v in own]
    main = MAIN.replace("TOGETHER", joint).replace("ALONE", " ".join(alone))
    main = main.replace("TYPE", C_TYPES[type]).replace("MANY", str(many))
    (folder / "groups.cpp").write_text("\n".join([HOST, *helpers.values(), main]))
    command = ["g++", "-std=c++20", "-O1", "-pthread", "-w", "-o", "groups", "groups.cpp"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "groups"


def slow(*cases: tuple[object, ...]) -> list[object]:
    """Those of further types, whose programs each take seconds to compile."""
    return [pytest.param(*case, marks=pytest.mark.slow) for case in cases]


def check(program: Path, type: ScalarType, op: GroupOp, many: int, block: int, group: int) -> None:
    rng = np.random.default_rng(block)
    values = (rng.standard_normal((many, block)) * 60).astype(type.dtype)
    given = np.array([block, group], np.uint32).tobytes() + values.tobytes()
    done = subprocess.run([program], input=given, capture_output=True, check=True, timeout=60)
    found = np.frombuffer(done.stdout, type.dtype).reshape(2, many, block)
    parts = values.reshape(many, block // group, group)
    with np.errstate(over="ignore"):
        sums = [[over_group("reduce", op, list(part), ()) for part in of_one] for of_one in parts]
    expected = np.array(sums, type.dtype).reshape(many, block)
    assert found[0].tobytes() == found[1].tobytes() == expected.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("type", "op"),
    one_in(3, [(FLOAT32, "add"), *slow((FLOAT64, "mul"), (INT8, "add"), (INT64, "max"))]),
    ids=lambda value: getattr(value, "name", value),
)
def test_launches(folder: Path, type: ScalarType, op: GroupOp) -> None:
    """Whole warps and others; as many values as the memory for it holds, and more."""
    groups = CudaGroups()
    many = groups.most_together(type)
    program = built(folder, groups, type, op, many)
    for size in (1, 20, 32, 33, 100, 128, 257):
        check(program, type, op, many, size, size)


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("size", [32, 128])
@pytest.mark.parametrize(
    ("type", "op"),
    [(INT8, "min"), *slow((FLOAT32, "add"), (FLOAT64, "add"))],
    ids=lambda value: getattr(value, "name", value),
)
def test_work_groups_side_by_side(folder: Path, type: ScalarType, op: GroupOp, size: int) -> None:
    groups = CudaWorkerGroups(size)
    for many in {2, groups.most_together(type)}:
        check(built(folder, groups, type, op, many), type, op, many, 256, size)
