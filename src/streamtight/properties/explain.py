"""Why a formula is true or false on a word: which parts of it, at which letters.

>>> from streamtight.properties.temporal import always, eventually, now
>>> why = always(now("b") >> eventually("a", within=2), during=4).explain([{"a"}, {"b"}, set(), {"a"}])
>>> why.letters
(1, 2)
>>> print(why)
always(now('b') >> eventually('a', within=2), during=4) is false at letter 0, because
  now('b') >> eventually('a', within=2) is false at letter 1, because
    now('b') is true at letter 1
    eventually('a', within=2) is false at letter 1, because
      now('a') is false at letter 1
      now('a') is false at letter 2

The letters that are named are enough: whatever the others were, the formula would have the same value. And none of them
can be left out. The word is read a second time here, by the definition of each operator; the verdict is the judge's,
and the two must agree.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from streamtight.errors import EncodingError, FormulaError, PredicateError
from streamtight.properties.temporal import (
    And,
    Clock,
    Constant,
    Eventually,
    Formula,
    Historically,
    Implies,
    Moment,
    Named,
    Next,
    Not,
    Now,
    Once,
    Or,
    Previously,
    Quantified,
    Since,
    Timed,
    Until,
    Within,
    formula_of,
    shown,
    time_after,
    time_of,
)

if TYPE_CHECKING:
    from streamtight.properties.judge import Judge

Truth = bool | None
CANDIDATES = 20
"""Of so many letters that each refute an `always`, the one with the shortest story is told."""
TRIED = 500
"""If a story needs more letters than this, it is not tried whether one of them can be left out."""


@dataclass(frozen=True, slots=True)
class Why:
    """The value of a formula at a letter, and what that rests on."""

    formula: Formula
    letter: int
    value: bool
    because: tuple[Why, ...] = ()
    record: object = None
    """The record that the formula was made for, if it is inside a quantifier."""

    @property
    def atoms(self) -> tuple[Why, ...]:
        """The tests that matter, each at its letter, in the order of the letters."""
        found = {(why.letter, why.formula): why for why in self._walk() if why._is_test and not why.because}
        return tuple(sorted(found.values(), key=lambda atom: atom.letter))

    @property
    def letters(self) -> tuple[int, ...]:
        """The letters that matter: they alone decide the formula."""
        return tuple(sorted({why.letter for why in self._walk() if why._is_test}))

    @property
    def _is_test(self) -> bool:
        return isinstance(self.formula, Now | Quantified)

    def _walk(self) -> Iterator[Why]:
        """Itself and all below it; what is told twice comes once."""
        seen, waiting = {id(self)}, [self]
        while waiting:
            why = waiting.pop()
            yield why
            waiting += [part for part in reversed(why.because) if id(part) not in seen]
            seen.update(map(id, why.because))

    def __hash__(self) -> int:
        return hash((self.formula, self.letter, self.value))  # a record may have no hash

    def __str__(self) -> str:
        return "\n".join(self._lines("", None))

    def _lines(self, indent: str, known: object) -> Iterator[str]:
        yield indent + self._text(known) + f" at letter {self.letter}" + (", because" if self.because else "")
        parts = list(self.because)
        while parts:
            run = _run_length(parts)
            if run > 2:
                text = parts[0]._text(self.record)
                yield f"{indent}  {text} at letters {parts[0].letter} to {parts[run - 1].letter}"
            else:
                run = 1
                yield from parts[0]._lines(indent + "  ", self.record)
            del parts[:run]

    def _text(self, known: object) -> str:
        of = "" if self.record is known else f", for {self.record!r},"
        return f"{self.formula!r}{of} is {'true' if self.value else 'false'}"


def _run_length(parts: Sequence[Why]) -> int:
    """How many of them, from the first, say the same of one letter after the other, and say no more."""
    first = parts[0]
    for count, part in enumerate(parts):
        same = part.formula is first.formula and part.value is first.value and part.record is first.record
        if not same or part.because or part.letter != first.letter + count:
            return count
    return len(parts)


def explain(formula: Formula, word: Iterable[Any], *, time: Clock | None = None) -> Why:
    """Why the formula is true or false on this word."""
    letters = []
    judge = formula.judge(time=time, keep=True)
    for letter in word:
        letters.append(letter)
        if judge.step(letter) is not None:
            break
    if judge.value is None:
        enough = formula.safe_length
        raise FormulaError(
            f"explain({formula!r})",
            needed="a word that decides it",
            came=f"one of {len(letters)} letters, after which {_still_open(judge)}",
            hint="a longer word" if enough is None else f"a word of {enough} letters, which is enough",
        )
    reading = _Reading(letters, time)
    if reading.value(formula, 0) is not judge.value:
        raise EncodingError(
            f"explain({formula!r})",
            needed=f"{judge.value}, as the judge says",
            came=str(reading.value(formula, 0)),
            hint="tests that always say the same of a letter; if they do, report it as a bug of streamtight",
        )
    why = reading.why(formula, 0, judge.value)
    found = why.letters
    if len(found) > TRIED:
        return why
    needed = _none_to_spare(formula, judge.value, found, reading)
    return why if len(needed) == len(found) else reading.knowing(needed).why(formula, 0, judge.value)


def _still_open(judge: Judge) -> str:
    open_parts = judge.open_parts  # as a formula they may be long
    return f"this is open: {shown(judge.rest)}" if open_parts <= CANDIDATES else f"{open_parts} parts of it are open"


def _none_to_spare(formula: Formula, value: bool, found: Iterable[int], reading: _Reading) -> set[int]:
    """Those of the letters without which the formula would be open."""
    needed = set(found)
    for letter in sorted(needed, reverse=True):
        if reading.knowing(needed - {letter}).value(formula, 0) is value:
            needed.remove(letter)
    return needed


def value_table(formulas: Sequence[Formula], word: Sequence[Any], *, time: Clock | None = None) -> list[list[Truth]]:
    """The value of each formula at each letter of the word, as far as the word tells."""
    reading = _Reading(word, time)
    return [[reading.value(formula, place) for place in range(len(word))] for formula in formulas]


class _Reading:
    """A word, of which only some letters may be known, and the values of formulas on it.

    Nothing is known of the letters after the end, so one place stands for all of those.
    """

    def __init__(self, letters: Sequence[Any], clock: Clock | None) -> None:
        self.letters = letters
        self.clock = clock
        self.end = len(letters)
        self.known: Collection[int] = range(len(letters))
        self._times: list[Any] = []
        # All that is kept under the id of a formula holds the formula, too, so that its id stays its own.
        self._values: dict[tuple[int, int], tuple[Formula, Truth]] = {}
        self._made: dict[tuple[Formula, int], list[tuple[Any, Formula | None]]] = {}
        self._jumps: dict[tuple[int, bool, bool, int], dict[int, int]] = {}
        self._stories: dict[tuple[int, int, bool, int], _Story] = {}

    def knowing(self, known: Collection[int]) -> _Reading:
        """The same word, of which only these letters are known. No test is asked a second time."""
        fewer = _Reading(self.letters, self.clock)
        fewer.known, fewer._times, fewer._made = known, self._times, self._made
        return fewer

    @property
    def times(self) -> list[Any]:
        """The times of the letters, if somebody asks for them."""
        if not self._times:
            self._times += [time_of(letter, self.clock, number) for number, letter in enumerate(self.letters)]
        return self._times

    # -- values ------------------------------------------------------------------------------------------------------

    def value(self, formula: Formula, i: int) -> Truth:
        """The value at letter i."""
        i = min(i, self.end)
        key = (id(formula), i)
        if key not in self._values:
            self._values[key] = (formula, self._value(formula, i))
        return self._values[key][1]

    def _value(self, formula: Formula, i: int) -> Truth:
        match formula:
            case Constant(value):
                return value
            case Not(body):
                return _not(self.value(body, i))
            case Named(body):
                return self.value(body, i)
            case And(parts):
                return _all(self.value(part, i) for part in parts)
            case Or(parts):
                return _any(self.value(part, i) for part in parts)
            case Implies(left, right):
                return True if self.value(left, i) is False else _any((_not(self.value(left, i)), self.value(right, i)))
            case Next(body, n):
                return self.value(body, i + n)
            case Timed():
                return self._sought(_Search(formula, i, self._last(formula, i)))
        if i == self.end:
            return None
        match formula:
            case Now() | Quantified():
                made = self.made_at(formula, i)
                if made is None:
                    return None
                values = (None if one is None else self.value(one, i) for _, one in made)
                return _all(values) if isinstance(formula, Now) or formula.every else _any(values)
            case Previously(body):
                return self.value(body, i - 1) if i else False
            case Once() | Historically() | Since():
                return self._sought(_Search(formula, i, self._first(formula.within, i)))
        raise AssertionError(formula)  # pragma: no cover

    def made_at(self, formula: Now | Quantified, i: int) -> list[tuple[Any, Formula | None]] | None:
        """What a test or a quantifier says at letter i, as formulas with their records; None if the letter is unknown.

        A test that the judge did not ask may raise here. Then nothing is known of it, which is enough.
        """
        if i not in self.known:
            return None
        key = (formula, i)
        if key not in self._made:
            at = Moment(self.letters[i], i)
            made: list[tuple[Any, Formula | None]] = []
            try:
                if isinstance(formula, Now):
                    made.append((None, formula_of(formula.at(at), "now")))
                else:
                    for record in formula.records_at(at):
                        made.append((record, None))
                        made[-1] = (record, formula.instance(record, at))
            except PredicateError:
                made = made or [(None, None)]
            self._made[key] = made
        return self._made[key]

    def _last(self, formula: Timed, i: int) -> int:
        """The last letter of the window that begins at letter i."""
        if formula.within is None or i == self.end:
            return self.end
        if isinstance(formula.within, int):
            return min(i + formula.within - 1, self.end)
        times = self.times
        deadline = time_after(times[i], formula.within) if formula.deadline is None else formula.deadline
        after = bisect_right(times, deadline)
        return self.end if after == self.end else after - 1

    def _first(self, within: Within, i: int) -> int:
        """The first letter of the window that ends with letter i."""
        if within is None:
            return 0
        if isinstance(within, int):
            return max(0, i - within + 1)
        here = self.times[i]
        return bisect_left(self.times, -within, key=lambda time: time - here)

    def _sought(self, search: _Search) -> Truth:
        """The value of an operator with a window."""
        found, other = search.decisive, not search.decisive
        place = self._find(search, search.right, search.end, other, equal=False)
        if place is None or not self._holds(search, place, other, equal=False):
            return other
        place = self._find(search, search.right, search.end, found, equal=True)
        return found if place is not None and self._holds(search, place, found, equal=True) else None

    def _holds(self, search: _Search, place: int, value: bool, *, equal: bool) -> bool:
        """Whether the left is this value, or is not it, at every letter that is read before this one."""
        if search.left is None:
            return True
        return self._find(search, search.left, place - search.step, value, equal=not equal) is None

    def _find(self, search: _Search, formula: Formula, end: int, value: bool, *, equal: bool) -> int | None:
        """The first letter that is read at which the formula is this value, or else is not it."""
        jumps = self._jumps.setdefault((id(formula), value, equal, search.step), {})
        step, place, passed = search.step, search.start, []
        while (end - place) * step >= 0:
            if place not in jumps:
                if (self.value(formula, place) is value) is equal:
                    break
                jumps[place] = place + step
            passed.append(place)
            place = jumps[place]
        for one in passed:
            jumps[one] = place
        return place if (end - place) * step >= 0 else None

    # -- reasons -----------------------------------------------------------------------------------------------------

    def why(self, formula: Formula, i: int, value: bool) -> Why:
        """Why the formula has this value at letter i."""
        return self._story((formula, i, value, None)).why

    def _story(self, claim: _Fact) -> _Story:
        formula, i, value, record = claim
        key = (id(formula), i, value, id(record))
        if key not in self._stories:
            parts = self._because(formula, i, value, record)
            letters = frozenset[int]().union(*(part.letters for part in parts))
            if isinstance(formula, Now | Quantified):
                letters |= {i}
            self._stories[key] = _Story(Why(formula, i, value, tuple(part.why for part in parts), record), letters)
        return self._stories[key]

    def _because(self, formula: Formula, i: int, value: bool, record: object) -> list[_Story]:
        match formula:
            case Not(body):
                return [self._story((body, i, not value, record))]
            case Named(body):
                return [self._story((body, i, value, record))]
            case And(parts) | Or(parts):
                facts = [(part, i, value, record) for part in parts]
                return self._all_told(facts) if isinstance(formula, And) is value else self._one_told(facts)
            case Implies(left, right):
                facts = [(left, i, not value, record), (right, i, value, record)]
                return self._one_told(facts) if value else self._all_told(facts)
            case Next(body, n):
                return [self._story((body, i + n, value, record))]
            case Timed():
                return self._because_sought(_Search(formula, i, self._last(formula, i)), value, record)
            case Now() | Quantified():
                made = [(one, i, value, about) for about, one in self.made_at(formula, i) or () if one is not None]
                if isinstance(formula, Now):
                    made = [(one, i, value, record) for one, *_ in made if not isinstance(one, Constant)]
                is_every = isinstance(formula, Now) or formula.every
                return self._all_told(made) if is_every is value or not made else self._one_told(made)
            case Previously(body):
                return [self._story((body, i - 1, value, record))] if i else []
            case Once() | Historically() | Since():
                return self._because_sought(_Search(formula, i, self._first(formula.within, i)), value, record)
        return []

    def _all_told(self, facts: Iterable[_Fact]) -> list[_Story]:
        return [self._story(fact) for fact in facts]

    def _one_told(self, facts: Iterable[_Fact]) -> list[_Story]:
        """One of these is a fact: the one with the shortest story, of the first few."""
        true = islice((fact for fact in facts if self.value(fact[0], fact[1]) is fact[2]), CANDIDATES)
        return [min(map(self._story, true), key=lambda story: (len(story.letters), story.why.letter))]

    def _because_sought(self, search: _Search, value: bool, record: object) -> list[_Story]:
        left, right, step = search.left, search.right, search.step
        if value is search.decisive:
            if left is None:
                return self._one_told((right, k, value, record) for k in search.places)
            place = cast(int, self._find(search, right, search.end, value, equal=True))
            before = range(search.start, place, step)
            return self._all_told([*((left, k, value, record) for k in before), (right, place, value, record)])
        # The right is missing at every letter, up to one at which the left is missing as well.
        stop = None if left is None else self._find(search, left, search.end, value, equal=True)
        places = search.places if stop is None else range(search.start, stop + step, step)
        facts: list[_Fact] = [(right, k, value, record) for k in places]
        if left is not None and stop is not None:
            facts.append((left, stop, value, record))
        return self._all_told(facts)


_Fact = tuple[Formula, int, bool, object]
"""A formula has this value at this letter, for this record."""


class _Story(NamedTuple):
    """Why, with all letters that it names."""

    why: Why
    letters: frozenset[int]


class _Search:
    """An operator with a window, as the search that it is: until a letter at which the right is *decisive*.

    Eventually, until, once and since look for one at which their right is true; always, release and historically, for
    one at which it is false. To read on after a letter, the left must be decisive there as well. The past is read
    backwards.
    """

    __slots__ = ("decisive", "end", "left", "right", "start", "step")

    def __init__(self, formula: Formula, start: int, end: int) -> None:
        self.start, self.end = start, end
        self.step = 1 if isinstance(formula, Timed) else -1
        self.decisive = isinstance(formula, Eventually | Until | Once | Since)
        *left, self.right = formula.parts
        self.left = left[0] if left else None

    @property
    def places(self) -> range:
        """The letters of the window, in the order in which they are read."""
        return range(self.start, self.end + self.step, self.step)


def _not(value: Truth) -> Truth:
    return None if value is None else not value


def _all(values: Iterable[Truth]) -> Truth:
    answer: Truth = True
    for value in values:
        if value is False:
            return False
        if value is None:
            answer = None
    return answer


def _any(values: Iterable[Truth]) -> Truth:
    return _not(_all(map(_not, values)))
