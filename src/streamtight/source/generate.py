"""Where input streams come from: generated, listed, or made by the user's own function or Hypothesis strategy.

>>> from streamtight.stream.dependence import same
>>> from streamtight.stream.event import Kind
>>> GPS = Kind("GPS", taxi_id=int, x=int)
>>> source = generated(GPS, upto=same("taxi_id"), size=3, taxi_id=[1, 2])
>>> for trace in source.traces(2, seed=7):
...     print(trace.events)
(GPS(taxi_id=1, x=10), GPS(taxi_id=1, x=1), GPS(taxi_id=1, x=10))
(GPS(taxi_id=2, x=2),)

A generated trace is put together from a pool of values for each field. Most traces use only a few values of a pool, so
that keys collide and events repeat; the same pools say what an event may become when a failure is made small. Only
fields that are given as Hypothesis strategies need Hypothesis.
"""

from __future__ import annotations

import bisect
import contextlib
import difflib
import functools
import inspect
import itertools
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from streamtight.errors import EventError, SourceError, StreamtightError
from streamtight.source.values import simplicity, values_of
from streamtight.stream.dependence import Dependence, ordered
from streamtight.stream.event import Event, FieldType, Kind
from streamtight.stream.schema import Schema
from streamtight.stream.trace import Trace

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    FieldValues = SearchStrategy[Any] | Sequence[object]
    """What a field may be, as a user says it."""

Predicate = Callable[[Event], bool]
Pool = Sequence[object]
Pools = dict[Kind, tuple[Pool, ...]]
"""For each kind and each of its fields in turn: the values to draw from, frequent ones more than once."""

POOL_SIZE = 200
"""How many values of a strategy, or of a longer sequence, are used for one seed."""
SAMPLE_SIZE = 20
"""How many traces tell which kinds a function or a strategy yields."""


@dataclass(frozen=True, eq=False)
class Source:
    """Where traces come from. Make one with `generated` or `listed`; `on=` also takes what `source_of` knows."""

    kinds: tuple[Kind, ...]
    """Every kind that it may yield."""
    upto: Dependence
    """The order that it promises to keep."""
    description: str
    """What a claim calls it: "generated GPS", "2 listed traces"."""
    seeded: bool
    """Whether another seed gives other traces."""
    make: Callable[[int, int], Iterable[Trace]] = field(repr=False)
    """Traces for (count, seed), at least count of them if it has so many."""
    simplify: Callable[[Event], Iterable[Event]] = field(default=lambda _: (), repr=False)

    def traces(self, count: int, seed: int) -> Iterator[Trace]:
        """At most so many traces; for one seed the same ones in every process."""
        for name, given, least in (("count", count, 0), ("seed", seed, None)):
            if not isinstance(given, int) or (least is not None and given < least):
                needed = "a whole number" if least is None else f"a whole number from {least}"
                raise SourceError(f"traces({name}=...)", needed=needed, came=shown(given), hint=f"{name}=100")
        return itertools.islice(self.make(count, seed), count)

    def simpler_events(self, event: Event) -> Iterator[Event]:
        """The same event with one field simpler, the simplest first; only events that the source may yield."""
        yield from self.simplify(event)


# -- what users write ------------------------------------------------------------------------------------------------


def generated(
    what: Kind | Schema | Iterable[Kind],
    /,
    *,
    upto: Dependence | None = None,
    size: int | tuple[int, int] = 12,
    where: Predicate | None = None,
    extremes: bool = False,
    **fields: FieldValues,
) -> Source:
    """Generated traces of a kind, of several kinds, or of a schema.

    `upto` is the order that the source promises; without it, the schema's own, or `ordered`. `size` is the most events
    of a trace, or the least and the most. `where` says which events may come. By name, a field gets the values to draw
    from, as a sequence or as a Hypothesis strategy, in every kind that has it. `extremes` adds the ends of the types,
    such as the largest and the smallest number: there most arithmetic overflows, and in Spark the job then raises.

    >>> Ride = Kind("Ride", taxi_id=int, cents=int)
    >>> rides = generated(Ride, size=(2, 4), cents=range(100, 1000, 50), where=lambda ride: ride.taxi_id > 0)
    >>> all(2 <= len(trace) <= 4 for trace in rides.traces(50, seed=1))
    True
    """
    kinds = kinds_of(what, "generated(...)")
    promise = upto if upto is not None else what if isinstance(what, Schema) else ordered
    described = repr(what) if isinstance(what, Schema) else ", ".join(kind.name for kind in kinds)
    _require_dependence(promise, "generated(...)")
    require_predicate(where, "generated")
    require_fields(fields, kinds, "generated", "upto, size, where, extremes")
    given = {name: tuple(values) if isinstance(values, list) else values for name, values in fields.items()}
    generator = _Generator(kinds, promise, _sizes(size), where, extremes, given)
    generator.require_possible()
    return Source(kinds, promise, f"generated {described}", True, generator.traces, generator.simpler)


def generated_from(
    pools: Mapping[Kind, Mapping[str, Sequence[object]]],
    *,
    size: int | tuple[int, int] = 12,
    upto: Dependence = ordered,
) -> Source:
    """Generated traces of these kinds, with the values to draw from for each field of each kind, whatever their names.

    Fields that are given one and the same list get the same values in a trace, so that kinds can meet.

    >>> Order = Kind("Order", size=int)
    >>> [trace.events for trace in generated_from({Order: {"size": [7]}}, size=(2, 2)).traces(1, seed=0)]
    [(Order(size=7), Order(size=7))]
    """
    kinds = tuple(pools)
    generator = _Generator(kinds, upto, _sizes(size), None, False, {}, pools)
    return Source(kinds, upto, f"generated {names(kinds)}", True, generator.traces, generator.simpler)


def listed(what: Trace | Iterable[Trace] | Iterable[Event], *, upto: Dependence | None = None) -> Source:
    """Exactly these traces: one, several, or the events of one, which are `ordered` if nothing is said.

    >>> N = Kind("N", n=int)
    >>> source = listed([N(1), N(2)])
    >>> source.description, list(source.traces(10, seed=0))
    ('1 listed trace', [Trace([N(n=1), N(n=2)], ordered)])
    """
    return _listed(what, "listed(...)", upto)


def source_of(
    given: object, *, where: str = "on=", kinds: Iterable[Kind] = (), upto: Dependence | None = None
) -> Source:
    """The source that a user means: a source, a trace, traces, events, kinds, a schema, a function, a strategy.

    A function gets a `random.Random` and returns a trace or a list of events; a strategy draws such. What they may
    yield is known only from samples, unless their dependence is a schema: `kinds` adds the kinds that one knows of.
    `upto` is for what has no order of its own, and replaces that of traces; a source keeps its own.

    >>> N = Kind("N", n=int)
    >>> source_of([N(1), N(2)]).description, source_of(N).description
    ('1 listed trace', 'generated N')
    """
    if isinstance(given, Source):
        return given
    if isinstance(given, (Kind, Schema)) or _are_kinds(given):
        return generated(given, upto=upto)
    if isinstance(given, Trace) or (isinstance(given, (list, tuple)) and not isinstance(given, Event)):
        return _listed(given, where, upto, tuple(kinds))
    if is_strategy(given):
        return _drawn_by_strategy(given, where, upto, tuple(kinds))
    if callable(given) and not isinstance(given, type):
        return _made_by_function(given, where, upto, tuple(kinds))
    hints = {
        Event: "a list of events: [event]",
        Dependence: "generated(GPS, upto=...), which says what is in that order",
        type: "a Kind",
    }
    hint = next((hint for of, hint in hints.items() if isinstance(given, of)), "a Kind, or a list of events")
    raise SourceError(
        where,
        needed="a source, a trace, a list of traces or of events, a Kind, a schema, a function of a random.Random, or "
        "a Hypothesis strategy of lists of events",
        came=shown(given),
        hint=hint,
    )


# -- generated traces ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Generator:
    """What `generated` was told, and how traces are put together from it."""

    kinds: tuple[Kind, ...]
    upto: Dependence
    sizes: tuple[int, int]
    where: Predicate | None
    extremes: bool
    given: dict[str, FieldValues]
    given_by_kind: Mapping[Kind, Mapping[str, Pool]] = field(default_factory=dict)

    def require_possible(self) -> None:
        """Raise now what would else be raised at the first trace."""
        everything = _Mix.of_all(self.pools(0))
        for kind in self.kinds:
            self.upto.require_known(plain_event(kind))
        self.event(random.Random(0), everything, everything)

    def traces(self, count: int, seed: int) -> Iterator[Trace]:
        """Traces without end: the first ones do not depend on the count."""
        rng, pools = random.Random(seed), self.pools(seed)
        everything = _Mix.of_all(pools)
        while True:
            mix = _Mix.of_some(pools, rng)
            events: list[Event] = []
            for _ in range(rng.randint(*self.sizes)):
                again = events and rng.random() < 0.1  # equal events: some jobs take a bag for a set
                events.append(rng.choice(events) if again else self.event(rng, mix, everything))
            yield Trace(events, self.upto)

    def event(self, rng: random.Random, mix: _Mix, everything: _Mix) -> Event:
        """An event of the mix that may come, or of everything if the mix seems to have none."""
        for attempt in range(5_000):
            event = (mix if attempt < 50 else everything).event(rng)
            if self.may_come(event):
                return event
        raise SourceError(
            "generated(where=...)",
            needed="a predicate that some generated events satisfy",
            came=f"none in 5,000 events, such as {event!r}",
            hint="values that satisfy it for the fields that it reads, such as taxi_id=[1, 2, 3]",
        )

    def may_come(self, event: Event) -> bool:
        """Does it satisfy `where`?"""
        return may_come(event, self.where, "generated")

    def simpler(self, event: Event) -> Iterator[Event]:
        """The event with one field simpler: the boldest step of every field first, then the next of every field."""
        kind = event.kind
        if kind not in self.domains:
            return
        steps = [_steps_down(value, domain) for value, domain in zip(event[1:], self.domains[kind], strict=True)]
        for turn in itertools.zip_longest(*steps, fillvalue=_NONE_LEFT):
            for name, value in zip(kind.names, turn, strict=True):
                if value is not _NONE_LEFT and self.may_come(simpler := event.replace(**{name: value})):
                    yield simpler

    @functools.cached_property
    def domains(self) -> Pools:
        """The values of each field, once each and the simplest first."""
        pools = self.pools(0).items()
        return {kind: tuple(sorted(dict.fromkeys(pool), key=simplicity) for pool in of) for kind, of in pools}

    def pools(self, seed: int) -> Pools:
        """The values to draw from for this seed; fields of one name and type share them, so that kinds can meet."""
        given = {name: _pool(name, values, seed) for name, values in self.given.items()}
        made: dict[tuple[str, FieldType, int | None], Pool] = {}

        def pool(kind: Kind, name: str, declared: FieldType) -> Pool:
            own = self.given_by_kind.get(kind, {}).get(name)
            key = (name, declared, None if own is None else id(own))
            if key not in made:
                values = own or given.get(name) or values_of(declared).pool(extremes=self.extremes)
                made[key] = fitted(kind, name, values, "generated")
            return made[key]

        return {kind: tuple(pool(kind, *each) for each in kind.fields.items()) for kind in self.kinds}


_NONE_LEFT = object()


def may_come(event: Event, where: Predicate | None, by: str) -> bool:
    """Does the event satisfy the predicate that was given to this function?"""
    if where is None:
        return True
    try:
        return bool(where(event))
    except StreamtightError:
        raise
    except Exception as error:
        raise SourceError(
            f"{by}(where=...)",
            needed="a predicate on every generated event",
            came=f"{type(error).__name__}: {error}, for {event!r}",
            hint="tests for the kind and for None before a field is read",
        ) from error


@dataclass(frozen=True, slots=True)
class _Mix:
    """What the events of one trace are drawn from: kinds, frequent ones more than once, and the pools of each."""

    kinds: Sequence[Kind]
    pools: Pools

    @classmethod
    def of_all(cls, pools: Pools) -> _Mix:
        return cls(list(pools), pools)

    @classmethod
    def of_some(cls, pools: Pools, rng: random.Random) -> _Mix:
        """A part of everything. Traces that each lack something differ more than traces that all have everything."""
        kinds = [kind for kind in pools for _ in range(rng.choice((0, 1, 1, 3)))]
        narrowed: dict[int, Pool] = {}
        for pool in itertools.chain.from_iterable(pools.values()):
            if id(pool) not in narrowed:
                count = rng.choice((1, 2, 2, 3, 4, 0, 0, 0))
                narrowed[id(pool)] = rng.choices(pool, k=count) if count else pool
        return cls(kinds or list(pools), {kind: tuple(narrowed[id(pool)] for pool in of) for kind, of in pools.items()})

    def event(self, rng: random.Random) -> Event:
        draw = rng.random  # a third of the cost of rng.choice, and this is where all the time goes
        kind = self.kinds[int(draw() * len(self.kinds))]
        return kind(*[pool[int(draw() * len(pool))] for pool in self.pools[kind]])


def plain_event(kind: Kind) -> Event:
    """Some event of this kind."""
    return kind(*(values_of(declared).common[0] for declared in kind.fields.values()))


def _pool(field: str, values: FieldValues, seed: int) -> Pool:
    if is_strategy(values):
        return drawn(values, POOL_SIZE, seed, f"generated({field}=...)")
    told = cast("Sequence[object]", values)
    if len(told) <= POOL_SIZE:
        return told
    chosen = random.Random(f"{field} {seed}").sample(range(1, len(told) - 1), POOL_SIZE - 2)
    return [told[place] for place in (0, *chosen, len(told) - 1)]


def fitted(kind: Kind, field: str, values: Iterable[object], by: str) -> Pool:
    """The values that were given to this function, as events of this kind store them."""
    plain = plain_event(kind)
    try:
        return [getattr(plain.replace(**{field: value}), field) for value in values]
    except EventError as error:
        needed = f"values that fit {error.where}: {error.needed}"
        raise SourceError(f"{by}({field}=...)", needed=needed, came=error.came, hint=error.hint) from None


def _steps_down(value: object, domain: Pool) -> list[object]:
    """A few simpler values of the domain: the simplest two, one half way, and the next."""
    known = value in domain
    place = domain.index(value) if known else bisect.bisect_left(domain, simplicity(value), key=simplicity)
    return [domain[step] for step in dict.fromkeys((0, 1, place // 2, place - 1)) if 0 <= step < place]


# -- traces that are given, or made by somebody else ---------------------------------------------------------------


def _listed(what: object, where: str, upto: Dependence | None, kinds: tuple[Kind, ...] = ()) -> Source:
    _require_dependence(upto, where)
    items: list[object] = list(what) if _is_plain_iterable(what) else [what]
    if _is_plain_iterable(what) and items and all(isinstance(item, Event) for item in items):
        items = [Trace(cast("list[Event]", items), upto or ordered)]
    if not all(isinstance(item, Trace) for item in items):
        strange = next((item for item in items if not isinstance(item, (Event, Trace))), what)
        raise SourceError(
            where,
            needed="a trace, a list of traces, or a list of events",
            came=shown(strange),
            hint="Trace([...], ordered) for each list of events" if isinstance(strange, list) else "[event, event]",
        )
    told = cast("list[Trace]", items)
    promise = upto or (told[0].upto if told else ordered)
    traces = [_up_to(trace, promise, where, retell=upto is not None) for trace in told]
    description = f"{len(traces)} listed {'trace' if len(traces) == 1 else 'traces'}"
    return Source(_kinds_in(traces, promise, kinds), promise, description, False, lambda count, seed: traces)


def _made_by_function(
    fn: Callable[[random.Random], object], where: str, upto: Dependence | None, kinds: tuple[Kind, ...]
) -> Source:
    name = getattr(fn, "__name__", repr(fn))
    with contextlib.suppress(ValueError):  # of some functions Python does not know the parameters
        try:
            inspect.signature(fn).bind(random.Random(0))
        except TypeError as error:
            raise SourceError(
                f"{where}{name}",
                needed="a function of a random.Random",
                came=f"{name}{inspect.signature(fn)}: {error}",
                hint=f"def {name}(rng): ..., which returns a trace or a list of events",
            ) from None

    def make(count: int, seed: int) -> Iterator[object]:
        for number in range(count):
            state = f"{seed}/{number}"
            try:
                yield fn(random.Random(state))
            except Exception as error:
                raise SourceError(
                    f"{where}{name}",
                    needed="a function that returns a trace or a list of events",
                    came=f"{type(error).__name__}: {error}",
                    hint=f"{name}(random.Random({state!r})), which raises it again",
                ) from error

    return _sampled(make, f"traces made by {name}", f"{where}{name}", upto, kinds)


def _drawn_by_strategy(
    strategy: SearchStrategy[Any], where: str, upto: Dependence | None, kinds: tuple[Kind, ...]
) -> Source:
    def make(count: int, seed: int) -> Iterable[object]:
        return drawn(strategy, count, seed, where)

    return _sampled(make, "traces drawn by Hypothesis", where, upto, kinds)


def _sampled(
    make: Callable[[int, int], Iterable[object]],
    description: str,
    where: str,
    upto: Dependence | None,
    kinds: tuple[Kind, ...],
) -> Source:
    """A source of which only a sample tells what it yields."""
    _require_dependence(upto, where)
    sample = [_trace_of(made, upto, where) for made in make(SAMPLE_SIZE, 0)]
    promise = upto or (sample[0].upto if sample else ordered)
    known = _kinds_in(sample, promise, kinds)

    def traces(count: int, seed: int) -> Iterator[Trace]:
        for made in make(count, seed):
            trace = _up_to(_trace_of(made, upto, where), promise, where, retell=False)
            for event in trace.events:
                if event.kind not in known:
                    raise SourceError(
                        where,
                        needed=f"events of {names(known)}, as in its first {SAMPLE_SIZE} traces",
                        came=repr(event),
                        hint=f"traces up to a schema that names {event.kind.name} too",
                    )
            yield trace

    for trace in sample:
        _up_to(trace, promise, where, retell=False)
    return Source(known, promise, description, True, traces)


def _trace_of(made: object, upto: Dependence | None, where: str) -> Trace:
    if isinstance(made, Trace):
        return made if upto is None else Trace(made.events, upto)
    events = list(made) if _is_plain_iterable(made) else [made]
    for event in events:
        if not isinstance(event, Event):
            raise SourceError(
                where, needed="traces, or lists of events", came=shown(made), hint="return [GPS(1, 0.0), GPS(2, 0.0)]"
            )
    return Trace(cast("list[Event]", events), upto or ordered)


def _up_to(trace: Trace, promise: Dependence, where: str, *, retell: bool) -> Trace:
    if retell:
        return Trace(trace.events, promise)
    if trace.upto != promise:
        raise SourceError(
            where,
            needed=f"traces up to one dependence, {promise!r}",
            came=f"one up to {trace.upto!r}",
            hint="one dependence that is made once, outside of functions, and used for all traces",
        )
    return trace


def _kinds_in(traces: Iterable[Trace], promise: Dependence, kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
    found = {event.kind for trace in traces for event in trace.events}.union(kinds, promise.domain or ())
    return tuple(sorted(found, key=lambda kind: (kind.name, repr(kind))))


# -- Hypothesis ------------------------------------------------------------------------------------------------------


def is_strategy(given: object) -> TypeGuard[SearchStrategy[Any]]:
    """Is it a strategy of Hypothesis?"""
    if "hypothesis" not in sys.modules:
        return False  # nobody can have made one
    from hypothesis.strategies import SearchStrategy

    return isinstance(given, SearchStrategy)


def drawn(strategy: SearchStrategy[Any], count: int, seed: int, where: str) -> list[object]:
    """So many values of a strategy, the same for the same seed in every process."""
    from hypothesis import currently_in_test_context
    from hypothesis.errors import FailedHealthCheck, HypothesisSideeffectWarning

    with no_folder_left_behind(), warnings.catch_warnings():
        # A source may be made while pytest starts, and is then as slow as the user's strategy.
        warnings.simplefilter("ignore", HypothesisSideeffectWarning)
        try:
            if not currently_in_test_context():
                return _collected(strategy, count, seed)
            # Hypothesis forbids a test within a test, but knows only of those of the same thread.
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(_collected, strategy, count, seed).result()
        except StreamtightError:
            raise
        except FailedHealthCheck as error:
            raise SourceError(
                where,
                needed="values that are small enough for Hypothesis, which draws about 8,000 bytes for one",
                came="mostly larger ones",
                hint="fewer batches or records, or smaller ones",
            ) from error
        except Exception as error:
            raise SourceError(
                where,
                needed="a strategy that gives values",
                came=f"{type(error).__name__}: {error}",
                hint=f"{shown(strategy)}.example(), which raises it too",
            ) from error


def _collected(strategy: SearchStrategy[Any], count: int, seed: int) -> list[object]:
    from hypothesis import HealthCheck, Phase, Verbosity, given, settings
    from hypothesis import seed as seeded

    values: list[object] = []

    @seeded(seed)
    @settings(
        backend=backend(),
        database=None,
        deadline=None,
        derandomize=False,
        max_examples=max(count, 1),
        phases=[Phase.generate],
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=[check for check in HealthCheck if check is not HealthCheck.data_too_large],
        verbosity=Verbosity.quiet,
    )
    @given(strategy)
    def collect(value: object) -> None:
        values.append(value)

    collect()
    return values[:count]


def backend() -> str:
    """The name under which Hypothesis knows a way to draw that depends on nothing but the seed.

    Its own also takes constants out of whatever modules are loaded, and remembers these in a folder.
    """
    try:
        from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS
    except ImportError:
        return "hypothesis"  # before 6.125, when it did not do that yet
    AVAILABLE_PROVIDERS["streamtight"] = "streamtight.source.from_seed.FromSeed"
    return "streamtight"


@contextlib.contextmanager
def no_folder_left_behind() -> Iterator[None]:
    """Lets Hypothesis keep its tables of Unicode in its own folder if that is there, else in the user's cache."""
    from hypothesis import configuration

    known = vars(configuration).get("__hypothesis_home_directory")
    home = known or os.environ.get("HYPOTHESIS_STORAGE_DIRECTORY") or ".hypothesis"
    if Path(home).exists():
        yield
        return
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    configuration.set_hypothesis_home_dir(cache / "streamtight" / "hypothesis")
    try:
        yield
    finally:
        configuration.set_hypothesis_home_dir(known)


# -- wrong questions -------------------------------------------------------------------------------------------------


def kinds_of(what: object, where: str) -> tuple[Kind, ...]:
    """The kinds that a user names, as one kind, several, or a schema."""
    members = [what] if isinstance(what, Kind) else what.kinds if isinstance(what, Schema) else what
    if not _are_kinds(members):
        raise SourceError(where, needed="a Kind, several Kinds, or a schema with kinds", came=shown(what), hint="[GPS]")
    if isinstance(members, (set, frozenset)):  # whose order is another one in every process
        return tuple(sorted(members, key=lambda kind: (kind.name, repr(kind))))
    return tuple(dict.fromkeys(members))


def _are_kinds(given: object) -> TypeGuard[Sequence[Kind] | set[Kind] | frozenset[Kind]]:
    is_group = isinstance(given, (list, tuple, set, frozenset)) and not isinstance(given, Event)
    return is_group and bool(given) and all(isinstance(item, Kind) for item in cast("Iterable[object]", given))


def _is_plain_iterable(given: object) -> TypeGuard[Iterable[Any]]:
    return isinstance(given, Iterable) and not isinstance(given, (Event, str, bytes, Mapping))


def _sizes(size: object) -> tuple[int, int]:
    ends = size if isinstance(size, (tuple, list)) else (1, size)
    match ends:
        case [int() as least, int() as most] if 0 <= least <= most and (most or ends is size):
            return least, most
    raise SourceError(
        "generated(size=...)",
        needed="the most events of a trace, from 1, or the least and the most, from 0",
        came=shown(size),
        hint="size=12 or size=(0, 12)",
    )


def _require_dependence(upto: object, where: str) -> None:
    if upto is not None and not isinstance(upto, Dependence):
        raise SourceError(
            f"{where}, upto=",
            needed="a dependence or a schema",
            came=shown(upto),
            hint="ordered, unordered, same('taxi_id'), or a schema",
        )


def require_predicate(where: object, by: str) -> None:
    """Raise if what was given to this function is no function of an event."""
    if where is not None and (not callable(where) or isinstance(where, (Kind, type))):
        raise SourceError(
            f"{by}(where=...)",
            needed="a function of an event",
            came=shown(where),
            hint="where=lambda event: event.taxi_id > 0",
        )


def require_fields(fields: Mapping[str, object], kinds: tuple[Kind, ...], by: str, others: str) -> None:
    """Raise if a field that was given to this function is no field of the kinds, or its values are none."""
    known = list(dict.fromkeys(field for kind in kinds for field in kind.names))
    for name, values in fields.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise SourceError(
                f"{by}({name}=...)",
                needed=f"a field of {names(kinds)}, or {others}",
                came=repr(name),
                hint=close[0] if close else f"one of {', '.join(known) or '(none)'}",
            )
        if is_strategy(values):
            continue
        is_sequence = isinstance(values, Sequence) and not isinstance(values, (str, bytes, Event))
        if not is_sequence or not values:
            raise SourceError(
                f"{by}({name}=...)",
                needed="a list, a tuple or a range with a value or more, or a Hypothesis strategy",
                came=shown(values),
                hint=f"{name}={_hint_of_values(values)}",
            )


def _hint_of_values(values: object) -> str:
    if isinstance(values, (set, frozenset)):
        return "sorted(...), since sets have another order in every process"
    return "[...]" if isinstance(values, (Iterable, type)) and not isinstance(values, str) else f"[{shown(values)}]"


def names(kinds: Iterable[Kind]) -> str:
    """The names of kinds, for messages."""
    return ", ".join(kind.name for kind in kinds) or "no kind"


def shown(value: object) -> str:
    """A value as a message can show it."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
