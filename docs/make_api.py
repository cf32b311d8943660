"""Write docs/api.md from the docstrings of the public names.

python docs/make_api.py          writes the page
python docs/make_api.py --check  fails if the page is out of date
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from types import FunctionType

import fusionq

PAGE = Path(__file__).with_name("api.md")

SECTIONS = {
    "Queues and fusion": ["FusionQueue", "fusion", "Fusion", "Graph", "Event"],
    "Memory": ["Buffer", "access", "Reduction", "bfloat16"],
    "Reports": ["Report"],
    "Ranges": ["Range", "NdRange"],
    "Kernels": [
        "kernel", "Item", "NdItem", "Group", "LocalAccessor", "PrivateArray", "group_barrier",
        "reduce_over_group", "inclusive_scan_over_group", "exclusive_scan_over_group",
        "group_broadcast", "any_of_group", "all_of_group", "none_of_group", "joint_reduce",
        "joint_inclusive_scan", "joint_exclusive_scan", "joint_any_of", "joint_all_of",
        "joint_none_of", "AtomicRef", "atomic_fence",
        "MemoryOrder", "MemoryScope", "AddressSpace",
    ],
    "Profiling": [
        "profile", "region", "mark", "profiling", "profiling.Profile", "profiling.Timeline",
        "profiling.Launch", "profiling.Region", "profiling.Instrumentation", "profiling.Scope",
        "profiling.around", "profiling.count", "profiling.mark",
    ],
    "Settings": ["set_disk_cache"],
    "Errors": [],
}  # fmt: skip
"""The names of each section; names that stand nowhere go under "Other", errors under theirs."""

MADE_BY_FUSIONQ = (
    fusionq.Event, fusionq.Fusion, fusionq.Report, fusionq.Item, fusionq.NdItem, fusionq.Group,
    fusionq.profiling.Profile, fusionq.profiling.Timeline, fusionq.profiling.Launch,
    fusionq.profiling.Region, fusionq.profiling.Scope,
)  # fmt: skip
"""Classes whose objects users get and do not make."""

HEADER = """\
# API

Made from the docstrings by `docs/make_api.py`. The pages of the [guide](README.md) tell how things
go together; here is each by itself. All names are in the package `fusionq`.
"""


def page() -> str:
    """The whole page as Markdown."""
    parts = [HEADER]
    for section, names in sections().items():
        parts.append(f"## {section}\n")
        parts += [entry(name) for name in names]
    return "\n".join(parts)


def sections() -> dict[str, list[str]]:
    """The public names in the order of the page."""
    public = [name for name in fusionq.__all__ if not name.startswith("_")]
    public += [f"profiling.{name}" for name in fusionq.profiling.__all__ if name != "profile"]
    placed = {name for names in SECTIONS.values() for name in names}
    errors = [name for name in public if is_error(named(name))]
    found = {s: [name for name in names if name in public] for s, names in SECTIONS.items()}
    found["Errors"] = errors
    found["Other"] = [n for n in public if n not in placed and n not in errors]
    return {section: names for section, names in found.items() if names}


def named(name: str) -> object:
    """What ``name``, which may have dots, is in the package."""
    return attrgetter(name)(fusionq)


def is_error(value: object) -> bool:
    """Whether ``value`` is an exception or a warning."""
    return isinstance(value, type) and issubclass(value, BaseException)


def entry(name: str) -> str:
    """One public name: its signature, its docstring and, for a class, its members."""
    value = named(name)
    lines = [f"### `{name}{signature(value)}`\n", docstring(value)]
    if is_error(value):
        bases = ", ".join(f"`{base.__name__}`" for base in value.__bases__)
        lines.insert(1, f"A {bases}.\n")
    elif isinstance(value, type) and issubclass(value, Enum):
        lines.append("Values: " + ", ".join(f"`{v.name}`" for v in value) + ".\n")
    elif isinstance(value, type):
        lines += members(value)
    return "\n".join(lines)


def members(cls: type) -> Iterator[str]:
    """The public methods, properties and attributes that users see, those of the class itself
    last; what has no docstring of its own by name."""
    bases = [base for base in reversed(cls.__mro__) if base.__module__.startswith("fusionq.")]
    values: dict[str, object] = {}
    for base in bases:
        values |= dict.fromkeys(inspect.get_annotations(base)) | vars(base)
    texts = {name: text for base in bases for name, text in attribute_docstrings(base).items()}
    bare = []
    for name, value in values.items():
        if name.startswith("_"):
            continue
        function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if isinstance(function, FunctionType):
            yield f"#### `.{name}{signature(function, skip_self=True)}`\n\n{docstring(function)}"
        elif isinstance(value, (property, cached_property)):
            yield f"#### `.{name}`\n\n{docstring(value)}"
        elif name in texts:
            yield f"#### `.{name}`\n\n{markdown(texts[name])}"
        else:
            bare.append(f"`.{name}`")
    if bare:
        yield f"Attributes: {', '.join(bare)}.\n"


def attribute_docstrings(cls: type) -> dict[str, str]:
    """The texts that stand under the attributes in the body of a class."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    return {
        statement.target.id: inspect.cleandoc(text.value.value)
        for statement, text in pairwise(tree.body)
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def signature(value: object, skip_self: bool = False) -> str:
    """The signature without annotations; the empty text where there is none."""
    if isinstance(value, type) and issubclass(value, (Enum, BaseException, *MADE_BY_FUSIONQ)):
        return ""
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]  # or it raises
    except (TypeError, ValueError):
        return ""
    parameters = list(found.parameters.values())[1 if skip_self else 0 :]
    bare = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in parameters
        if p.annotation != "NoReturn"  # which refuses unknown options
    ]
    text = str(inspect.Signature(bare))
    text = re.sub(r"<(\w+\.\w+): [^>]*>", r"\1", text)  # an enumeration's value
    return re.sub(r"<[^<>]* at 0x\w+>", "…", text)  # an object that stands for no argument


def docstring(value: object) -> str:
    """The docstring as Markdown."""
    return markdown(inspect.getdoc(value) or "")


def markdown(text: str) -> str:
    """Text of a docstring as Markdown: double backquotes become single ones."""
    return text.replace("``", "`") + "\n"


def main() -> int:
    """Write the page, or with ``--check`` compare it; the exit code."""
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("docs/api.md is out of date; run python docs/make_api.py", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
