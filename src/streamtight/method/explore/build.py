"""Pipelines as models: what one push makes of every counter, queue and value.

>>> from streamtight.program.limits import Limits, modulo
>>> from streamtight.program.pipeline import Pipeline
>>> from streamtight.program.processor import Trim
>>> model = model_of(Pipeline.wired("in -> t -> out", t=Trim(1)), World(Limits(queue=3, integers=modulo(4))))
>>> for each in model.variables.values():
...     print(f"{each.name}: {each.domain}, first {each.first}, then {each.after}")
t: 0..1, first 0, then if t = 1 then t else (t + 1)
>>> print(model.pipes["out"].present)
t = 1

The step of a box is a function from terms to terms: its state before, what comes, its state after, what goes out. So a
window is its box applied to the states of windows that are one event younger, and needs no copies that take turns.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamtight.errors import PipelineError
from streamtight.program.limits import Limits
from streamtight.program.model import (
    BOOL,
    Bools,
    Choice,
    Domain,
    Model,
    Queue,
    Range,
    Signal,
    Stop,
    Table,
    Term,
    Terms,
    Variable,
    Wrap,
    domain_of,
    united,
)
from streamtight.program.pipeline import Pipeline, Port
from streamtight.program.processor import (
    Apply,
    CountDecimate,
    Cumulate,
    Filter,
    Fork,
    Freeze,
    Function,
    Group,
    Insert,
    Last,
    Passthrough,
    Processor,
    Slice,
    Trim,
    TurnInto,
    Value,
    Window,
    both,
    either,
    if_then_else,
    implies,
    is_even,
    is_odd,
    same_event,
)
from streamtight.program.watched import Watched
from streamtight.properties import term as read

MOST_CALLS = 100_000
"""A function that cannot be read is asked for each combination of values; more than this is refused."""
MOST_CONSTANT = 2**53
"""A function with larger numbers in it is not read, but asked."""
MOST_KEYS = 64
"""Keys of a slice, each of which has a run of its own."""


@dataclass(frozen=True, slots=True)
class World:
    """In what world a pipeline is explored: its limits, and what may happen in a step.

    pauses     a step may bring nothing at all
    together   a step brings events on all inputs, or on none
    ends       the streams may end, all at once
    resets     everything may start anew, without what was kept
    leaks      the ports before which an event may be lost
    """

    limits: Limits
    pauses: bool = False
    together: bool = False
    ends: bool = False
    resets: bool = False
    leaks: tuple[str, ...] = ()
    inputs: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    """The values of each input, where they are not all that the pipeline says."""
    watched: Watched | None = None
    """The system whose variables are the inputs."""


def model_of(pipeline: Pipeline, world: World, *, keeps_wraps: bool = False) -> Model:
    """The model of a pipeline in this world."""
    return _Builder(pipeline, world, Terms(keeps_wraps=keeps_wraps)).model()


@dataclass(frozen=True, slots=True)
class _Slot:
    """A variable that a box needs."""

    name: str
    domain: Domain
    first: Value
    is_data: bool


# No box or input can be called so.
ENDS, RESETS, MOVES = "(ends)", "(resets)", "(moves)"
"""Choices: the streams end, the pipeline starts anew, where the system goes."""
ENDED, SYSTEM = "(ended)", "(system)"
"""Variables: whether the streams have ended, where the system is."""
RAISED = "raised"
OUTSIDE = "outside"


class _Builder:
    def __init__(self, pipeline: Pipeline, world: World, terms: Terms) -> None:
        self.pipeline, self.world, self.terms = pipeline, world, terms
        self.integers = world.limits.integers
        self.stops: list[Stop] = []
        self.wraps: list[Wrap] = []
        self.queues: dict[str, Queue] = {}
        self.readings: dict[tuple[Function, tuple[Domain, ...]], read.Term | None] = {}
        self.tables: dict[tuple[Function, tuple[Domain, ...], str], Table] = {}
        for port in world.leaks:
            if port not in (*map(pipeline.input_name, pipeline.feeds), *pipeline.outputs):
                known = ", ".join((*map(pipeline.input_name, pipeline.feeds), *pipeline.outputs))
                raise PipelineError(
                    f"leaks={port!r}",
                    needed=f"inputs of boxes, or outputs: {known}",
                    came=repr(port),
                    hint="leaks=True",
                )

    def model(self) -> Model:
        terms, world = self.terms, self.world
        choices: dict[str, Choice] = {}

        def choice(name: str, domain: Domain, only_if: str | None = None) -> Term:
            choices[name] = Choice(name, domain, only_if)
            return terms.variable(name, domain)

        end = choice(ENDS, BOOL) if world.ends else terms.false
        reset = choice(RESETS, BOOL) if world.resets else terms.false
        signals: list[Signal] = []
        ins: list[Domain] = []
        allowed: list[Term] = []
        moved: list[tuple[_Slot, Term]] = []
        names = list(self.pipeline.inputs)
        if world.watched is not None:
            signals, ins, moved = self.system_step(world.watched, choice, allowed)
            names = []
        for name in names:
            domain, listed = self.input_values(name)
            is_always = not world.pauses and (len(names) == 1 or world.together) and not world.ends and not world.resets
            shared = names[0] if world.together else name
            present = terms.true if is_always else choice(f"{shared}?", BOOL)
            one = len(domain.values) == 1
            only_if = None if is_always else f"{shared}?"
            value = terms.constant(domain.values[0]) if one else choice(name, domain, only_if)
            if len(listed) < len(domain.values):
                among = terms.or_(*(terms.equal(value, terms.constant(each)) for each in listed))
                allowed.append(terms.or_(terms.not_(present), among))
            signals.append(Signal(present, value))
            ins.append(domain)
        leaks = {port: choice(f"leaks {port}", BOOL) for port in world.leaks}
        slots = self.pipeline_shape(self.pipeline, ins, "")
        befores = [terms.variable(slot.name, slot.domain) for slot in slots]
        afters, outs, pipes = self.pipeline_step(self.pipeline, befores, signals, ins, "", end, leaks)
        quiet = terms.not_(terms.or_(end, reset))
        anyone = terms.or_(*(signal.present for signal in signals))
        allowed += [terms.or_(quiet, terms.not_(anyone)), terms.not_(terms.and_(end, reset))]
        for slot, after in moved:
            slots.append(slot)
            afters.append(after)
        if not world.pauses:
            allowed.append(terms.or_(anyone, end, reset))
        if world.ends:
            ended = terms.variable(ENDED, BOOL)
            slots.append(_Slot(ENDED, BOOL, False, is_data=False))
            afters.append(terms.or_(ended, end))
            # After the end there is nothing but the end.
            allowed = [
                terms.choose(ended, terms.and_(end, terms.not_(anyone), terms.not_(reset)), terms.and_(*allowed))
            ]
        variables = {
            slot.name: Variable(
                slot.name,
                slot.domain,
                slot.first,
                terms.choose(reset, terms.constant(slot.first), after),
                slot.is_data,
            )
            for slot, after in zip(slots, afters, strict=True)
        }
        pipes.update(zip(self.pipeline.outputs, outs, strict=True))
        live = terms.not_(reset)
        return Model(
            terms,
            variables,
            choices,
            terms.and_(*allowed),
            {name: Signal(terms.and_(live, each.present), each.value) for name, each in pipes.items()},
            {
                name: Queue(terms.choose(reset, terms.constant(0), each.length), each.places)
                for name, each in self.queues.items()
            },
            tuple(Stop(stop.kind, stop.where, terms.and_(live, stop.when)) for stop in self.stops),
            tuple(Wrap(wrap.where, terms.and_(live, wrap.when), wrap.value) for wrap in self.wraps),
        )

    # -- domains -----------------------------------------------------------------------------------------------------

    def system_step(
        self, watched: Watched, choice: Callable[..., Term], allowed: list[Term]
    ) -> tuple[list[Signal], list[Domain], list[tuple[_Slot, Term]]]:
        """The system takes a step, and the pipeline sees where it is then. Its first step leads to a first state."""
        terms, system = self.terms, watched.system
        successors = [*system.successors, system.first_states]
        begin = len(system.states)
        most = max(map(len, successors))
        at = terms.variable(SYSTEM, Range(0, begin))
        pick = terms.constant(0) if most == 1 else choice(MOVES, Range(0, most - 1))
        can = Table("can", lambda at, pick: pick < len(successors[at]), BOOL, False)
        goes = Table("goes", lambda at, pick: successors[at][min(pick, len(successors[at]) - 1)], Range(0, begin), 0)
        allowed.append(terms.call(can, terms.true, at, pick))
        after = terms.call(goes, terms.true, at, pick)
        signals, ins = [], []
        for name, variable in watched.sees.items():
            place = system.names.index(variable)
            where = f"the variable {variable!r} that {name!r} sees"
            domain = self.within(system.domains[variable], where)
            self.require_sort(self.pipeline.inputs[name], domain, where)
            seen = Table(variable, lambda at, place=place: system.states[at][place], domain, domain.values[0])
            value = terms.call(seen, terms.true, after)
            signals.append(Signal(terms.true, value))
            ins.append(domain)
        return signals, ins, [(_Slot(SYSTEM, Range(0, begin), begin, is_data=False), after)]

    def require_sort(self, wanted: Any, domain: Domain, where: str) -> None:
        fits = wanted is object or (
            isinstance(domain, Range)
            if wanted is int
            else isinstance(domain, Bools)
            if wanted is bool
            else set(domain.values) <= set(wanted)
        )
        if not fits:
            sort = wanted.__name__ if isinstance(wanted, type) else f"one of {wanted}"
            raise PipelineError(where, needed=sort, came=str(domain), hint="an input of the same type")

    def input_values(self, name: str) -> tuple[Domain, Sequence[Value]]:
        """The domain of an input, and those of its values that come."""
        given = self.pipeline.inputs[name]
        where = f"the input {name!r} of {self.pipeline.name}"
        if name in self.world.inputs:
            listed = self.world.inputs[name]
            domain = self.within(domain_of(listed, where), where)
            self.require_sort(given, domain, where)
            return domain, listed
        if given is int:
            numbers = self.numbers(where)
            return numbers, numbers.values
        if given is bool:
            return BOOL, BOOL.values
        if given is object:
            raise PipelineError(
                where,
                needed="the values that it carries",
                came="object, which is anything",
                hint="inputs={...}, or int",
            )
        return self.within(domain_of(given, where), where), given

    def numbers(self, where: str) -> Range:
        if self.integers is None:
            raise PipelineError(where, needed="which whole numbers there are", came="no domain", hint="domain=4")
        return Range(self.integers.low, self.integers.high)

    def within(self, domain: Domain, where: str) -> Domain:
        """The domain, if its numbers are among those that there are."""
        if isinstance(domain, Range):
            numbers = self.numbers(where)
            if domain.low < numbers.low or domain.high > numbers.high:
                raise PipelineError(
                    where,
                    needed=f"whole numbers in {numbers}",
                    came=str(domain.low) if domain.low == domain.high else str(domain),
                    hint=f"domain={max(domain.high + 1, 2)}" if domain.low >= 0 else "domain=tight.whole(-9, 9)",
                )
        return domain

    def constant(self, value: Value, where: str) -> Term:
        self.within(domain_of([value], where), where)
        return self.terms.constant(value)

    def gives(self, box: Processor, ins: Sequence[Domain], path: str) -> list[Domain]:
        """What a box gives, if it gets events of these domains."""
        match box:
            case Passthrough() | Trim() | CountDecimate() | Freeze() | Last():
                return [ins[0]]
            case Fork():
                return [ins[0]] * box.n
            case Filter():
                if not isinstance(ins[1], Bools):
                    raise PipelineError(
                        path,
                        needed="True or False on the second input of Filter",
                        came=str(ins[1]),
                        hint="a comparison before it",
                    )
                return [ins[0]]
            case TurnInto():
                return [self.constant(box.value, path).domain]
            case Insert():
                kept = [self.constant(value, path).domain for value in box.values]
                return [united([ins[0], *kept], path)]
            case Apply():
                return self.results(box.function, ins, path, box.outputs, box.values)
            case Cumulate():
                return [self.cumulated(box, ins[0], path)]
            case Window():
                return self.gives(box.inner, ins, path)
            case Slice():
                return self.gives(box.inner, ins[-1:], path)
            case Group():
                return self.pipeline_domains(box.pipeline, ins, f"{path}.")[1]
        raise PipelineError(
            path, needed="a box that can be explored", came=type(box).__name__, hint="the boxes of tight.pipes"
        )

    def pipeline_domains(
        self, pipeline: Pipeline, ins: Sequence[Domain], path: str
    ) -> tuple[dict[Port, Domain], list[Domain]]:
        known = {Port(name): domain for name, domain in zip(pipeline.inputs, ins, strict=True)}
        for name in pipeline.order:
            box = pipeline.boxes[name]
            fed = [known[pipeline.feeds[Port(name, place)]] for place in range(box.inputs)]
            for place, domain in enumerate(self.gives(box, fed, path + name)):
                known[Port(name, place)] = domain
        return known, [known[port] for port in pipeline.outputs.values()]

    def cumulated(self, box: Cumulate, given: Domain, path: str) -> Domain:
        first = self.constant(box.first, path).domain
        if isinstance(first, Range):
            first = self.numbers(path)
        for _ in range(MOST_KEYS):
            (result,) = self.results(box.function, (first, given), path, 1, None)
            larger = united([first, result], path)
            if larger == first:
                return larger
            first = larger
        raise PipelineError(
            path,
            needed="a Cumulate that comes back to values it had",
            came=f"{len(first.values)} values and more",
            hint="fewer values; or numbers, which have a domain",
        )

    def results(
        self,
        function: Function,
        ins: Sequence[Domain],
        path: str,
        outputs: int,
        values: tuple[Value, ...] | None,
    ) -> list[Domain]:
        reading = self.reading(function, tuple(ins)) if outputs == 1 and values is None else None
        if reading is not None:
            domain = self.calculated(reading, self.unknown(ins)).domain
            if not isinstance(domain, Range):
                return [domain]
            numbers = self.numbers(path)
            is_inside = numbers.low <= domain.low and domain.high <= numbers.high
            return [domain if is_inside else numbers]
        return [self.table(function, tuple(ins), path, place, outputs, values).domain for place in range(outputs)]

    def unknown(self, ins: Sequence[Domain]) -> list[Term]:
        """Any values of these domains."""
        # A name has one domain, so that is a part of it.
        return [self.terms.variable(f"?{place} in {domain}", domain) for place, domain in enumerate(ins)]

    # -- functions ---------------------------------------------------------------------------------------------------

    def reading(self, function: Function, ins: tuple[Domain, ...]) -> read.Term | None:
        """What a function calculates, if it can be read and terms of models can say it for these domains."""
        key = (function, ins)
        if key not in self.readings:
            known = _READ.get(function.call) if isinstance(function.call, _HASHED) else None
            term: read.Term | None = known if known is not None else read.term_of(function.call, function.arity)
            try:
                self.calculated(term, self.unknown(ins))  # type: ignore[arg-type]
            except _Unreadable:
                term = None
            self.readings[key] = term
        return self.readings[key]

    def calculated(self, term: read.Term, arguments: Sequence[Term]) -> Term:
        terms = self.terms
        if isinstance(term, read.Slot):
            return arguments[term.place]
        if isinstance(term, read.Constant):
            # Near the ends of all the numbers that there are, a comparison would be decided by these ends.
            is_far = type(term.value) is int and abs(term.value) > MOST_CONSTANT
            if type(term.value) not in (int, bool, str) or is_far:
                raise _Unreadable
            return terms.constant(term.value)
        if not isinstance(term, read.Apply):
            raise _Unreadable
        parts = [self.calculated(each, arguments) for each in term.arguments]
        kinds = {type(part.domain) for part in parts}
        name = term.operation.name
        if read.OPERATIONS.get(name) is not term.operation:
            raise _Unreadable
        if name == "choose":
            condition, one, other = parts
            if not isinstance(condition.domain, Bools) or type(one.domain) is not type(other.domain):
                raise _Unreadable
            return terms.choose(condition, one, other)
        if name in ("equal", "unequal"):
            if len(kinds) > 1:
                raise _Unreadable
            found = terms.equal(*parts)
            return found if name == "equal" else terms.not_(found)
        if name in ("not", "and", "or", "implies", "iff"):
            if kinds != {Bools}:
                raise _Unreadable
            match name:
                case "not":
                    return terms.not_(parts[0])
                case "and":
                    return terms.and_(*parts)
                case "or":
                    return terms.or_(*parts)
                case "implies":
                    return terms.or_(terms.not_(parts[0]), parts[1])
            return terms.equal(*parts)
        if kinds != {Range}:
            raise _Unreadable
        zero = terms.constant(0)
        match name:
            case "add":
                return terms.add(*parts)
            case "subtract":
                return terms.subtract(*parts)
            case "multiply":
                return terms.multiply(*parts)
            case "floor_divide" | "modulo" if not _has(parts[1].domain, 0):
                return (terms.divide if name == "floor_divide" else terms.modulo)(*parts)
            case "negate":
                return terms.subtract(zero, parts[0])
            case "abs":
                return terms.choose(terms.less(parts[0], zero), terms.subtract(zero, parts[0]), parts[0])
            case "min":
                return terms.choose(terms.less(parts[1], parts[0]), parts[1], parts[0])
            case "max":
                return terms.choose(terms.less(parts[0], parts[1]), parts[1], parts[0])
            case "less":
                return terms.less(*parts)
            case "at_most":
                return terms.at_most(*parts)
            case "more":
                return terms.less(parts[1], parts[0])
            case "at_least":
                return terms.at_most(parts[1], parts[0])
        raise _Unreadable

    def table(
        self,
        function: Function,
        ins: tuple[Domain, ...],
        path: str,
        place: int,
        outputs: int,
        values: tuple[Value, ...] | None,
    ) -> Table:
        """A function that is asked for each combination of values."""
        key = (function, ins, f"{path} {place}")
        if key in self.tables:
            return self.tables[key]
        count = 1
        for domain in ins:
            count *= len(domain.values)
        if count > MOST_CALLS:
            raise PipelineError(
                path,
                needed=f"at most {MOST_CALLS:,} combinations of values for a function that can only be called",
                came=f"{function} with {count:,}",
                hint="a smaller domain, or a function that only calculates: lambda x, y: x + 2 * y",
            )

        def asked(*arguments: Value) -> Value:
            try:
                given = function.call(*arguments)
            except Exception:  # the border of user code: a run stops there
                return RAISED, None
            if outputs > 1:
                if not isinstance(given, tuple) or len(given) != outputs:
                    raise PipelineError(
                        path,
                        needed=f"a tuple of {outputs} values",
                        came=f"{function}{arguments!r} = {given!r}",
                        hint="...",
                    )
                given = given[place]
            return self.admitted(given, arguments, function, path, values)

        table = Table(str(function), asked, BOOL, (None, None))
        results = [
            given
            for kind, given in itertools.starmap(table, itertools.product(*(domain.values for domain in ins)))
            if kind not in (RAISED, OUTSIDE)
        ]
        if not results:  # every run stops there, so any domain will do
            results = (
                [None] if not any(kind == OUTSIDE for kind, _ in table.known.values()) else [self.numbers(path).low]
            )
        table.domain = domain_of(values, path) if values is not None else domain_of(results, path)
        self.tables[key] = table
        return table

    def admitted(
        self,
        given: Value,
        arguments: tuple[Value, ...],
        function: Function,
        path: str,
        values: tuple[Value, ...] | None,
    ) -> tuple[str | None, Value]:
        """What a function gave, if it is in the domain; how it came in, if it was not."""
        if type(given) is int and values is None:
            numbers = self.integers
            if numbers is None:
                self.numbers(path)
            elif given not in numbers:
                return ("wraps", numbers.fit(given)) if numbers.wraps else (OUTSIDE, None)
            return None, given
        is_listed = values is not None and any(type(given) is type(each) and given == each for each in values)
        is_fine = is_listed if values is not None else not isinstance(given, (float, complex)) and _is_hashable(given)
        if not is_fine:
            wanted = (
                "one of " + ", ".join(map(repr, values))
                if values is not None
                else f"whole numbers in {self.integers}, Booleans, or names"
            )
            raise PipelineError(
                path,
                needed=f"values inside the domain: {wanted}",
                came=f"{function}({', '.join(map(repr, arguments))}) = {given!r}",
                hint="//, round or int(...) for whole numbers; Apply(..., values=[...]) for others",
            )
        return None, given

    def applied(
        self,
        function: Function,
        present: Term,
        arguments: Sequence[Term],
        ins: tuple[Domain, ...],
        path: str,
        outputs: int = 1,
        values: tuple[Value, ...] | None = None,
    ) -> list[Term]:
        """What a function gives in a step in which `present` is true; when the run stops at it, is noted."""
        terms = self.terms
        reading = self.reading(function, ins) if outputs == 1 and values is None else None
        if reading is not None:
            raw = self.calculated(reading, arguments)
            if not isinstance(raw.domain, Range):
                return [raw]
            numbers = self.numbers(path)
            low, high = terms.constant(numbers.low), terms.constant(numbers.high)
            outside = terms.and_(present, terms.or_(terms.less(raw, low), terms.less(high, raw)))
            fitted = terms.fit(raw, self.integers)  # type: ignore[arg-type]
            if outside is not terms.false and self.integers.wraps:  # type: ignore[union-attr]
                self.wraps.append(Wrap(path, outside, fitted))
            elif outside is not terms.false:
                self.stops.append(Stop("LEAVES_RANGE", path, outside))
            return [fitted]
        given = []
        for place in range(outputs):
            table = self.table(function, ins, path, place, outputs, values)
            kinds = {kind for kind, _ in table.known.values()}
            if RAISED in kinds:
                self.stops.append(Stop("RAISES", path, terms.call(_part(table, RAISED), present, *arguments)))
            if OUTSIDE in kinds:
                self.stops.append(Stop("LEAVES_RANGE", path, terms.call(_part(table, OUTSIDE), present, *arguments)))
            value = terms.call(_part(table, None), present, *arguments)
            if "wraps" in kinds:
                self.wraps.append(Wrap(path, terms.call(_part(table, "wraps"), present, *arguments), value))
            given.append(value)
        return given

    # -- boxes -------------------------------------------------------------------------------------------------------

    def shape(self, box: Processor, ins: Sequence[Domain], path: str) -> list[_Slot]:
        """The variables of a box. They are named after it; what is inside a window or a slice, after its copy."""
        match box:
            case Trim() if box.k:
                return [_Slot(path, Range(0, box.k), 0, is_data=False)]
            case CountDecimate() if box.k > 1:
                return [_Slot(path, Range(0, box.k - 1), 0, is_data=False)]
            case Cumulate():
                return [_Slot(path, self.gives(box, ins, path)[0], box.first, is_data=True)]
            case Insert():
                (domain,) = self.gives(box, ins, path)
                return [
                    _Slot(f"{path}[{place}]", domain, value, is_data=True) for place, value in enumerate(box.values)
                ]
            case Freeze() | Last():
                return _optional(path, ins[0])
            case Window():
                (out,) = self.gives(box, ins, path)
                slots = [_Slot(path, Range(0, box.width - 1), 0, is_data=False)] if box.width > 1 else []
                for age in range(1, box.width):
                    slots += self.shape(box.inner, ins, f"{path}[{age}]")
                    slots += _optional(f"{path}[{age}]=", out)
                return slots
            case Slice():
                keys = self.keys(box, ins, path)
                inner = ins[-1:]
                return [slot for key in keys for slot in self.shape(box.inner, inner, f"{path}[{key!r}]")]
            case Group():
                return self.pipeline_shape(box.pipeline, ins, f"{path}.")
        return []

    def keys(self, box: Slice, ins: Sequence[Domain], path: str) -> list[Value]:
        most = MOST_KEYS if box.by is None else MOST_CALLS
        if (count := len(ins[0].values)) > most:
            raise PipelineError(
                path,
                needed=f"at most {most:,} values that keys are told from",
                came=f"{count:,}",
                hint="a smaller domain",
            )
        found = [self.key(box, value, path) for value in ins[0].values]
        listed = list(dict.fromkeys(key for is_fine, key in found if is_fine))
        if listed:
            domain_of(listed, path)
        if len(listed) > MOST_KEYS:
            raise PipelineError(
                path, needed=f"at most {MOST_KEYS} keys", came=f"{len(listed)}", hint="fewer values on its input"
            )
        return listed

    def key(self, box: Slice, value: Value, path: str) -> tuple[bool, Value]:
        """Whether there is a key for a value, and which."""
        if box.by is None:
            return True, value
        try:
            key = box.by.call(value)
        except Exception:  # the border of user code: a run stops there
            return False, None
        if not _is_hashable(key):
            raise PipelineError(
                path, needed="keys that have a hash", came=f"{box.by}({value!r}) = {key!r}", hint="a tuple, not a list"
            )
        return True, key

    def step(
        self,
        box: Processor,
        state: list[Term],
        present: Term,
        front: Sequence[Term],
        ins: Sequence[Domain],
        path: str,
        end: Term,
    ) -> tuple[list[Term], list[Signal]]:
        """The state of a box after a step, and what goes out. Where `present` is false, nothing changes."""
        terms = self.terms
        match box:
            case Passthrough():
                return state, [Signal(present, front[0])]
            case Fork():
                return state, [Signal(present, front[0])] * box.n
            case TurnInto():
                return state, [Signal(present, self.constant(box.value, path))]
            case Apply():
                values = self.applied(box.function, present, front, tuple(ins), path, box.outputs, box.values)
                return state, [Signal(present, value) for value in values]
            case Filter():
                return state, [Signal(terms.and_(present, front[1]), front[0])]
            case Trim():
                if not box.k:
                    return state, [Signal(present, front[0])]
                is_done = terms.equal(state[0], terms.constant(box.k))
                more = terms.choose(is_done, state[0], self.more(state[0]))
                return [terms.choose(present, more, state[0])], [Signal(terms.and_(present, is_done), front[0])]
            case CountDecimate():
                if box.k == 1:
                    return state, [Signal(present, front[0])]
                is_last = terms.equal(state[0], terms.constant(box.k - 1))
                more = terms.choose(is_last, terms.constant(0), self.more(state[0]))
                due = terms.and_(present, terms.equal(state[0], terms.constant(0)))
                return [terms.choose(present, more, state[0])], [Signal(due, front[0])]
            case Cumulate():
                held = state[0].domain if state[0].op == "variable" else self.gives(box, ins, path)[0]
                (value,) = self.applied(box.function, present, (state[0], front[0]), (held, ins[0]), path)
                return [terms.choose(present, value, state[0])], [Signal(present, value)]
            case Insert():
                moved = [*state[1:], front[0]]
                kept = [terms.choose(present, new, old) for new, old in zip(moved, state, strict=True)]
                return kept, [Signal(present, state[0])]
            case Freeze():
                has, first = state
                value = terms.choose(has, first, front[0])
                return [terms.or_(has, present), terms.choose(present, value, first)], [Signal(present, value)]
            case Last():
                has, last = terms.or_(state[0], present), terms.choose(present, front[0], state[1])
                nothing = terms.constant(_any(ins[0]))
                return [
                    terms.and_(has, terms.not_(end)),
                    terms.choose(end, nothing, last),
                ], [Signal(terms.and_(end, has), last)]
            case Window():
                return self.window_step(box, state, present, front, ins, path)
            case Slice():
                return self.slice_step(box, state, present, front, ins, path)
            case Group():
                signals = [Signal(present, value) for value in front]
                after, outs, _ = self.pipeline_step(box.pipeline, state, signals, ins, f"{path}.", end, {})
                return after, outs
        raise AssertionError(box)  # `gives` has refused it

    def more(self, count: Term) -> Term:
        return self.terms.add(count, self.terms.constant(1))

    def window_step(
        self, box: Window, state: list[Term], present: Term, front: Sequence[Term], ins: Sequence[Domain], path: str
    ) -> tuple[list[Term], list[Signal]]:
        terms = self.terms
        slots = self.shape(box, ins, path)
        (out_domain,) = self.gives(box, ins, path)
        nothing = [terms.false, terms.constant(_any(out_domain))]
        if box.width == 1:
            _, outs = self.inner_step(
                box.inner, self.firsts(box.inner, ins, f"{path}[0]"), present, front, ins, f"{path}[0]"
            )
            return state, outs
        count, size = state[0], (len(state) - 1) // (box.width - 1)
        held = [state[1 + age * size : 1 + (age + 1) * size] for age in range(box.width - 1)]
        firsts = [terms.constant(slot.first) for slot in slots[1 : 1 + size - 2]]
        is_full = terms.equal(count, terms.constant(box.width - 1))
        after = [terms.choose(present, terms.choose(is_full, count, self.more(count)), count)]
        for age in range(box.width):
            # The window that has `age` events gets one more; while there are fewer events than that, it is not open.
            before = [*firsts, *nothing] if age == 0 else held[age - 1]
            is_open = terms.and_(present, terms.at_most(terms.constant(age), count))
            inside, (out,) = self.inner_step(box.inner, before[:-2], is_open, front, ins, f"{path}[{age}]")
            older = [*inside, terms.or_(before[-2], out.present), terms.choose(out.present, out.value, before[-1])]
            if age == box.width - 1:
                return after, [Signal(terms.and_(is_open, older[-2]), older[-1])]
            after += [terms.choose(is_open, new, old) for new, old in zip(older, held[age], strict=True)]
        raise AssertionError(box)

    def firsts(self, box: Processor, ins: Sequence[Domain], path: str) -> list[Term]:
        return [self.terms.constant(slot.first) for slot in self.shape(box, ins, path)]

    def inner_step(
        self, box: Processor, state: list[Term], present: Term, front: Sequence[Term], ins: Sequence[Domain], path: str
    ) -> tuple[list[Term], list[Signal]]:
        return self.step(box, state, present, front, ins, path, self.terms.false)

    def slice_step(
        self, box: Slice, state: list[Term], present: Term, front: Sequence[Term], ins: Sequence[Domain], path: str
    ) -> tuple[list[Term], list[Signal]]:
        terms = self.terms
        after: list[Term] = []
        size = len(self.shape(box.inner, ins[-1:], path))
        keyed = [(value, *self.key(box, value, path)) for value in ins[0].values]

        def is_one_of(values: list[Value]) -> Term:
            return terms.or_(*(terms.equal(front[0], terms.constant(value)) for value in values))

        raising = [value for value, is_fine, _ in keyed if not is_fine]
        if raising:
            self.stops.append(Stop("RAISES", path, terms.and_(present, is_one_of(raising))))
        (domain,) = self.gives(box, ins, path)
        given = Signal(terms.false, terms.constant(_any(domain)))
        for place, key in enumerate(self.keys(box, ins, path)):
            mine = state[place * size : (place + 1) * size]
            named = [value for value, is_fine, other in keyed if is_fine and other == key]
            turn = terms.and_(present, is_one_of(named))
            inside, (out,) = self.inner_step(box.inner, mine, turn, front[-1:], ins[-1:], f"{path}[{key!r}]")
            after += inside
            value = terms.choose(out.present, out.value, given.value)
            given = Signal(terms.or_(given.present, out.present), value)
        return after, [given]

    # -- pipelines ---------------------------------------------------------------------------------------------------

    def pipeline_shape(self, pipeline: Pipeline, ins: Sequence[Domain], path: str) -> list[_Slot]:
        known, _ = self.pipeline_domains(pipeline, ins, path)
        slots: list[_Slot] = []
        for name, box in pipeline.boxes.items():
            fed = [known[pipeline.feeds[Port(name, place)]] for place in range(box.inputs)]
            slots += self.shape(box, fed, path + name)
        for name, port in pipeline.queues.items():
            places = self.places(path + name)
            domain = known[pipeline.feeds[port]]
            slots += [_Slot(f"{path}{name}#", Range(0, places), 0, is_data=False)]
            slots += [_Slot(f"{path}{name}[{place}]", domain, _any(domain), is_data=True) for place in range(places)]
        return slots

    def places(self, queue: str) -> int:
        plain = _without_copies(queue)
        places = self.world.limits.places(plain)
        if places is None:
            raise PipelineError(
                f"the queue {plain}", needed="how many events it holds", came="no number", hint="queue=3"
            )
        return places

    def pipeline_step(
        self,
        pipeline: Pipeline,
        state: list[Term],
        signals: Sequence[Signal],
        ins: Sequence[Domain],
        path: str,
        end: Term,
        leaks: Mapping[str, Term],
    ) -> tuple[list[Term], list[Signal], dict[str, Signal]]:
        terms = self.terms
        known, _ = self.pipeline_domains(pipeline, ins, path)
        held: dict[str, list[Term]] = {}
        rest = list(state)
        for name, box in pipeline.boxes.items():
            fed = [known[pipeline.feeds[Port(name, place)]] for place in range(box.inputs)]
            size = len(self.shape(box, fed, path + name))
            held[name], rest = rest[:size], rest[size:]
        queued: dict[Port, list[Term]] = {}
        for name, port in pipeline.queues.items():
            size = 1 + self.places(path + name)
            queued[port], rest = rest[:size], rest[size:]
        carried = {Port(name): signal for name, signal in zip(pipeline.inputs, signals, strict=True)}

        def passed(target: str, signal: Signal) -> Signal:
            if target not in leaks:
                return signal
            return Signal(terms.and_(signal.present, terms.not_(leaks[target])), signal.value)

        for name in pipeline.order:
            box = pipeline.boxes[name]
            ports = [Port(name, place) for place in range(box.inputs)]
            fed = [known[pipeline.feeds[port]] for port in ports]
            arrived = [passed(pipeline.input_name(port), carried[pipeline.feeds[port]]) for port in ports]
            present, front = arrived[0].present, [arrived[0].value]
            if len(ports) > 1:
                waits = [terms.less(terms.constant(0), queued[port][0]) for port in ports]
                present = terms.and_(*(terms.or_(w, a.present) for w, a in zip(waits, arrived, strict=True)))
                front = [
                    terms.choose(wait, queued[port][1], signal.value) if len(queued[port]) > 1 else signal.value
                    for wait, port, signal in zip(waits, ports, arrived, strict=True)
                ]
                for port, signal in zip(ports, arrived, strict=True):
                    where = path + pipeline.input_name(port)
                    queued[port] = self.queue_step(queued[port], signal, present, known[pipeline.feeds[port]], where)
            held[name], outs = self.step(box, held[name], present, front, fed, path + name, end)
            for place, out in enumerate(outs):
                carried[Port(name, place)] = out
        after = [*itertools.chain(*held.values()), *itertools.chain(*queued.values())]
        outs = [passed(name, carried[port]) for name, port in pipeline.outputs.items()]
        return after, outs, {pipeline.pipe_name(port): signal for port, signal in carried.items()}

    def queue_step(self, queue: list[Term], arrived: Signal, is_taken: Term, domain: Domain, where: str) -> list[Term]:
        """What a queue holds after a step: its length, then its places. Places that are free hold a fixed value."""
        terms = self.terms
        length, *cells = queue
        places = len(cells)
        free = terms.constant(_any(domain))
        comes = arrived.present
        is_full = terms.equal(length, terms.constant(places))
        overflows = terms.and_(comes, is_full, terms.not_(is_taken))
        if not self.world.limits.drops(where) and overflows is not terms.false:
            self.stops.append(Stop("QUEUE_OVERFLOW", where, overflows))
        after = []
        for place, cell in enumerate(cells):
            following = cells[place + 1] if place + 1 < places else free
            taken = terms.choose(
                terms.and_(comes, terms.equal(length, terms.constant(place + 1))), arrived.value, following
            )
            added = terms.choose(terms.and_(comes, terms.equal(length, terms.constant(place))), arrived.value, cell)
            after.append(terms.choose(is_taken, taken, added))
        more = terms.choose(is_full, length, terms.add(length, terms.constant(1)))
        is_empty = terms.equal(length, terms.constant(0))
        fewer = terms.choose(is_empty, length, terms.subtract(length, terms.constant(1)))
        count = terms.choose(is_taken, terms.choose(comes, length, fewer), terms.choose(comes, more, length))
        self.queues[where] = Queue(count, places)
        return [count, *after]


class _Unreadable(Exception):
    """Terms of models cannot say it."""


_HASHED = (type(operator.add), type(both), type(min))
_X, _Y, _Z = read.Slot(0), read.Slot(1), read.Slot(2)
_READ: dict[Callable[..., Any], read.Term] = {
    **{
        function: read.apply(operation, _X, _Y)
        for function, operation in (
            (operator.add, read.ADD),
            (operator.sub, read.SUBTRACT),
            (operator.mul, read.MULTIPLY),
            (operator.floordiv, read.FLOOR_DIVIDE),
            (operator.mod, read.MODULO),
            (operator.eq, read.EQUAL),
            (operator.ne, read.UNEQUAL),
            (operator.lt, read.LESS),
            (operator.le, read.AT_MOST),
            (operator.gt, read.MORE),
            (operator.ge, read.AT_LEAST),
            (min, read.MINIMUM),
            (max, read.MAXIMUM),
            (both, read.AND),
            (either, read.OR),
            (implies, read.IMPLIES),
        )
    },
    operator.neg: read.apply(read.NEGATE, _X),
    operator.not_: read.apply(read.NOT, _X),
    operator.abs: read.apply(read.ABSOLUTE, _X),
    abs: read.apply(read.ABSOLUTE, _X),
    is_even: read.apply(read.EQUAL, read.apply(read.MODULO, _X, 2), 0),
    is_odd: read.apply(read.UNEQUAL, read.apply(read.MODULO, _X, 2), 0),
    if_then_else: read.apply(read.CHOOSE, _X, _Y, _Z),
    same_event: read.apply(read.EQUAL, _X, _Y),
}
"""Functions that everybody uses, as they would be read."""


def _part(table: Table, wanted: str | None) -> Table:
    """Of what a function gave: whether it came in another way, or the value."""
    parts = table.__dict__.setdefault("parts", {})
    if wanted not in parts:
        if wanted is None:
            default = _any(table.domain)
            parts[wanted] = Table(
                table.name,
                lambda *arguments: default if (got := table(*arguments))[0] in (RAISED, OUTSIDE) else got[1],
                table.domain,
                default,
            )
        else:
            name = f"{table.name} {wanted}"
            parts[wanted] = Table(name, lambda *arguments: table(*arguments)[0] == wanted, BOOL, False)
    part: Table = parts[wanted]
    return part


def _optional(path: str, domain: Domain) -> list[_Slot]:
    return [_Slot(f"{path}?", BOOL, False, is_data=False), _Slot(f"{path}!", domain, _any(domain), is_data=True)]


def _any(domain: Domain) -> Value:
    """The value that stands where there is none."""
    return 0 if isinstance(domain, Range) and domain.low <= 0 <= domain.high else domain.values[0]


def _has(domain: Domain, value: Value) -> bool:
    return isinstance(domain, Range) and domain.low <= value <= domain.high


def _is_hashable(value: Value) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _without_copies(name: str) -> str:
    """The name of a queue without the copies that it is in: all copies have the same places."""
    return re.sub(r"\[[^]]*\]", "", name)
