"""Pipelines: processors connected by pipes, checked when they are built, and run push by push.

A pipeline is written as a function of its input pipes, where boxes stand for functions of pipes:

>>> import operator
>>> from streamtight.program.processor import CountDecimate, Cumulate, Fork, Apply
>>> @pipeline
... def first_and_third(numbers: int):
...     return CountDecimate(3)(numbers) + numbers
>>> first_and_third.run([3, 1, 4, 1, 5, 9, 2])
[6, 2, 6]

or as boxes with names and a text of pipes, as it would be drawn:

>>> drawn = Pipeline.wired(
...     "in -> A; A.0 -> B; A.1 -> C.1; B -> C.0; C -> out", A=Fork(2), B=CountDecimate(3), C=Apply(operator.add)
... )
>>> drawn.run([3, 1, 4, 1, 5, 9, 2])
[6, 2, 6]
>>> [push.queues["C.1"] for push in drawn.pushes([3, 1, 4, 1])]
[(), (1,), (1, 4), (4, 1)]

A push brings at most one event to each input, and everything that follows from it happens at once. An output may lead
to several inputs, and each of these gets the event; `Fork` says the same with a box.
"""

from __future__ import annotations

import inspect
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from streamtight.errors import PipelineError
from streamtight.program.limits import Limited, Limits, Stopped
from streamtight.program.processor import (
    NOTHING,
    RULES,
    Apply,
    Filter,
    Group,
    Outs,
    Processor,
    Rules,
    State,
    TurnInto,
    Value,
    both,
    either,
)

Domain = Any
"""What an input carries: int, bool, `object` for anything, or the list of its values."""


class Port(NamedTuple):
    """An output of a box or an input of the pipeline; or an input of a box."""

    box: str
    place: int = 0


class _Stage(NamedTuple):
    """A box in the order of the pipes, as `push` meets it."""

    place: int
    name: str
    box: Processor
    sources: tuple[int, ...]
    """For each input, which of all outputs feeds it."""
    outputs: slice
    """Its own, among all outputs."""
    queues: tuple[int, ...]
    """The places of its queues; none if it has one input."""
    ports: tuple[str, ...]
    """The names of its inputs."""


class Pipeline:
    """Boxes and pipes. `inputs` are the names of its inputs with what they carry, `outputs` those of its outputs.

    boxes     the processors by their names
    feeds     for each input of a box, and for each output of the pipeline, where its events come from
    """

    def __init__(
        self,
        boxes: Mapping[str, Processor],
        feeds: Mapping[Port, Port],
        *,
        inputs: Mapping[str, Domain],
        outputs: Mapping[str, Port],
        name: str = "pipeline",
    ) -> None:
        self.boxes = dict(boxes)
        self.feeds = dict(feeds)
        self.inputs = {each: _domain(given, f"the input {each!r} of {name}") for each, given in inputs.items()}
        self.outputs = dict(outputs)
        self.name = name
        self._check()

    # -- how it is written -------------------------------------------------------------------------------------------

    @classmethod
    def wired(
        cls,
        pipes: str,
        /,
        *,
        takes: Mapping[str, Domain] | None = None,
        gives: Sequence[str] = ("out",),
        name: str = "pipeline",
        **boxes: Processor | Pipeline,
    ) -> Pipeline:
        """The pipeline of these boxes, and of pipes such as `in -> A; A.0 -> B; B -> out`.

        A number after a dot is a port, from 0; it can be left out where there is one. An arrow can lead on:
        `in -> A -> B -> out`.
        """
        inputs = {"in": int} if takes is None else dict(takes)
        made = {each: Group(box) if isinstance(box, Pipeline) else box for each, box in boxes.items()}
        for each, box in made.items():
            if not isinstance(box, Processor):
                raise PipelineError(
                    f"{name}: {each}", needed="a processor or a pipeline", came=repr(box), hint=f"{each}=Fork(2)"
                )
        feeds: dict[Port, Port] = {}
        outputs: dict[str, Port] = {}
        for source, target in _arrows(pipes, name):
            begin = _port(source, made, inputs, name, "begins", gives)
            if target in gives:
                if target in outputs:
                    raise _twice(name, target)
                outputs[target] = begin
                continue
            end = _port(target, made, gives, name, "ends", inputs)
            if end in feeds:
                raise _twice(name, target)
            feeds[end] = begin
        for each in gives:
            if each not in outputs:
                raise PipelineError(name, needed=f"a pipe to the output {each!r}", came="none", hint=f"'... -> {each}'")
        return cls(made, feeds, inputs=inputs, outputs=outputs, name=name)

    def _check(self) -> None:
        """Names told apart, ports that exist, every port connected, no cycle, types that fit."""
        where = self.name
        names = [*self.inputs, *self.boxes]
        for each in names:
            if not _NAME.fullmatch(each) or names.count(each) > 1:
                raise PipelineError(where, needed="a name of its own for each box and input", came=each, hint="'a_1'")
        for each in self.outputs:
            if not _NAME.fullmatch(each) or (each in names and self.outputs[each] != Port(each)):
                raise PipelineError(where, needed="a name of its own for each output", came=each, hint="'out'")
        if not self.inputs or not self.outputs:
            missing = "inputs" if not self.inputs else "outputs"
            raise PipelineError(where, needed="an input and an output", came=f"no {missing}", hint="'in -> A -> out'")
        used = {*self.feeds.values(), *self.outputs.values()}
        for port in used:
            if port not in self._output_places:
                raise PipelineError(
                    where, needed=f"an output of {port.box}", came=f"{port.box}.{port.place}", hint=_ports(self, port)
                )
        for each, box in self.boxes.items():
            for place in range(box.inputs):
                if Port(each, place) not in self.feeds:
                    raise PipelineError(
                        where,
                        needed=f"a pipe to every input of {each} ({box})",
                        came=f"input {place} connected to nothing",
                        hint=f"'... -> {self.input_name(Port(each, place))}'",
                    )
        for port in self.feeds:
            if port.box not in self.boxes or port.place >= self.boxes[port.box].inputs:
                raise PipelineError(where, needed="inputs of boxes", came=f"{port.box}.{port.place}", hint="'A.0'")
        for port in self._output_places:
            if port not in used:
                raise PipelineError(
                    where,
                    needed=f"a pipe from {self.pipe_name(port)}" if port.box in self.boxes else "every input used",
                    came=f"output {port.place} of {port.box} ({self.boxes[port.box]}) connected to nothing"
                    if port.box in self.boxes
                    else f"the input {port.box!r} connected to nothing",
                    hint=f"'{self.pipe_name(port)} -> ...', or leave it out",
                )
        self._check_order()
        for each, box in self.boxes.items():
            if isinstance(box, Filter):
                source = self.boxes.get(self.feeds[Port(each, 1)].box)
                made = type(source.value) if isinstance(source, TurnInto) else None
                carried = self.inputs.get(self.feeds[Port(each, 1)].box)
                if carried is int or (made is not None and made is not bool):
                    raise PipelineError(
                        f"{where}: {each}",
                        needed="True or False on the second input of Filter",
                        came=f"{'an input of whole numbers' if made is None else made.__name__}",
                        hint="a comparison before it",
                    )

    def _check_order(self) -> None:
        if len(self.order) < len(self.boxes):
            stuck = [each for each in self.boxes if each not in self.order]
            # Each of these waits for another of them: walking back from one runs into a circle.
            walk = [stuck[0]]
            while walk[-1] not in walk[:-1]:
                sources = (self.feeds[Port(walk[-1], place)].box for place in range(self.boxes[walk[-1]].inputs))
                walk.append(next(source for source in sources if source in stuck))
            circle = walk[walk.index(walk[-1]) :]
            raise PipelineError(
                self.name,
                needed="pipes that lead from the inputs to the outputs",
                came=f"a cycle: {' -> '.join(reversed(circle))}",
                hint="Cumulate, which remembers what it gave",
            )

    # -- what it is --------------------------------------------------------------------------------------------------

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The boxes, each after those that feed it; those in a cycle are missing."""
        done: dict[str, None] = dict.fromkeys(self.inputs)
        waiting = list(self.boxes)
        while waiting:
            ready = [
                each
                for each in waiting
                if all(self.feeds[Port(each, place)].box in done for place in range(self.boxes[each].inputs))
            ]
            if not ready:
                break
            done.update(dict.fromkeys(ready))
            waiting = [each for each in waiting if each not in done]
        return tuple(each for each in done if each not in self.inputs)

    @cached_property
    def _output_places(self) -> dict[Port, int]:
        """All outputs: those of the pipeline's inputs first."""
        ports = [Port(each) for each in self.inputs]
        ports += [Port(each, place) for each, box in self.boxes.items() for place in range(box.outputs)]
        return {port: number for number, port in enumerate(ports)}

    @cached_property
    def queues(self) -> dict[str, Port]:
        """The inputs that have a queue: those of boxes with several inputs."""
        return {
            self.input_name(Port(each, place)): Port(each, place)
            for each, box in self.boxes.items()
            if box.inputs > 1
            for place in range(box.inputs)
        }

    @cached_property
    def pipes(self) -> dict[str, Port]:
        """What can be asked about by name: inputs, outputs of boxes, outputs of the pipeline."""
        named = {self.pipe_name(port): port for port in self._output_places}
        return {**named, **self.outputs}

    def pipe_name(self, port: Port) -> str:
        """What the pipe from here is called."""
        outputs = self.boxes[port.box].outputs if port.box in self.boxes else 1
        return port.box if outputs == 1 else f"{port.box}.{port.place}"

    def input_name(self, port: Port) -> str:
        """What an input of a box is called."""
        return port.box if self.boxes[port.box].inputs == 1 else f"{port.box}.{port.place}"

    @cached_property
    def _stages(self) -> tuple[_Stage, ...]:
        places = {each: number for number, each in enumerate(self.boxes)}
        queues = {port: number for number, port in enumerate(self.queues.values())}
        stages = []
        for each in self.order:
            box = self.boxes[each]
            ports = [Port(each, place) for place in range(box.inputs)]
            first = self._output_places[Port(each)] if box.outputs else 0
            stages.append(
                _Stage(
                    places[each],
                    each,
                    box,
                    tuple(self._output_places[self.feeds[port]] for port in ports),
                    slice(first, first + box.outputs),
                    tuple(queues[port] for port in ports if box.inputs > 1),
                    tuple(map(self.input_name, ports)),
                )
            )
        return tuple(stages)

    def __repr__(self) -> str:
        return f"<pipeline {self.name}: {len(self.boxes)} boxes, {len(self.feeds) + len(self.outputs)} pipes>"

    def __call__(self, *pipes: Any, name: str | None = None) -> Any:
        """This pipeline as a box at the end of these pipes."""
        return attached(Group(self), pipes, name)

    # -- how it runs -------------------------------------------------------------------------------------------------

    def start(self) -> State:
        """The state before the first push: that of each box, and what waits in each queue."""
        return tuple(box.start() for box in self.boxes.values()), ((),) * len(self.queues)

    def push(
        self, state: State, front: tuple[Value, ...], rules: Rules = RULES, *, ends: bool = False
    ) -> tuple[State, Outs]:
        """The state after one push, and what comes out: for each output an event, or NOTHING.

        front   an event, or NOTHING, for each input
        ends    whether the streams end with it
        """
        boxes, queues = list(state[0]), list(state[1])
        carried: list[Value] = [NOTHING] * len(self._output_places)
        carried[: len(front)] = front
        try:
            self._advance(boxes, queues, carried, rules, ends)
        finally:  # what was carried is worth seeing also if it stopped half way
            rules.saw({self.pipe_name(port): event for port, event in zip(self._output_places, carried, strict=True)})
        outs = tuple(rules.passed(each, carried[self._output_places[port]]) for each, port in self.outputs.items())
        return (tuple(boxes), tuple(queues)), outs

    def _advance(
        self, boxes: list[State], queues: list[tuple[Value, ...]], carried: list[Value], rules: Rules, ends: bool
    ) -> None:
        """One push, box by box."""
        for stage in self._stages:
            arrived = [
                rules.passed(port, carried[source]) for port, source in zip(stage.ports, stage.sources, strict=True)
            ]
            box = stage.box
            if stage.queues:
                for queue, event in zip(stage.queues, arrived, strict=True):
                    if event is not NOTHING:
                        queues[queue] = (*queues[queue], event)
                is_ready = all(queues[queue] for queue in stage.queues)
                if is_ready:
                    arrived = [queues[queue][0] for queue in stage.queues]
                    for queue in stage.queues:
                        queues[queue] = queues[queue][1:]
                for queue, port in zip(stage.queues, stage.ports, strict=True):
                    queues[queue] = rules.kept(port, queues[queue])
            else:
                is_ready = arrived[0] is not NOTHING
            is_end = ends and box.acts_at_end
            if is_ready or is_end:
                boxes[stage.place], carried[stage.outputs] = self._stepped(
                    stage, boxes[stage.place], tuple(arrived) if is_ready else (), rules, is_end
                )

    def _stepped(
        self, stage: _Stage, state: State, front: tuple[Value, ...], rules: Rules, is_end: bool
    ) -> tuple[State, Outs]:
        act = stage.box.end if is_end else stage.box.step
        try:
            state, outs = act(state, front, rules.inside(stage.name))
        except Stopped as stopped:
            # A queue is told with its whole path; a box, box by box on the way out.
            if stopped.kind == "QUEUE_OVERFLOW":
                raise
            where = f"{stage.name}.{stopped.where}" if stopped.where else stage.name
            raise Stopped(stopped.kind, where, stopped.text) from stopped.__cause__
        except PipelineError as error:
            raise PipelineError(
                f"{self.name}: {stage.name}: {error.where}", needed=error.needed, came=error.came, hint=error.hint
            ) from error
        except Exception as error:  # the border of user code: told with the box and what it was given
            given = ", ".join(map(repr, front))
            text = f"{stage.box} raises {type(error).__name__} for {given}: {error}"
            raise Stopped("RAISES", stage.name, text) from error
        if not isinstance(outs, tuple) or len(outs) != stage.box.outputs:
            raise PipelineError(
                f"{self.name}: {stage.name}",
                needed=f"{stage.box.outputs} values of {stage.box}",
                came=repr(outs),
                hint="return a tuple with one value for each output",
            )
        return state, outs

    def waiting(self, state: State) -> dict[str, tuple[Value, ...]]:
        """What waits in each queue, also in those of groups."""
        found = dict(zip(self.queues, state[1], strict=True))
        for (name, box), inner in zip(self.boxes.items(), state[0], strict=True):
            if isinstance(box, Group):
                found.update((f"{name}.{queue}", held) for queue, held in box.pipeline.waiting(inner).items())
        return found

    def run(self, events: Iterable[Any], *, ends: bool = False, limits: Limits | None = None) -> Any:
        """What comes out for these events: a list, or a dict of lists if there are several outputs.

        events   one for each push. With several inputs: a tuple with one for each, or a dict by names. NOTHING is no
                 event
        ends     whether the stream ends after them
        """
        given: dict[str, list[Value]] = {each: [] for each in self.outputs}
        for push in self.pushes(events, ends=ends, limits=limits):
            if push.stopped is not None:
                raise PipelineError(
                    f"{self.name}: {push.stopped.where} at push {push.number}",
                    needed="a step",
                    came=push.stopped.text,
                    hint="look at the events: [push.given for push in pipeline.pushes(events)]",
                ) from push.stopped.__cause__
            for each, out in push.outs.items():
                if out is not NOTHING:
                    given[each].append(out)
        return given if len(given) > 1 else next(iter(given.values()))

    def pushes(self, events: Iterable[Any], *, ends: bool = False, limits: Limits | None = None) -> Iterator[Push]:
        """The run push by push: what went in, what each pipe carried, what each queue and box held afterwards."""
        given = [*self.fronts(events), *([Front((NOTHING,) * len(self.inputs), ends=True)] if ends else [])]
        state, limits = self.start(), limits or Limits()
        for number, front in enumerate(given, 1):
            rules = Limited(limits, leaks=front.leaks)
            stopped, outs = None, (NOTHING,) * len(self.outputs)
            if front.resets:
                state = self.start()
            else:
                try:
                    state, outs = self.push(state, front.events, rules, ends=front.ends)
                except Stopped as error:
                    stopped = error
            yield Push(
                number,
                front,
                dict(zip(self.inputs, front.events, strict=True)),
                rules.seen,
                dict(zip(self.outputs, outs, strict=True)),
                self.waiting(state),
                dict(zip(self.boxes, state[0], strict=True)),
                stopped,
            )
            if stopped is not None:
                return

    def fronts(self, events: Iterable[Any]) -> list[Front]:
        """What users give as events, push by push."""
        return [self._front(given, number) for number, given in enumerate(events, 1)]

    def _front(self, given: Any, number: int) -> Front:
        if isinstance(given, Front):
            return given
        names = list(self.inputs)
        where = f"{self.name}.run(events), push {number}"
        if isinstance(given, dict) and len(names) > 1:
            unknown = [each for each in given if each not in self.inputs]
            if unknown:
                raise PipelineError(
                    where, needed=f"inputs among {', '.join(names)}", came=repr(unknown[0]), hint=names[0]
                )
            return Front(tuple(given.get(each, NOTHING) for each in names))
        if len(names) == 1:
            return Front((given,))
        if not isinstance(given, tuple) or len(given) != len(names):
            raise PipelineError(
                where,
                needed=f"a tuple with an event for each of {', '.join(names)}, or a dict",
                came=repr(given),
                hint=f"({', '.join('NOTHING' if place else '1' for place in range(len(names)))})",
            )
        return Front(given)

    def picture(self, push: Push | None = None, *, mark: str | None = None) -> str:
        """The pipeline as SVG; with a push, what each pipe carries in it and what waits in each queue after it.

        mark   a box, a pipe or a queue to point at
        """
        from streamtight.program.pipeline_picture import picture

        return picture(self, push, mark)

    def _repr_html_(self) -> str:
        return self.picture()


@dataclass(frozen=True, slots=True, repr=False)
class Front:
    """What one push brings: an event or NOTHING for each input; and whether streams end, events leak, all resets.

    leaks   the inputs of boxes, or outputs of the pipeline, before which an event is lost
    """

    events: tuple[Value, ...]
    leaks: frozenset[str] = frozenset()
    ends: bool = False
    resets: bool = False

    def __repr__(self) -> str:
        parts = [repr(self.events)]
        parts += [f"leaks=frozenset({sorted(self.leaks)!r})"] if self.leaks else []
        parts += [f"{name}=True" for name in ("ends", "resets") if getattr(self, name)]
        return f"Front({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class Push:
    """One push of a run: what went in, what the pipes carried, what came out, what was held afterwards."""

    number: int
    front: Front
    given: Mapping[str, Value]
    pipes: Mapping[str, Value]
    outs: Mapping[str, Value]
    queues: Mapping[str, tuple[Value, ...]]
    states: Mapping[str, State] = field(repr=False)
    stopped: Stopped | None = None
    """Why it could not be done, if so."""

    def __contains__(self, pipe: str) -> bool:
        """Whether a pipe carries an event, by its name."""
        return self[pipe] is not NOTHING

    def __getitem__(self, pipe: str) -> Value:
        """What a pipe carries, by its name: an event, or NOTHING."""
        for carried in (self.outs, self.pipes, self.given):
            if pipe in carried:
                return carried[pipe]
        if self.front.resets or self.stopped is not None:
            return NOTHING
        known = ", ".join(dict.fromkeys((*self.given, *self.pipes, *self.outs)))
        raise PipelineError(f"push[{pipe!r}]", needed=f"one of {known}", came=repr(pipe), hint=next(iter(self.outs)))


def beside(left: Pipeline, right: Pipeline, *, joined: Processor | None = None) -> Pipeline:
    """Two pipelines that get the same events (Figure 4a of the paper): outputs are those of both; or, with `joined`,
    what that box makes of each pair of them (Figure 4b).
    """
    if list(left.inputs.items()) != list(right.inputs.items()) or len(left.outputs) != len(right.outputs):
        raise PipelineError(
            f"{left.name} and {right.name}",
            needed="two pipelines with the same inputs, and as many outputs",
            came=f"{_ends(left)}; and {_ends(right)}",
            hint="the same names and types of inputs",
        )
    boxes: dict[str, Processor] = {}
    feeds: dict[Port, Port] = {}
    ends: dict[str, list[Port]] = {}

    def free(word: str) -> str:
        return word if not any(name.startswith(word) for name in left.inputs) else free(f"{word}_")

    join = free("joined")
    for side, each in ((free("left"), left), (free("right"), right)):

        def moved(port: Port, side: str = side, each: Pipeline = each) -> Port:
            return port if port.box in each.inputs else Port(f"{side}_{port.box}", port.place)

        boxes |= {f"{side}_{name}": box for name, box in each.boxes.items()}
        feeds |= {moved(target): moved(source) for target, source in each.feeds.items()}
        ends[side] = [moved(port) for port in each.outputs.values()]
    names = [""] if len(left.outputs) == 1 else [f"_{name}" for name in left.outputs]
    outputs = {f"{side}{name}": port for side in ends for name, port in zip(names, ends[side], strict=True)}
    if joined is not None:
        for name, *pair in zip(names, *ends.values(), strict=True):
            boxes[join + name] = joined
            feeds |= {Port(join + name, place): port for place, port in enumerate(pair)}
        outputs = {join + name: Port(join + name) for name in names}
    return Pipeline(boxes, feeds, inputs=left.inputs, outputs=outputs, name=f"{left.name} beside {right.name}")


def _ends(pipeline: Pipeline) -> str:
    inputs = ", ".join(
        f"{name} ({given.__name__ if isinstance(given, type) else given})" for name, given in pipeline.inputs.items()
    )
    return f"{pipeline.name} takes {inputs} and gives {', '.join(pipeline.outputs)}"


# -- pipes, to write with --------------------------------------------------------------------------------------------


class Pipe:
    """The end of a pipe, while a pipeline is written. Arithmetic and comparisons of pipes are boxes."""

    __hash__ = object.__hash__

    def __init__(self, draft: _Draft, port: Port) -> None:
        self.draft, self.port = draft, port

    def __invert__(self) -> Any:
        return Apply(operator.not_)(self)

    def __neg__(self) -> Any:
        return Apply(operator.neg)(self)

    def __abs__(self) -> Any:
        return Apply(operator.abs)(self)

    def __bool__(self) -> bool:
        raise PipelineError(
            f"the pipe {self.port.box}",
            needed="events, before it is true or false",
            came="a pipe where True or False was wanted",
            hint="&, | and ~ instead of and, or and not; Filter()(events, condition) instead of if",
        )

    def __iter__(self) -> Iterator[Any]:
        raise PipelineError(
            f"the pipe {self.port.box}",
            needed="one pipe",
            came="a pipe where several were wanted",
            hint="Fork(2)(pipe)",
        )


def _operator(function: Callable[..., Any], *, swapped: bool = False) -> Callable[[Pipe, object], Pipe]:
    def applied(self: Pipe, other: object) -> Pipe:
        pipe = other if isinstance(other, Pipe) else TurnInto(other)(self)
        made: Pipe = Apply(function)(*((pipe, self) if swapped else (self, pipe)))
        return made

    return applied


for _name, _function in {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "and": both,
    "or": either,
}.items():
    setattr(Pipe, f"__{_name}__", _operator(_function))
    setattr(Pipe, f"__r{_name}__", _operator(_function, swapped=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Pipe, f"__{_name}__", _operator(getattr(operator, _name)))
del _name, _function


class _Draft:
    """A pipeline that is being written."""

    def __init__(self, inputs: Iterable[str]) -> None:
        self.boxes: dict[str, Processor] = {}
        self.feeds: dict[Port, Port] = {}
        self.inputs = list(inputs)

    def add(self, box: Processor, pipes: Sequence[Pipe], name: str | None = None) -> Any:
        taken = {*self.boxes, *self.inputs}
        if name is None:
            word = _WORDS.get(str(box), type(box).__name__.lower())
            names = (word, *(f"{word}_{number}" for number in range(2, len(taken) + 3)))
            name = next(each for each in names if each not in taken)
        elif name in taken or not _NAME.fullmatch(name):
            raise PipelineError(f"name={name!r}", needed="a name of its own", came=repr(name), hint="name='totals'")
        self.boxes[name] = box
        for place, pipe in enumerate(pipes):
            self.feeds[Port(name, place)] = pipe.port
        ends = tuple(Pipe(self, Port(name, place)) for place in range(box.outputs))
        return ends if box.outputs > 1 else ends[0]


def attached(box: Processor, pipes: Sequence[object], name: str | None = None) -> Any:
    """A box at the end of these pipes; called when it is written as a function of them."""
    if len(pipes) != box.inputs or not all(isinstance(pipe, Pipe) for pipe in pipes):
        raise PipelineError(
            f"{type(box).__name__}(...)(pipes)",
            needed="1 pipe" if box.inputs == 1 else f"{box.inputs} pipes",
            came=", ".join("a pipe" if isinstance(pipe, Pipe) else repr(pipe) for pipe in pipes) or "none",
            hint="the parameters of a function under @tight.pipeline are pipes",
        )
    draft = pipes[0].draft  # type: ignore[attr-defined]
    if any(pipe.draft is not draft for pipe in pipes):  # type: ignore[attr-defined]
        raise PipelineError(
            f"{type(box).__name__}(...)(pipes)",
            needed="pipes of one pipeline",
            came="pipes of two",
            hint="a pipeline can be called with pipes, as a box",
        )
    return draft.add(box, pipes, name)


def pipeline(written: Callable[..., Any]) -> Pipeline:
    """The pipeline that a function of pipes writes: parameters are its inputs, annotations say what they carry (int,
    bool, or a list of values), and it returns a pipe, or a dict of pipes by the names of outputs.
    """
    name = getattr(written, "__name__", "pipeline")
    parameters = inspect.signature(written, eval_str=True).parameters
    inputs = {each.name: int if each.annotation is each.empty else each.annotation for each in parameters.values()}
    draft = _Draft(inputs)
    given = written(*(Pipe(draft, Port(each)) for each in inputs))
    outputs = given if isinstance(given, dict) else {"out": given}
    if isinstance(given, tuple):
        outputs = {f"out{place}": each for place, each in enumerate(given)}
    for each, pipe in outputs.items():
        if not isinstance(pipe, Pipe) or pipe.draft is not draft:
            raise PipelineError(
                name, needed=f"a pipe as its output {each!r}", came=repr(pipe), hint="return CountDecimate(3)(numbers)"
            )
    return Pipeline(
        draft.boxes,
        draft.feeds,
        inputs=inputs,
        outputs={each: pipe.port for each, pipe in outputs.items()},
        name=name if name != "<lambda>" else "pipeline",
    )


# -- reading the text of pipes ---------------------------------------------------------------------------------------

_NAME = re.compile(r"[^\W\d]\w*")
_WORDS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "//": "divide",
    "%": "modulo",
    "=": "equal",
    "≠": "unequal",
    "<": "less",
    "≤": "at_most",
    ">": "more",
    "≥": "at_least",
    "→": "implies",
    "Σ": "total",
    "and": "both",
    "or": "either",
    "not": "negated",
    "if": "choose",
}


def _arrows(text: str, name: str) -> Iterator[tuple[str, str]]:
    for statement in re.split(r"[;\n]", text):
        parts = [part.strip() for part in statement.split("->")]
        if parts == [""]:
            continue
        if len(parts) < 2 or not all(re.fullmatch(r"[^\W\d]\w*(\.\d+)?", part) for part in parts):
            raise PipelineError(
                name, needed="pipes such as 'A.0 -> B'", came=repr(statement.strip()), hint="'in -> A; A -> out'"
            )
        yield from itertools.pairwise(parts)


def _port(
    text: str,
    boxes: Mapping[str, Processor],
    ends: Iterable[str],
    name: str,
    what: str,
    others: Iterable[str],
) -> Port:
    """The port that a text means, where a pipe begins or ends."""
    box, _, place = text.partition(".")
    known = [*boxes, *ends]
    if box not in boxes:
        if what == "begins" and box in set(ends) and not place:
            return Port(box)
        raise PipelineError(
            f"{name}: {text}",
            needed=f"where a pipe {what}: one of {', '.join(known)}",
            came=f"{box!r}, where pipes {'end' if what == 'begins' else 'begin'}" if box in set(others) else repr(box),
            hint=f"{box}=... for a box, takes= for inputs, gives= for outputs",
        )
    count = boxes[box].outputs if what == "begins" else boxes[box].inputs
    if not place and count == 1:
        return Port(box)
    if not place or int(place) >= count:
        side = "output" if what == "begins" else "input"
        raise PipelineError(
            f"{name}: {text}",
            needed=f"one of the {count} {side}s of {box} ({boxes[box]})",
            came=f"{side} {place}" if place else "no number",
            hint=f"{box}.0" if count > 1 else box,
        )
    return Port(box, int(place))


def _twice(name: str, target: str) -> PipelineError:
    return PipelineError(
        f"{name}: {target}", needed="one pipe to each input", came="two", hint="Apply(...) or Filter() to join two"
    )


def _ports(pipeline: Pipeline, port: Port) -> str:
    box = pipeline.boxes.get(port.box)
    return "the name of an input or a box" if box is None else f"{port.box}.0 to {port.box}.{box.outputs - 1}"


def _domain(given: Domain, where: str) -> Domain:
    if isinstance(given, type) and given in (int, bool, object):
        return given
    if isinstance(given, (list, tuple, set, frozenset, range)) and given:
        return distinct(sorted(given, key=repr) if isinstance(given, (set, frozenset)) else given, where)
    raise PipelineError(
        where, needed="int, bool, object, or a list of values", came=repr(given), hint="takes={'in': int}"
    )


def distinct(values: Iterable[Value], where: str) -> tuple[Value, ...]:
    """These values, each once. Those that could not be told apart, or not from themselves, are refused."""
    known: dict[Value, Value] = {}
    for value in values:
        try:
            first = known.setdefault(value, value)
        except TypeError:
            raise PipelineError(where, needed="values that have a hash", came=repr(value), hint="('a', 1)") from None
        if type(first) is not type(value) or repr(first) != repr(value) or value != value:
            came = f"{first!r} and {value!r}" if first is not value else repr(value)
            raise PipelineError(where, needed="values that Python tells apart", came=came, hint="names instead")
    return tuple(known)
