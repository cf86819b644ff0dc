"""When a query makes sense: its rate, whether it always has a value, and words that show that it does not.

Whether a query has a value, none or a conflict depends on the tags of a word alone (Theorem 5.2). So its machine is run
without values on all words, shortest first: what it answers on each of finitely many ways is all there is to know. The
typing rules of section 5.3.1 are asked so, and what breaks them is shown by the shortest word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from streamtight.errors import QueryError
from streamtight.properties.query import (
    Agree,
    Atom,
    Boolean,
    Combine,
    Comparison,
    Eps,
    Fill,
    FillWith,
    Historically,
    Iter,
    Level,
    Once,
    Or,
    PrefixSum,
    Previously,
    Query,
    Since,
    Split,
)
from streamtight.properties.query_machine import pass_machine, value_machine
from streamtight.properties.straight import Statuses, tidied
from streamtight.properties.transducer import Status, Transducer

Word = tuple[str, ...]
MOST_WAYS = 20_000
"""So many ways in which registers can be filled are looked at; a query that has more is refused."""


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """A word on which a query, or a part of it, has more than one value."""

    query: Query
    word: Word

    def __str__(self) -> str:
        return f"{self.query} can be cut in more than one way on {told(self.word)}"


def rate(query: Query) -> str:
    """The words on which a query has a value or a conflict, as a regular expression over the tags.

    `.` is any tag, `()` the empty word.
    """
    match query:
        case Atom(tag, _, but):
            if but:
                return f"[^{''.join(map(_letter, but))}]"
            return "." if tag is None else _letter(tag)
        case Eps():
            return "()"
        case Or(one, other):
            return f"({rate(one)}|{rate(other)})"
        case Split(one, other, _):
            return f"{rate(one)}{rate(other)}"
        case Iter(one, _, _):
            return f"{rate(one)}*" if isinstance(one, (Atom, Eps, Or)) else f"({rate(one)})*"
        case Combine(those, _):
            return rate(those[0]) if query.level is Level.BASE else "&".join(map(rate, those))
        case Fill(one):
            return f"{rate(one)}.*"
        case FillWith(one, other):
            return f"({rate(one)}|{rate(other)})"
    return ".*"


def _letter(tag: str) -> str:
    return tag if len(tag) == 1 else f"<{tag}>"


def told(word: Word) -> str:
    """A word as people write it."""
    return " ".join(word) if word else "the empty word"


# -- all words, shortest first ---------------------------------------------------------------------------------------

Answers = tuple[Status, ...]


def ways(machines: Sequence[Transducer], where: str) -> Iterator[tuple[Word, Answers]]:
    """What machines answer together, with the shortest word for each way in which their registers can be filled."""
    tags = machines[0].tags
    all_statuses = [Statuses(tidied(machine)) for machine in machines]
    given = [[Status.ONE] * len(machine.inputs) for machine in machines]
    outputs = [tidied(machine).outputs for machine in machines]

    def after(tag: str | None, before: Sequence[dict[int, Status]]) -> tuple[tuple[Answers, ...], Answers]:
        keys, answers = [], []
        for number, statuses in enumerate(all_statuses):
            found, _ = statuses.step(tag, before[number], given[number] if tag is None else ())
            keys.append(tuple(found[register] for register in statuses.registers))
            answers += [found[output] for output in outputs[number]]
        return tuple(keys), tuple(answers)

    key, answers = after(None, [{} for _ in machines])
    yield (), answers
    seen = {(key, answers)}
    todo: list[tuple[tuple[Answers, ...], Word]] = [(key, ())]
    for filled, word in todo:  # grows while it is gone through
        before = [dict(zip(s.registers, each, strict=True)) for s, each in zip(all_statuses, filled, strict=True)]
        for tag in tags:
            key, answers = after(tag, before)
            if (key, answers) in seen:
                continue
            if len(seen) >= MOST_WAYS:
                raise QueryError(
                    where,
                    needed=f"at most {MOST_WAYS:,} ways in which its registers can be filled",
                    came="more",
                    hint="fewer tags, or several queries: each part that looks back adds to them",
                )
            seen.add((key, answers))
            yield (*word, tag), answers
            todo.append((key, (*word, tag)))


def first_word(machines: Sequence[Transducer], where: str, is_wanted: Callable[[Answers], bool]) -> Word | None:
    """The shortest word on which the answers are as wanted."""
    return next((word for word, answers in ways(machines, where) if is_wanted(answers)), None)


def _status_machine(query: Query, tags: tuple[str, ...]) -> Transducer:
    """The smaller machine of two that answer on the same words."""
    return pass_machine(query, tags) if query.level is Level.BASE else value_machine(query, tags)


def undefined_word(query: Query, tags: tuple[str, ...]) -> Word | None:
    """The shortest word on which a query has no value, or a conflict; None if it always has one."""
    return first_word([_status_machine(query, tags)], str(query), lambda answers: answers[0] is not Status.ONE)


def ambiguity(query: Query, tags: tuple[str, ...]) -> Ambiguity | None:
    """The shortest word on which a query is a conflict; and if there is none, a part of which `fill` hides one."""
    hiding = [each.one for each in query.walk() if isinstance(each, (Fill, FillWith))]
    both = [one for each in query.walk() if isinstance(each, Agree) for one in each.parts]
    for each in (query, *hiding, *both):
        word = first_word([_status_machine(each, tags)], str(query), lambda answers: Status.MANY in answers)
        if word is not None:
            return Ambiguity(each, word)
    return None


# -- typing rules ----------------------------------------------------------------------------------------------------


def require_well_typed(query: Query, tags: tuple[str, ...]) -> None:
    """Raise if a part of a query breaks a typing rule of section 5.3.1."""
    for part in query.walk():
        match part:
            case Combine(those, _) if part.level is Level.BASE:
                _require_equal_rates(part, those, tags)
            case PrefixSum() | Comparison() | Boolean() | Previously() | Once() | Historically() | Since():
                for each in part.parts:
                    _require_total(part, each, tags)


def _require_equal_rates(query: Query, those: Sequence[Query], tags: tuple[str, ...]) -> None:
    machines = [_status_machine(each, tags) for each in those]
    for other, machine in zip(those[1:], machines[1:], strict=True):
        word = first_word([machines[0], machine], str(query), lambda answers: (not answers[0]) != (not answers[1]))
        if word is not None:
            raise QueryError(
                f"{query} over the tags {', '.join(tags)}",
                needed="parts that have values on the same words",
                came=f"{those[0]} with the rate {rate(those[0])} and {other} with {rate(other)}, "
                f"of which only one has a value on {told(word)}",
                hint="fill_with(q, 0) outside; or the same tags in both",
                witness=word,
            )


def _require_total(query: Query, part: Query, tags: tuple[str, ...]) -> None:
    if part.level is Level.TEMPORAL:  # its own parts are asked
        return
    word = undefined_word(part, tags)
    if word is not None:
        raise QueryError(
            f"{query} over the tags {', '.join(tags)}",
            needed="parts that have a value on every word",
            came=f"{part} with the rate {rate(part)}, which has none on {told(word)}",
            hint="fill_with(q, 0): another value where there is none; fill(or_(eps(0), q)): the last one",
            witness=word,
        )
