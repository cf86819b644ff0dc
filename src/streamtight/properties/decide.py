"""Questions about data transducers that can be decided: are two equivalent, and may a machine be part of a larger one?

Which states have values depends on the tags of a word alone (Theorem 5.2), so machines are run without values, on all
words, shortest first. There are finitely many ways in which the registers of a machine can be filled; what is found is
shown by a shortest word. These questions are PSPACE-complete (Theorems 5.3 and 5.6), so the search is limited, and says
so when the limit is reached: an answer is never a guess.

Nothing here is about values: two machines that are equivalent may still answer with different ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from streamtight.errors import QueryError
from streamtight.properties.straight import Statuses, tidied
from streamtight.properties.support import unrolled
from streamtight.properties.term import Constant, Slot, Term, replaced
from streamtight.properties.transducer import Rule, Source, Status, Transducer, When, new, old

_W = TypeVar("_W", bound=Hashable)
_N = TypeVar("_N")
_Found = TypeVar("_Found")
Word = tuple[str, ...]
Answers = tuple[Status, ...]
"""The statuses of several states: of the inputs, the registers or the outputs of a machine."""
MOST_WAYS = 200_000
"""So many ways in which registers of the machines can be filled are looked at."""


# -- what is found ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """A start and a word on which one machine answers otherwise than another."""

    start: Answers
    word: Word
    one: Answers
    other: Answers

    def __str__(self) -> str:
        return (
            f"started with {_told(self.start)}, on {_word_told(self.word)}: "
            f"the one answers {_told(self.one)}, the other {_told(self.other)}"
        )


@dataclass(frozen=True, slots=True)
class Unsynchronised:
    """A start and a word on which a machine gives some of its answers, but not all."""

    start: Answers
    word: Word
    answers: Answers

    def __str__(self) -> str:
        return f"started with {_told(self.start)}, on {_word_told(self.word)}: it answers {_told(self.answers)}"


@dataclass(frozen=True, slots=True)
class Start:
    """One more copy of a machine begins after so many items."""

    after: int
    given: Answers

    def __str__(self) -> str:
        when = "at the start" if self.after == 0 else f"after item {self.after}"
        return f"{_told(self.given)} {when}"


@dataclass(frozen=True, slots=True)
class Interference:
    """Starts of copies and a word on which one machine, restarted each time, answers otherwise than all copies do."""

    starts: tuple[Start, ...]
    word: Word
    together: Answers
    """What the one machine answers."""
    apart: Answers
    """What separate copies answer, joined."""

    def __str__(self) -> str:
        starts = ", and with ".join(map(str, self.starts))
        return (
            f"{f'started with {starts}' if starts else 'never started'}, on {_word_told(self.word)}: "
            f"one machine answers {_told(self.together)}, separate copies {_told(self.apart)}"
        )


_NAMES = {Status.NONE: "undefined", Status.ONE: "a value", Status.MANY: "a conflict"}


def _told(statuses: Answers) -> str:
    if len(statuses) == 1:
        return _NAMES[statuses[0]]
    return f"({', '.join(_NAMES[each] for each in statuses)})"


def _word_told(word: Word) -> str:
    return " ".join(word) if word else "the empty word"


# -- running without values ------------------------------------------------------------------------------------------


class _Runs:
    """A machine run without values; what a step does is worked out once."""

    def __init__(self, machine: Transducer) -> None:
        plain = tidied(unrolled(machine))
        self._statuses = Statuses(plain)
        self._outputs = plain.outputs
        self._known: dict[tuple[str | None, Answers, Answers], tuple[Answers, Answers]] = {}

    def start(self, given: Answers) -> tuple[Answers, Answers]:
        """The registers and the answers of a machine that is started so."""
        return self.step(None, (), given)

    def step(self, tag: str | None, registers: Answers, given: Answers = ()) -> tuple[Answers, Answers]:
        """The registers and the answers after an item, at which the inputs are given something or not."""
        way = (tag, registers, given)
        if way not in self._known:
            before = dict(zip(self._statuses.registers, registers, strict=False))
            after, _ = self._statuses.step(tag, before, given)
            self._known[way] = (
                tuple(after[register] for register in self._statuses.registers),
                tuple(after[output] for output in self._outputs),
            )
        return self._known[way]

    def answers(self, starts: Sequence[Start], word: Word) -> Answers:
        """The answers of one machine that is started, and restarted, so."""
        given: dict[int, Answers] = {}
        for start in starts:
            given[start.after] = _joined(given[start.after], start.given) if start.after in given else start.given
        registers, answers = self.start(given.get(0, ()))
        for number, tag in enumerate(word, start=1):
            registers, answers = self.step(tag, registers, given.get(number, ()))
        return answers


class _Search(Generic[_W, _N]):
    """Ways that are to be looked at, each once, in the order in which they were found; each knows how it was reached.

    It is gone through while it grows, so those that were found by shorter words come first.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._from: dict[_W, tuple[_W | None, _N]] = {}
        self._all: list[_W] = []

    def add(self, way: _W, before: _W | None, note: _N) -> None:
        """One more way, if it is new; `note` says what leads to it from the one before."""
        if way in self._from:
            return
        if len(self._all) >= MOST_WAYS:
            raise QueryError(
                self._where,
                needed=f"at most {MOST_WAYS:,} ways in which the registers can be filled",
                came="more",
                hint="a smaller machine: fewer states that are read at the next item, fewer tags",
            )
        self._from[way] = (before, note)
        self._all.append(way)

    def __iter__(self) -> Iterator[_W]:
        return iter(self._all)  # an iterator of a list sees what is added

    def path(self, way: _W) -> list[_N]:
        """The notes on the way there."""
        notes = []
        at: _W | None = way
        while at is not None:
            at, note = self._from[at]
            notes.append(note)
        return notes[::-1]


def _joined(one: Answers, other: Answers) -> Answers:
    return tuple(Status(min(a + b, 2)) for a, b in zip(one, other, strict=True))


def _starts(machine: Transducer, statuses: Sequence[Status]) -> Iterator[Answers]:
    return itertools.product(statuses, repeat=len(machine.inputs))


def _some(machine: Transducer) -> list[Answers]:
    """The starts of a copy that really begins: every input has a value or a conflict."""
    return [each for each in _starts(machine, (Status.ONE, Status.MANY)) if each]


# -- equivalence -----------------------------------------------------------------------------------------------------


def difference(one: Transducer, other: Transducer) -> Difference | None:
    """A start and a shortest word on which the machines are not equivalent; None if they are (Theorem 5.3).

    They are equivalent if, started alike, they have no answer, one, or a conflict at the same times. What the answers
    are is not compared.
    """
    for what, mine, theirs in (
        ("tags", sorted(one.tags), sorted(other.tags)),
        ("inputs", len(one.inputs), len(other.inputs)),
        ("outputs", len(one.outputs), len(other.outputs)),
    ):
        if mine != theirs:
            raise QueryError(
                "difference", needed=f"machines with the same {what}", came=f"{mine} and {theirs}", hint="the same tags"
            )
    all_runs = _Runs(one), _Runs(other)
    starts = list(_starts(one, (Status.ONE, Status.NONE, Status.MANY)))
    return _first_word(
        all_runs,
        starts,
        one.tags,
        "difference",
        lambda answers: answers[0] != answers[1],
        lambda start, word, answers: Difference(start, word, answers[0], answers[1]),
    )


def unsynchronised(machine: Transducer) -> Unsynchronised | None:
    """A start and a shortest word on which a machine gives some answers but not all; None if there is no such word.

    The inputs are all given something, or nothing is. A machine that always gives all answers or none is
    output-synchronised; with one output it always is.
    """
    nothing = (Status.NONE,) * len(machine.inputs)
    return _first_word(
        (_Runs(machine),),
        list(dict.fromkeys((*_some(machine), nothing))),
        machine.tags,
        "unsynchronised",
        lambda answers: any(answers[0]) and not all(answers[0]),
        lambda start, word, answers: Unsynchronised(start, word, answers[0]),
    )


def _first_word(
    machines: Sequence[_Runs],
    starts: Sequence[Answers],
    tags: Sequence[str],
    where: str,
    is_wanted: Callable[[Sequence[Answers]], bool],
    found: Callable[[Answers, Word, Sequence[Answers]], _Found],
) -> _Found | None:
    """What is found at the first start and shortest word at which the machines together answer as wanted."""
    search: _Search[tuple[Answers, ...], Answers | str] = _Search(where)

    def told(way: tuple[Answers, ...], last: Answers | str, answers: Sequence[Answers], before: bool) -> _Found:
        start, *word = (*search.path(way), last) if before else (last,)
        return found(start, tuple(word), answers)  # type: ignore[arg-type]

    for start in starts:
        steps = [runs.start(start) for runs in machines]
        answers = [answer for _, answer in steps]
        if is_wanted(answers):
            return told((), start, answers, before=False)
        search.add(tuple(registers for registers, _ in steps), None, start)
    for way in search:
        for tag in tags:
            steps = [runs.step(tag, registers) for runs, registers in zip(machines, way, strict=True)]
            answers = [answer for _, answer in steps]
            if is_wanted(answers):
                return told(way, tag, answers, before=True)
            search.add(tuple(registers for registers, _ in steps), way, tag)
    return None


# -- restartable -----------------------------------------------------------------------------------------------------

_Way = tuple[str, Answers, Answers, Answers]
"""What is looked at, and three machines: one that runs all copies, one without the last copy, and the last copy."""
_Note = tuple[str | None, tuple[Answers, ...]]
"""The item that was read, and the starts at it."""


def not_restartable(machine: Transducer) -> Interference | None:
    """Starts and a shortest word on which one machine does not answer as separate copies do; None if it is restartable.

    A machine is restartable if one of it, whose inputs are given something again and again, always answers as separate
    copies of it, one for each start, do together (Theorem 5.6). Only the last copy of a smallest example has to be run
    on its own: the machine without it has answered as all other copies do.
    """
    runs = _Runs(machine)
    some = _some(machine)
    nothing = (Status.NONE,) * len(machine.inputs)
    silent = (Status.NONE,) * len(machine.outputs)
    search: _Search[_Way, _Note] = _Search("not_restartable")

    def ways(kind: str, tag: str | None, before: Sequence[Answers]) -> Iterator[tuple[_Way, tuple[Answers, ...], bool]]:
        """What may follow an item, or the start: the way, the starts, and whether it is wrong."""

        def then(number: int, given: Answers = ()) -> tuple[Answers, Answers]:
            return runs.step(tag, before[number] if before else (), given)

        if kind == "never":
            registers, answers = then(0)
            yield ("never", registers, (), ()), (), answers != silent
        if kind in ("never", "some"):
            for given in (nothing, *some):  # the other copies
                registers, answers = then(0, given)
                yield ("some", registers, (), ()), ((given,) if any(given) else ()), False
                for last in some:
                    all_registers, together = then(0, _joined(given, last))
                    own, apart = runs.start(last)
                    starts = (*((given,) if any(given) else ()), last)
                    yield ("last", all_registers, registers, own), starts, together != _joined(answers, apart)
        if kind == "last":
            (p, together), (q, others), (r, own) = then(0), then(1), then(2)
            yield ("last", p, q, r), (), together != _joined(others, own)

    def told(notes: Sequence[_Note]) -> Interference:
        word = tuple(tag for tag, _ in notes if tag is not None)
        starts = [Start(after, given) for after, (_, those) in enumerate(notes) for given in those]
        while True:
            together = runs.answers(starts, word)
            apart = silent
            for start in starts:
                apart = _joined(apart, runs.answers([Start(0, start.given)], word[start.after :]))
            if together != apart or not starts:
                return Interference(tuple(starts), word, together, apart)
            starts.pop()  # without the last copy, it was wrong already

    for way, starts, is_wrong in ways("never", None, ()):
        if is_wrong:
            return told([(None, starts)])
        search.add(way, None, (None, starts))
    for way in search:
        for tag in machine.tags:
            for then, starts, is_wrong in ways(way[0], tag, way[1:]):
                if is_wrong:
                    return told([*search.path(way), (tag, starts)])
                search.add(then, way, (tag, starts))
    return None


# -- made restartable ------------------------------------------------------------------------------------------------


def made_restartable(machine: Transducer) -> Transducer:
    """A restartable machine that, started with values, answers the same (section 5.2.2, "Converting to restartable").

    Each way in which the registers can be filled becomes a *control state* with states of its own for the registers
    that have a value in it. A copy of the machine is in one control state at a time, so copies in different ones do not
    meet, and where two are in the same one, all its states are conflicts. There may be exponentially many.
    """
    if not machine.inputs:
        raise QueryError(
            "made_restartable", needed="a machine with inputs", came="one without", hint="inputs=(0,) to start it"
        )
    return tidied(_Determinised(tidied(unrolled(machine))).made())


class _Determinised:
    """The states and rules of control states, as they are made."""

    def __init__(self, machine: Transducer) -> None:
        self._machine = machine
        self._statuses = Statuses(machine)
        self._rules: list[Rule] = []
        self._states: list[str] = [
            *(f"i{place}" for place in range(len(machine.inputs))),
            *(f"o{place}" for place in range(len(machine.outputs))),
        ]
        self._inputs = range(len(machine.inputs))
        self._outputs = range(len(machine.inputs), len(self._states))
        self._controls: dict[Answers, dict[int, int]] = {}
        """For each control state: where its registers are; -1 is a token, if it has none with a value."""
        self._search: _Search[Answers, None] = _Search("made_restartable")

    def made(self) -> Transducer:
        machine = self._machine
        given = [Status.ONE] * len(machine.inputs)
        held = dict(zip(machine.inputs, map(new, self._inputs), strict=True))
        after, fired = self._statuses.step(None, {}, given)
        self._step(When.ALWAYS, "start", held, after, fired, is_start=True)
        for key in self._search:
            before = dict(zip(self._statuses.registers, key, strict=True))
            held = {state: old(place) for state, place in self._controls[key].items()}
            for tag in machine.tags:
                after, fired = self._statuses.step(tag, before)
                self._step(tag, f"{self._name(key)} {tag}", held, after, fired, is_start=False)
        return Transducer(
            machine.tags, tuple(self._states), tuple(self._rules), tuple(self._inputs), tuple(self._outputs)
        )

    def _name(self, key: Answers) -> str:
        return "".join("-1*"[each] for each in key)

    def _state(self, name: str) -> int:
        self._states.append(name)
        return len(self._states) - 1

    def _control(self, key: Answers) -> dict[int, int]:
        if key not in self._controls:
            self._search.add(key, None, None)
            those = [r for r, status in zip(self._statuses.registers, key, strict=True) if status is Status.ONE]
            name = self._name(key)
            self._controls[key] = {r: self._state(f"{name} {self._machine.states[r]}") for r in those} or {
                -1: self._state(f"{name} token")
            }
        return self._controls[key]

    def _step(
        self,
        on: str | When,
        name: str,
        held: dict[int, Source],
        after: Sequence[Status],
        fired: Sequence[tuple[int, Rule]],
        *,
        is_start: bool,
    ) -> None:
        """The rules for one control state and one tag: all that is held gates all of them."""
        gates = tuple(held.values())
        now: dict[int, Source] = dict(held) if is_start else {}
        """Where the values of states are in this step."""
        for state, rule in fired:
            read = [now[s] if is_new else held[s] for s, is_new in rule.sources]
            if isinstance(rule.term, Slot):  # a copy needs no state of its own
                now[state] = read[rule.term.place]
                continue
            now[state] = new(self._state(f"{name} {self._machine.states[state]}"))
            self._rule(on, gates, read, now[state].state, rule.term)
        control = self._control(tuple(after[register] for register in self._statuses.registers))
        for register, place in control.items():
            if register == -1:
                self._rule(on, gates, [], place, Constant(0))
            else:
                self._rule(on, gates, [now[register]], place, Slot(0))
        for state, place in zip(self._machine.outputs, self._outputs, strict=True):
            if after[state] is Status.ONE:
                self._rule(on, gates, [now[state]], place, Slot(0))
            elif after[state] is Status.MANY:
                for _ in range(2):
                    self._rule(on, gates, [], place, Constant(0))

    def _rule(self, on: str | When, gates: tuple[Source, ...], read: Sequence[Source], target: int, term: Term) -> None:
        sources = tuple(dict.fromkeys((*read, *gates)))
        places = [Slot(sources.index(source)) for source in read]
        moved = replaced(term, lambda each: places[each.place] if isinstance(each, Slot) else None)
        self._rules.append(Rule(on, sources, target, moved))
