"""Wire diagrams: how several workers may run a fork/join program (Definition 4.2), drawn by chance and made small.

A diagram is what happens on one wire: events, and forks with a diagram on each side. The events of a diagram are in an
order that the dependence does not tell apart from that of their times, as on workers that wait for each other only
where they must.
"""

from __future__ import annotations

import dataclasses
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from streamtight.program.fork_join import Branch, ForkJoin, StateType
from streamtight.program.tags import Bucket, Tags, TagSet, independent_tags, tag_of
from streamtight.source.generate import Source
from streamtight.source.values import simplicity
from streamtight.stream.event import Event, Kind, without_annotation, without_none

MOST_NESTED = 3
"""How many forks are inside each other, at most."""


@dataclass(frozen=True, slots=True)
class Forked:
    """A fork, what happens on its two sides, and the join."""

    branch: Branch
    tags: tuple[TagSet, TagSet]
    """What may come on each side."""
    sides: tuple[Diagram, Diagram]


Diagram = tuple[Event | Forked, ...]


def events_of(diagram: Diagram) -> list[Event]:
    """Its events in an order in which they may have come."""
    found: list[Event] = []
    for item in diagram:
        found += [item] if isinstance(item, Event) else [e for side in item.sides for e in events_of(side)]
    return found


def in_sequence(program: ForkJoin, diagram: Diagram) -> list[Event]:
    """Its events in the order of the sequential program."""
    return sorted(events_of(diagram), key=program.key)


def has_fork(diagram: Diagram) -> bool:
    """Whether more than one worker runs it."""
    return any(isinstance(item, Forked) for item in diagram)


# -- drawn by chance -------------------------------------------------------------------------------------------------


class Drawing:
    """Draws diagrams of a program."""

    def __init__(self, program: ForkJoin, chance: random.Random) -> None:
        self._program, self._chance = program, chance
        self._depends = program.depends

    def diagram(self, events: Sequence[Event]) -> Diagram:
        """How workers may handle these events."""
        program = self._program
        ordered = sorted(events, key=program.key)
        seen = [tag_of(event, program.tag_fields(event.kind)) for event in ordered]
        self._tags = [part for part in dict.fromkeys(seen) if all(value == value for value in _listed(part))]
        return self._wire(program.state_types[0], program.all_tags, ordered, 0)

    def _wire(self, type_: StateType, may: TagSet, events: Sequence[Event], depth: int) -> Diagram:
        items: list[Event | Forked] = []
        waiting = list(events)
        branches = [branch for branch in self._program.all_branches if branch.of is type_]
        while True:
            if branches and depth < MOST_NESTED and self._chance.random() < (0.5 if waiting else 0.1):
                forked, waiting = self._fork(self._chance.choice(branches), may, waiting, depth)
                items.append(forked)
            if not waiting:
                return tuple(items)
            items.append(waiting.pop(self._next(waiting)))

    def _next(self, waiting: Sequence[Event]) -> int:
        """The place of an event that may come before those that wait before it."""
        place = min(self._chance.choice((0, 0, 1, 2)), len(waiting) - 1)
        while any(self._depends.depends(earlier, waiting[place]) for earlier in waiting[:place]):
            place -= 1
        return place

    def _fork(self, branch: Branch, may: TagSet, waiting: list[Event], depth: int) -> tuple[Forked, list[Event]]:
        tags = self._two_sets(branch, may)
        sides: tuple[list[Event], list[Event]] = ([], [])
        later: list[Event] = []
        last = self._chance.randint(min(1, len(waiting)), len(waiting))
        for place, event in enumerate(waiting):
            open_to = [side for side, allowed in zip(sides, tags, strict=True) if allowed.holds(event)]
            if place < last and open_to and not any(self._depends.depends(each, event) for each in later):
                self._chance.choice(open_to).append(event)
            else:
                later.append(event)
        types = (branch.left, branch.right)
        left, right = (self._wire(*each, depth + 1) for each in zip(types, tags, sides, strict=True))
        return Forked(branch, tags, (left, right)), later

    def _two_sets(self, branch: Branch, may: TagSet) -> tuple[TagSet, TagSet]:
        """Two sets of tags, each of the one independent of each of the other."""
        types = (branch.left, branch.right)
        parts = [part for part in self._parts(types) if may.covers(TagSet([part]))]
        self._chance.shuffle(parts)
        found: list[TagSet] = [TagSet(()), TagSet(())]
        for part in parts:
            for side in self._chance.choice(((0,), (1,), (0, 1), (0, 1), (1, 0), (1, 0), ())):
                wanted = TagSet([part])
                fits = types[side].handles.covers(wanted)
                if fits and independent_tags(self._depends, wanted, found[1 - side]):
                    found[side] |= wanted
        return found[0], found[1]

    def _parts(self, types: Iterable[StateType]) -> list[Tags]:
        """What sets are made of: single tags, whole kinds, shares of all keys, what a type takes."""
        program = self._program
        form = self._chance.choice(("single", "single", "whole", "shares", "types"))
        if form == "whole":
            return [Tags(kind) for kind in program.takes]
        if form == "types":
            return list(dict.fromkeys(part for type_ in types for part in type_.handles.parts))
        if form == "shares":
            fields = sorted({name for kind in program.takes for name in _shared(program, kind)})
            if fields:
                name = self._chance.choice(fields)
                kinds = [kind for kind in program.takes if name in _shared(program, kind)]
                shares = [Tags(kind, ((name, Bucket(index, 2)),)) for kind in kinds for index in range(2)]
                return shares + [Tags(kind) for kind in program.takes if kind not in kinds]
        return list(self._tags)


def _listed(part: Tags) -> list[Any]:
    return [value for _, values in part.fields if isinstance(values, frozenset) for value in values]


def _shared(program: ForkJoin, kind: Kind) -> list[str]:
    """The fields of its tags by which keys can be shared out."""
    plain = {name: without_annotation(without_none(declared)[0]) for name, declared in kind.fields.items()}
    return [name for name in program.tag_fields(kind) if plain[name] in (int, str, bool, date)]


# -- made small ------------------------------------------------------------------------------------------------------


def is_possible(program: ForkJoin, diagram: Diagram) -> bool:
    """Whether workers may do this: tags are where they may be, and events that depend on each other in their order."""
    if not _fits(program, diagram, program.state_types[0], program.all_tags):
        return False
    events = events_of(diagram)
    keys = [program.key(event) for event in events]
    return not any(
        keys[later] < keys[earlier] and program.depends.depends(events[earlier], events[later])
        for later in range(len(events))
        for earlier in range(later)
    )


def _fits(program: ForkJoin, diagram: Diagram, type_: StateType, may: TagSet) -> bool:
    for item in diagram:
        if isinstance(item, Event):
            if not may.holds(item):
                return False
            continue
        types, tags = (item.branch.left, item.branch.right), item.tags
        if item.branch.of is not type_ or not independent_tags(program.depends, *tags):
            return False
        for child, allowed, side in zip(types, tags, item.sides, strict=True):
            if not (may.covers(allowed) and child.handles.covers(allowed) and _fits(program, side, child, allowed)):
                return False
    return True


def smaller(diagram: Diagram) -> Iterator[Diagram]:
    """With a fork less, an event less, or a tag less."""
    for place, item in enumerate(diagram):
        before, after = diagram[:place], diagram[place + 1 :]
        if isinstance(item, Event):
            yield (*before, *after)
            continue
        yield (*before, *after)
        yield (*before, *item.sides[0], *item.sides[1], *after)
        for one in (0, 1):
            for side in smaller(item.sides[one]):
                yield (*before, dataclasses.replace(item, sides=_with(item.sides, one, side)), *after)
            for left_out in item.tags[one].parts:
                kept = TagSet(part for part in item.tags[one].parts if part != left_out)
                yield (*before, dataclasses.replace(item, tags=_with(item.tags, one, kept)), *after)


def simpler(program: ForkJoin, diagram: Diagram, source: Source) -> Iterator[Diagram]:
    """With a simpler event, or with a simpler value of a tag wherever it is."""
    for event in dict.fromkeys(events_of(diagram)):
        for other in source.simpler_events(event):
            for name in program.tag_fields(event.kind):
                if getattr(other, name) != getattr(event, name):
                    yield _renamed(program, diagram, name, getattr(event, name), getattr(other, name))
    yield from _with_simpler_events(diagram, source)


def _with_simpler_events(diagram: Diagram, source: Source) -> Iterator[Diagram]:
    for place, item in enumerate(diagram):
        before, after = diagram[:place], diagram[place + 1 :]
        if isinstance(item, Event):
            for event in source.simpler_events(item):
                yield (*before, event, *after)
            continue
        for one in (0, 1):
            for side in _with_simpler_events(item.sides[one], source):
                yield (*before, dataclasses.replace(item, sides=_with(item.sides, one, side)), *after)


def _renamed(program: ForkJoin, diagram: Diagram, name: str, old: Any, new: Any) -> Diagram:
    """The same diagram with another value in the tags."""

    def of_part(part: Tags) -> Tags:
        values = part.values(name)
        if not isinstance(values, frozenset) or old not in values:
            return part
        changed = values - {old} | {new}
        return Tags(part.kind, tuple((each, changed if each == name else v) for each, v in part.fields))

    def of_item(item: Event | Forked) -> Event | Forked:
        if isinstance(item, Event):
            has_it = name in program.tag_fields(item.kind) and getattr(item, name) == old
            return item.replace(**{name: new}) if has_it else item
        left, right = (TagSet(map(of_part, allowed.parts)) for allowed in item.tags)
        one, other = (tuple(map(of_item, side)) for side in item.sides)
        return Forked(item.branch, (left, right), (one, other))

    return tuple(map(of_item, diagram))


def _with(pair: tuple[Any, Any], place: int, new: Any) -> tuple[Any, Any]:
    return (new, pair[1]) if place == 0 else (pair[0], new)


# -- as code ---------------------------------------------------------------------------------------------------------


def code_of(program: ForkJoin, diagram: Diagram) -> str:
    """The lines of Python that run it, and the sequential program beside it."""
    lines = [
        f"print(program.run([{', '.join(map(repr, in_sequence(program, diagram)))}]))",
        "out = []",
        "state = program.init()",
        *_steps(program, diagram, program.state_types[0], "state", ""),
        "print(out)",
    ]
    return with_imports(program, lines)


def with_imports(program: ForkJoin, lines: Sequence[str]) -> str:
    """These lines, after those that bring the program and its kinds."""
    cls = type(program)
    module = sys.modules.get(cls.__module__)
    wanted = [(cls.__name__, cls), *((kind.name, kind) for kind in (*program.takes, *program.gives))]
    is_there = module is not None and module.__name__ != "__main__"
    found = [name for name, value in wanted if is_there and getattr(module, name, None) is value]
    own = [name for name, _ in wanted if name not in found]
    ours = [name for name in ("Bucket", "TagSet", "tags") if any(f"{name}(" in line for line in lines)]
    before = ["import datetime"] if any("datetime." in line for line in lines) else []
    before += ["from decimal import Decimal"] if any("Decimal(" in line for line in lines) else []
    before += [f"from streamtight import {', '.join(ours)}"] if ours else []
    before += [f"from {cls.__module__} import {', '.join(dict.fromkeys(found))}"] if found else []
    before += [f"# {', '.join(dict.fromkeys(own))}: as in your own code"] if own else []
    return "\n".join([*before, f"program = {cls.__name__}()", *lines])


def _steps(program: ForkJoin, diagram: Diagram, type_: StateType, state: str, prefix: str) -> Iterator[str]:
    for item in diagram:
        if isinstance(item, Event):
            yield f"{state} = {update_code(program, type_)}({state}, {item!r}, out.append)"
            continue
        branch, names = item.branch, (f"{prefix}left", f"{prefix}right")
        told = ", ".join(map(tags_code, item.tags))
        yield f"{names[0]}, {names[1]} = program.{branch.fork}({state}, {told})"
        for child, side, name in zip((branch.left, branch.right), item.sides, names, strict=True):
            yield from _steps(program, side, child, name, f"{name}_")
        yield f"{state} = program.{branch.join}({', '.join(names)})"


def update_code(program: ForkJoin, type_: StateType) -> str:
    """What the update function of a type is called."""
    return f"program.{type_.name}.update" if type_.update is not None else "program.update"


def tags_code(tags: TagSet) -> str:
    """A set of tags as it can be pasted."""
    return " | ".join(_part_code(part) for part in tags.parts) or "TagSet(())"


def _part_code(part: Tags) -> str:
    told = [part.kind.name]
    for name, values in part.fields:
        if isinstance(values, frozenset):
            listed = sorted(values, key=simplicity)
            told.append(f"{name}={{{', '.join(map(repr, listed))}}}")  # a bare None would mean any
        elif values is not None:
            told.append(f"{name}={values!r}")
    return f"tags({', '.join(told)})"
