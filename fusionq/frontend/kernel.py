"""``@kernel``: a Python function that queues can run, once for each work-item."""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, Literal, NoReturn

from fusionq.base.errors import ArgumentError, KernelLanguageError
from fusionq.base.span import Span
from fusionq.frontend.captures import Captures
from fusionq.frontend.signature import ArrayType, LocalType, Signature
from fusionq.frontend.source import FunctionSource, KernelText
from fusionq.ir.nodes import Kernel
from fusionq.ir.types import SCALAR_TYPES, ScalarType

ItemKind = Literal["item", "nd_item"]
_ITEM_KINDS: dict[str, ItemKind] = {"Item": "item", "NdItem": "nd_item"}


class KernelFunction:
    """A kernel: a Python function of an Item or NdItem and of arrays and scalars.

    ``function``: the Python function.  Globals, closure variables and the functions it calls
    are read once, when the kernel is first specialised or its fingerprint first asked for;
    a global that changes later is seen by kernels that are made later.  Safe to use from
    several threads.
    """

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.name = function.__name__
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self._lock = threading.RLock()
        self._captures: Captures | None = None
        self._specialisations: dict[tuple[Signature, bool], Kernel] = {}
        self._item_annotation: ItemKind | Literal["unread"] | None = "unread"

    def __repr__(self) -> str:
        return f"<kernel {self.name} of {self.function.__code__.co_filename}>"

    def __call__(self, *arguments: object, **keywords: object) -> NoReturn:
        raise KernelLanguageError(
            f"the kernel {self.name!r} cannot be called\n"
            f"  Submit it: queue.submit({self.name}, range, …).  What kernels share goes into "
            "plain functions, without the decorator."
        )

    # ------------------------------------------------------------------ properties
    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The parameters' names, without the item."""
        code = self.function.__code__
        return code.co_varnames[1 : code.co_argcount]

    @property
    def span(self) -> Span:
        """Where the function is defined: the line of its ``def``."""
        source = self._source
        return source.span(source.tree)

    @property
    def fingerprint(self) -> str:
        """sha256 (hex) of the source text of the kernel and of all functions that it calls,
        without comments and layout, and of the constants that they use."""
        return self._captured.fingerprint

    @property
    def text(self) -> KernelText:
        """The source lines of the kernel and of all functions that it calls."""
        return self._captured.text

    @property
    def item_annotation(self) -> ItemKind | None:
        """What the annotation of the first parameter says, if anything."""
        if self._item_annotation == "unread":
            self._item_annotation = _item_kind(self.function)
        return self._item_annotation

    @property
    def _captured(self) -> Captures:
        captures = self._captures
        if captures is None:
            with self._lock:
                if self._captures is None:
                    self._captures = self._capture()
                captures = self._captures
        return captures

    @property
    def _source(self) -> FunctionSource:
        return self._captured.source(self.function)

    # -------------------------------------------------------------- specialisation
    def specialise(self, signature: Signature, regions: bool = False) -> Kernel:
        """The kernel's IR for these argument types; made once for each signature.  ``regions``:
        with records for the regions and marks that the kernel names.

        Raises ArgumentError where the arguments do not fit the function's parameters, and
        KernelLanguageError where the function is outside the kernel language.
        """
        key = signature, regions
        kernel = self._specialisations.get(key)
        if kernel is None:
            with self._lock:
                kernel = self._specialisations.get(key)
                if kernel is None:
                    source = self._source
                    self._check_parameters(source)
                    self._check_arguments(signature)
                    kernel = self._lower(source, signature, regions)
                    self._specialisations[key] = kernel
        return kernel

    def _capture(self) -> Captures:
        return Captures(self.function)

    def _lower(self, source: FunctionSource, signature: Signature, regions: bool) -> Kernel:
        # Only now: a kernel whose plans are in the disk cache is never lowered.
        from fusionq.frontend.lowering import lower_kernel

        return lower_kernel(source, signature, self._captured, regions=regions)

    def _check_parameters(self, source: FunctionSource) -> None:
        spec = source.tree.args
        extra = [a for a in (spec.vararg, spec.kwarg, *spec.kwonlyargs) if a is not None]
        if extra:
            raise source.error(
                extra[0],
                "a kernel takes positional parameters only",
                "Write one named parameter for each argument.",
            )
        if spec.defaults:
            raise source.error(
                spec.defaults[0],
                "a kernel's parameters have no defaults",
                "Pass every argument to submit, or use a global constant.",
            )
        if not source.parameters:
            raise source.error(
                source.tree,
                "a kernel's first parameter is its Item or NdItem",
                f"Write def {source.name}(item, …).",
            )

    def _check_arguments(self, signature: Signature) -> None:
        names = self.parameter_names
        if len(signature.arguments) != len(names):
            expected = ", ".join(names) or "none"
            raise ArgumentError(
                f"the kernel {self.name!r} ({self.span}) takes {len(names)} argument(s) after "
                f"its item ({expected}), not {len(signature.arguments)}"
            )
        if self.item_annotation not in (None, signature.item):
            is_item = signature.item == "item"
            needed, given = ("NdItem", "Range") if is_item else ("Item", "NdRange")
            remedy = "an NdRange" if is_item else "a Range (or an int or a tuple)"
            raise ArgumentError(
                f"the kernel {self.name!r} ({self.span}) is annotated with {needed}, but was "
                f"submitted over a {given}; submit it with {remedy}, or change the annotation"
            )
        for name, argument in zip(names, signature.arguments, strict=True):
            problem = _argument_problem(argument)
            if isinstance(argument, LocalType) and signature.item == "item":
                problem = (
                    "is a LocalAccessor, memory of a work-group, but was submitted over a Range; "
                    "submit the kernel with NdRange(global_range, local_range)"
                )
            if problem is not None:
                raise ArgumentError(
                    f"the argument {name!r} of the kernel {self.name!r} ({self.span}) {problem}"
                )


def _argument_problem(argument: object) -> str | None:
    """Why a kernel cannot take an argument of this type; None if it can."""
    if isinstance(argument, ArrayType):
        if argument.dtype not in SCALAR_TYPES.values():
            return f"has the dtype {argument.dtype}; convert it to one of {', '.join(SCALAR_TYPES)}"
        if argument.ndim < 1:
            return "is a 0-dimensional array; pass a scalar, or reshape it to one dimension"
        return None
    if isinstance(argument, (ScalarType, LocalType)):
        return None
    return f"is a {type(argument).__name__}; pass arrays and numbers"


def _item_kind(function: FunctionType) -> ItemKind | None:
    """From the annotation of the first parameter, an object or the text of an expression."""
    code = function.__code__
    if code.co_argcount == 0:
        return None
    try:
        annotation = function.__annotations__.get(code.co_varnames[0])
    except NameError:  # evaluated only now (Python 3.14), and imported for type checking only
        return None
    if isinstance(annotation, str):
        # The name decides, so that names imported for type checking only are understood.
        try:
            tree = ast.parse(annotation.strip(), mode="eval").body
        except SyntaxError:
            return None
        if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
            return _ITEM_KINDS.get(tree.value.rpartition(".")[2])
        name = tree.attr if isinstance(tree, ast.Attribute) else getattr(tree, "id", None)
        resolved = function.__globals__.get(name) if isinstance(name, str) else None
        return _ITEM_KINDS.get(getattr(resolved, "__name__", None) or name or "")
    return _ITEM_KINDS.get(getattr(annotation, "__name__", ""))


def kernel(function: Callable[..., Any]) -> KernelFunction:
    """Make a kernel from a Python function (decorator).

    The first parameter is the Item or NdItem, the others are arrays and scalars.  Also takes
    an object that keeps its Python function as ``py_func``, such as numba_dpex's kernels.
    Nothing is compiled yet; errors in the kernel come with its first submission.
    """
    if isinstance(function, KernelFunction):
        return function
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType):
        raise KernelLanguageError(
            f"a kernel is made from a Python function, not from a {type(function).__name__}\n"
            "  Write it with def, and the decorator above it."
        )
    return KernelFunction(function)
