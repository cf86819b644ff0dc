"""LTL_ss: temporal formulas with timeouts, over finite words of letters.

A letter is whatever is seen at one moment, such as the input and the output of one micro-batch. A word is a finite
sequence of letters: the beginning of a stream that could go on. On a word, a formula is true, false or still open:

>>> word = [{"b"}, {"b"}, {"a", "b"}, {"a"}]
>>> until("b", "a", within=5).evaluate(word), until("b", "a", within=2).evaluate(word)
(True, False)
>>> print(eventually("c", within=5).evaluate(word))
None

Timeouts count letters, the current one included; a timedelta counts the time that the letters have. The third value is
for what the letters to come would decide: an atom has no value before its letter is read, a constant always has its
own, and the connectives are Kleene's. Riesco and Rodriguez-Hortala, "A Lightweight Tool for Random Testing of Stream
Processing Systems", section 2, with its misprints corrected.

A formula is judged in two ways. `step` rewrites it into what the rest of the word must satisfy: the paper's letter
simplification, short enough to be believed. `judge.py` gives the same answers with counters, at a cost that does not
grow with the timeouts.
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import CodeType
from typing import TYPE_CHECKING, Any

from streamtight.errors import FormulaError, PredicateError, StreamtightError

if TYPE_CHECKING:
    from streamtight.properties.explain import Why
    from streamtight.properties.judge import Judge

Within = int | timedelta | None
"""A timeout: so many letters, so much time, or none."""
Test = Callable[[Any], object]
"""A function of a letter: is it so? Or: which formula must hold from this letter on?"""
Records = Callable[[Any], Iterable[Any]]
"""The records of a letter that a quantifier ranges over."""
Clock = Callable[[Any], Any]
"""The time of a letter."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A letter as a formula meets it."""

    letter: Any
    number: int = 0
    time: Any = None
    """The time of the letter; None if nobody asked for it."""
    earlier: Sequence[tuple[Any, Any]] | None = None
    """The letters before it, each with its time, and perhaps later ones; None if they are not kept."""
    clock: Clock | None = None


class Formula:
    """What should hold of a word. Make one with the functions of this module; combine with `&`, `|`, `~` and `>>`."""

    __slots__ = ()

    def __and__(self, other: Operand) -> Formula:
        return conjunction((self, formula_of(other, "&")))

    def __rand__(self, other: Operand) -> Formula:
        return conjunction((formula_of(other, "&"), self))

    def __or__(self, other: Operand) -> Formula:
        return disjunction((self, formula_of(other, "|")))

    def __ror__(self, other: Operand) -> Formula:
        return disjunction((formula_of(other, "|"), self))

    def __invert__(self) -> Formula:
        return negation(self)

    def __rshift__(self, other: Operand) -> Formula:
        return implication(self, formula_of(other, ">>"))

    def __rrshift__(self, other: Operand) -> Formula:
        return implication(formula_of(other, ">>"), self)

    def __bool__(self) -> bool:
        raise FormulaError(
            repr(self),
            needed="a word, before it is true or false",
            came="a formula where True or False was wanted",
            hint="&, | and ~ instead of and, or and not; formula.evaluate(word)",
        )

    def named(self, name: str) -> Formula:
        """The same formula, called so in texts and tables.

        >>> bad = now(lambda user: not user.ok).named("bad")
        >>> always(~bad, during=5)
        always(~bad, during=5)
        """
        if not isinstance(name, str) or not name.strip():
            raise FormulaError(f"named({name!r})", needed="a name", came=repr(name), hint="named('bad user')")
        return self._named(name)

    # -- judging -----------------------------------------------------------------------------------------------------

    def evaluate(self, word: Iterable[Any], *, time: Clock | None = None) -> bool | None:
        """Is it true on this word? None if that is still open at its end.

        Letters are read one at a time and only until it is decided. `time` says what the time of a letter is, for
        timeouts that are timedeltas; without it, the letter's own attribute `time` does.
        """
        judge = self.judge(time=time, keep=True)
        for letter in word:
            if judge.step(letter) is not None:
                break
        return judge.value

    def judge(self, *, time: Clock | None = None, keep: bool = False) -> Judge:
        """A judge of this formula, who has not yet read a letter.

        `keep` lets it keep the letters: past operators need them in a formula that a test or a quantifier returns.
        """
        from streamtight.properties.judge import Judge

        return Judge(self, time=time, keep=keep)

    def step(self, letter: Any, *, time: Clock | None = None) -> Formula:
        """What the rest of the word must satisfy, after this letter; TRUE or FALSE once it is decided.

        Letter simplification (Definition 3), without the detour through the next form.

        >>> always(now("b") >> eventually("a", within=2), during=2).step({"b"})
        eventually('a', within=1) & always(now('b') >> eventually('a', within=2), during=1)
        """
        return self._step(Moment(letter, time=time_of(letter, time, 0) if self.reads_time else None, clock=time))

    def explain(self, word: Sequence[Any], *, time: Clock | None = None) -> Why:
        """Why it is true or false on this word: which parts of it, at which letters."""
        from streamtight.properties.explain import explain

        return explain(self, word, time=time)

    # -- what is known without a word --------------------------------------------------------------------------------

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The formulas that it is made of."""
        return ()

    @property
    def safe_length(self) -> int | None:
        """A length from which on every word decides it (Definition 4); None if there is no such length, or none known.

        None for a formula without a timeout, with one in time, or with a quantifier, whose body is not yet known. A
        function that returns a formula counts as an atom.

        >>> always(now("a") >> next_("a"), during=3).safe_length
        4
        """
        raise NotImplementedError

    def next_form(self) -> Formula:
        """The same formula with `next` as its only temporal operator (Definition 2). It grows with the timeouts.

        >>> until("b", "a", within=2).next_form()
        now('a') | (now('b') & next('a'))
        """
        raise FormulaError(
            f"next_form() of {self!r}",
            needed="timeouts in letters, and neither quantifiers nor past operators",
            came=type(self).__name__.lower(),
            hint="step(letter) or evaluate(word), which need no next form",
        )

    @property
    def reads_time(self) -> bool:
        """Whether a timeout in it is one in time."""
        return any(part.reads_time for part in self.parts)

    @property
    def has_past(self) -> bool:
        """Whether it speaks of letters that were."""
        return any(part.has_past for part in self.parts)

    @property
    def has_future(self) -> bool:
        """Whether it speaks of letters to come. What a test or a quantifier returns may do so all the same."""
        return any(part.has_future for part in self.parts)

    # -- the meaning of each operator --------------------------------------------------------------------------------

    def _step(self, at: Moment) -> Formula:
        """What the letters after this one must satisfy."""
        raise NotImplementedError

    def _after(self, at: Moment) -> Formula:
        """The same formula, asked one letter later: only past operators remember anything."""
        return self._rebuilt([part._after(at) for part in self.parts]) if self.has_past else self

    def _rebuilt(self, parts: Sequence[Formula]) -> Formula:
        """The same operator with these parts."""
        return self

    def _named(self, name: str) -> Formula:
        return Named(self, name)

    @property
    def _is_unary(self) -> bool:
        """Whether its text needs no parentheses inside a larger one."""
        return True


Operand = Formula | bool | str | Test
"""What may stand where a formula is wanted: a function of a letter, or the name of an atom, stands for `now` of it."""


def formula_of(given: object, where: str) -> Formula:
    """The formula that a user means."""
    if isinstance(given, Formula):
        return given
    if isinstance(given, bool):
        return TRUE if given else FALSE
    if isinstance(given, str) or (callable(given) and not isinstance(given, type)):
        return now(given)
    raise FormulaError(
        where,
        needed="a formula, a function of a letter, or the name of an atom",
        came=repr(given),
        hint="now(lambda letter: ...)",
    )


# -- atoms -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Constant(Formula):
    """True or false, whatever the word."""

    value: bool

    @property
    def safe_length(self) -> int:
        return 1

    def next_form(self) -> Formula:
        return self

    def _step(self, at: Moment) -> Formula:
        return self

    def _named(self, name: str) -> Formula:
        return self  # so that always(TRUE) is seen to be TRUE

    def __repr__(self) -> str:
        return "TRUE" if self.value else "FALSE"


TRUE = Constant(True)
FALSE = Constant(False)


@dataclass(frozen=True, slots=True, repr=False)
class Now(Formula):
    """A test of the current letter."""

    test: Test
    name: str = field(compare=False)
    """What it is called in texts."""
    is_named: bool = field(default=False, compare=False)
    """Whether that says all, so that `now` is not written around it."""

    @property
    def safe_length(self) -> int:
        return 1

    def next_form(self) -> Formula:
        return self

    def _step(self, at: Moment) -> Formula:
        value = self.at(at)
        if isinstance(value, Formula):
            return first_step(value, at, repr(self))
        return TRUE if value else FALSE

    def at(self, at: Moment) -> bool | Formula:
        """What the test says of this letter."""
        return truth(called(self.test, at.letter, repr(self), at), repr(self), at)

    def _named(self, name: str) -> Formula:
        return Now(self.test, name, is_named=True)

    @property
    def _is_unary(self) -> bool:
        return not self.is_named or is_one_word(self.name)

    def __repr__(self) -> str:
        return self.name if self.is_named else f"now({self.name})"


@dataclass(frozen=True, slots=True)
class Contains:
    """The test behind the name of an atom: is it in the letter?"""

    name: str

    def __call__(self, letter: Any) -> bool:
        return self.name in letter


def called(function: Callable[[Any], Any], given: Any, where: str, at: Moment, *, record: bool = False) -> Any:
    """What the user's function returns for a letter, or for a record of it; what it raises is told with both."""
    try:
        return function(given)
    except StreamtightError:
        raise
    except Exception as error:
        raise no_answer(error, given, where, at.number, record=record) from error


def no_answer(error: Exception, given: Any, where: str, number: int, *, record: bool = False) -> PredicateError:
    """What is told if the user's function raised."""
    of = f"the record {shown(given)} of letter {number}" if record else f"letter {number}, {shown(given)}"
    return PredicateError(
        where,
        needed=f"an answer for {of}",
        came=f"{type(error).__name__}: {error}",
        hint=what_raised(error),
        letter=number,
        record=given if record else None,
    )


def what_raised(error: Exception) -> str:
    """What may help if a test raises this."""
    if isinstance(error, TypeError | IndexError) or "NoneType" in str(error):
        return "a test that expects such rows: empty batches and nulls do come"
    return "the line of the test that raised it, which is shown above"


def truth(value: object, where: str, at: Moment) -> bool | Formula:
    """The answer of a test, refused if it is none: a test that forgets to return would pass or fail for ever."""
    if value is True or value is False or isinstance(value, Formula):
        return value
    if type(value).__name__ in ("bool", "bool_") and hasattr(value, "__bool__"):  # numpy's
        return bool(value)
    raise PredicateError(
        where,
        needed="True, False or a formula",
        came=f"{shown(value)} for letter {at.number}",
        hint="a comparison, such as len(rows) > 0",
        letter=at.number,
        record=None,
    )


def bound(formula: Formula, at: Moment, where: str) -> Formula:
    """A formula that was made for this letter, with what its past operators would remember of the letters before."""
    if not formula.has_past:
        return formula
    if at.earlier is None:
        raise FormulaError(
            where,
            needed="the letters before, for the past operators of the formula that it returns",
            came="the current letter only",
            hint="evaluate(word), or judge(keep=True), which keep them",
        )
    for number, (letter, time) in enumerate(at.earlier[: at.number]):
        formula = formula._after(Moment(letter, number, time, at.earlier, at.clock))
    return formula


def first_step(formula: Formula, at: Moment, where: str) -> Formula:
    """What is left of a formula that was made for this letter."""
    if at.time is None and formula.reads_time:
        at = replace(at, time=time_of(at.letter, at.clock, at.number))
    return bound(formula, at, where)._step(at)


def shown(value: object, most: int = 200) -> str:
    """A value as a message can hold it."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


def time_of(letter: Any, clock: Clock | None, number: int) -> Any:
    """The time of a letter, for timeouts that are timedeltas."""
    if clock is not None:
        time = called(clock, letter, "time", Moment(letter, number))
    else:
        try:
            time = letter.time
        except AttributeError:
            raise FormulaError(
                f"letter {number}",
                needed="its time, since a timeout is a timedelta",
                came=shown(letter),
                hint="time=lambda letter: ..., or a timeout in letters: within=5",
            ) from None
    try:
        is_time = time + timedelta(0) == time  # not so for the values that stand for no time
    except TypeError:
        is_time = False
    if is_time:
        return time
    raise FormulaError(
        f"the time of letter {number}",
        needed="a datetime, or whatever a timedelta can be added to",
        came=shown(time),
        hint="time=lambda letter: datetime.fromtimestamp(...)",
    )


def time_after(time: Any, within: timedelta) -> Any:
    """The last time of a window that begins at this time."""
    try:
        return time + within
    except OverflowError:
        raise FormulaError(
            f"a timeout of {within_text(within)}",
            needed="one that ends before the last datetime there is",
            came=f"one from {time} on",
            hint="no timeout: within=None",
        ) from None


# -- connectives -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Not(Formula):
    """The body does not hold."""

    body: Formula

    @property
    def parts(self) -> tuple[Formula, ...]:
        return (self.body,)

    @property
    def safe_length(self) -> int | None:
        return self.body.safe_length

    def next_form(self) -> Formula:
        return negation(self.body.next_form())

    def _step(self, at: Moment) -> Formula:
        return negation(self.body._step(at))

    def _rebuilt(self, parts: Sequence[Formula]) -> Formula:
        return negation(parts[0])

    def __repr__(self) -> str:
        return f"~{_in(self.body)}"


class _Several(Formula):
    """Parts that are combined into one."""

    __slots__ = ()

    @property
    def safe_length(self) -> int | None:
        return longest(part.safe_length for part in self.parts)

    def next_form(self) -> Formula:
        return self._rebuilt([part.next_form() for part in self.parts])

    @property
    def _is_unary(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, repr=False)
class And(_Several):
    """All parts hold."""

    parts: tuple[Formula, ...]

    def _step(self, at: Moment) -> Formula:
        return conjunction(part._step(at) for part in self.parts)

    def _rebuilt(self, parts: Sequence[Formula]) -> Formula:
        return conjunction(parts)

    def __repr__(self) -> str:
        return " & ".join(map(_in, self.parts))


@dataclass(frozen=True, slots=True, repr=False)
class Or(_Several):
    """One of the parts holds."""

    parts: tuple[Formula, ...]

    def _step(self, at: Moment) -> Formula:
        return disjunction(part._step(at) for part in self.parts)

    def _rebuilt(self, parts: Sequence[Formula]) -> Formula:
        return disjunction(parts)

    def __repr__(self) -> str:
        return " | ".join(map(_in, self.parts))


@dataclass(frozen=True, slots=True, repr=False)
class Implies(_Several):
    """If the left holds, so does the right."""

    left: Formula
    right: Formula

    @property
    def parts(self) -> tuple[Formula, ...]:
        return (self.left, self.right)

    def _step(self, at: Moment) -> Formula:
        left = self.left._step(at)
        return TRUE if left is FALSE else implication(left, self.right._step(at))

    def _rebuilt(self, parts: Sequence[Formula]) -> Formula:
        return implication(*parts)

    def __repr__(self) -> str:
        return f"{_in(self.left)} >> {_in(self.right)}"


@dataclass(frozen=True, slots=True, repr=False)
class Named(Formula):
    """The body, under a name. What is left of it after a letter has no name any more."""

    body: Formula
    name: str = field(compare=False)

    @property
    def parts(self) -> tuple[Formula, ...]:
        return (self.body,)

    @property
    def safe_length(self) -> int | None:
        return self.body.safe_length

    def next_form(self) -> Formula:
        return self.body.next_form()

    def _step(self, at: Moment) -> Formula:
        return self.body._step(at)

    def _rebuilt(self, parts: Sequence[Formula]) -> Formula:
        return Named(parts[0], self.name)

    def _named(self, name: str) -> Formula:
        return Named(self.body, name)

    @property
    def _is_unary(self) -> bool:
        return is_one_word(self.name)

    def __repr__(self) -> str:
        return self.name


def conjunction(parts: Iterable[Formula]) -> Formula:
    """All of them: flat, without repetition, and read only up to the first FALSE."""
    return _combined(parts, And, neutral=TRUE, absorbing=FALSE)


def disjunction(parts: Iterable[Formula]) -> Formula:
    """One of them: flat, without repetition, and read only up to the first TRUE."""
    return _combined(parts, Or, neutral=FALSE, absorbing=TRUE)


def _combined(parts: Iterable[Formula], cls: type[And | Or], *, neutral: Constant, absorbing: Constant) -> Formula:
    flat: dict[Formula, None] = {}
    for part in parts:
        if part == absorbing:
            return absorbing
        if isinstance(part, cls):
            flat.update(dict.fromkeys(part.parts))
        elif part != neutral:
            flat[part] = None
    if len(flat) > 1:
        return cls(tuple(flat))
    return next(iter(flat), neutral)


def negation(body: Formula) -> Formula:
    """Not so; a double negation is none."""
    match body:
        case Constant():
            return FALSE if body.value else TRUE
        case Not():
            return body.body
    return Not(body)


def implication(left: Formula, right: Formula) -> Formula:
    """If the left, then the right."""
    if left == FALSE or right == TRUE:
        return TRUE
    if left == TRUE:
        return right
    return negation(left) if right == FALSE else Implies(left, right)


def longest(lengths: Iterable[int | None]) -> int | None:
    """The longest of these safe lengths; None if one of them is not known."""
    known = list(lengths)
    return None if None in known else max(length for length in known if length is not None)


def is_one_word(text: str) -> bool:
    """Whether a text is a word, or a call of one: it has no space outside of parentheses."""
    depth = 0
    for character in text:
        if character == " " and depth == 0:
            return False
        depth += {"(": 1, ")": -1}.get(character, 0)
    return True


def _in(formula: Formula) -> str:
    """Its text inside a larger one. Python's precedence of >> and & would surprise, so nothing relies on it."""
    return repr(formula) if formula._is_unary else f"({formula!r})"


# -- the future ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Next(Formula):
    """The body, n letters later."""

    body: Formula
    n: int = 1

    @property
    def parts(self) -> tuple[Formula, ...]:
        return (self.body,)

    @property
    def has_future(self) -> bool:
        return True

    @property
    def safe_length(self) -> int | None:
        return later(self.body.safe_length, self.n)

    def next_form(self) -> Formula:
        return next_(self.body.next_form(), self.n)

    def _step(self, at: Moment) -> Formula:
        return next_(self.body._after(at), self.n - 1)

    def _rebuilt(self, parts: Sequence[Formula]) -> Formula:
        return next_(parts[0], self.n)

    def __repr__(self) -> str:
        return f"next({_argument(self.body)}{f', n={self.n}' if self.n > 1 else ''})"


class Timed(Formula):
    """An operator with a window: from the current letter on, up to its timeout."""

    __slots__ = ()
    within: Within
    deadline: Any
    """The last time of the window, known once its first letter is; only for timeouts in time."""

    @property
    def has_future(self) -> bool:
        return True

    @property
    def reads_time(self) -> bool:
        return isinstance(self.within, timedelta) or any(part.reads_time for part in self.parts)

    @property
    def safe_length(self) -> int | None:
        if not isinstance(self.within, int):
            return None
        return later(longest(part.safe_length for part in self.parts), self.within - 1)

    def next_form(self) -> Formula:
        if not isinstance(self.within, int):
            return super().next_form()
        return self._unfolded([part.next_form() for part in self.parts], self.within)

    def _unfolded(self, parts: Sequence[Formula], within: int) -> Formula:
        raise NotImplementedError

    def _is_over(self, at: Moment) -> bool:
        """Whether the window ended before this letter: it is later than the deadline."""
        return self.deadline is not None and at.time > self.deadline

    def _rest(self, at: Moment, over: Constant) -> Formula:
        """The operator from the next letter on; `over` if this letter was the last of the window."""
        parts = [part._after(at) for part in self.parts]
        match self.within:
            case int():
                return over if self.within == 1 else self._with(parts, self.within - 1, None)
            case timedelta():
                deadline = time_after(at.time, self.within) if self.deadline is None else self.deadline
                return self._with(parts, self.within, deadline)
        return self._with(parts, None, None)

    def _rebuilt(self, parts: Sequence[Formula]) -> Formula:
        return self._with(parts, self.within, self.deadline)

    def _with(self, parts: Sequence[Formula], within: Within, deadline: Any) -> Formula:
        """The same operator with these parts."""
        raise NotImplementedError

    def _text(self, name: str, bound: str) -> str:
        if self.deadline is not None:
            return f"{name}({', '.join(map(_argument, self.parts))}, until={self.deadline!r})"
        return timed_text(name, self.parts, bound, self.within)


class _Unary(Timed):
    __slots__ = ()
    body: Formula

    @property
    def parts(self) -> tuple[Formula, ...]:
        return (self.body,)

    def _with(self, parts: Sequence[Formula], within: Within, deadline: Any) -> Formula:
        return type(self)(parts[0], within, deadline)  # type: ignore[call-arg]


class _Binary(Timed):
    __slots__ = ()
    left: Formula
    right: Formula

    @property
    def parts(self) -> tuple[Formula, ...]:
        return (self.left, self.right)

    def _with(self, parts: Sequence[Formula], within: Within, deadline: Any) -> Formula:
        return type(self)(parts[0], parts[1], within, deadline)  # type: ignore[call-arg]


@dataclass(frozen=True, slots=True, repr=False)
class Eventually(_Unary):
    """The body at some letter of the window."""

    body: Formula
    within: Within = None
    deadline: Any = None

    def _unfolded(self, parts: Sequence[Formula], within: int) -> Formula:
        return disjunction(next_(parts[0], n) for n in range(within))

    def _step(self, at: Moment) -> Formula:
        if self._is_over(at):
            return FALSE
        return disjunction((self.body._step(at), self._rest(at, FALSE)))

    def __repr__(self) -> str:
        return self._text("eventually", "within")


@dataclass(frozen=True, slots=True, repr=False)
class Always(_Unary):
    """The body at every letter of the window."""

    body: Formula
    within: Within = None
    deadline: Any = None

    def _unfolded(self, parts: Sequence[Formula], within: int) -> Formula:
        return conjunction(next_(parts[0], n) for n in range(within))

    def _step(self, at: Moment) -> Formula:
        if self._is_over(at):
            return TRUE
        return conjunction((self.body._step(at), self._rest(at, TRUE)))

    def __repr__(self) -> str:
        return self._text("always", "during")


@dataclass(frozen=True, slots=True, repr=False)
class Until(_Binary):
    """The right at some letter of the window, and the left at every letter before that."""

    left: Formula
    right: Formula
    within: Within = None
    deadline: Any = None

    def _unfolded(self, parts: Sequence[Formula], within: int) -> Formula:
        left, right = parts
        before = [next_(left, n) for n in range(within)]
        return disjunction(conjunction([*before[:n], next_(right, n)]) for n in range(within))

    def _step(self, at: Moment) -> Formula:
        if self._is_over(at):
            return FALSE
        right, rest = self.right._step(at), self._rest(at, FALSE)
        # At the last letter of the window the left is not asked.
        return right if right is TRUE or rest is FALSE else right | (self.left._step(at) & rest)

    def __repr__(self) -> str:
        return self._text("until", "within")


@dataclass(frozen=True, slots=True, repr=False)
class Release(_Binary):
    """The right at every letter of the window, up to the first one at which the left holds too."""

    left: Formula
    right: Formula
    within: Within = None
    deadline: Any = None

    def _unfolded(self, parts: Sequence[Formula], within: int) -> Formula:
        left, right = parts
        held = [next_(right, n) for n in range(within)]
        released = (conjunction([*held[:n], next_(conjunction((left, right)), n)]) for n in range(within))
        return disjunction([conjunction(held), *released])

    def _step(self, at: Moment) -> Formula:
        if self._is_over(at):
            return TRUE
        right, rest = self.right._step(at), self._rest(at, TRUE)
        return right if right is FALSE or rest is TRUE else right & (self.left._step(at) | rest)

    def __repr__(self) -> str:
        return self._text("release", "within")


def later(length: int | None, letters: int) -> int | None:
    """A safe length, so many letters later."""
    return None if length is None else length + letters


# -- quantifiers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Quantified(Formula):
    """The formula that `body` gives for each record of the current letter: for all of them, or for one."""

    records: Records
    body: Callable[[Any], object]
    every: bool
    name: str = field(compare=False)
    """What the records are called in texts."""
    body_name: str = field(compare=False)

    @property
    def safe_length(self) -> None:
        return None

    def records_at(self, at: Moment) -> Iterator[Any]:
        """The records of this letter."""
        where = repr(self)
        found = called(self.records, at.letter, where, at)
        try:
            records = iter(found)
        except TypeError:
            raise PredicateError(
                where,
                needed="records to range over",
                came=f"{shown(found)} for letter {at.number}",
                hint="a list of records, or the letter's rows",
                letter=at.number,
                record=None,
            ) from None
        try:
            yield from records
        except StreamtightError:
            raise
        except Exception as error:
            raise no_answer(error, at.letter, where, at.number) from error

    def instance(self, record: Any, at: Moment) -> Formula:
        """The formula of this record."""
        where = repr(self)
        return formula_of(called(self.body, record, where, at, record=True), where)

    def _step(self, at: Moment) -> Formula:
        combined = conjunction if self.every else disjunction
        return combined(first_step(self.instance(record, at), at, repr(self)) for record in self.records_at(at))

    def __repr__(self) -> str:
        return f"{'forall' if self.every else 'exists'}({self.name}, {self.body_name})"


# -- the past --------------------------------------------------------------------------------------------------------


class Past(Formula):
    """An operator on the letters so far. Its parts speak of the present and the past, so its value is known at once."""

    __slots__ = ()

    @property
    def has_past(self) -> bool:
        return True

    @property
    def safe_length(self) -> int | None:
        return longest(part.safe_length for part in self.parts)

    def _step(self, at: Moment) -> Formula:
        return TRUE if self.holds(at, [value_now(part, at, self) for part in self.parts]) else FALSE

    def _after(self, at: Moment) -> Formula:
        values = [value_now(part, at, self) for part in self.parts]
        return self._remembering([part._after(at) for part in self.parts], at, values)

    def holds(self, at: Moment, values: Sequence[bool]) -> bool:
        """Its value at this letter, from those of its parts and from what it remembers."""
        raise NotImplementedError

    def _remembering(self, parts: Sequence[Formula], at: Moment, values: Sequence[bool]) -> Formula:
        raise NotImplementedError

    @property
    def reads_time(self) -> bool:
        return isinstance(getattr(self, "within", None), timedelta) or any(part.reads_time for part in self.parts)


def value_now(part: Formula, at: Moment, of: Formula) -> bool:
    """The value of a formula that speaks of the present and the past only."""
    value = part._step(at)
    if isinstance(value, Constant):
        return value.value
    raise depends_on_future(of, at.number)


PRESENT = "a formula of the present and the past under a past operator"
FUTURE_OUTSIDE = "the future operator outside: always(once(...) >> eventually(...))"


def depends_on_future(past: Formula, number: int) -> FormulaError:
    """What is told if a test under a past operator returned a formula that speaks of letters to come."""
    return FormulaError(
        repr(past),
        needed=PRESENT,
        came=f"one that depends on letters to come, at letter {number}",
        hint=FUTURE_OUTSIDE,
    )


@dataclass(frozen=True, slots=True, repr=False)
class Previously(Past):
    """The body at the letter before; false at the first letter."""

    body: Formula
    before: bool = False
    """What the body was at the letter before."""

    @property
    def parts(self) -> tuple[Formula, ...]:
        return (self.body,)

    def _step(self, at: Moment) -> Formula:
        return TRUE if self.before else FALSE

    def holds(self, at: Moment, values: Sequence[bool]) -> bool:
        return self.before

    def _remembering(self, parts: Sequence[Formula], at: Moment, values: Sequence[bool]) -> Formula:
        return Previously(parts[0], values[0])

    def __repr__(self) -> str:
        return f"previously({_argument(self.body)})"


@dataclass(frozen=True, slots=True, repr=False)
class Once(Past):
    """The body at some letter so far, of the last so many."""

    body: Formula
    within: Within = None
    last: Any = None
    """How many letters ago the body held last, or at which time; None if never."""

    @property
    def parts(self) -> tuple[Formula, ...]:
        return (self.body,)

    def holds(self, at: Moment, values: Sequence[bool]) -> bool:
        return values[0] or in_reach(self.last, self.within, at)

    def _remembering(self, parts: Sequence[Formula], at: Moment, values: Sequence[bool]) -> Formula:
        return Once(parts[0], self.within, remembered(values[0], self.last, self.within, at))

    def __repr__(self) -> str:
        return timed_text("once", self.parts, "within", self.within)


@dataclass(frozen=True, slots=True, repr=False)
class Historically(Past):
    """The body at every letter so far, of the last so many."""

    body: Formula
    within: Within = None
    last: Any = None
    """How many letters ago the body failed last, or at which time; None if never."""

    @property
    def parts(self) -> tuple[Formula, ...]:
        return (self.body,)

    def holds(self, at: Moment, values: Sequence[bool]) -> bool:
        return values[0] and not in_reach(self.last, self.within, at)

    def _remembering(self, parts: Sequence[Formula], at: Moment, values: Sequence[bool]) -> Formula:
        return Historically(parts[0], self.within, remembered(not values[0], self.last, self.within, at))

    def __repr__(self) -> str:
        return timed_text("historically", self.parts, "during", self.within)


@dataclass(frozen=True, slots=True, repr=False)
class Since(Past):
    """The right at some letter so far, of the last so many, and the left at every letter after that."""

    left: Formula
    right: Formula
    within: Within = None
    last: Any = None
    """How many letters ago the right held with the left ever since, or at which time; None if it did not."""

    @property
    def parts(self) -> tuple[Formula, ...]:
        return (self.left, self.right)

    def holds(self, at: Moment, values: Sequence[bool]) -> bool:
        left, right = values
        return right or (left and in_reach(self.last, self.within, at))

    def _remembering(self, parts: Sequence[Formula], at: Moment, values: Sequence[bool]) -> Formula:
        left, right = values
        last = remembered(right, self.last if left else None, self.within, at)
        return Since(parts[0], parts[1], self.within, last)

    def __repr__(self) -> str:
        return timed_text("since", self.parts, "within", self.within)


def in_reach(last: Any, within: Within, at: Moment) -> bool:
    """Whether what happened last is still in the window that ends with this letter."""
    match within:
        case int():
            return last is not None and last < within
        case timedelta():
            return last is not None and at.time - last <= within
    return last is not None


def remembered(happened: bool, last: Any, within: Within, at: Moment) -> Any:
    """When it happened last, as the next letter sees it."""
    if isinstance(within, timedelta):
        return at.time if happened else last
    if happened:
        return 1
    if last is None or (within is not None and last >= within):
        return None
    return last if within is None else last + 1


def timed_text(name: str, parts: Sequence[Formula], bound_name: str, within: Within) -> str:
    """The text of an operator with a window."""
    arguments = [_argument(part) for part in parts]
    if within is not None:
        arguments.append(f"{bound_name}={within_text(within)}")
    return f"{name}({', '.join(arguments)})"


UNITS = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "min": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
    "us": timedelta(microseconds=1),
}
"""The units of durations in texts, the largest first."""


def within_text(within: int | timedelta) -> str:
    """A timeout in texts: 5, 90s as 1min30s."""
    if not isinstance(within, timedelta):
        return repr(within)
    text = ""
    for name, unit in UNITS.items():
        count, within = divmod(within, unit)
        text += f"{count}{name}" if count else ""
    return text


def _argument(formula: Formula) -> str:
    """Its text as an argument: a name stands for `now` of it."""
    return formula.name if isinstance(formula, Now) else repr(formula)


# -- what users write ------------------------------------------------------------------------------------------------


def now(test: Test | str, /, *, name: str | None = None) -> Formula:
    """The test holds at the current letter; the name of an atom is a test of letters that are sets of such names.

    A test may also return a formula, which then must hold from this letter on: that is how a formula speaks of what
    was seen. For the value seen now, eventually the same again:

    >>> again = now(lambda first: next_(eventually(lambda u: u == first, within=2)))
    >>> always(again, during=2).evaluate([1, 2, 1, 2]), again.evaluate([1, 2, 3])
    (True, False)
    """
    if isinstance(test, str):
        return Now(Contains(test), name or repr(test), is_named=name is not None)
    if not callable(test) or isinstance(test, type):
        raise FormulaError(
            "now(...)", needed="a function of a letter, or a name", came=repr(test), hint="now(lambda letter: ...)"
        )
    return Now(_hashable(test), name or source_text(test), is_named=name is not None)


def _hashable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself; or, if it is an object that has no hash, its method, which has one."""
    try:
        hash(function)
    except TypeError:
        return function.__call__  # type: ignore[operator, no-any-return]
    return function


def next_(body: Operand, n: int = 1) -> Formula:
    """The body at the next letter, or n letters later."""
    formula = formula_of(body, "next(...)")
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise FormulaError("next(n=...)", needed="a number of letters from 0", came=repr(n), hint="next(formula, n=2)")
    if n == 0 or isinstance(formula, Constant):
        return formula
    if isinstance(formula, Next):
        return Next(formula.body, formula.n + n)
    return Next(formula, n)


def eventually(body: Operand, *, within: Within = None) -> Formula:
    """The body at one of the next so many letters, the current one included."""
    formula = formula_of(body, "eventually(...)")
    _require_within(within, "eventually(within=...)")
    return formula if isinstance(formula, Constant) else Eventually(formula, within)


def always(body: Operand, *, during: Within = None) -> Formula:
    """The body at all of the next so many letters, the current one included."""
    formula = formula_of(body, "always(...)")
    _require_within(during, "always(during=...)")
    return formula if isinstance(formula, Constant) else Always(formula, during)


def until(left: Operand, right: Operand, *, within: Within = None) -> Formula:
    """The right at one of the next so many letters, and the left at every letter before that one."""
    first, second = formula_of(left, "until(left, ...)"), formula_of(right, "until(..., right)")
    _require_within(within, "until(within=...)")
    if isinstance(second, Constant):
        return second
    if first == FALSE:
        return second
    return Eventually(second, within) if first == TRUE else Until(first, second, within)


def release(left: Operand, right: Operand, *, within: Within = None) -> Formula:
    """The right at all of the next so many letters, or up to and with the first one at which the left holds too."""
    first, second = formula_of(left, "release(left, ...)"), formula_of(right, "release(..., right)")
    _require_within(within, "release(within=...)")
    if isinstance(second, Constant):
        return second
    if first == TRUE:
        return second
    return Always(second, within) if first == FALSE else Release(first, second, within)


def forall(records: Records, body: Callable[[Any], Operand], /, *, name: str | None = None) -> Formula:
    """For every record of the current letter, the formula that the body makes of it, from this letter on.

    >>> shipped = forall(lambda u: u["orders"], lambda n: eventually(lambda u: n in u["shipped"], within=2))
    >>> shipped.evaluate([{"orders": [1, 2], "shipped": [1]}, {"orders": [], "shipped": [2]}])
    True
    """
    return _quantified(records, body, every=True, name=name)


def exists(records: Records, body: Callable[[Any], Operand], /, *, name: str | None = None) -> Formula:
    """For some record of the current letter, the formula that the body makes of it, from this letter on."""
    return _quantified(records, body, every=False, name=name)


def _quantified(records: Records, body: Callable[[Any], Operand], *, every: bool, name: str | None) -> Formula:
    where = "forall(records, body)" if every else "exists(records, body)"
    for given, what in ((records, "the records of a letter"), (body, "the formula of a record")):
        if not callable(given) or isinstance(given, Formula):
            raise FormulaError(
                where,
                needed=f"a function for {what}",
                came=repr(given),
                hint="forall(lambda letter: letter.output, lambda row: eventually(...))",
            )
    return Quantified(_hashable(records), _hashable(body), every, name or source_text(records), shown_code(body))


def previously(body: Operand) -> Formula:
    """The body at the letter before; false at the first letter."""
    return Previously(_present(body, "previously(...)"))


def once(body: Operand, *, within: Within = None) -> Formula:
    """The body at one of the last so many letters, the current one included."""
    _require_within(within, "once(within=...)")
    return Once(_present(body, "once(...)"), within)


def historically(body: Operand, *, during: Within = None) -> Formula:
    """The body at all of the last so many letters, the current one included, as far back as there are letters."""
    _require_within(during, "historically(during=...)")
    return Historically(_present(body, "historically(...)"), during)


def since(left: Operand, right: Operand, *, within: Within = None) -> Formula:
    """The right at one of the last so many letters, and the left at every letter after that one."""
    _require_within(within, "since(within=...)")
    return Since(_present(left, "since(left, ...)"), _present(right, "since(..., right)"), within)


def _present(body: Operand, where: str) -> Formula:
    """A formula that a past operator can speak of."""
    formula = formula_of(body, where)
    if formula.has_future:
        raise FormulaError(where, needed=PRESENT, came=repr(formula), hint=FUTURE_OUTSIDE)
    return formula


def _require_within(within: object, where: str) -> None:
    if within is None:
        return
    if isinstance(within, timedelta):
        is_positive = within > timedelta(0)
    else:
        is_positive = isinstance(within, int) and not isinstance(within, bool) and within >= 1
    if not is_positive:
        raise FormulaError(
            where,
            needed="a number of letters from 1, a timedelta above 0, or None for no timeout",
            came=repr(within),
            hint="5, or timedelta(minutes=5)",
        )


def denied(body: Formula) -> Formula | None:
    """The negation of a formula, with `not` one level further inside; None for a test, whose negation goes no further.

    >>> denied(always(now("a") >> next_("b"), during=3))
    eventually(~(now('a') >> next('b')), within=3)
    """
    match body:
        case Constant() | Not():
            return negation(body)
        case Named(part):
            return negation(part)
        case And(parts):
            return disjunction(map(negation, parts))
        case Or(parts):
            return conjunction(map(negation, parts))
        case Implies(left, right):
            return conjunction((left, negation(right)))
        case Next(part, n):
            return next_(negation(part), n)
        case Eventually(part, within):
            return always(negation(part), during=within)
        case Always(part, within):
            return eventually(negation(part), within=within)
        case Until(left, right, within):
            return release(negation(left), negation(right), within=within)
        case Release(left, right, within):
            return until(negation(left), negation(right), within=within)
        case Quantified(records, make, every, name, body_name):
            where = repr(body)
            return Quantified(
                records, lambda record: ~formula_of(make(record), where), not every, name, f"~({body_name})"
            )
    return None


def source_text(function: Callable[..., Any]) -> str:
    """What to call a function in texts: its name, or the code of a lambda."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None)
    if name is None:
        has_text = type(function).__repr__ is not object.__repr__  # type: ignore[comparison-overlap]
        return shown(function, 60) if has_text else type(function).__name__
    code = getattr(function, "__code__", None)
    return _lambda_text(code) if name == "<lambda>" and isinstance(code, CodeType) else str(name)


def shown_code(function: Callable[..., Any], most: int = 60) -> str:
    """The same, cut if it is long."""
    text = source_text(function)
    return text if len(text) <= most else f"{text[: most - 3]}..."


@functools.lru_cache(maxsize=1024)
def _lambda_text(code: CodeType) -> str:
    spans = [
        (line, start, end_line, end)
        for line, end_line, start, end in code.co_positions()
        if line and end_line and start is not None and end is not None and end > 0
    ]
    lines = linecache.getlines(code.co_filename)
    if not spans or max(span[2] for span in spans) > len(lines):
        return "lambda"
    (first, start), (last, end) = min(span[:2] for span in spans), max(span[2:] for span in spans)
    # Columns are counted in bytes.
    raw = [line.encode() for line in lines[first - 1 : last]]
    raw[-1] = raw[-1][:end]
    raw[0] = raw[0][start:]
    return " ".join(b" ".join(raw).decode(errors="replace").split()) or "lambda"
