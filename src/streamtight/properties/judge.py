"""Judging a formula letter by letter, at a cost that does not grow with the timeouts.

An operator with a window is asked from many letters, and what it says may stay open each time: a *claim*, such as "b
eventually, from letter 3 on and by letter 52". All claims of an operator read the same letters, so the operator reads
for all of them. What is open about a letter is open once, whoever claims something about it; and every claim is settled
once, together with those that the same letter settles.

Most claims are never made. By letter 52 implies by letter 60, so a conjunction that has the first claim does without
the second. Always up to letter 900 implies always up to letter 800, so there the new claim takes the place of the old.

    always(a >> eventually(b, within=50), during=900)       two claims, whatever the numbers

Some formulas ask for a memory of each letter of a window, which no judge can do without:

    always(a >> next(b, n=900))                             at which of the last 900 letters was a?
    always(a >> (eventually(b, within=900) | always(c, during=900)))

They have a claim or two for each letter of the window. The time for a letter stays the same.

Negations are pushed down to the atoms first, where Kleene's logic lets them: ~always(p) is eventually(~p).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from streamtight.errors import FormulaError, StreamtightError
from streamtight.properties.temporal import (
    Always,
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
    Past,
    Previously,
    Quantified,
    Release,
    Since,
    Test,
    Timed,
    Until,
    Within,
    bound,
    conjunction,
    depends_on_future,
    disjunction,
    formula_of,
    negation,
    next_,
    no_answer,
    shown,
    time_after,
    time_of,
    truth,
)

FOREVER = math.inf
"""The last letter of a window that has no end, or whose end is a time."""
REMEMBERED = 1_000
"""For so many different records a quantifier knows the formula that it made before, even if nothing in it is open."""


class Judge:
    """Reads a word letter by letter and says when a formula is decided. Made by `formula.judge()`.

    >>> from streamtight.properties.temporal import always
    >>> judge = always(lambda n: n > 0, during=10_000).judge()
    >>> judge.step(5), judge.step(7), judge.rest
    (None, None, always(n > 0, during=9998))
    >>> judge.step(-1), judge.value, judge.letters
    (False, False, 3)
    """

    def __init__(self, formula: Formula, *, time: Clock | None = None, keep: bool = False) -> None:
        """`keep` lets it keep the letters, for past operators in formulas that tests and quantifiers return."""
        self.formula = formula
        self.value: bool | None = formula.value if isinstance(formula, Constant) else None
        """True or False once that is decided, None before."""
        self._now = _Now(time, keep)
        compiled = _Compiled(self._now, formula, True)
        self._ask = compiled.ask
        self._now.past = compiled.past
        self._open: _Group | None = None
        self._is_broken = False

    @property
    def letters(self) -> int:
        """How many letters were read; none is read after it was decided."""
        return self._now.number + 1

    def step(self, letter: Any) -> bool | None:
        """Read a letter: is the formula true, false, or (None) still open?"""
        if self.value is not None:
            return self.value
        if self._is_broken:
            raise FormulaError(
                f"letter {self.letters} of {self.formula!r}",
                needed="a judge that has read the letters before",
                came="one that stopped when a test raised",
                hint="a new judge, from the first letter on",
            )
        try:
            self._now.turn_to(letter)
            if self._open is None:
                self._begin(self._ask(letter))
            else:
                self._now.read(letter)
        except BaseException:
            self._is_broken = True
            raise
        return self.value

    def _begin(self, value: _Value) -> None:
        if value is True or value is False:
            self.value = value
        else:
            self._open = _Group(True, _Verdict(self), 0)
            self._open.adopt(value)

    @property
    def rest(self) -> Formula:
        """What the letters to come must satisfy. It may be long: `open_parts` says how much is open."""
        if self.value is not None:
            return formula_of(self.value, "rest")
        return self.formula if self._open is None else self._open.formula()

    @property
    def open_parts(self) -> int:
        """How many claims are open: the memory that it needs."""
        return 0 if self._open is None else self._open.size(set())


class _Verdict:
    """Who wants to know about the whole formula."""

    __slots__ = ("judge",)

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    def learn(self, group: _Group, value: bool) -> None:
        self.judge.value, self.judge._open = value, None


class _Now:
    """The current letter, and who has to do with it."""

    __slots__ = (
        "active",
        "clock",
        "earlier",
        "later",
        "letter",
        "made",
        "news",
        "number",
        "past",
        "reads_time",
        "time",
    )

    def __init__(self, clock: Clock | None, keep: bool) -> None:
        self.letter: Any = None
        self.number = -1
        self.time: Any = None
        self.clock = clock
        self.reads_time = False
        self.past: list[_PastNode] = []
        """The past operators of the formula, inner ones first: each must see every letter."""
        self.made: list[_Compiled] = []
        """The formulas with past operators that were made for a letter and are open."""
        self.earlier: list[tuple[Any, Any]] | None = [] if keep else None
        self.active: dict[_Operator, None] = {}
        """The operators that have a claim whose window is not over."""
        self.later: dict[int, list[_Promise]] = {}
        """What is to be asked at which letter."""
        self.news: list[tuple[_Member, bool]] = []
        """What has become known at this letter, and was not yet told."""

    def turn_to(self, letter: Any) -> None:
        """This is the current letter now."""
        if self.earlier is not None and self.number >= 0:
            self.earlier.append((self.letter, self.time))
        self.letter = letter
        self.number += 1
        if self.reads_time:
            self._turn_clock(letter)
        for node in self.past:
            node.update(letter)
        if self.made:
            self.made = [made for made in self.made if made.is_open]
            for made in self.made:
                for node in made.past:
                    node.update(letter)

    def read(self, letter: Any) -> None:
        """What the current letter means for all that is open."""
        if self.later:
            for promise in self.later.pop(self.number, ()):
                promise.keep(letter)
        for operator in tuple(self.active):
            operator.read(letter)
        news = self.news
        while news:
            member, value = news.pop()
            member.owner.learn(member, value)

    def start_clock(self) -> None:
        """From now on the time of every letter matters, and that of those which were kept."""
        self.reads_time = True
        if self.earlier is not None:
            self.earlier = [(letter, time_of(letter, self.clock, n)) for n, (letter, _) in enumerate(self.earlier)]
        self._turn_clock(self.letter)

    def _turn_clock(self, letter: Any) -> None:
        time = time_of(letter, self.clock, self.number)
        try:
            is_back = self.time is not None and time < self.time
        except TypeError:
            is_back = True
        if is_back:
            raise FormulaError(
                f"the time of letter {self.number}",
                needed=f"a time that does not go back, from {self.time!r} on",
                came=shown(time),
                hint="time=lambda letter: ..., the latest time that was seen so far",
            )
        self.time = time

    def moment(self) -> Moment:
        """The current letter as a formula meets it."""
        return Moment(self.letter, self.number, self.time, self.earlier, self.clock)


# -- what is open ----------------------------------------------------------------------------------------------------


class _Group:
    """Open members, all of which must come true; or one of them."""

    __slots__ = ("is_all", "is_open", "letter", "members", "owner")

    def __init__(self, is_all: bool, owner: _Verdict | _Group | _Side, letter: int) -> None:
        self.is_all = is_all
        self.owner: Any = owner
        self.letter = letter
        """The letter at which it was asked."""
        self.members: dict[_Member, None] = {}
        self.is_open = True

    def adopt(self, value: _Open) -> list[_Member]:
        """Add what is open about the current letter; the members that it has become."""
        if isinstance(value, _Several) and value.is_all is self.is_all:
            return [member for one in value.values for member in self.adopt(one)]
        member: _Member
        if isinstance(value, _Several):
            member = _Group(value.is_all, self, self.letter)
            self.members[member] = None
            for one in value.values:
                member.adopt(one)
        else:
            member = value.claim(self)
            self.members[member] = None
        return [member]

    def learn(self, member: _Member, value: bool) -> None:
        """A member has become known."""
        if not self.is_open:
            return
        del self.members[member]
        if value is not self.is_all:
            self.cancel()
        elif self.members:
            if len(self.members) == 1:
                self._dissolve()
            return
        self.is_open = False
        self.owner.learn(self, value)

    def _dissolve(self) -> None:
        """One claim is left, which is now as good as one that stood alone from the start."""
        [claim] = self.members
        if isinstance(claim, _Claim) and claim.side is not None and self.owner is not claim.side:
            self.is_open = False
            claim.owner = self.owner
            del claim.owner.members[self]
            claim.owner.members[claim] = None
            claim.operator.merge_near(claim)

    def cancel(self) -> None:
        """Nobody wants to know any more."""
        self.is_open = False
        for member in self.members:
            member.cancel()

    def has_claims_of(self, operators: Sequence[_Operator], *, some: bool) -> bool:
        """Whether its members are open claims of these operators, or of some of them; and nothing else."""
        found = {member.operator for member in self.members if isinstance(member, _Claim) and member.is_open}
        return len(found) == len(self.members) and (found <= set(operators) if some else found == set(operators))

    def formula(self) -> Formula:
        """What it asks of the letters to come."""
        return _joined(self.is_all, [member.formula() for member in self.members])

    def size(self, counted: set[_Operator]) -> int:
        """How many claims there are below it, those of each operator counted once."""
        return sum(member.size(counted) for member in self.members)


class _Promise:
    """A body that is asked at a later letter."""

    __slots__ = ("body", "is_open", "letter", "owner")

    def __init__(self, body: _Next, owner: _Group, letter: int) -> None:
        self.body, self.owner, self.letter = body, owner, letter
        self.is_open = True

    def keep(self, letter: Any) -> None:
        """Ask: this is the letter."""
        if not self.is_open:
            return
        self.cancel()
        value = self.body.ask_body(letter)
        if value is True or value is False:
            self.body.now.news.append((self, value))
        else:
            del self.owner.members[self]
            self.owner.adopt(value)

    def cancel(self) -> None:
        if self.is_open:
            self.is_open = False
            self.body.promised -= 1

    def formula(self) -> Formula:
        return next_(self.body.formula(), self.letter - self.body.now.number - 1)

    def size(self, counted: set[_Operator]) -> int:
        return 1


class _Claim:
    """An operator from a letter on."""

    __slots__ = ("deadline", "is_open", "last", "operator", "owner", "side", "start")

    def __init__(self, operator: _Operator, owner: _Group) -> None:
        self.operator = operator
        self.owner = owner
        self.side: _Side | None = None
        """The side that it was claimed for, if it may be merged with others there."""
        self.is_open = True
        self.start: int
        self.last: float
        """The last letter of its window, as far as that is known."""
        self.deadline: Any
        """The last time of its window."""

    def cancel(self) -> None:
        if self.is_open:
            self.operator.forget(self)

    def formula(self) -> Formula:
        return self.operator.formula_of(self)

    def size(self, counted: set[_Operator]) -> int:
        return self.operator.size(counted)


_Member = _Group | _Promise | _Claim


class _Several:
    """The value at a letter, if it is more than one thing that is open: all of these, or one of these."""

    __slots__ = ("is_all", "values")

    def __init__(self, is_all: bool, values: Sequence[_Open]) -> None:
        self.is_all, self.values = is_all, values


def _joined(is_all: bool, formulas: Iterable[Formula]) -> Formula:
    return conjunction(formulas) if is_all else disjunction(formulas)


# -- operators -------------------------------------------------------------------------------------------------------


class _Next:
    """A body some letters later."""

    __slots__ = ("ask_body", "body", "memory", "n", "now", "promised")

    def __init__(self, now: _Now, ask_body: _Ask, body: Formula, n: int, memory: _Memory) -> None:
        self.now, self.ask_body, self.body, self.n, self.memory = now, ask_body, body, n, memory
        self.promised = 0

    @property
    def is_open(self) -> bool:
        """Whether it was promised."""
        return self.promised > 0

    def ask(self, letter: Any) -> _Value:
        return self

    def claim(self, owner: _Group) -> _Promise:
        promise = _Promise(self, owner, self.now.number + self.n)
        self.now.later.setdefault(promise.letter, []).append(promise)
        self.promised += 1
        return promise

    def formula(self) -> Formula:
        return self.memory.in_formula(self.body)


class _Side:
    """The left or the right side of an operator: at which letters it is open, for those who claim the operator."""

    __slots__ = ("groups", "is_all", "letters", "noted_at", "operator", "skipped")

    def __init__(self, operator: _Operator, is_all: bool) -> None:
        self.operator = operator
        self.is_all = is_all
        """Whether all that is open at a letter must come true for the side to be true there, or else one of it."""
        self.letters: list[int] = []
        """Those at which it is open; of the right side, also those at which it decides if only the left is true."""
        self.groups: dict[int, _Group] = {}
        """What is open at each letter."""
        self.noted_at = -1
        self.skipped: list[_Open] = []
        """What was not noted of the current letter, since an earlier claim says as much."""

    def note(self, value: _Open, number: int) -> None:
        """It is open at the current letter."""
        self.noted_at, self.skipped = number, []
        for one in value.values if value.__class__ is _Several and value.is_all is self.is_all else (value,):
            if not self._merge(one, number):
                self._adopt(one, number)

    def complete(self, value: _Open, number: int) -> None:
        """There is a claim from the current letter on, so nothing earlier can stand for what is open here."""
        if self.noted_at != number:
            self.note(value, number)
        for one in self.skipped:
            self._adopt(one, number)
        self.skipped = []

    def _adopt(self, one: _Open, number: int) -> None:
        group = self._group_at(number)
        if one.__class__ is _Operator:  # by far the most
            claim = one.claim(group)
            group.members[claim] = None
            one.latest[self] = claim
            claim.side = self
            return
        members = group.adopt(one)
        if not _operators(one):
            return
        # Not the last claims of the operators: one that stands beside another may be claimed inside of it as well.
        for member in members:
            for each in member.members if isinstance(member, _Group) else (member,):
                if isinstance(each, _Claim) and each.is_open:
                    each.operator.latest[self] = each
                    each.side = self

    def _group_at(self, number: int) -> _Group:
        group = self.groups.get(number)
        if group is None:
            group = self.groups[number] = _Group(self.is_all, self, number)
            self.letters.append(number)
        return group

    def _merge(self, one: _Open, number: int) -> bool:
        """Whether this and what an earlier letter claims are one: one of them implies the other.

        A conjunction keeps the stronger and a disjunction the weaker, be it the older or this.
        """
        operators = _operators(one)
        if not operators:
            return False
        claim, decisive = operators[0].latest.get(self), operators[0].decisive
        if claim is None:
            return False
        keeps_older = decisive is self.is_all
        if one is operators[0]:
            older: _Claim | _Group = claim
            if claim.owner.owner is not self or not one.is_quiet_since(claim.start, number):
                return False
        else:
            older = claim.owner
            if older.owner.__class__ is not _Group or older.owner.owner is not self:
                return False
            if not older.has_claims_of(operators, some=keeps_older):
                return False
            if any(each.decisive is not decisive or not each.is_quiet_since(claim.start, number) for each in operators):
                return False
        if not self.operator.may_merge(self, claim.start, number, keeps_older):
            return False
        if keeps_older:
            self.skipped.append(one)
        else:
            self._move(older, number)
        return True

    def _move(self, member: _Claim | _Group, number: int) -> None:
        """Let it begin at the current letter instead."""
        group = member.owner
        if len(group.members) == 1:
            self.drop(group.letter)
        if len(group.members) == 1 and number not in self.groups:
            group.letter = number
            self.groups[number] = group
            self.letters.append(number)
        else:
            del group.members[member]
            member.owner = self._group_at(number)
            member.owner.members[member] = None
        if isinstance(member, _Claim):
            member.operator.restart(member)
        else:
            member.letter = number
            for claim in list(member.members):
                claim.operator.restart(claim)  # type: ignore[union-attr, arg-type]

    def merge(self, older: _Claim, newer: _Claim) -> None:
        """Let one of two claims of an operator go, if now one of them implies the other."""
        if older.owner.owner is not self or newer.owner.owner is not self:
            return
        keeps_older = older.operator.decisive is self.is_all
        if self.operator.may_merge(self, older.start, newer.start, keeps_older):
            needless = newer if keeps_older else older
            group = needless.owner
            del group.members[needless]
            if not group.members:
                self.drop(group.letter)
            needless.cancel()
            if keeps_older:
                older.operator.latest.setdefault(self, older)

    def learn(self, group: _Group, value: bool) -> None:
        """What was open at a letter has become known."""
        del self.groups[group.letter]
        self.operator.learn(self, group.letter, value)

    def drop(self, letter: int) -> None:
        """Nothing is open at this letter any more."""
        del self.letters[bisect_left(self.letters, letter)]
        self.groups.pop(letter, None)

    def cancel(self, first: int, last: int) -> None:
        """Nobody wants to know about the letters in these places."""
        if first >= last:
            return
        for letter in self.letters[first:last]:
            group = self.groups.pop(letter, None)
            if group is not None:
                group.cancel()
            if letter == self.noted_at:
                self.noted_at = -1
        del self.letters[first:last]


def _operators(value: _Open) -> Sequence[_Operator]:
    """The operators that it claims, if it is one, or several that stand side by side with nothing else."""
    if isinstance(value, _Operator):
        return (value,)
    if isinstance(value, _Several) and all(isinstance(one, _Operator) for one in value.values):
        return value.values  # type: ignore[return-value]
    return ()


_NEVER_OPEN = _Side(None, True)  # type: ignore[arg-type]
_NEVER_OPEN.letters = ()  # type: ignore[assignment]


class _Operator:
    """An operator with a window, and all that is claimed of it.

    Until and release are one algorithm. Until is true at once where its right is true, release is false at once where
    its right is false: that is the *decisive* value. It is of use to a claim if the left was decisive, too, at all
    letters from the claim's start to the one before. Eventually and always have no left, which then is never asked.
    """

    __slots__ = (
        "asked_at",
        "by_time",
        "claims",
        "decisive",
        "formula",
        "latest",
        "left",
        "left_asked_at",
        "left_side",
        "left_value",
        "memory",
        "now",
        "other",
        "over",
        "right",
        "right_side",
        "right_value",
        "span",
        "stops",
        "wins",
    )

    def __init__(self, now: _Now, formula: Timed, left: _Ask | None, right: _Ask, memory: _Memory) -> None:
        self.now = now
        self.formula = formula
        self.left = left
        self.right = right
        self.memory = memory
        self.decisive = isinstance(formula, Eventually | Until)
        self.other = not self.decisive
        self.span: Any = formula.within
        self.by_time = isinstance(formula.within, timedelta)
        self.asked_at = -1
        self.right_value: _Value = False
        self.left_value: _Value = False
        self.left_asked_at = -1
        self.claims: list[_Claim] = []
        """By their start, so by their end as well."""
        self.over = 0
        """How many claims have a window that is over; they wait for what is open in it."""
        # Most sides are never open. And while they are not made, an operator is freed as soon as it is done with.
        self.right_side = self.left_side = _NEVER_OPEN
        self.wins: list[int] = []
        """The letters at which the right is decisive, while the left is open at an earlier one."""
        self.stops: list[int] = []
        """The letters after which the right is of no use to claims that began before: a window may end early."""
        self.latest: dict[_Side, _Claim] = {}
        """The latest claim of each owner."""

    @property
    def is_open(self) -> bool:
        """Whether it is claimed."""
        return bool(self.claims)

    # -- one letter --------------------------------------------------------------------------------------------------

    def ask(self, letter: Any) -> _Value:
        """Its value from this letter on."""
        number = self.now.number
        if self.by_time:
            self._end_by_time()
            if self.formula.deadline is not None and self.now.time > self.formula.deadline:
                return self.other
        if self.asked_at != number:
            self.right_value = self.right(letter)
            self.asked_at = number
        if self.right_value is self.decisive or self.span == 1:
            return self.right_value
        if self.left is not None and self._ask_left(letter) is self.other:
            return self.right_value
        return self

    def _ask_left(self, letter: Any) -> _Value:
        if self.left_asked_at != self.now.number:
            self.left_value = self.left(letter)  # type: ignore[misc]
            self.left_asked_at = self.now.number
        return self.left_value

    def claim(self, owner: _Group) -> _Claim:
        """Claim it from the current letter on, where it was just asked and is open."""
        claim = _Claim(self, owner)
        self.claims.append(claim)
        self._begin(claim)
        return claim

    def restart(self, claim: _Claim) -> None:
        """Let the claim begin at the current letter instead."""
        if self.over and self.claims.index(claim) < self.over:
            self.over -= 1  # the current letter was the last of its window
        if self.claims[-1] is not claim:
            self.claims.remove(claim)
            self.claims.append(claim)
        self._begin(claim)
        if self.right_side.letters or self.left_side.letters:
            self._tidy()

    def _begin(self, claim: _Claim) -> None:
        now = self.now
        number = claim.start = now.number
        claim.last = number + self.span - 1 if self.span.__class__ is int else FOREVER
        if self.by_time:
            known = self.formula.deadline
            claim.deadline = time_after(now.time, self.span) if known is None else known
        now.active[self] = None
        right = self.right_value
        if right is not True and right is not False:
            self._own_right_side().complete(right, number)
        if self.left is not None:
            left = self.left_value
            if left is not True and left is not False:
                self._own_left_side().complete(left, number)

    def _own_right_side(self) -> _Side:
        if self.right_side is _NEVER_OPEN:
            self.right_side = _Side(self, self.other)
        return self.right_side

    def _own_left_side(self) -> _Side:
        if self.left_side is _NEVER_OPEN:
            self.left_side = _Side(self, self.decisive)
        return self.left_side

    def read(self, letter: Any) -> None:
        """What the current letter means for the claims."""
        claims, number = self.claims, self.now.number
        if self.by_time:
            self._end_by_time()
        if self.over == len(claims):
            return
        if self.asked_at != number:
            self.right_value = self.right(letter)
            self.asked_at = number
        right = self.right_value
        if right is not self.other:
            if right is self.decisive:
                if self.left_side.letters:
                    self._win(number)
                else:
                    self._settle(self.over, len(claims), self.decisive)
                    self._tidy()
                if self.over == len(claims):
                    return
            elif self.right_side.noted_at != number:
                self._own_right_side().note(right, number)  # type: ignore[arg-type]
        if self.left is not None and claims[-1].last > number:
            left = self._ask_left(letter)
            if left is self.other:
                if self.right_side.letters:
                    self._stop(number)
                else:
                    self._settle(0, len(claims), self.other)
                    self._tidy()
                return
            if left is not self.decisive and self.left_side.noted_at != number:
                self._own_left_side().note(left, number)  # type: ignore[arg-type]
        if claims[self.over].last <= number:
            over = self.over + 1
            while over < len(claims) and claims[over].last <= number:
                over += 1
            self._end(over)

    def _end_by_time(self) -> None:
        over, now = self.over, self.now
        while over < len(self.claims) and self.claims[over].deadline < now.time:
            self.claims[over].last = now.number - 1
            over += 1
        if over > self.over:
            self._end(over)

    def is_quiet_since(self, start: int, number: int) -> bool:
        """Whether the right is open at no letter from the start to the one before: then a claim from the start and one
        from the current letter differ in their end only."""
        letters = self.right_side.letters
        if not letters:
            return True
        return letters[-1] < start or (letters[-1] == number and (len(letters) == 1 or letters[-2] < start))

    def may_merge(self, side: _Side, letter: int, later: int, keeps_older: bool) -> bool:
        """Whether what is open on a side at a letter and at a later one matters alike, to the same claims."""
        chances, doubts = self.right_side.letters, self.left_side.letters
        claims = self.claims
        if keeps_older and claims[-1].start > letter:
            # A claim that began in between knows the later letter only.
            begins_between = (
                claims[-1].start <= later or claims[bisect_right(claims, letter, key=_start)].start <= later
            )
            if begins_between:
                return False
        if side is self.left_side:
            return bisect_right(chances, letter) == bisect_right(chances, later)
        return keeps_older or (self.over == 0 and bisect_left(doubts, letter) == bisect_left(doubts, later))

    def merge_near(self, claim: _Claim) -> None:
        """See whether a claim and its neighbours can be one."""
        place = bisect_right(self.claims, claim.start, key=_start)
        self._merge_with_next(place - 1)
        if claim.is_open and self.claims[place - 1] is claim:
            self._merge_with_next(place - 2)

    def _merge_with_next(self, place: int) -> None:
        claims, chances = self.claims, self.right_side.letters
        if not 0 <= place < len(claims) - 1:
            return
        older, newer = claims[place], claims[place + 1]
        is_quiet = bisect_left(chances, older.start) == bisect_left(chances, newer.start)
        if older.side is not None and older.side is newer.side and is_quiet:
            older.side.merge(older, newer)

    # -- what becomes known ------------------------------------------------------------------------------------------

    def learn(self, side: _Side, letter: int, value: bool) -> None:
        """What a side is at an earlier letter, where it was open."""
        if side is self.right_side:
            if value is self.decisive:
                self._win(letter)
            else:
                self._miss(letter)
        else:
            side.drop(letter)
            if value is self.decisive:
                self._hold(letter)
            else:
                self._stop(letter)

    def _win(self, letter: int) -> None:
        """The right is decisive: so are the claims up to here, except where the left is open in between."""
        claims, doubts, chances = self.claims, self.left_side.letters, self.right_side.letters
        place = bisect_left(doubts, letter)
        first = bisect_left(claims, doubts[place - 1] + 1, key=_start) if place else 0
        last = bisect_right(claims, letter, key=_start)
        # Windows that ended before this letter are in front.
        first = bisect_left(claims, float(letter), lo=min(first, last), hi=last, key=self._last)
        self._settle(first, last, self.decisive)
        place = bisect_left(chances, letter)
        is_noted = place < len(chances) and chances[place] == letter
        if first and self._last(claims[first - 1]) >= letter:
            if not is_noted:
                self._own_right_side().letters.insert(place, letter)
            if letter not in self.wins:
                insort(self.wins, letter)
                insort(self.stops, letter)
                self.over = max(self.over, first)
        else:
            if is_noted:
                del chances[place]
            if letter in self.wins:
                self.wins.remove(letter)
        self._tidy()

    def _miss(self, letter: int) -> None:
        """The right is not decisive: the claims for which this was the last chance are lost."""
        claims, chances = self.claims, self.right_side.letters
        place = bisect_left(chances, letter)
        del chances[place]
        if self.over:
            first = last = bisect_right(claims, chances[place - 1], key=_start) if place else 0
            after = chances[place] if place < len(chances) else FOREVER
            while last < self.over and claims[last].start <= letter and self._last(claims[last]) < after:
                last += 1
            self._settle(first, last, self.other)
            self._tidy()
        if len(claims) > 1:
            self._merge_with_next(bisect_right(claims, letter, key=_start) - 1)

    def _hold(self, letter: int) -> None:
        """The left is decisive: the right may be of use after it."""
        doubts, wins = self.left_side.letters, self.wins
        place = bisect_right(wins, letter)
        next_doubt = bisect_left(doubts, letter)
        if place < len(wins) and (next_doubt == len(doubts) or wins[place] <= doubts[next_doubt]):
            self._win(wins[place])

    def _stop(self, letter: int) -> None:
        """The left is not decisive: to the claims so far, the right is of no use after this letter."""
        claims, chances = self.claims, self.right_side.letters
        insort(self.stops, letter)
        place = bisect_right(chances, letter)
        first = bisect_right(claims, chances[place - 1], key=_start) if place else 0
        last = bisect_right(claims, letter, key=_start)
        self.over = max(self.over, last)
        self._settle(first, last, self.other)
        self._tidy()

    def _end(self, over: int) -> None:
        """So many claims have a window that is over: those that have no chance are lost."""
        claims, chances, first = self.claims, self.right_side.letters, self.over
        if chances:
            has_chance = claims[over - 1].start <= chances[-1]
            first = over if has_chance else max(first, bisect_right(claims, chances[-1], key=_start))
        self.over = over
        self._settle(first, over, self.other)
        self._tidy()

    def _last(self, claim: _Claim) -> float:
        """The last letter of which the right is of use to this claim, as far as that is known."""
        if self.stops:
            place = bisect_left(self.stops, claim.start)
            if place < len(self.stops):
                return min(claim.last, self.stops[place])
        return claim.last

    # -- claims that go ----------------------------------------------------------------------------------------------

    def _settle(self, first: int, last: int, value: bool) -> None:
        """The claims in these places have this value."""
        if first >= last:
            return
        news = self.now.news
        for claim in self.claims[first:last]:
            self._close(claim)
            news.append((claim, value))
        del self.claims[first:last]
        if first < self.over:
            self.over -= min(last, self.over) - first

    def forget(self, claim: _Claim) -> None:
        """Nobody wants to know about this claim any more."""
        self._close(claim)
        place = bisect_left(self.claims, claim.start, key=_start)
        while self.claims[place] is not claim:
            place += 1
        del self.claims[place]
        if place < self.over:
            self.over -= 1
        self._tidy()

    def _close(self, claim: _Claim) -> None:
        claim.is_open = False
        if claim.side is not None and self.latest.get(claim.side) is claim:
            del self.latest[claim.side]

    def _tidy(self) -> None:
        """Drop what is of no use to any claim."""
        claims, chances, doubts = self.claims, self.right_side.letters, self.left_side.letters
        if self.over == len(claims):
            self.now.active.pop(self, None)
        if not (chances or doubts or self.stops):
            return
        if not claims:
            first, last = FOREVER, -1.0
        else:
            first = claims[0].start
            last = FOREVER if self.over < len(claims) else self._last(claims[-1])
        if last != FOREVER:
            self.right_side.cancel(bisect_right(chances, last), len(chances))
            self.left_side.cancel(bisect_left(doubts, last), len(doubts))
            del self.wins[bisect_right(self.wins, last) :]
        self.right_side.cancel(0, bisect_left(chances, first))
        self.left_side.cancel(0, bisect_left(doubts, first))
        del self.wins[: bisect_left(self.wins, first)]
        del self.stops[: bisect_left(self.stops, first)]

    # -- as a formula ------------------------------------------------------------------------------------------------

    def formula_of(self, claim: _Claim) -> Formula:
        """What a claim asks of the letters to come."""
        last, number = self._last(claim), self.now.number
        sides = [(k, group.formula()) for k, group in self.left_side.groups.items() if k >= claim.start]
        choices = []
        for k in self.right_side.letters:
            if claim.start <= k <= last:
                group = self.right_side.groups.get(k)
                right = Constant(self.decisive) if group is None else group.formula()
                choices.append(_joined(self.decisive, [*(left for j, left in sides if j < k), right]))
        if last > number:
            parts = [self.memory.in_formula(part) for part in self.formula.parts]
            within = self.span if self.by_time or self.span is None else int(claim.last) - number
            rest = self.formula._with(parts, within, claim.deadline if self.by_time else None)
            choices.append(_joined(self.decisive, [*(left for _, left in sides), rest]))
        return _joined(self.other, choices)

    def size(self, counted: set[_Operator]) -> int:
        """How many claims there are of it and below it, if it was not counted yet."""
        if self in counted:
            return 0
        counted.add(self)
        groups = [*self.left_side.groups.values(), *self.right_side.groups.values()]
        return len(self.claims) + sum(group.size(counted) for group in groups)


def _start(claim: _Claim) -> int:
    return claim.start


_Open = _Operator | _Next | _Several
"""What is open about a letter: it can be claimed."""
_Value = bool | _Open
_Ask = Callable[[Any], _Value]
"""The value of a formula at the current letter."""


# -- the past --------------------------------------------------------------------------------------------------------


class _PastNode:
    """A past operator: it sees every letter, and has its value ready."""

    __slots__ = ("by_time", "formula", "last", "now", "parts", "span", "value")

    def __init__(self, now: _Now, formula: Any, parts: list[_Ask], first: int) -> None:
        """`first` is the letter that it sees first."""
        self.now = now
        self.formula = formula
        self.parts = parts
        self.value = False
        within: Within = getattr(formula, "within", None)
        self.by_time = isinstance(within, timedelta)
        self.span: Any = FOREVER if within is None else within
        self.last = self._remembered(formula, first)
        """What matters of the letters before: the last one at which it happened, or the time of that."""

    def _remembered(self, formula: Any, first: int) -> Any:
        # A formula counts letters back from the one that it sees first.
        return formula.last if self.by_time or formula.last is None else first - formula.last

    def update(self, letter: Any) -> None:
        """Read the current letter."""
        raise NotImplementedError

    def formula_now(self, parts: Sequence[Formula]) -> Formula:
        """The same operator with what it remembers, for the next letter."""
        last = self.last if self.by_time or self.last is None else self.now.number + 1 - self.last
        return type(self.formula)(*parts, self.formula.within, last)  # type: ignore[no-any-return]

    def _is(self, part: _Ask, letter: Any) -> bool:
        value = part(letter)
        if value is True or value is False:
            return value
        raise depends_on_future(self.formula, self.now.number)

    def _happens(self) -> None:
        self.last = self.now.time if self.by_time else self.now.number

    def _in_reach(self) -> bool:
        """Whether the window that ends with this letter has one at which it happened."""
        if self.last is None:
            return False
        if self.by_time:
            return bool(self.now.time - self.last <= self.span)
        return bool(self.now.number - self.last < self.span)

    def ask(self, letter: Any) -> bool:
        return self.value


class _PreviouslyNode(_PastNode):
    __slots__ = ()

    def _remembered(self, formula: Previously, first: int) -> bool:
        return formula.before

    def update(self, letter: Any) -> None:
        self.value, self.last = self.last, self._is(self.parts[0], letter)

    def formula_now(self, parts: Sequence[Formula]) -> Formula:
        return Previously(parts[0], self.last)


class _OnceNode(_PastNode):
    __slots__ = ()

    def update(self, letter: Any) -> None:
        if self._is(self.parts[0], letter):
            self._happens()
        self.value = self._in_reach()


class _HistoricallyNode(_PastNode):
    __slots__ = ()

    def update(self, letter: Any) -> None:
        if not self._is(self.parts[0], letter):
            self._happens()
        self.value = not self._in_reach()


class _SinceNode(_PastNode):
    __slots__ = ()

    def update(self, letter: Any) -> None:
        left, right = self.parts
        if self._is(right, letter):
            self._happens()
        elif not self._is(left, letter):
            self.last = None
        self.value = self._in_reach()


_PAST_NODES: dict[type[Past], type[_PastNode]] = {
    Previously: _PreviouslyNode,
    Once: _OnceNode,
    Historically: _HistoricallyNode,
    Since: _SinceNode,
}


class _Memory:
    """The past operators of one formula."""

    __slots__ = ("nodes",)

    def __init__(self) -> None:
        self.nodes: dict[Formula, _PastNode] = {}

    def in_formula(self, formula: Formula) -> Formula:
        """The formula with what its past operators remember, for the next letter."""
        if not formula.has_past:
            return formula
        parts = [self.in_formula(part) for part in formula.parts]
        return self.nodes[formula].formula_now(parts) if isinstance(formula, Past) else formula._rebuilt(parts)


# -- from formulas to what can be asked ------------------------------------------------------------------------------

_DUALS: dict[type[Timed], type[Timed]] = {Always: Eventually, Eventually: Always, Until: Release, Release: Until}


class _Compiled:
    """A formula, or its negation, as a function of the letter. Equal parts of it are asked as one."""

    def __init__(self, now: _Now, formula: Formula, positive: bool) -> None:
        self.now = now
        self.first = max(now.number, 0)
        """The letter that the formula sees first."""
        self._parts: dict[tuple[Formula, bool], _Ask] = {}
        self.past: list[_PastNode] = []
        """Its past operators, inner ones first."""
        self.future: list[_Operator | _Next] = []
        self.memory = _Memory()
        self.tests = _tests_by_letter(formula, now)
        self.ask = self._part(formula, positive)

    @property
    def is_open(self) -> bool:
        """Whether something in it is claimed."""
        return any(operator.is_open for operator in self.future)

    def _part(self, formula: Formula, positive: bool) -> _Ask:
        key = (formula, positive)
        if key not in self._parts:
            self._parts[key] = self._make(formula, positive)
        return self._parts[key]

    def _make(self, formula: Formula, positive: bool) -> _Ask:
        match formula:
            case Constant(value):
                constant = value is positive
                return lambda letter: constant
            case Now():
                return self._test(formula, positive)
            case Not(body):
                return self._part(body, not positive)
            case Named(body):
                return self._part(body, positive)
            case And(parts) | Or(parts):
                is_all = isinstance(formula, And) is positive
                return _connected([self._part(part, positive) for part in parts], is_all)
            case Implies(left, right):
                sides = [self._part(left, not positive), self._part(right, positive)]
                return _connected(sides, not positive)
            case Next(body, n):
                told = body if positive else negation(body)
                later = _Next(self.now, self._part(body, positive), told, n, self.memory)
                self.future.append(later)
                return later.ask
            case Timed():
                return self._timed(formula, positive)
            case Quantified():
                return self._quantifier(formula, positive)
            case Past():
                return self._past(formula, positive)
        raise FormulaError("judge", needed="a formula", came=repr(formula), hint="always(...)")

    def _test(self, formula: Now, positive: bool) -> _Ask:
        test, now, negative = self.tests.get(formula, formula.test), self.now, not positive

        def ask(letter: Any) -> _Value:
            try:
                value = test(letter)
            except StreamtightError:
                raise
            except Exception as error:
                raise no_answer(error, letter, repr(formula), now.number) from error
            if value is True:
                return positive
            if value is False:
                return negative
            known = truth(value, repr(formula), now.moment())
            if isinstance(known, Formula):
                return _made_now(now, known, positive, repr(formula)).ask(letter)
            return known is positive

        return ask

    def _timed(self, formula: Timed, positive: bool) -> _Ask:
        if not positive:
            dual = _DUALS[type(formula)]
            formula = dual(*map(negation, formula.parts), formula.within, formula.deadline)  # type: ignore[call-arg]
        if isinstance(formula.within, timedelta):
            self.now.reads_time = True
        *left, right = [self._part(part, True) for part in formula.parts]
        operator = _Operator(self.now, formula, left[0] if left else None, right, self.memory)
        self.future.append(operator)
        return operator.ask

    def _quantifier(self, formula: Quantified, positive: bool) -> _Ask:
        now, is_all = self.now, formula.every is positive
        # Two equal records owe the same, so they are asked as one.
        known: dict[Hashable, _Compiled] = {}
        most_known = REMEMBERED

        def made_for(record: Any, moment: Moment) -> _Compiled:
            nonlocal known, most_known
            key = (type(record), record)  # True is 1, but not for every test
            try:
                made = known.get(key)
                is_hashable = True
            except TypeError:
                made, is_hashable = None, False
            if made is None:
                instance = formula.instance(record, moment)
                made = _made_now(now, instance, positive, repr(formula))
                if is_hashable and not instance.has_past:  # the past differs from letter to letter
                    known[key] = made
                    if len(known) > most_known:
                        known = {one: each for one, each in known.items() if each.is_open}
                        most_known = REMEMBERED + 2 * len(known)
            return made

        def ask(letter: Any) -> _Value:
            values: dict[_Open, None] = {}
            moment = now.moment()
            for record in formula.records_at(moment):
                value = made_for(record, moment).ask(letter)
                if value is True or value is False:
                    if value is not is_all:
                        return value
                else:
                    values[value] = None
            return _several(is_all, list(values)) if values else is_all

        return ask

    def _past(self, formula: Past, positive: bool) -> _Ask:
        parts = [self._part(part, True) for part in formula.parts]
        node = self.memory.nodes.get(formula)
        if node is None:
            if formula.reads_time:
                self.now.reads_time = True
            node = _PAST_NODES[type(formula)](self.now, formula, parts, self.first)
            self.memory.nodes[formula] = node
            self.past.append(node)
        return node.ask if positive else lambda letter: not node.value


def _tests_by_letter(formula: Formula, now: _Now) -> dict[Formula, Test]:
    """For the tests that stand in a formula more than once: functions that ask them once for each letter."""
    seen: set[Formula] = set()
    repeated: dict[Formula, Test] = {}
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        waiting += part.parts
        if isinstance(part, Now) and part in seen:
            repeated[part] = _once_a_letter(part.test, now)
        elif isinstance(part, Now):
            seen.add(part)
    return repeated


def _once_a_letter(test: Test, now: _Now) -> Test:
    number, value = -1, None

    def asked(letter: Any) -> object:
        nonlocal number, value
        if number != now.number:
            value = test(letter)
            number = now.number
        return value

    return asked


def _made_now(now: _Now, formula: Formula, positive: bool, where: str) -> _Compiled:
    """A formula that was made for the current letter."""
    if formula.reads_time and not now.reads_time:
        now.start_clock()
    made = _Compiled(now, bound(formula, now.moment(), where), positive)
    for node in made.past:
        node.update(now.letter)
    if made.past:
        now.made.append(made)
    return made


def _connected(parts: Sequence[_Ask], is_all: bool) -> _Ask:
    """All of these, or one of these: asked in this order, up to the first that decides."""
    decided = not is_all
    if len(parts) == 2:
        first, second = parts

        def ask_two(letter: Any) -> _Value:
            one = first(letter)
            if one is decided:
                return decided
            other = second(letter)
            if one is is_all or other is decided:
                return other
            return one if other is is_all else _several(is_all, (one, other))  # type: ignore[arg-type]

        return ask_two

    def ask(letter: Any) -> _Value:
        values: list[_Open] = []
        for part in parts:
            value = part(letter)
            if value is decided:
                return decided
            if value is not is_all:
                values.append(value)  # type: ignore[arg-type]
        return _several(is_all, values) if values else is_all

    return ask


def _several(is_all: bool, values: Sequence[_Open]) -> _Open:
    """All of these, or one of these."""
    if len(values) == 1:
        return values[0]
    flat: list[_Open] = []
    for value in values:
        if isinstance(value, _Several) and value.is_all is is_all:
            flat += value.values
        else:
            flat.append(value)
    return _Several(is_all, flat)
