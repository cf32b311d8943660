"""Options and fixtures of the whole suite."""

from __future__ import annotations

import difflib
import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests import fast_loop
from tests.bytecode import keep_bytecode
from tests.few_reports import FewReports
from tests.in_turn import (
    after_the_first,
    before_the_last,
    beyond,
    in_turn_of,
    is_short,
    is_whole,
    left_out,
    on_other_backends,
    params_of,
)
from tests.processor_seconds import ProcessorSeconds

if TYPE_CHECKING:
    from tests.device_programs import DevicePrograms

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# NumPy is not imported yet, and workers and child processes have this too: OpenBLAS's own threads
# wait busily when NumPy is imported, 85 ms of a processor in each process.

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"

MARKERS = {
    "unit": "unit",
    "conformance": "conformance",
    "e2e": "e2e",
    "property": "property",
    "protocol": "protocol",
    "dpex": "dpex",
    "cuda": "cuda",
}
"""The marker of the tests in each directory; pyproject.toml says what they mean."""

COMPILED_QUICKLY = (
    "e2e/test_array_reductions.py",
    "e2e/test_docs_snippets.py",
    "e2e/test_group_rows.py",
    "e2e/test_halos.py",
    "e2e/test_interchange.py",
    "e2e/test_interchanged_launches.py",
    "e2e/test_interior.py",
    "e2e/test_interior_ranges.py",
    "e2e/test_jammed_launches.py",
    "e2e/test_jammed_loops.py",
    "e2e/test_linear_ids.py",
    "e2e/test_llama.py",
    "e2e/test_megakernels.py",
    "e2e/test_mixed_shapes.py",
    "e2e/test_overlapped_tiles.py",
    "e2e/test_own_row_launches.py",
    "e2e/test_pinned_scalars.py",
    "e2e/test_points_of_lanes.py",
    "e2e/test_promotion_rows.py",
    "e2e/test_range_rows.py",
    "e2e/test_row_segments.py",
    "e2e/test_row_vectors_of_launches.py",
    "e2e/test_segments_of_launches.py",
    "e2e/test_semantics_rows.py",
    "e2e/test_semantics_rows_aborts.py",
    "e2e/test_sliding_windows.py",
    "e2e/test_split_rows.py",
    "e2e/test_streamed_tiles.py",
    "e2e/test_time_steps.py",
    "e2e/test_tuned_again.py",
    "e2e/test_tuning.py",
    "e2e/test_turns.py",
    "e2e/test_whole_rows.py",
    "e2e/test_work_group_stages.py",
    "unit/benchmarks/test_bench.py",
    "unit/benchmarks/test_corpus_programs.py",
    "unit/benchmarks/test_dpex_baseline.py",
    "unit/benchmarks/test_strategy_cases.py",
    "unit/cache",
    "unit/execution",
    "unit/frontend",
    "unit/kernels/test_library.py",
    "unit/planning",
    "unit/report",
    "unit/runtime",
)
"""Tests of what happens on the host, or of which element a kernel reads and writes: on the SYCL
device their programs are compiled without optimisation, but in the profile ``nightly``."""
COMPILED_QUICKLY_ON_ALL = (
    "conformance/test_new_memory.py",
    "e2e/test_one_work_group.py",
    "property/test_few_workers.py",
    "unit/cuda/test_groups_on_threads.py",
    "unit/cuda/test_other_memory.py",
    "unit/cuda/test_vectors.py",
    "unit/cuda/test_waits.py",
)
"""The same, of tests that have all combinations of their parameters on each backend."""

COMPILED_AS_USERS_ARE = (
    "conformance/test_opposite_ids.py",
    "e2e/test_emulated_lanes.py",
    "e2e/test_lanes_kept.py",
    "unit/cuda",
    "unit/groups",
    "unit/profiling",
    "unit/sycl",
    "unit/test_device_sources.py",
)
"""The tests whose device programs are compiled with optimisation in the profile ``dev``, too: those
of what the compiler's optimisation does wrong, of functions of sub-groups under conditions, which
the compiler loses without it, and of the registers that programs for GPUs take."""

COMPUTED_ALIKE = (
    "conformance/test_array_functions.py",
    "conformance/test_bfloat16.py",
    "conformance/test_compare_exchange.py",
    "conformance/test_group_functions.py",
    "conformance/test_id_arithmetic.py",
    "conformance/test_joint_functions.py",
    "conformance/test_local_memory.py",
    "conformance/test_math.py",
    "conformance/test_nontemporal_stores.py",
    "conformance/test_operators.py",
    "conformance/test_opposite_ids.py",
    "conformance/test_products_of_sums.py",
    "conformance/test_signs.py",
    "conformance/test_values.py",
)
"""Tests of what kernels compute: the backend ``far`` is the reference one with memory that the host
does not see, and has them in the profile ``nightly`` only."""

OF_GENERATED_CODE = (
    "conformance/test_columns.py",
    "conformance/test_constant_conditions.py",
    "conformance/test_constant_scalars.py",
    "conformance/test_extrema_of_negations.py",
    "conformance/test_falling_indices.py",
    "conformance/test_items_in_groups.py",
    "conformance/test_kept_rows.py",
    "conformance/test_loops_by_memory.py",
    "conformance/test_moved_elements.py",
    "conformance/test_nontemporal_stores.py",
    "conformance/test_opposite_ids.py",
    "conformance/test_orders_of_ids.py",
    "conformance/test_padded_groups.py",
    "conformance/test_pairs.py",
    "conformance/test_points.py",
    "conformance/test_products_of_sums.py",
    "conformance/test_reductions_in_order.py",
    "conformance/test_row_limits.py",
    "conformance/test_rows_of_groups.py",
    "conformance/test_rows_one_by_one.py",
    "conformance/test_side_by_side.py",
    "conformance/test_small_extents.py",
    "conformance/test_split_launches.py",
    "conformance/test_steps_alone.py",
    "conformance/test_steps_by_vectors.py",
    "conformance/test_stored_and_loaded.py",
    "conformance/test_sums_of_rows.py",
    "conformance/test_triangular_loops.py",
    "conformance/test_vectors_of_workers.py",
    "conformance/test_windows.py",
)
"""Tests of rewrites of ``fusionq.codegen``, whose source the reference backend and numba-dpex do
not compile: there each of them runs with one choice of its parameters, and on ``far`` not at all,
but in the profile ``nightly``.  On the SYCL device, whose compiler takes most of their time, they
take the values of their parameters in turn, and the compiler optimises for the first ones only."""

COMPILED_QUICKLY_TOO = pytest.StashKey[bool]()
"""Of tests whose device programs are compiled without optimisation, though not those of their
whole file."""

FEW_SETS = (
    "conformance",
    "e2e",
    "unit/benchmarks",
    "unit/cache",
    "unit/groups",
    "unit/megakernel",
)
MOST_SETS = 3
"""Tests that have at most so many sets of parameters in the profile ``dev``: those that take the
most time a set."""

COLLECTING = (
    "conformance/test_memory.py",
    "cuda",
    "unit/execution",
    "unit/pictures",
    "unit/runtime",
    "unit/sycl",
)
"""Tests that collect garbage."""

COLLECTED = (20_000, 20, 50)
"""When garbage is collected: rarely, since Hypothesis is told of each time."""

EXAMPLES = {"dev": 3, "ci": 7, "nightly": 2800}
"""Profiles of Hypothesis: how many of a hundred examples that a test asks for it gets.  Those of
``nightly`` are new each time, the others' the same: there Hypothesis does not mix in constants that
it finds in the modules imported so far, which differ by what a worker ran before."""
for _profile, _percent in EXAMPLES.items():
    settings.register_profile(
        _profile,
        max_examples=_percent,
        derandomize=_profile != "nightly",
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the texts that tests produce to tests/golden instead of comparing",
    )
    parser.addoption(
        "--processor-seconds",
        action="store_true",
        help="print what the tests of each file take of a processor",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Without ``--hypothesis-profile`` the profile is ``dev``; ``.ci/run`` takes ``ci``."""
    config.option.cacheclear = False  # it is: workers would remove what others write
    if hasattr(config, "cache"):
        keep_bytecode(config.cache.mkdir("bytecode"))
    if config.getoption("--processor-seconds"):
        config.pluginmanager.register(ProcessorSeconds(config))
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(FewReports(config))
    gc.set_threshold(*COLLECTED)
    gc.disable()  # of what is collected, all stays
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("dev")
    if settings().derandomize:
        providers.is_local_module_file = lambda path: False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file run in one worker, unless ``--dist`` says otherwise: its kernels are
    read, its lists planned and its programs built once, not in each worker."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The fast loop does not read files that it leaves out."""
    is_left_out = _is_fast_loop(config) and fast_loop.is_slow(_place(collection_path))
    return True if is_left_out and collection_path.name.startswith("test_") else None


def _is_fast_loop(config: pytest.Config) -> bool:
    return str(config.option.markexpr) == "not slow"


def pytest_collection(session: pytest.Session) -> None:
    """Each worker imports a share of the test modules first: pytest rewrites their assertions,
    which takes longer than all else of collecting them, and keeps what the others find then."""
    worker: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode:
        return
    of_all, number = worker["workercount"], int(worker["workerid"].removeprefix("gw"))
    for module in _test_modules(session)[number::of_all]:
        with suppress(Exception, pytest.skip.Exception):  # collecting it will tell
            import_module(module)


def _test_modules(session: pytest.Session) -> list[str]:
    """Of the directories that are collected, by their names as packages."""
    folders = [Path(argument.split("::")[0]).resolve() for argument in session.config.args]
    paths = {path for folder in folders for path in folder.rglob("test_*.py")}
    inside = sorted(path for path in paths if path.is_relative_to(TESTS))
    if _is_fast_loop(session.config):
        inside = [path for path in inside if not fast_loop.is_slow(_place(path))]
    return [".".join(p.relative_to(TESTS.parent).with_suffix("").parts) for p in inside]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None]:
    """Mark tests by where they stand; and of those marked ``in_turn`` that -k and -m leave, leave
    out what other ones test, except in the profile ``nightly``.  Tests of what happens on the host
    have their other parameters' combinations on the reference backend and the device in turn."""
    for item in items:
        place = _place(item.path)
        if place.parts[0] in MARKERS:
            item.add_marker(MARKERS[place.parts[0]])
        if params_of(item).get("target") == "cuda":
            item.add_marker("cuda")
    if "slow" in str(config.option.markexpr):
        for item in fast_loop.slow_ones(items, TESTS):
            item.add_marker("slow")
    yield
    if not is_whole():
        out = left_out(items) | {item for item in items if _is_computed_alike(item)}
        out |= after_the_first([item for item in items if _is_compiled_elsewhere(item)])
        on_the_device = [item for item in items if _is_compiled_by_sycl(item)]
        out |= in_turn_of(on_the_device)
        for item in after_the_first([item for item in on_the_device if item not in out]):
            item.stash[COMPILED_QUICKLY_TOO] = True
        if is_short():
            left = [item for item in items if item not in out]
            there = [item for item in left if _has_backend(item)]
            out |= in_turn_of(there) | after_the_first([i for i in left if not _has_backend(i)])
            out |= beyond(MOST_SETS, [i for i in there if i not in out and _has_few_sets(i)])
        if find_spec("dpctl") is not None:
            of_the_host = [item for item in items if _is_of_the_host(_place(item.path))]
            out |= on_other_backends(of_the_host, ("target", "queue"))
            out |= before_the_last([i for i in items if i.get_closest_marker("one_backend")])
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]


def pytest_collection_finish() -> None:
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    from tests.device_programs import DevicePrograms

    is_quick = item.stash.get(COMPILED_QUICKLY_TOO, False)
    if is_short() and not _is_in(_place(item.path), COMPILED_AS_USERS_ARE):
        is_quick = True
    if item.get_closest_marker("compiled_quickly") is not None:
        is_quick = not is_whole()
    DevicePrograms.optimised_for_this = not is_quick


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Garbage is collected once: pytest then does so five times more, for what comes to life while
    it dies, which takes seconds where a whole suite has left what it has."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line a reason for skipped tests, in place of pytest's line a test: on a machine without
    a GPU four hundred tests have one reason."""
    reasons = Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    )
    if reasons:
        terminalreporter.section("skipped tests")
        for reason, count in reasons.most_common():
            terminalreporter.write_line(f"{count} x {reason}")


def _has_backend(item: pytest.Item) -> bool:
    """Whether the backend that the test is for is there: the others' tests are skipped, and must
    not hold values in place of those that run."""
    match params_of(item).get("target"):
        case "sycl":
            return find_spec("dpctl") is not None
        case "dpex":
            return find_spec("numba_dpex") is not None
        case "cuda":
            return _has_gpu()
        case _:
            return True


@cache
def _has_gpu() -> bool:
    from fusionq.backends.cuda.devices import device_count
    from fusionq.base.errors import DeviceError

    try:
        return device_count() > 0
    except DeviceError:
        return False


def _has_few_sets(item: pytest.Item) -> bool:
    return _is_in(_place(item.path), FEW_SETS)


def _is_computed_alike(item: pytest.Item) -> bool:
    """Whether the test is of what the reference backend computes, on that with other memory."""
    alike = COMPUTED_ALIKE + OF_GENERATED_CODE
    return params_of(item).get("target") == "far" and _is_in(_place(item.path), alike)


def _is_compiled_elsewhere(item: pytest.Item) -> bool:
    """Whether the test is of code that fusionq generates, on a backend that does not compile it."""
    is_elsewhere = params_of(item).get("target") in ("reference", "dpex")
    return is_elsewhere and _is_in(_place(item.path), OF_GENERATED_CODE)


def _is_compiled_by_sycl(item: pytest.Item) -> bool:
    """Whether the test is of code that fusionq generates, on the SYCL device."""
    return params_of(item).get("target") == "sycl" and _is_in(_place(item.path), OF_GENERATED_CODE)


@cache
def _place(path: Path) -> Path:
    return path.relative_to(TESTS)


def _is_of_the_host(place: Path) -> bool:
    """Whether its device programs are compiled without optimisation."""
    return _is_in(place, COMPILED_QUICKLY)


@cache
def _is_in(place: Path, places: tuple[str, ...]) -> bool:
    return any(place.is_relative_to(one) for one in places)


@pytest.fixture(scope="session", autouse=True)
def _alike_on_all_machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What becomes of a list depends on no machine's speed, on nothing else that runs there, and on
    no earlier run; nor in child processes, as far as the environment says it.

    The suite neither reads nor fills the user's disk cache: tests of what is on disk switch on one
    of their own.  Planning takes as long as it takes.  Halos that are asked for are computed anew
    whatever the device was measured to cost, and what the cost model chooses is by what it assumes.
    What ``auto`` chooses is the cost model's: tests of trials switch them on.
    """
    from fusionq.execution import device_costs
    from fusionq.planning import overlap_choice

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUSIONQ_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("FUSIONQ_CACHE", "off")
        patch.delenv("FUSIONQ_CACHE_SIZE", raising=False)
        patch.setenv("FUSIONQ_PLANNING_SECONDS", "inf")
        patch.setenv("FUSIONQ_ADAPT", "0")
        patch.setattr(overlap_choice, "MOST_LONGER", float("inf"))
        patch.setattr(device_costs, "measured_target", lambda backend: backend.target)
        yield


@pytest.fixture(scope="session", autouse=True)
def _kept_device_programs(request: pytest.FixtureRequest) -> Iterator[DevicePrograms | None]:
    """The device's compiler works once for each text, in this run and in the next ones
    (``--cache-clear`` forgets them all); most child processes compile anew."""
    if not hasattr(request.config, "cache"):
        yield None
        return
    from fusionq.backends.cuda import program as cuda
    from fusionq.backends.sycl import program as sycl
    from tests.device_programs import DevicePrograms

    kept = DevicePrograms(request.config.cache.mkdir("device-programs"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sycl, "load_dpctl", kept.load_dpctl)
        patch.setattr(cuda, "compiled", kept.compiled)
        yield kept
    kept.forget_old()


@pytest.fixture(scope="module", autouse=True)
def _set_up_module(
    request: pytest.FixtureRequest, _kept_device_programs: DevicePrograms | None
) -> Iterator[None]:
    """What differs by module; one fixture, since pytest asks for each before each test.

    Some tests collect garbage to see what dies: what the suite itself is made of, and what modules
    have left, does not, and would cost each of them a walk through it.  dpctl, once imported, has
    child processes begin as forks, for debuggers: that copies the page tables of all that the suite
    has in memory, 20 ms each, and the device's runtime gets ready.  Programs are compiled as users'
    are or without optimisation.
    """
    if _is_in(_place(request.path), COLLECTING):
        gc.collect()
        gc.freeze()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "_USE_VFORK", True, raising=False)
        if _kept_device_programs is not None:
            is_nightly = settings.get_current_profile_name() == "nightly"
            quick = COMPILED_QUICKLY + COMPILED_QUICKLY_ON_ALL
            optimised = is_nightly or not _is_in(_place(request.path), quick)
            patch.setattr(_kept_device_programs, "optimised", optimised)
        yield


@pytest.fixture
def program_folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Where device programs are kept, for child processes that share them."""
    if not hasattr(request.config, "cache"):
        return tmp_path_factory.mktemp("device-programs")
    return request.config.cache.mkdir("device-programs")


@pytest.fixture
def every_program_compiled(monkeypatch: pytest.MonkeyPatch, _kept_device_programs: None) -> None:
    """For tests that watch the device's compiler, or need all of it: functions of sub-groups under
    conditions, which records of a profile have, are lost without optimisation."""
    from fusionq.backends.sycl import program, runtime

    monkeypatch.setattr(program, "load_dpctl", runtime.load_dpctl)


@pytest.fixture
def disk_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a disk cache that is on, and empty."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FUSIONQ_CACHE_DIR", str(folder))
    monkeypatch.setenv("FUSIONQ_CACHE", "on")
    return folder


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)``: the text must be that of ``tests/golden/name``."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"there is no {path}; run pytest --update-golden and review the file")
        wanted = path.read_text(encoding="utf-8")
        if text != wanted:
            lines = (wanted.splitlines(), text.splitlines())
            difference = "\n".join(difflib.unified_diff(*lines, "golden", "now", lineterm=""))
            pytest.fail(f"{name} changed; --update-golden accepts it\n{difference}")

    return check
