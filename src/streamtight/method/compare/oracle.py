"""References that are no jobs: what a right output is, said about the input. Also where several outputs are right.

    expected(fn)      the output is what this function makes of the input events
    one_of(fn)        the output is one of those that this function allows
    allowed(test)     the output is right if this test of input and output says so

`by` splits the input and the output first, and each group is judged for itself: the name of a field that both have,
several names, or two functions, for the input and for the output.

>>> from streamtight.stream.event import Kind
>>> from streamtight.stream.dependence import unordered
>>> Item, Best = Kind("Item", key=str, x=int, y=int), Kind("Best", key=str, x=int)
>>> best = allowed(lambda given, came: [b.x for b in came] in [[i.x] for i in given if i.y == max(g.y for g in given)],
...                by="key")
>>> items = [Item("a", 1, 9), Item("a", 2, 9), Item("a", 3, 0)]
>>> best.judge(items, (((Best("a", 2),),),), upto=unordered, equal=None) is None
True
>>> best.judge(items, (((Best("a", 3),),),), upto=unordered, equal=None).name
'NOT_ALLOWED'
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from streamtight.errors import TraceError
from streamtight.method.compare.outputs import Equal, Finding, alike, difference, listed
from streamtight.stream.dependence import Dependence
from streamtight.stream.event import Event
from streamtight.stream.schedule import Batches, delivered, find_race

Events = tuple[Event, ...]
Key = Callable[[Event], Hashable]
By = str | Iterable[str] | tuple[Key, Key] | None
Judge = Callable[[Events, Batches, Dependence, Equal], Finding | None]


@dataclass(frozen=True, slots=True)
class Oracle:
    """Says what is right for an input. Make one with `expected`, `one_of` or `allowed`."""

    name: str
    judge_group: Judge
    keys: tuple[Key, Key] | None = None

    def judge(self, given: Iterable[Event], came: Batches, *, upto: Dependence, equal: Equal) -> Finding | None:
        """What is wrong with this output for this input; None if it is right."""
        race = find_race(came if equal is None else alike(came, equal), upto)
        if race is not None:
            return Finding("RACE", f"in the candidate, {race}", None, tuple(delivered(came)), race=race)
        if self.keys is None:
            return self.judge_group(tuple(given), came, upto, equal)
        of_input, of_output = self.keys
        inputs: dict[Hashable, list[Event]] = {}
        for event in given:
            inputs.setdefault(of_input(event), []).append(event)
        groups = dict.fromkeys([*inputs, *(of_output(event) for event in delivered(came))])
        for group in groups:  # compared in tuples, where NaN is equal to itself
            mine = tuple(
                tuple(tuple(e for e in part if (of_output(e),) == (group,)) for part in batch) for batch in came
            )
            finding = self.judge_group(tuple(inputs.get(group, ())), mine, upto, equal)
            if finding is not None:
                return replace(finding, explanation=f"for {_shown(group)}: {finding.explanation}")
        return None


def expected(function: Callable[[Events], Iterable[Event]], *, by: By = None) -> Oracle:
    """The output is what this function of the input events gives, up to the order that matters."""
    _require_function(function, "expected(...)")

    def judge(given: Events, came: Batches, upto: Dependence, equal: Equal) -> Finding | None:
        return difference(
            listed(_events(function(given), function)), came, upto=upto, equal=equal, here="as it is expected"
        )

    return Oracle(f"expected({_name(function)})", judge, _keys(by))


def one_of(function: Callable[[Events], Iterable[Iterable[Event]]], *, by: By = None) -> Oracle:
    """The output is one of those that this function of the input events gives."""
    _require_function(function, "one_of(...)")

    def judge(given: Events, came: Batches, upto: Dependence, equal: Equal) -> Finding | None:
        right = [_events(output, function) for output in function(given)]
        findings = []
        for output in right:
            finding = difference(listed(output), came, upto=upto, equal=equal, here="in an allowed output")
            if finding is None:
                return None
            findings.append(finding)
        nearest = f"; the first of them: {findings[0].explanation}" if findings else ""
        return Finding(
            "NOT_ALLOWED",
            f"the output is none of the {len(right)} that {_name(function)} allows{nearest}",
            right[0] if right else None,
            tuple(delivered(came)),
        )

    return Oracle(f"one_of({_name(function)})", judge, _keys(by))


def allowed(test: Callable[[Events, Events], bool], *, by: By = None) -> Oracle:
    """The output is right if this test of the input events and the output events is true."""
    _require_function(test, "allowed(...)")

    def judge(given: Events, came: Batches, upto: Dependence, equal: Equal) -> Finding | None:
        output = tuple(delivered(came))
        if test(given, output):
            return None
        shown = ", ".join(map(repr, given)) or "no input"
        return Finding("NOT_ALLOWED", f"{_name(test)} does not allow this output for {shown}", None, output)

    return Oracle(f"allowed({_name(test)})", judge, _keys(by))


def _keys(by: By) -> tuple[Key, Key] | None:
    if by is None:
        return None
    if isinstance(by, str):
        by = (by,)
    parts: Sequence[object] = tuple(by)
    match parts:
        case (of_input, of_output) if callable(of_input) and callable(of_output):
            return of_input, of_output
        case names if names and all(isinstance(name, str) for name in names):
            fields = [name for name in names if isinstance(name, str)]

            def key(event: Event) -> Hashable:
                values = tuple(getattr(event, name) for name in fields)
                return values[0] if len(values) == 1 else values

            return key, key
    raise TraceError(
        "by=...",
        needed="a field name, several, or two functions: of an input event and of an output event",
        came=repr(by),
        hint="by='key', or by=(lambda item: item.time // 10, lambda row: row.window)",
    )


def _events(made: Iterable[Event], function: Callable[..., object]) -> Events:
    events = tuple(made)
    for event in events:
        if not isinstance(event, Event):
            raise TraceError(
                _name(function), needed="events", came=repr(event), hint="make them with the output's kind"
            )
    return events


def _require_function(given: object, where: str) -> None:
    if not callable(given):
        raise TraceError(where, needed="a function", came=repr(given), hint="allowed(lambda given, came: ...)")


def _name(function: Callable[..., object]) -> str:
    return getattr(function, "__name__", repr(function))


def _shown(group: Hashable) -> str:
    return ", ".join(map(repr, group)) if isinstance(group, tuple) and not isinstance(group, Event) else repr(group)
