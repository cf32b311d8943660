"""``@kernel``: a Python function that queues can run, once for each work-item."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, Literal, NoReturn, overload

from fusionq.base.articles import with_article
from fusionq.base.call_site import argument_labels, user_span
from fusionq.base.errors import ArgumentError, KernelLanguageError
from fusionq.base.options import ErrorModel, check_names
from fusionq.base.recursion import room_for_recursion
from fusionq.base.span import Span
from fusionq.frontend.callees import Callee, callee_of
from fusionq.frontend.captures import Captures
from fusionq.frontend.item_parameter import ItemKind, is_item, item_kind
from fusionq.frontend.record_arrays import FieldNames, name_fields
from fusionq.frontend.signature import (
    ArgumentType,
    ArrayType,
    ConstantType,
    LocalType,
    ReductionType,
    Signature,
)
from fusionq.frontend.source import FunctionSource, KernelText
from fusionq.ir.nodes import Kernel
from fusionq.ir.record_types import RecordType
from fusionq.ir.types import ELEMENT_TYPES, ScalarType


class KernelFunction:
    """A kernel: a Python function of an Item or NdItem and of arrays and scalars.

    ``callee``: the Python function, with what is bound to its parameters.  Globals, closure
    variables, attributes of objects and the functions it calls are read once, when the kernel is
    first specialised or its fingerprint first asked for; what changes later is seen by kernels
    that are made later.  Safe to use from several threads.
    """

    def __init__(
        self,
        callee: Callee,
        sub_group_size: int | None = None,
        work_group_size: tuple[int, ...] | None = None,
    ) -> None:
        self.callee = callee
        self.sub_group_size = sub_group_size
        """Work-items that its sub-groups have to have; None: as many as the device's usually."""
        self.work_group_size = work_group_size
        """The only work-group size that it may be submitted with; None: any."""
        self.function = function = callee.function
        self.name = function.__name__
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self._lock = threading.RLock()
        self._captures: Captures | None = None
        self._specialisations: dict[tuple[Signature, bool], Kernel] = {}
        self._item_annotation: ItemKind | Literal["unread"] | None = "unread"
        self.first: KernelFunction | None = None
        """See ``first_kernels``; None where nobody has asked."""
        self.made: dict[Hashable, object] = {}
        """What has been made of it: kernels for other index spaces, by what they are for."""

    def __repr__(self) -> str:
        return f"<kernel {self.name} of {self.function.__code__.co_filename}>"

    def __copy__(self) -> KernelFunction:
        """Itself, as a function is its own copy."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> KernelFunction:
        return self

    def __reduce__(self) -> str:
        """Pickled is the name by which its module has it, as of a function."""
        return self.__qualname__

    def __call__(self, *arguments: object, **keywords: object) -> NoReturn:
        raise KernelLanguageError(
            f"{user_span()}: the kernel {self.name!r} cannot be called\n"
            f"  Submit it: queue.submit({self.name}, range, …).  What kernels share goes into "
            "plain functions, without the decorator."
        )

    def __getitem__(self, index_space: object) -> NoReturn:
        raise KernelLanguageError(
            f"{user_span()}: the kernel {self.name!r} has no elements; ranges in brackets are "
            "numba's\n"
            f"  Submit it: queue.submit({self.name}, range, …)."
        )

    # ------------------------------------------------------------------ properties
    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The parameters' names, without the item."""
        return self.callee.free_parameters[1:]

    def names_of(self, count: int) -> tuple[str, ...]:
        """The parameters that ``count`` arguments are for: all of them where none is the item,
        as in a kernel that asks for no id."""
        names = self.callee.free_parameters
        without = count == len(names) and not (names and self._asks(names[0]))
        return names if without else names[1:]

    def left_out(self, given: int) -> tuple[object, ...]:
        """The defaults of the parameters behind the first ``given`` after the item; nothing where
        one of them has none.  (A kernel without an item is given all its arguments.)"""
        defaults = self.callee.defaults
        names = self.parameter_names[given:]
        known = all(name in defaults for name in names)
        return tuple([defaults[name] for name in names]) if known else ()

    def wrong_count(self, names: tuple[str, ...], given: int) -> str:
        """What to say of a submission with ``given`` arguments for ``names``."""
        more = ""
        code, first = self.function.__code__, self.callee.free_parameters[:1]
        if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            more = "; it cannot have * or ** parameters: write one for each argument"
        elif code.co_kwonlyargcount:
            more = "; it cannot have parameters that are given by name only"
        elif first in (("self",), ("cls",)):
            more = (
                f"; {first[0]!r} is not bound: make the kernel of the bound method, "
                f"fq.kernel(object.{self.name}), once for each object, without the decorator"
            )
        defaults = self.callee.defaults
        shown = [f"{name}={defaults[name]!r}" if name in defaults else name for name in names]
        return (
            f"kernel {self.name!r} takes {len(names)} arguments after its item "
            f"({', '.join(shown) or 'none'}), not {given}{more}"
        )

    def labels(self, span: Span, names: tuple[str, ...]) -> tuple[str, ...]:
        """What the arguments for ``names`` are called in the ``submit`` call at ``span``."""
        return argument_labels(span, names)

    def field_names(self, types: Sequence[ArgumentType]) -> FieldNames:
        """The names of the fields' arrays, for arguments of these types."""
        arguments = list(zip(self.names_of(len(types)), types, strict=True))
        return name_fields(arguments, set(self._source.parameters))

    def _asks(self, name: str) -> bool:
        """Whether the parameter is a work-item, by its annotation or name or by what it is asked
        for."""
        return self.item_annotation is not None or is_item(name, self._source.tree)

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
            self._item_annotation = item_kind(self.callee)
        return self._item_annotation

    @property
    def _captured(self) -> Captures:
        captures = self._captures
        if captures is None:
            with self._lock, room_for_recursion(f"the kernel {self.name!r}"):
                if self._captures is None:
                    self._captures = self._capture()
                captures = self._captures
        return captures

    @property
    def _source(self) -> FunctionSource:
        return self._captured.source(self.function)

    def under(self, error_model: ErrorModel) -> KernelFunction:
        """The kernel on a queue with this error model; only kernels of numba-dpex have one."""
        return self

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
            with self._lock, room_for_recursion(f"the kernel {self.name!r}"):
                kernel = self._specialisations.get(key)
                if kernel is None:
                    source = self._source
                    self._check_parameters(source)
                    self.check_arguments(signature)
                    kernel = self._lower(signature, regions)
                    self._specialisations[key] = kernel
        return kernel

    def _capture(self) -> Captures:
        return Captures(self.callee)

    def _lower(self, signature: Signature, regions: bool) -> Kernel:
        # Only now: a kernel whose plans are in the disk cache is never lowered.
        from fusionq.frontend.lowering import lower_kernel

        kernel = lower_kernel(self.callee, signature, self._captured, regions=regions)
        return replace(kernel, sub_group_size=self.sub_group_size or kernel.sub_group_size)

    def _check_parameters(self, source: FunctionSource) -> None:
        spec = source.tree.args
        unbound = [a for a in spec.kwonlyargs if a.arg not in self.callee.bound]
        extra = [a for a in (spec.vararg, spec.kwarg, *unbound) if a is not None]
        if extra:
            raise source.error(
                extra[0],
                "a kernel takes positional parameters only",
                "Write one named parameter for each argument.",
            )

    def check_arguments(self, signature: Signature) -> None:
        """ArgumentError where the arguments do not fit the function's parameters."""
        names = self.names_of(len(signature.arguments))
        if len(signature.arguments) != len(names):
            expected = ", ".join(names) or "none"
            raise ArgumentError(
                f"the kernel {self.name!r} ({self.span}) takes {len(names)} argument(s) after "
                f"its item ({expected}), not {len(signature.arguments)}"
            )
        if self.item_annotation == "nd_item" and signature.item == "item":
            raise ArgumentError(
                f"the kernel {self.name!r} ({self.span}) is annotated with NdItem, but was "
                "submitted over a Range; submit it with an NdRange, or change the annotation"
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
        if isinstance(argument.dtype, RecordType):
            return None if argument.ndim else "is a single record; pass an array of one"
        if argument.dtype not in ELEMENT_TYPES.values():
            return (
                f"has the dtype {argument.dtype}; convert it to one of {', '.join(ELEMENT_TYPES)}"
            )
        if argument.ndim < 1:
            return "is a 0-dimensional array; pass a scalar, or reshape it to one dimension"
        return None
    if isinstance(argument, (ScalarType, LocalType, ConstantType, ReductionType)):
        return None
    return f"is {with_article(type(argument).__name__)}; pass arrays and numbers"


def _LATER() -> None:
    """Stands for the function that the decorator with parentheses gets next."""


@overload
def kernel(function: Callable[..., Any]) -> KernelFunction: ...


@overload
def kernel(
    *, sub_group_size: int | None = None, work_group_size: int | tuple[int, ...] | None = None
) -> Callable[[Callable[..., Any]], KernelFunction]: ...


def kernel(
    function: Callable[..., Any] = _LATER,
    *,
    sub_group_size: int | None = None,
    work_group_size: int | tuple[int, ...] | None = None,
    **unknown: NoReturn,
) -> KernelFunction | Callable[[Callable[..., Any]], KernelFunction]:
    """Make a kernel from a Python function (decorator, with or without parentheses).

    The first parameter is the Item or NdItem, the others are arrays and scalars; a kernel that
    asks for no id may leave the first one out.  Also takes what calls a Python function: a bound
    method, an object with ``__call__``, ``functools.partial``, a ``staticmethod``, an object that
    keeps its function as ``py_func``.

    ``sub_group_size``: work-items of the kernel's sub-groups, one of the device's
    ``sub_group_sizes``; it is submitted over an NdRange whose last local extent is a multiple.
    ``work_group_size``: the local range of the NdRanges that it is submitted over; others are
    refused.  Source: SYCL 2020, section 5.8.1.

    Nothing is compiled yet; errors in the kernel come with its first submission.
    """
    if unknown:
        check_names("kernel", unknown, ("sub_group_size", "work_group_size"))
    options = _checked_options(sub_group_size, work_group_size)
    if function is _LATER:
        return lambda function: _made(function, *options)
    return _made(function, *options)


def _checked_options(
    sub_group_size: object, work_group_size: object
) -> tuple[int | None, tuple[int, ...] | None]:
    """The options of ``kernel``; KernelLanguageError for what they cannot be."""
    extents = work_group_size if isinstance(work_group_size, tuple) else (work_group_size,)
    given = (
        ("sub_group_size", sub_group_size, (sub_group_size,)),
        ("work_group_size", work_group_size, extents),
    )
    for name, value, values in given:
        if value is not None and not (
            1 <= len(values) <= 3 and all(type(v) is int and v > 0 for v in values)
        ):
            what = "a positive int" if name == "sub_group_size" else "1 to 3 positive ints"
            raise KernelLanguageError(f"{user_span()}: {name}={value!r} is not {what}")
    size = sub_group_size if isinstance(sub_group_size, int) else None
    return size, None if work_group_size is None else extents


def _made(
    function: Any, sub_group_size: int | None, work_group_size: tuple[int, ...] | None
) -> KernelFunction:
    """The kernel that is made from a function."""
    if isinstance(function, KernelFunction):
        if (sub_group_size, work_group_size) == (None, None):
            return function
        return KernelFunction(function.callee, sub_group_size, work_group_size)
    callee = callee_of(getattr(function, "py_func", function))
    if callee is None:
        raise KernelLanguageError(
            f"{user_span()}: a kernel is made from a Python function, not from "
            f"{type(function).__name__}\n"
            "  Write it with def, and the decorator above it."
        )
    if callee.function.__code__.co_name == "<lambda>":
        raise KernelLanguageError(
            f"{user_span()}: a kernel cannot be a lambda, which holds no statement\n"
            "  Write it with def; functions that it calls may be lambdas."
        )
    return KernelFunction(callee, sub_group_size, work_group_size)
