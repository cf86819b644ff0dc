"""The laws of consistency, asked for along a run by workers (Definition 4.3).

The functions of a program are called on copies, since they may change what they are given, and twice, since they must
give the same both times. `Broken` says which law is not kept, and what shows it.
"""

from __future__ import annotations

import copy
import itertools
import pickle
import pickletools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamtight.errors import DependenceError, StreamtightError
from streamtight.method.parallelize.wires import Diagram, Forked, events_of, in_sequence, tags_code, update_code
from streamtight.program.fork_join import Block, Branch, ForkJoin, StateType, same_value
from streamtight.program.tags import bare
from streamtight.stream.event import Event, Kind, without_annotation, without_none

MOST_ROWS = 2000
"""Of a large block: programs may handle these otherwise than small ones."""
MOST_EVENTS = 2000
"""What gives more outputs for an event is not run to its end: it may go on for ever."""


@dataclass(frozen=True, slots=True)
class Result:
    """A state and the outputs on the way to it, or what was raised."""

    state: Any = None
    outputs: tuple[Event, ...] = ()
    raised: str | None = None
    is_pair: bool = False
    """Whether there are two states, as after a fork."""

    def __str__(self) -> str:
        if self.raised is not None:
            return f"an exception, {self.raised}"
        return repr(self.state) + (f" with {lines_of(self.outputs, ', ')}" if self.outputs else "")


class Broken(Exception):
    """A law that is broken, with what shows it."""

    def __init__(self, finding: str, explanation: str, rows: Sequence[tuple[str, str]], code: Sequence[str]) -> None:
        super().__init__(explanation)
        self.finding, self.explanation, self.rows, self.code = finding, explanation, tuple(rows), tuple(code)


class Unclear(Exception):
    """Why nothing can be said."""


class FewEvents(list[Event]):
    """Some events."""

    most = MOST_EVENTS

    def append(self, event: Event) -> None:
        if len(self) >= self.most:
            raise OverflowError(f"more than {MOST_EVENTS} outputs for one event")
        super().append(event)


Told = Callable[[], tuple[str, str]]
"""What was called, as a person reads it and as code."""


class Calls:
    """Calls the functions of a program on copies, and twice: they must give the same both times."""

    def __init__(self, program: ForkJoin) -> None:
        self.program = program
        self.updates = 0
        self.raised: Counter[str] = Counter()
        self.first_raised: dict[str, str] = {}

    def init(self) -> Result:
        told = ("init()", "program.init()")
        first = self._twice("init", lambda: Result(copied(self.program.init())), lambda: told)
        if first.raised is not None:
            raise Unclear(f"init() raises {first.raised}")
        return first

    def update(self, type_: StateType, state: Any, event: Event) -> Result:
        def call() -> Result:
            out = FewEvents()
            after = self.program.update_of(type_)(copied(state), event, out.append)
            return Result(after, tuple(out))

        def told() -> tuple[str, str]:
            function = update_code(self.program, type_)
            return f"update({state!r}, {event!r})", f"{function}({state!r}, {event!r}, print)"

        self.updates += 1
        result = self._twice("update", call, told)
        self._require_declared(result, event, told)
        return result

    def updates_of(self, type_: StateType, state: Any, events: Sequence[Event]) -> Result:
        """What several updates give, one after the other."""
        out: list[Event] = []
        for event in events:
            result = self.update(type_, state, event)
            if result.raised is not None:
                return result
            state = result.state
            out += result.outputs
        return Result(state, tuple(out))

    def update_block(self, type_: StateType, state: Any, events: Sequence[Event]) -> Result | None:
        """The same by a block; None if the program wants to have them one by one."""
        function = self.program.update_block_of(type_)
        if function is None or not all(map(_fits_columns, events)):
            return None

        def call() -> Result:
            emit = _Outputs()
            emit.events.most = MOST_EVENTS * len(events)
            return Result(function(copied(state), _block(events), emit), tuple(emit.events))

        def told() -> tuple[str, str]:
            return f"update_block({state!r}, {lines_of(events, ', ')})", f"program.update_block({state!r}, ..., ...)"

        result = self._twice("update_block", call, told)
        return None if result.state is NotImplemented else result

    def fork(self, item: Forked, state: Any) -> Result:
        """Its state is a pair."""

        def call() -> Result:
            left, right = self.program.fork_of(item.branch)(copied(state), *item.tags)
            return Result((copied(left), copied(right)), is_pair=True)  # as if sent to two processes

        def told() -> tuple[str, str]:
            tags, code = (", ".join(map(shown, item.tags)) for shown in (repr, tags_code))
            return f"{item.branch.fork}({state!r}, {tags})", f"program.{item.branch.fork}({state!r}, {code})"

        return self._twice("fork", call, told)

    def join(self, branch: Branch, left: Any, right: Any, outputs: tuple[Event, ...] = ()) -> Result:
        def call() -> Result:
            return Result(self.program.join_of(branch)(copied(left), copied(right)), outputs)

        def told() -> tuple[str, str]:
            call = f"{branch.join}({left!r}, {right!r})"
            return call, f"program.{call}"

        return self._twice("join", call, told)

    def same(self, one: Result, other: Result) -> bool:
        """Whether states and outputs are the same; two exceptions are."""
        if one.raised is not None or other.raised is not None:
            return one.raised is not None and other.raised is not None
        if not same_outputs(one.outputs, other.outputs):
            return False
        pairs = zip(one.state, other.state, strict=True) if one.is_pair else [(one.state, other.state)]
        return all(self.same_state(*pair) for pair in pairs)

    def same_state(self, one: Any, other: Any) -> bool:
        if one is NotImplemented or other is NotImplemented:
            return one is other
        try:
            return bool(self.program.same_state(one, other))
        except Exception as error:  # the border of user code
            raise Unclear(f"same_state({one!r}, {other!r}) raises {type(error).__name__}: {error}") from error

    def _twice(self, name: str, call: Callable[[], Result], told: Told) -> Result:
        first, again = self._result(call), self._result(call)
        if first.raised is not None:
            self.raised[name] += 1
            self.first_raised.setdefault(name, first.raised)
        if first.raised is None and again.raised is None and first.state is not NotImplemented:
            for state in first.state if first.is_pair else (first.state,):
                self._require_travels(state, told)
        if not self.same(first, again):
            text, code = told()
            rows = [(text, str(first)), ("again", str(again))]
            explanation = f"{text} is {first}, and another time {again}: it remembers something, or chooses"
            raise Broken("NOT_A_FUNCTION", explanation, rows, [f"print({code})"] * 2)
        return first

    def _result(self, call: Callable[[], Result]) -> Result:
        try:
            return call()
        except (Broken, Unclear):
            raise
        except Exception as error:  # the border of user code
            return Result(raised=f"{type(error).__name__}: {error}")

    def _require_travels(self, state: Any, told: Told) -> None:
        """States go from process to process: what is sent must come as it was."""
        arrived = copied(state)
        if self.same_state(state, arrived):
            return
        try:
            comparable = self.same_state(state, copy.deepcopy(state))
        except Unclear:
            raise
        except Exception:  # the border of user code
            comparable = False
        if not comparable:
            kind = type(state).__name__
            raise Unclear(f"two equal states, of type {kind}, do not count as the same: {kind}.__eq__, or same_state")
        text, code = told()
        explanation = f"{text} is {state!r}, and {arrived!r} after it was sent to another process"
        rows = [("state", repr(state)), ("pickled and read again", repr(arrived))]
        raise Broken("STATE_CHANGED_BY_PICKLE", explanation, rows, ["import pickle", _pickled(code)])

    def _require_declared(self, result: Result, event: Event, told: Told) -> None:
        for output in result.outputs:
            if not isinstance(output, Event) or output.kind not in self.program.gives:
                given = ", ".join(kind.name for kind in self.program.gives) or "nothing"
                explanation = f"update emits {output!r} for {event!r}, and gives names {given}"
                raise Broken("OUTPUT_NOT_DECLARED", explanation, [("event", repr(event))], [told()[1]])


def copied(state: Any) -> Any:
    """A state as it comes to another process."""
    if state is None or isinstance(state, bool):  # which are the same object everywhere
        return state
    try:
        return pickle.loads(pickle.dumps(state))  # noqa: S301 - what was just written
    except Exception as error:  # the border of user code
        told = f"{type(error).__name__}: {error}"
        explanation = f"a state cannot be sent to another process: {state!r}, {told}"
        raise Broken("STATE_NOT_PICKLED", explanation, [("state", repr(state)), ("pickle", told)], []) from error


def _pickled(code: str) -> str:
    return f"print(pickle.loads(pickle.dumps({code})))"


def same_outputs(one: Sequence[Event], other: Sequence[Event]) -> bool:
    """Whether they are the same multiset, but for the last digits of floats."""
    if len(one) != len(other):
        return False
    left = list(other)
    for event in one:
        place = next((n for n, each in enumerate(left) if each == event), None)
        if place is None:
            place = next((n for n, each in enumerate(left) if _same_event(each, event)), None)
        if place is None:
            return False
        del left[place]
    return True


def _same_event(one: Event, other: Event) -> bool:
    return one.kind is other.kind and same_value(tuple(one[1:]), tuple(other[1:]))


class _Outputs:
    """What `update_block` is given to emit with."""

    def __init__(self) -> None:
        self.events = FewEvents()

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def block(self, kind: Kind, **columns: Any) -> None:
        listed = {name: values.tolist() if hasattr(values, "tolist") else values for name, values in columns.items()}
        for row in zip(*listed.values(), strict=True):
            self.events.append(kind(**dict(zip(listed, row, strict=True))))


def _fits_columns(event: Event) -> bool:
    """Whether its whole numbers have 64 bits, as columns have."""
    return all(type(value) is not int or -(2**63) <= value < 2**63 for value in event[1:])


def _block(events: Sequence[Event]) -> Block:
    kind = events[0].kind
    columns = {name: _column(kind, name, [getattr(event, name) for event in events]) for name in kind.names}
    return Block(kind, columns, len(events))


def _block_code(program: ForkJoin, type_: StateType, state: Any, events: Sequence[Event]) -> list[str]:
    """The lines that update a state by a block, and one by one."""
    kind = events[0].kind
    columns = (f"{name!r}: numpy.array({[getattr(event, name) for event in events]!r})" for name in kind.names)
    own = f"program.{type_.name}.update_block" if type_.update_block is not None else "program.update_block"
    return [
        "import numpy",
        "from streamtight.program.fork_join import Block",
        f"block = Block({kind.name}, {{{', '.join(columns)}}}, {len(events)})",
        f"print({own}({state!r}, block, print))",
        f"state = {state!r}",
        *(f"state = {update_code(program, type_)}(state, {event!r}, print)" for event in events),
        "print(state)",
    ]


def _column(kind: Kind, name: str, values: list[Any]) -> Any:
    import numpy

    of = {int: numpy.int64, float: numpy.float64, bool: numpy.bool_}
    dtype = of.get(without_annotation(without_none(kind.fields[name])[0]))
    return values if dtype is None or None in values else numpy.array(values, dtype=dtype)


def ran(
    program: ForkJoin,
    diagram: Diagram,
    *,
    steps: list[tuple[str, str, str, str]] | None = None,
    states: list[Any] | None = None,
    is_sent: bool = False,
) -> Result:
    """What a run by workers gives. Its steps are noted: wire, what, state, output; and copies of its states.

    is_sent   whether states are sent to another process after each update, too, not only where workers fork
    """
    out = FewEvents()

    def note(name: str, what: str, shown: str, state: Any, before: int) -> None:
        if steps is not None:
            steps.append((name, what, shown, lines_of(out[before:])))
        if states is not None:
            states.append(copied(state))

    def wire(name: str, type_: StateType, state: Any, items: Diagram) -> Any:
        for item in items:
            before = len(out)
            if isinstance(item, Event):
                state = program.update_of(type_)(state, item, out.append)
                state = copied(state) if is_sent else state
                note(name, repr(item), repr(state), state, before)
                continue
            branch, names = item.branch, [f"{name}{side}" for side in (".left", ".right")]
            names = [each.removeprefix("root.") for each in names]
            left, right = map(copied, program.fork_of(branch)(state, *item.tags))
            told = f"{branch.fork} for {item.tags[0]} and {item.tags[1]}"
            note(name, told, f"{left!r} and {right!r}", (left, right), before)
            left = wire(names[0], branch.left, left, item.sides[0])
            right = wire(names[1], branch.right, right, item.sides[1])
            state = program.join_of(branch)(copied(left), copied(right))
            note(name, branch.join, repr(state), state, len(out))
        return state

    try:
        return Result(wire("root", program.state_types[0], copied(program.init()), diagram), tuple(out))
    except Broken:
        raise
    except Exception as error:  # the border of user code
        return Result(outputs=tuple(out), raised=f"{type(error).__name__}: {error}")


def _may_be_rounded(state: Any) -> bool:
    """Whether there are numbers in it that may have lost their last digits."""
    for _, value, _ in pickletools.genops(pickle.dumps(state)):
        if isinstance(value, float) and not (value.is_integer() and abs(value) < 2**53):
            return True
        if isinstance(value, str) and value.partition(".")[0] in ("numpy", "decimal"):  # where its class is from
            return True
    return False


def numbered(kind: Kind, number: int) -> dict[str, Any]:
    """Values that are others for each number, where that is easy."""
    of = {int: number, float: float(number), str: f"{number:02}"}
    plain = {name: without_annotation(without_none(declared)[0]) for name, declared in kind.fields.items()}
    return {name: of[type_] for name, type_ in plain.items() if type_ in of}


def _shortened(result: Result) -> str:
    text = str(result)
    return text if len(text) <= 200 else f"{text[:200]}..."


def lines_of(events: Sequence[Any], between: str = "\n") -> str:
    """Events as text."""
    return between.join(map(repr, events))


# -- the laws, along a run -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Asked:
    """What was asked of a program."""

    calls: Calls
    runs: int = 0
    outputs: int = 0
    blocks: int = 0
    with_large_blocks: bool = False
    large_blocks: set[tuple[StateType, Kind]] = field(default_factory=set)
    """Of which types and kinds they were asked for; once is enough."""
    laws: Counter[tuple[str, Branch | None, int]] = field(default_factory=Counter)
    """How often each law was asked for, where nothing raised."""


class Run:
    """Runs diagrams and asks for the laws on the way. Raises `Broken` at the first that is not kept."""

    def __init__(self, program: ForkJoin, asked: Asked) -> None:
        self._program, self._asked, self._calls = program, asked, asked.calls

    def broken(self, diagram: Diagram) -> Broken | None:
        """The first law that is broken on the way."""
        try:
            self._whole(diagram)
            self._require_same_outputs(diagram)
        except Broken as broken:
            return broken
        return None

    def _whole(self, diagram: Diagram) -> None:
        if not any(isinstance(item, Forked) for item in diagram):  # the same events are run with forks, too
            self._require_relation(events_of(diagram))
            self._require_no_kept_object(in_sequence(self._program, diagram))
        start = self._calls.init().state
        self._asked.runs += 1
        self._wire(self._program.state_types[0], start, diagram)
        self._require_same_start(start, diagram)

    def _wire(self, type_: StateType, state: Any, diagram: Diagram) -> list[Any] | None:
        """The states before each item, and the last one; None if the join raised."""
        states = []
        for place, item in enumerate(diagram):
            states.append(state)
            if isinstance(item, Forked):
                joined = self._forked(state, item)
                if joined is None:
                    return None
                state = joined.state
                continue
            self._require_any_order(type_, state, diagram[place : place + 2])
            self._require_block(type_, state, diagram, place)
            result = self._calls.update(type_, state, item)
            self._asked.outputs += len(result.outputs)
            state = state if result.raised is not None else result.state
        return [*states, state]

    def _forked(self, state: Any, item: Forked) -> Result | None:
        branch, calls = item.branch, self._calls
        pair = calls.fork(item, state)
        joined = pair if pair.raised is not None else calls.join(branch, *pair.state)
        self._asked.laws["C2", branch, 0] += 1
        if not calls.same(joined, Result(state)):
            law = f"{branch.join}({branch.fork}(state))"
            rows = [("state", repr(state)), ("left tags", repr(item.tags[0])), ("right tags", repr(item.tags[1]))]
            if pair.raised is None:
                rows.append((f"{branch.fork}(state, left, right)", repr(pair.state)))
            code = f"program.{branch.fork}({state!r}, {', '.join(map(tags_code, item.tags))})"
            why = "" if joined.raised is not None else f": {branch.fork} and {branch.join} lose or add something"
            raise Broken(
                "FORK_JOIN",
                f"{law} is {joined}, the state was {state!r}{why} "
                f"({branch.fork} was told that {item.tags[0]} can come on the left, {item.tags[1]} on the right)",
                [*rows, (law, str(joined))],
                [f"print({state!r})", f"print(program.{branch.join}(*{code}))"],
            )
        left, right = pair.state
        self._require_apart(state, item)
        sides = [
            self._wire(branch.left, left, item.sides[0]),
            self._wire(branch.right, right, item.sides[1]),
        ]
        if sides[0] is None or sides[1] is None:
            return None
        for own, (mine, others) in enumerate(((sides[0], sides[1]), (sides[1], sides[0]))):
            for before, event in zip(mine, item.sides[own], strict=False):
                if isinstance(event, Event):
                    for place in sorted({0, len(others) // 2, len(others) - 1}):
                        self._require_moves_out(branch, own, (before, others[place]), event)
        result = calls.join(branch, sides[0][-1], sides[1][-1])
        return None if result.raised is not None else result

    def _require_moves_out(self, branch: Branch, own: int, states: tuple[Any, Any], event: Event) -> None:
        """(C1)"""
        calls, types = self._calls, (branch.left, branch.right)
        left, right = states if own == 0 else states[::-1]
        one = calls.update(types[own], states[0], event)
        if one.raised is None:
            pair = (one.state, states[1]) if own == 0 else (states[1], one.state)
            one = calls.join(branch, *pair, outputs=one.outputs)
        joined = calls.join(branch, left, right)
        other = joined if joined.raised is not None else calls.update(branch.of, joined.state, event)
        self._asked.laws["C1", branch, own] += one.raised is None and other.raised is None
        if calls.same(one, other):
            return
        join = branch.join
        inner = f"{join}(update(left, event), right)" if own == 0 else f"{join}(left, update(right, event))"
        outer = f"update({join}(left, right), event)"
        updates = [update_code(self._program, type_) for type_ in (types[own], branch.of)]
        own_code = f"{updates[0]}({states[0]!r}, {event!r}, out.append)"
        pair_code = f"{own_code}, {right!r}" if own == 0 else f"{left!r}, {own_code}"
        raise Broken(
            "JOIN_UPDATE_LEFT" if own == 0 else "JOIN_UPDATE_RIGHT",
            f"{inner} is {one}, {outer} is {other}",
            [
                ("left", repr(left)),
                ("right", repr(right)),
                ("event", repr(event)),
                (inner, str(one)),
                (outer, str(other)),
            ],
            [
                "out = []",
                f"print(program.{join}({pair_code}), out)",
                "out = []",
                f"print({updates[1]}(program.{join}({left!r}, {right!r}), {event!r}, out.append), out)",
            ],
        )

    def _require_any_order(self, type_: StateType, state: Any, pair: Sequence[Event | Forked]) -> None:
        """(C3)"""
        match pair:
            case [Event() as e, Event() as f] if e != f and self._program.depends.independent(e, f):
                pass
            case _:
                return
        one, other = self._calls.updates_of(type_, state, (e, f)), self._calls.updates_of(type_, state, (f, e))
        self._asked.laws["C3", None, 0] += 1
        if self._calls.same(one, other):
            return
        laws = ("update(update(state, e), f)", "update(update(state, f), e)")
        update = update_code(self._program, type_)
        codes = [f"{update}({update}({state!r}, {a!r}, out.append), {b!r}, out.append)" for a, b in ((e, f), (f, e))]
        raise Broken(
            "ORDER_MATTERS",
            f"{laws[0]} is {one}, {laws[1]} is {other}, though {e!r} and {f!r} do not depend on each other",
            [("state", repr(state)), ("e", repr(e)), ("f", repr(f)), (laws[0], str(one)), (laws[1], str(other))],
            [line for code in codes for line in ("out = []", f"print({code}, out)")],
        )

    def _require_block(self, type_: StateType, state: Any, diagram: Diagram, place: int) -> None:
        if self._program.update_block_of(type_) is None:
            return
        block: list[Event] = []
        for item in diagram[place:]:
            if not isinstance(item, Event) or (block and item.kind is not block[0].kind):
                break
            if any(self._program.depends.depends(each, item) for each in block):
                break
            block.append(item)
        one = self._calls.update_block(type_, state, block)
        if one is None:
            return
        self._asked.blocks += 1
        other = self._calls.updates_of(type_, state, block)
        if not self._calls.same(one, other):
            rows = [("state", repr(state)), ("events", lines_of(block)), ("update_block", str(one))]
            raise Broken(
                "BLOCK_DIFFERS",
                f"update_block gives {one}, update gives {other}",
                [*rows, ("update, one after the other", str(other))],
                _block_code(self._program, type_, state, block),
            )
        if self._asked.with_large_blocks and (type_, block[0].kind) not in self._asked.large_blocks:
            self._asked.large_blocks.add((type_, block[0].kind))
            self._require_large_block(type_, state, self._many(type_, block))

    def _many(self, type_: StateType, block: Sequence[Event]) -> list[Event]:
        """Many independent events like these; none if no such are known."""
        program, kind = self._program, block[0].kind
        tag = program.tag_fields(kind)
        alike = [each for each in block if each[1:] and not program.depends.depends(each, each)]
        if alike:  # as often as one likes, with other values besides their tags
            names = [name for name in numbered(kind, 0) if name not in (*tag, program.time)]
            return [
                alike[n % len(alike)].replace(**{name: numbered(kind, n % 100)[name] for name in names})
                for n in range(MOST_ROWS)
            ]
        if type_ is not program.state_types[0]:  # whose states may hold some tags only
            return []
        apart = [
            block[0].replace(**{name: value for name, value in numbered(kind, n).items() if name != program.time})
            for n in range(MOST_ROWS)
        ]
        some = [*apart[:20], *apart[-20:]]
        related = any(program.depends.depends(one, other) for one, other in itertools.combinations(some, 2))
        return [] if related else apart

    def _require_large_block(self, type_: StateType, state: Any, events: Sequence[Event]) -> None:
        if self._one_by_one(type_, state, events) is None:
            return
        for size in (16, 128, 1024, MOST_ROWS):  # the smallest that is wrong is shown
            some = events[:size]
            both = self._one_by_one(type_, state, some)
            if both is None:
                continue
            one, other = both
            raise Broken(
                "BLOCK_DIFFERS",
                f"for {size} events, update_block gives {_shortened(one)}, update gives {_shortened(other)}",
                [
                    ("state", repr(state)),
                    ("events", f"{size}, such as {lines_of(events[:2], ', ')}"),
                    ("update_block", _shortened(one)),
                    ("update, one after the other", _shortened(other)),
                ],
                _block_code(self._program, type_, state, some),
            )

    def _one_by_one(self, type_: StateType, state: Any, events: Sequence[Event]) -> tuple[Result, Result] | None:
        """What a block gives and what its events give, if that is not the same."""
        one, out = self._calls.update_block(type_, state, events) if events else None, FewEvents()
        out.most = MOST_EVENTS * len(events)
        after = copied(state)
        try:
            for event in events if one is not None else ():
                after = self._program.update_of(type_)(after, event, out.append)
        except Exception:  # the border of user code; counted where it is called to be compared
            return None
        other = Result(after, tuple(out))
        return None if one is None or self._calls.same(one, other) else (one, other)

    def _require_apart(self, state: Any, item: Forked) -> None:
        """That no update of one side is seen on the other: they may be in one process."""
        program, branch = self._program, item.branch
        for own, type_ in enumerate((branch.left, branch.right)):
            pair = list(program.fork_of(branch)(copied(state), *item.tags))
            before = copied(pair[1 - own])
            for event in (each for each in item.sides[own] if isinstance(each, Event)):
                try:
                    pair[own] = program.update_of(type_)(pair[own], event, FewEvents().append)
                except Exception:  # the border of user code; counted where it is called to be compared
                    break
                if not self._calls.same_state(before, pair[1 - own]):
                    names = ("left", "right") if own == 0 else ("right", "left")
                    raise Broken(
                        "FORK_SHARES_STATE",
                        f"update of {names[0]} with {event!r} changes {names[1]}, too, from {before!r} to "
                        f"{pair[1 - own]!r}: {branch.fork} gave both sides one object; a copy for one of them",
                        [("state", repr(state)), ("event", repr(event)), (f"{names[1]} before", repr(before))],
                        [
                            f"left, right = program.{branch.fork}({state!r}, {', '.join(map(tags_code, item.tags))})",
                            f"print({names[1]})",
                            f"{update_code(program, type_)}({names[0]}, {event!r}, print)",
                            f"print({names[1]})",
                        ],
                    )

    def _require_same_start(self, start: Any, diagram: Diagram) -> None:
        """That `init` gives a new state each time."""
        state = self._program.init()
        update = self._program.update_of(self._program.state_types[0])
        for event in events_of(diagram):
            try:
                state = update(state, event, FewEvents().append)
            except Exception:  # the border of user code; counted where it is called to be compared
                break
        again = self._calls.init().state
        if not self._calls.same_state(start, again):
            raise Broken(
                "INIT_DIFFERS",
                f"init() is {start!r}, and {again!r} after a run: a new state each time",
                [("init()", repr(start)), ("init() after a run", repr(again))],
                [
                    "print(program.init())",
                    f"program.run([{lines_of(events_of(diagram), ', ')}])",
                    "print(program.init())",
                ],
            )

    def _require_same_outputs(self, diagram: Diagram) -> None:
        """That workers give what the sequential program gives: `update` may tell apart what counts as one state."""
        sequence = tuple(in_sequence(self._program, diagram))
        expected = ran(self._program, sequence)
        if expected.raised is not None or diagram == sequence:
            return
        actual = ran(self._program, diagram)
        if actual.raised is None and same_outputs(expected.outputs, actual.outputs):
            return
        states: list[Any] = []
        for each in (sequence, diagram):
            ran(self._program, each, states=states)
        if any(map(_may_be_rounded, states)):
            return
        told = lines_of(expected.outputs, ", ") or "nothing"
        came = f"an exception, {actual.raised}" if actual.raised else lines_of(actual.outputs, ", ") or "nothing"
        raise Broken(
            "OUTPUTS_DIFFER",
            "no law is broken as far as same_state tells, but update tells states apart that count as the same",
            [("in sequence", told), ("on several workers", came)],
            [],
        )

    def _require_no_kept_object(self, events: Sequence[Event]) -> None:
        """That it makes no difference whether states are sent between two events."""
        sent = ran(self._program, tuple(events), is_sent=True)
        kept = ran(self._program, tuple(events))
        both_raise = sent.raised is not None and kept.raised is not None
        if both_raise or (sent.raised == kept.raised and same_outputs(sent.outputs, kept.outputs)):
            return
        told = [each.raised or lines_of(each.outputs, ", ") or "nothing" for each in (kept, sent)]
        raise Broken(
            "NOT_A_FUNCTION",
            f"the outputs are {told[0]}, and {told[1]} if states are sent to another process in between: update gives "
            "back an object that it keeps and changes later, or asks which object its state is",
            [("events", lines_of(events)), ("outputs", told[0]), ("outputs, if states are sent", told[1])],
            [
                "import pickle",
                f"events = [{lines_of(events, ', ')}]",
                "out = []",
                "state = program.init()",
                f"for event in events:\n    state = {update_code(self._program, self._program.state_types[0])}"
                "(pickle.loads(pickle.dumps(state)), event, out.append)",
                "print(out)",
                "print(program.run(events))",
            ],
        )

    def _require_relation(self, events: Sequence[Event]) -> None:
        """That the dependence is symmetric and looks at tags only."""
        program = self._program
        for one, other in itertools.combinations_with_replacement(dict.fromkeys(events), 2):
            rows = [("one", repr(one)), ("other", repr(other))]
            code = [f"print(program.depends.depends({a!r}, {b!r}))" for a, b in ((one, other), (other, one))]
            tags = [bare(e.kind, {name: getattr(e, name) for name in program.tag_fields(e.kind)}) for e in (one, other)]
            try:
                whole = program.depends.depends(one, other)
            except DependenceError as error:
                finding = "DEPENDENCE_NOT_SYMMETRIC" if "symmetric" in error.needed else "DEPENDENCE_RAISES"
                raise Broken(finding, str(error), rows, code) from error
            except Exception as error:  # the border of user code
                told = f"{program.depends!r} raises {type(error).__name__}: {error}"
                raise Broken("DEPENDENCE_RAISES", told, rows, code) from error
            try:
                by_tags = program.depends.depends(*tags)
            except Exception as error:  # the border of user code
                told = error.came if isinstance(error, StreamtightError) else f"{type(error).__name__}: {error}"
                explanation = f"{program.depends!r} looks at more than tags: {told}"
                raise Broken("DEPENDENCE_LOOKS_AT_PAYLOAD", explanation, rows, code) from error
            if whole != by_tags:
                explanation = f"{program.depends!r} looks at more than tags"
                raise Broken("DEPENDENCE_LOOKS_AT_PAYLOAD", explanation, rows, code)
