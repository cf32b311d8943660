"""Questions about a few submissions of a list; equal ones are answered once.

What an answer took for granted of the scalars' values is kept with it: it serves other values for
which that holds too.  So do those that rest on sizes by proofs alone, for submissions whose sizes
are equal, and ordered, as those of the other question are (``analysis.answers``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar, cast

from fusionq.analysis.aliasing import Place
from fusionq.analysis.answers import Answers, KnownAnswer, Structure, but_sizes
from fusionq.analysis.isl_operations import (
    ASKED,
    LOOKED_UP,
    count_operations,
    inside_answer,
    stop_if_late,
)
from fusionq.analysis.item_space import global_range
from fusionq.analysis.list_analysis import KernelsRead, ListAnalysis, analyse, places_of
from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.readings import Readings
from fusionq.analysis.serving import NumberPlace, Serving
from fusionq.analysis.shared_memory import Memory
from fusionq.analysis.submission import (
    ArrayArgument,
    ScalarArgument,
    Submission,
    buffer_names,
)
from fusionq.analysis.validity import ScalarPlace, Validity, validity_of

T = TypeVar("T")

FEWEST_TOGETHER = 16
"""Pairs, and pairs that are alike, whose answers are looked up together."""


class Questions:
    """The questions about one list, and the ``validity`` of all answers that were used.

    ``varying``: scalar arguments for all of whose values answers have to hold.  ``numbers``: those
    by which people know the submissions, where they are not their places in the list.
    ``readings``: what has been read of kernels for another list of the same plan.  ``answers``: to
    the questions about another one, which is asked the same.
    """

    def __init__(
        self,
        submissions: Sequence[Submission],
        varying: Collection[ScalarPlace] = (),
        numbers: Sequence[int] | None = None,
        readings: Readings | None = None,
        answers: Answers | None = None,
    ) -> None:
        self.submissions = tuple(submissions)
        self.numbers = range(len(self.submissions)) if numbers is None else numbers
        self.place = places_of(self.submissions)
        self.validity = ListValidity(self.submissions)
        self.answers = answers or Answers(readings or Readings())
        varying = frozenset(varying)
        self._shapes = [
            self.answers.shape(s, submission, self.place, varying)
            for s, submission in enumerate(self.submissions)
        ]
        forms: dict[Hashable, int] = {}
        self._forms = [
            None if form is None else forms.setdefault(form, len(forms))
            for form in (shape.form for shape in self._shapes)
        ]
        self._numbers = [shape.numbers for shape in self._shapes]
        self._structures: dict[tuple[int, ...], tuple[Structure, tuple[int, ...]]] = {}
        self._inside: list[tuple[Validity, Sequence[int], bool]] | None = None
        """What the answers rest on that were used for the answer that is being found, what
        submissions they are about, and whether they serve other sizes."""

    @property
    def readings(self) -> Readings:
        """What has been read of the kernels."""
        return self.answers.readings

    def buffer_name(self, submission: int, argument: int) -> str:
        """What a report calls the memory of an array argument."""
        found = self.submissions[submission].arguments[argument]
        assert isinstance(found, ArrayArgument)
        return found.named(self._names.get(found.storage, found.label))

    @cached_property
    def _names(self) -> dict[int, str]:
        return buffer_names(self.submissions)

    def kind(self, submission: int) -> int:
        """Equal for submissions that differ in their memory and scalars' values only."""
        return self._shapes[submission].kind

    def family(self, submission: int) -> int:
        """Equal for submissions that differ in their sizes, memory and scalars' values only."""
        return self._shapes[submission].family

    def extents(self, submission: int) -> Hashable:
        """Equal for submissions of the same range and arrays of the same shapes, in whose relations
        symbols of the same name stand for the same sizes."""
        shape = self._shapes[submission]
        return shape.family, shape.sizes

    def memory(self, submission: int) -> tuple[Memory, ...]:
        """Where the array arguments of a submission lie."""
        return self._shapes[submission].memory

    def integers(self, submission: int) -> tuple[int, ...]:
        """The values of a submission's integer scalars."""
        return self._shapes[submission].integers

    def ask(
        self,
        members: Sequence[int],
        question: Hashable,
        answer: Callable[[ListAnalysis], T],
        arguments: Sequence[Sequence[int]] | None = None,
        other_sizes: bool = False,
    ) -> T:
        """The ``answer`` to ``question`` about ``members``, by their numbers among the members;
        the list's validity is what it rests on from then on.

        It may depend on the memory of the given ``arguments`` of each member (None: all) only.
        ``other_sizes``: and on sizes only by their order and as the analysis' proofs and pinned
        symbols say; then it serves members of other sizes, too.  Finding an answer may take others,
        about some of the members.  Interrupted inside ``in_steps``, if it is not known and it is
        time to stop.
        """
        structure, integers = self._structure(members, arguments)
        known = self._answers(structure, members, question, other_sizes)
        found = self._known(known, members, other_sizes)
        stop_if_late(found is None)
        count_operations(ASKED if found is None else LOOKED_UP)
        if found is None:
            analysis = self._analysis(structure, integers, members).for_question()
            outer, self._inside = self._inside, []
            try:
                with inside_answer():
                    value = answer(analysis)
                validity = validity_of(analysis)
                if self._inside:
                    number = {s: k for k, s in enumerate(members)}
                    whole = ListValidity(analysis.submissions)
                    whole.add(validity, range(len(members)))
                    for each, about, of_others in self._inside:
                        whole.add(each, [number[s] for s in about], of_others)
                    validity = whole.result()
            finally:
                self._inside = outer
            serves = self._served(validity, members)
            found = KnownAnswer(value, validity, validity.depends_on_scalars, serves)
            known.append(found)
        self._rests_on(found, members, other_sizes)
        return cast(T, found.value)

    def _rests_on(self, found: KnownAnswer, members: Sequence[int], other_sizes: bool) -> None:
        """The list's validity, and an answer that is being found, are what ``found`` rests on."""
        if self._inside is not None:
            self._inside.append((found.validity, members, other_sizes))
        self.validity.add(found.validity, members, other_sizes)

    def ask_of_each(
        self,
        firsts: Sequence[int],
        second: int,
        questions: Sequence[Hashable],
        answer: Callable[[int], Callable[[ListAnalysis], T]],
    ) -> list[T]:
        """As ``ask``, one of the ``questions`` about each of ``firsts`` with ``second``, with other
        sizes, which the ``answer`` for that position answers.  Where there are many, those that
        have an answer are found together."""
        known: Sequence[KnownAnswer | None] = [None] * len(firsts)
        if len(firsts) >= FEWEST_TOGETHER:
            known = self._known_of_each(firsts, second, questions)
        found: list[T] = []
        for k, (first, question, one) in enumerate(zip(firsts, questions, known, strict=True)):
            pair = first, second
            if one is None:
                found.append(self.ask(pair, question, answer(k), other_sizes=True))
            else:
                stop_if_late(False)
                count_operations(LOOKED_UP)
                self._rests_on(one, pair, True)
                found.append(cast(T, one.value))
        return found

    def _known_of_each(
        self, firsts: Sequence[int], second: int, questions: Sequence[Hashable]
    ) -> list[KnownAnswer | None]:
        """Those that there are to questions about each of ``firsts`` with ``second``."""
        import numpy as np

        found: list[KnownAnswer | None] = [None] * len(firsts)
        if self._forms[second] is None:
            return found
        shape = self._shapes[second]
        alike: dict[tuple[int, Hashable], list[int]] = {}
        for k, (first, question) in enumerate(zip(firsts, questions, strict=True)):
            form = self._forms[first]
            if form is not None:
                alike.setdefault((form, question), []).append(k)
        for (_, question), places in alike.items():
            if len(places) < FEWEST_TOGETHER:  # one by one they are found sooner
                continue
            own = np.array([self._numbers[firsts[k]] for k in places], np.int64)
            sizes = len(self._shapes[firsts[places[0]]].sizes)
            order = np.sign(own[:, :sizes, None] - np.array(shape.sizes, np.int64))
            equal = own[:, sizes:, None] == np.array(shape.integers, np.int64)
            numbers = np.concatenate([own, np.tile(shape.numbers, (len(own), 1))], axis=1)
            width = order[0].size + equal[0].size
            rows = np.concatenate(
                [order.reshape(len(own), -1), equal.reshape(len(own), -1)], axis=1
            ).astype(np.int8)
            text = rows.tobytes()
            of_structure: dict[bytes, list[int]] = {}
            for n in range(len(places)):
                of_structure.setdefault(text[n * width : (n + 1) * width], []).append(n)
            for members in of_structure.values():
                left = np.array(members)
                pair = firsts[places[members[0]]], second
                structure, _ = self._structure(pair, None)
                for answer in self._answers(structure, pair, question, True):
                    serves = answer.serves.hold(numbers[left])
                    for n in left[serves]:
                        found[places[n]] = answer
                    left = left[~serves]
                    if not len(left):
                        break
        return found

    def known(
        self, members: Sequence[int], question: Hashable, other_sizes: bool = False
    ) -> tuple[Any] | None:
        """What ``ask`` gives, as a tuple of it, where that is known already; else None, and the
        list's validity is as before."""
        count_operations(LOOKED_UP)
        structure, _ = self._structure(members, None)
        found = self._known(
            self._answers(structure, members, question, other_sizes), members, other_sizes
        )
        if found is None:
            return None
        self._rests_on(found, members, other_sizes)
        return (found.value,)

    def _answers(
        self, structure: Structure, members: Sequence[int], question: Hashable, other_sizes: bool
    ) -> list[KnownAnswer]:
        """To the question about members that are alike."""
        alike: Hashable = structure
        if other_sizes:
            alike = but_sizes(structure, [self._shapes[m] for m in members])
        return self.answers.found.setdefault((alike, question), [])

    def _known(
        self, known: Sequence[KnownAnswer], members: Sequence[int], other_sizes: bool
    ) -> KnownAnswer | None:
        numbers: tuple[int, ...] | None = None
        for answer in known:
            if not answer.of_scalars and not other_sizes:
                return answer
            if numbers is None:
                numbers = tuple(chain.from_iterable([self._shapes[m].numbers for m in members]))
            if answer.serves.holds(numbers):
                return answer
        return None

    def _served(self, validity: Validity, members: Sequence[int]) -> Serving:
        """``validity.holds``, of the sizes and integers of members like ``members``."""
        place: dict[NumberPlace, int] = {}
        for number, m in enumerate(members):
            submission = self.submissions[m]
            arguments = [(k, a) for k, a in enumerate(submission.arguments)]
            dims = [(k, d) for k, a in arguments if isinstance(a, ArrayArgument)
                    for d in range(len(a.shape))]  # fmt: skip
            own: list[tuple[int | None, int | None]] = [
                *dims,
                *((None, d) for d in range(len(global_range(submission)))),
                *((k, None) for k, a in arguments
                  if isinstance(a, ScalarArgument) and a.type.is_integer),
            ]  # fmt: skip
            place |= {(number, *each): len(place) + n for n, each in enumerate(own)}
        return Serving(validity, place)

    def _analysis(
        self, structure: Structure, integers: tuple[int, ...], members: Sequence[int]
    ) -> ListAnalysis:
        """The analysis of the members alone."""
        key = structure, integers
        found = self.answers.analyses.get(key)
        if found is None:
            kinds, which, number, varying = structure
            memory = self.answers.memory[number]
            read = self.answers.read.setdefault(
                (kinds, which, integers, varying), KernelsRead(readings=self.readings)
            )
            place = {
                (position, argument): Place(group, view, lie)
                for position, of_one in enumerate(memory)
                for argument, group, view, lie in of_one
            }
            values = frozenset().union(*(self._shapes[m].varying for m in members))
            found = analyse([self.submissions[m] for m in members], place, read, values, True)
            self.answers.analyses[key] = found
        return found

    # ------------------------------------------------------------------------- structure
    def _structure(
        self, members: Sequence[int], arguments: Sequence[Sequence[int]] | None
    ) -> tuple[Structure, tuple[int, ...]]:
        """The structure of the members, and the values of their integer scalars."""
        if arguments is None:
            about = tuple(members)
            known = self._structures.get(about)
            if known is None:
                known = self._structures[about] = self._new_structure(about, None)
            return known
        return self._new_structure(members, arguments)

    def _new_structure(
        self, members: Sequence[int], arguments: Sequence[Sequence[int]] | None
    ) -> tuple[Structure, tuple[int, ...]]:
        return self.answers.structure([self._shapes[m] for m in members], arguments)
