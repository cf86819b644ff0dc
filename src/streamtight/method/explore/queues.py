"""How many events must each queue be able to hold?

>>> import operator
>>> from streamtight.program.pipeline import Pipeline
>>> from streamtight.program.processor import Apply, CountDecimate, Fork
>>> figure_2a = Pipeline.wired(
...     "in -> A; A.0 -> B; A.1 -> C.1; B -> C.0; C -> out", A=Fork(2), B=CountDecimate(3), C=Apply(operator.add)
... )
>>> print(smallest_queues(figure_2a))
C.0  0
C.1  no size is enough: it grows by 2 with every 3 pushes, after push 2
(the other sizes hold as long as C.1 has at most 32 events)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamtight.errors import PipelineError
from streamtight.method.explore.build import World, model_of
from streamtight.method.explore.compiled import System, TooManyChoices, compiled
from streamtight.method.explore.search import Budget, Complete, Exhausted, Reached, invariant
from streamtight.method.explore.tell import fronts_of
from streamtight.program.limits import Integers, Limits, modulo
from streamtight.program.model import Model
from streamtight.program.pipeline import Front, Pipeline


@dataclass(frozen=True)
class QueueSizes:
    """How many events wait in each queue at most.

    sizes      for each queue the smallest size that is enough; None if none is known to be
    grows      for queues that grow for ever: by how many events with how many pushes, and after which push
    reason     why sizes are not known, or hold only as far as was looked
    at_least   for queues of which no size is known: how long they were seen
    shows      for each queue, a shortest run after which so many events wait
    """

    sizes: Mapping[str, int | None]
    grows: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    reason: str = ""
    at_least: Mapping[str, int] = field(default_factory=dict)
    shows: Mapping[str, Sequence[Front]] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        width = max(map(len, self.sizes), default=0)
        lines = []
        for name, size in self.sizes.items():
            if name in self.grows:
                by, pushes, after = self.grows[name]
                every = "every push" if pushes == 1 else f"every {pushes} pushes"
                told = f"no size is enough: it grows by {by} with {every}, after push {after}"
            else:
                seen = f", at least {self.at_least[name]}" if name in self.at_least else ""
                told = f"not known{seen}" if size is None else str(size)
            lines.append(f"{name:{width}}  {told}")
        return "\n".join([*lines, *([f"({self.reason})"] if self.reason else [])]) or "no queues"


def smallest_queues(
    pipeline: Pipeline,
    *,
    most: int = 32,
    domain: int | Integers = 4,
    inputs: Mapping[str, Sequence[Any]] | None = None,
    pauses: bool = False,
    together: bool = False,
    states: int = 1_000_000,
    seconds: float = 60.0,
) -> QueueSizes:
    """The smallest size of each queue that is enough for every stream; and which queues grow for ever.

    most   queues are followed up to this length
    The other options are those of `explore`.
    """
    if type(most) is not int or most < 1:
        raise PipelineError("smallest_queues(most=...)", needed="a length from 1 on", came=repr(most), hint="most=32")
    integers = domain if isinstance(domain, Integers) else modulo(domain)
    listed = {name: tuple(values) for name, values in (inputs or {}).items()}
    world = World(Limits(most, integers=integers), pauses, together, inputs=listed)
    model = model_of(pipeline, world)
    if not model.queues:
        return QueueSizes({})
    # That a function raises ends a run early; so sizes that are enough without that are enough with it.
    model = replace(model, stops=tuple(stop for stop in model.stops if stop.kind != "RAISES"))
    budget = Budget(states, seconds)
    sizes: dict[str, int | None] = dict.fromkeys(model.queues)
    shows: dict[str, Sequence[Front]] = {}
    try:
        return _searched(pipeline, world, model, sizes, shows, budget)
    except TooManyChoices as too_many:
        return QueueSizes(sizes, reason=str(too_many))


def _searched(
    pipeline: Pipeline,
    world: World,
    model: Model,
    sizes: dict[str, int | None],
    shows: dict[str, Sequence[Front]],
    budget: Budget,
) -> QueueSizes:
    terms = model.terms
    grows: dict[str, tuple[int, int, int]] = {}
    reason, cut_off = "", []
    at_least: dict[str, int] = {}
    for name, queue in model.queues.items():
        size = 0
        while True:
            more = terms.at_most(terms.constant(size + 1), queue.length)
            system = compiled(model, [more])
            found = invariant(system, bad=1, budget=budget)
            if isinstance(found, Reached):
                path = [system.choices[number] for number in found.path]
                shows[name] = fronts_of(pipeline, world, path)
                size = _length(system, found, name)
                if size < world.limits.queue:  # type: ignore[operator]
                    continue
                pumped = _pumped(system, found, name, model)
                if pumped is not None and _seen_to_grow(pipeline, shows[name], name, pumped):
                    grows[name] = pumped
                else:
                    at_least[name] = size
                    reason = reason or f"{name} comes to {size} events, and was not followed further"
            elif isinstance(found, Exhausted):
                reason = reason or f"{found.spent} were used up"
            elif isinstance(found, Complete):
                sizes[name] = size
                cut_off += [name] if found.stopped is not None else []
            break
    if grows and len(grows) < len(sizes):
        also = f"the other sizes hold as long as {', '.join(grows)} has at most {world.limits.queue} events"
        reason = f"{reason}; {also}" if reason else also
    elif cut_off and not reason:
        reason = "runs in which a number leaves its domain were not followed further"
    if any(size is None and name not in grows for name, size in sizes.items()):
        # Where a run was cut off at a queue of which nothing is known, the others may have grown later.
        at_least |= {name: size for name, size in sizes.items() if name in cut_off and size is not None}
        sizes |= dict.fromkeys(cut_off)
    return QueueSizes(sizes, grows, reason, at_least, shows)


def _length(system: System, found: Reached, name: str) -> int:
    """The length of a queue at the end of a run."""
    if f"{name}#" not in system.variables:
        return 1  # it cannot be longer
    length: int = found.step[1][system.variables.index(f"{name}#")]
    return length


def _seen_to_grow(pipeline: Pipeline, run: Sequence[Front], name: str, grows: tuple[int, int, int]) -> bool:
    """Whether the queue grows like that when the pipeline is run."""
    by, pushes, after = grows
    fronts = [*run[:after], *list(run[after : after + pushes]) * 3]
    seen = list(pipeline.pushes(fronts))
    if len(seen) < len(fronts) or seen[-1].stopped is not None or name not in seen[-1].queues:
        return False
    lengths = [0, *(len(push.queues[name]) for push in seen)]
    return [lengths[after + number * pushes] for number in range(4)] == [
        lengths[after] + number * by for number in range(4)
    ]


def _pumped(system: System, found: Reached, name: str, model: Model) -> tuple[int, int, int] | None:
    """How a queue grows for ever, if a run shows it: the same state but for longer queues, which were never empty in
    between. Boxes only ask whether a queue is empty, so the pushes in between can be repeated, and it grows again.
    """
    queues = {f"{each}#" for each in model.queues}
    if any(variable.is_data for variable in model.variables.values() if variable.name in system.variables):
        return None  # what waits in the queues matters, and is another thing each time
    states: list[Any] = [system.first]
    for number in found.path:
        states.append(next(after for choice, after, _, _ in system.steps(states[-1]) if choice == number))
    at = system.variables.index(f"{name}#")
    for end in range(len(states)):
        for begin in range(end - 1, -1, -1):
            before, after = states[begin], states[end]
            longer = [place for place in range(len(before)) if before[place] != after[place]]
            if (
                at in longer
                and all(system.variables[place] in queues and after[place] > before[place] for place in longer)
                and all(state[place] > 0 for state in states[begin : end + 1] for place in longer)
            ):
                return after[at] - before[at], end - begin, begin
    return None
