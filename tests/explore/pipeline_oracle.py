"""What pipelines can do, by trying everything: slow, and obvious. The engines of `explore` must agree with it.

States are those of `Pipeline.push` itself, under `Limited` rules. Where a run stops, nothing is known of what follows.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from random_pipelines import Node, World

from streamtight.program.limits import Integers, Limited, Limits, Stopped
from streamtight.program.pipeline import Front, Pipeline
from streamtight.program.processor import NOTHING
from streamtight.verdict import Outcome

FAILS, UNDECIDED, HOLDS = Outcome.FAILS, Outcome.UNDECIDED, Outcome.HOLDS


class TooLarge(Exception):
    """More states than are tried here."""


class Letter:
    """What a step showed: `"out" in letter`, `letter["out"]`, `letter.queues["C.1"]`."""

    def __init__(self, pipes: Mapping[str, Any], queues: Mapping[str, int]) -> None:
        self.pipes, self.lengths = dict(pipes), dict(queues)

    @property
    def queues(self) -> dict[str, tuple[Any, ...]]:
        return {name: (NOTHING,) * length for name, length in self.lengths.items()}

    def __getitem__(self, pipe: str) -> Any:
        return self.pipes.get(pipe, NOTHING)

    def __contains__(self, pipe: str) -> bool:
        return self[pipe] is not NOTHING


@dataclass(frozen=True)
class Step:
    """One step of the graph: what was brought, what was seen, where it leads (None: it stops)."""

    front: Front
    letter: Letter | None
    after: int | None


def limits_of(world: World, integers: Integers | None) -> Limits:
    """The limits of a world, with these whole numbers."""
    named = isinstance(world.queue, dict)
    return Limits(3 if named else world.queue, world.queue if named else {}, world.full, integers)  # type: ignore[arg-type]


def fronts_of(pipelines: Sequence[Pipeline], world: World, has_ended: bool) -> list[Front]:
    """All that a push may bring."""
    inputs = pipelines[0].inputs
    idle = (NOTHING,) * len(inputs)
    leaks = [
        frozenset(itertools.compress(world.leaks, chosen))
        for chosen in itertools.product((False, True), repeat=len(world.leaks))
    ]
    if has_ended:
        return [Front(idle, lost, ends=True) for lost in leaks]
    values = []
    for name, kind in inputs.items():
        if name in world.inputs:
            values.append(tuple(world.inputs[name]))
        elif kind is int:
            values.append(tuple(range(world.integers.low, world.integers.high + 1)))
        else:
            values.append((False, True) if kind is bool else tuple(kind))
    found = []
    for events in itertools.product(*((*each, NOTHING) for each in values)):
        count = sum(event is not NOTHING for event in events)
        if (not count and not world.pauses) or (world.together and 0 < count < len(events)):
            continue
        found += [Front(events, lost) for lost in leaks]
    if world.ends:
        found += [Front(idle, lost, ends=True) for lost in leaks]
    if world.resets:
        found.append(Front(idle, resets=True))
    return found


@dataclass
class Side:
    """Pipelines that are pushed together, as one system."""

    pipelines: Sequence[Pipeline]
    limits: Limits

    def start(self) -> Any:
        return tuple(each.start() for each in self.pipelines)

    def push(self, state: Any, front: Front) -> tuple[Any, list[Letter]]:
        """The state after a push, and what each pipeline showed; raises Stopped."""
        if front.resets:
            return self.start(), [Letter({}, dict.fromkeys(each.queues, 0)) for each in self.pipelines]
        after, letters = [], []
        for each, mine in zip(self.pipelines, state, strict=True):
            rules = Limited(self.limits, leaks=front.leaks)
            then, outs = each.push(mine, front.events, rules, ends=front.ends)
            seen = {**rules.seen, **dict(zip(each.outputs, outs, strict=True))}
            # An output that is called as an input of the pipeline is that input.
            letters.append(Letter(seen, {name: len(held) for name, held in zip(each.queues, then[1], strict=True)}))
            after.append(then)
        return tuple(after), letters


@dataclass
class Explored:
    """All states that can be reached, and all steps from each; the first state is 0."""

    steps: list[list[Step]]
    depth: list[int]
    ways: list[tuple[Front, ...]]


def explored(
    pipelines: Sequence[Pipeline],
    world: World,
    integers: Integers | None,
    *,
    extra: Callable[[Any, list[Letter], Front], tuple[Any, dict[str, Any]]] | None = None,
    most: int = 1500,
) -> Explored:
    """The graph of all states. `extra(memory, letters, front)` keeps a memory beside, and may raise Stopped."""
    system = Side(pipelines, limits_of(world, integers))
    first = (system.start(), False, None)
    numbers: dict[Any, int] = {first: 0}
    states, depth, ways = [first], [0], [()]
    steps: list[list[Step]] = []
    tried = 0
    for state, has_ended, memory in states:
        mine: list[Step] = []
        at = len(steps)
        for front in fronts_of(pipelines, world, has_ended):
            tried += 1
            if tried > 40 * most:
                raise TooLarge
            try:
                after, letters = system.push(state, front)
                pipes = dict(letters[0].pipes)
                kept = memory
                if extra is not None:
                    kept, more = extra(None if front.resets else memory, letters, front)
                    pipes = {**pipes, **more}
            except Stopped:
                mine.append(Step(front, None, None))
                continue
            key = (after, has_ended or front.ends, kept)
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(states)
                states.append(key)
                depth.append(depth[at] + 1)
                ways.append((*ways[at], front))
                if len(states) > most:
                    raise TooLarge
            mine.append(Step(front, Letter(pipes, letters[0].lengths), number))
        steps.append(mine)
    return Explored(steps, depth, ways)


@dataclass(frozen=True)
class Found:
    """The verdict of the oracle: FAILS with the length of a shortest counterexample."""

    outcome: Outcome
    length: int | None = None
    happened: bool = True


def safety(graph: Explored, is_bad: Callable[[Letter], bool], happens: Callable[[Letter], bool] | None = None) -> Found:
    """Is there a step that is bad?"""
    lengths = [
        graph.depth[state] + 1
        for state, steps in enumerate(graph.steps)
        for step in steps
        if step.letter is not None and is_bad(step.letter)
    ]
    if lengths:
        return Found(FAILS, min(lengths))
    has_stops = any(step.letter is None for steps in graph.steps for step in steps)
    happened = happens is None or any(
        step.letter is not None and happens(step.letter) for steps in graph.steps for step in steps
    )
    return Found(UNDECIDED if has_stops else HOLDS, happened=happened)


def never_stops(graph: Explored) -> Found:
    """Does no run stop?"""
    lengths = [
        graph.depth[state] + 1 for state, steps in enumerate(graph.steps) if any(step.letter is None for step in steps)
    ]
    return Found(FAILS, min(lengths)) if lengths else Found(HOLDS)


def live(graph: Explored, pipe: str) -> Found:
    """Can one more event always come; or has the stream ended?"""
    alive: set[int] = set()
    perhaps = {state for state, steps in enumerate(graph.steps) if any(step.letter is None for step in steps)}
    for state, steps in enumerate(graph.steps):
        if any(step.letter is not None and (pipe in step.letter or step.front.ends) for step in steps):
            alive.add(state)
    may = _backward(graph, alive | perhaps)
    dead = [graph.depth[state] for state in range(len(graph.steps)) if state not in may]
    if dead:
        return Found(FAILS, min(dead))
    return Found(HOLDS if not perhaps else UNDECIDED)


def _backward(graph: Explored, wanted: set[int]) -> set[int]:
    found = set(wanted)
    while True:
        more = {
            state
            for state, steps in enumerate(graph.steps)
            if state not in found and any(step.after in found for step in steps)
        }
        if not more:
            return found
        found |= more


# -- tests of one step -----------------------------------------------------------------------------------------------

SIGNS = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds_at(atom: str, letter: Letter) -> bool:
    """A text such as `out`, `out >= 2`, `#C.1 = 0` at a step."""
    words = atom.split()
    if len(words) == 1:
        return words[0] in letter
    left, sign, right = words
    value = letter.lengths[left[1:]] if left.startswith("#") else letter[left]
    constants: dict[str, Any] = {"TRUE": True, "FALSE": False}
    wanted = constants[right] if right in constants else right[1:-1] if right.startswith("'") else int(right)
    return value is not NOTHING and bool(SIGNS[sign](value, wanted))


def atoms_of(node: Node) -> list[str]:
    """The texts of the tests in a formula."""
    if node[0] == "atom":
        return [node[1]]
    return list(dict.fromkeys(atom for part in node[1:] for atom in atoms_of(part)))


@dataclass
class Nodes:
    """The graph as letters: a node is what a step showed and the state after it. The last one stands for all that may
    come where a run stops.
    """

    letters: list[frozenset[str]]
    leads: list[list[int]]
    first: list[int]

    @property
    def unknown(self) -> int:
        return len(self.letters)


def nodes_of(graph: Explored, atoms: Sequence[str]) -> Nodes:
    """Letters as the atoms that are true."""
    numbers: dict[tuple[frozenset[str], int], int] = {}
    raw: list[list[tuple[frozenset[str], int] | None]] = []
    for steps in graph.steps:
        mine: dict[tuple[frozenset[str], int] | None, None] = {}
        for step in steps:
            if step.letter is None or step.after is None:
                mine[None] = None
            else:
                letter = frozenset(atom for atom in atoms if holds_at(atom, step.letter))
                mine[letter, step.after] = None
                numbers.setdefault((letter, step.after), len(numbers))
        raw.append(list(mine))
    unknown = len(numbers)
    by_state = [[unknown if each is None else numbers[each] for each in mine] for mine in raw]
    return Nodes([letter for letter, _ in numbers], [by_state[after] for _, after in numbers], by_state[0])


# -- CTL: each operator by its fixpoint, in three values -------------------------------------------------------------

FALSE, OPEN, TRUE = 0, 1, 2
Values = list[int]


def branching(nodes: Nodes, formula: Node) -> Outcome:
    """The truth of a CTL formula at all first nodes."""
    values = _labels(nodes, formula)
    return (FAILS, UNDECIDED, HOLDS)[min(values[node] for node in nodes.first)]


def _labels(nodes: Nodes, formula: Node) -> Values:
    op, *parts = formula
    size = len(nodes.letters)
    if op == "atom":
        return [TRUE if parts[0] in letter else FALSE for letter in nodes.letters] + [OPEN]
    given = [_labels(nodes, part) for part in parts]
    match op:
        case "not":
            return [TRUE - value for value in given[0]]
        case "and":
            return list(map(min, *given))
        case "or":
            return list(map(max, *given))
        case "->":
            return [max(TRUE - left, right) for left, right in zip(*given, strict=True)]
    pick: Callable[[Iterable[int]], int] = min if op[0] == "A" else max

    def following(values: Values) -> Values:
        return [pick(values[lead] for lead in nodes.leads[node]) for node in range(size)]

    body = given[-1]
    match op[1]:
        case "X":
            return [*following(body), OPEN]
        case "G":
            return _fixpoint([TRUE] * size, lambda now: list(map(min, body, following([*now, OPEN]))))
        case "F":
            return _fixpoint([FALSE] * size, lambda now: list(map(max, body, following([*now, OPEN]))))
    left = given[0]
    return _fixpoint(
        [FALSE] * size,
        lambda now: [max(b, min(a, n)) for a, b, n in zip(left, body, following([*now, OPEN]), strict=False)],
    )


def _fixpoint(first: Values, step: Callable[[Values], Values]) -> Values:
    now = first
    while True:
        then = step(now)[: len(first)]
        if then == now:
            return [*now, OPEN]
        now = then


# -- LTL: guessed truth values of what comes next, and fair circles by fixpoints -------------------------------------


def core(node: Node) -> Node:
    """The formula with atoms, not, and, X, U alone."""
    op, *parts = node
    if op in ("atom", "true"):
        return node
    given = [core(part) for part in parts]
    match op:
        case "or":
            return ("not", ("and", ("not", given[0]), ("not", given[1])))
        case "->":
            return ("not", ("and", given[0], ("not", given[1])))
        case "F":
            return ("U", ("true",), given[0])
        case "G":
            return ("not", ("U", ("true",), ("not", given[0])))
        case "R":
            return ("not", ("U", ("not", given[0]), ("not", given[1])))
    return (op, *given)


def _temporal(node: Node, found: dict[Node, None]) -> None:
    for part in node[1:]:
        if isinstance(part, tuple):
            _temporal(part, found)
    if node[0] in ("X", "U"):
        found[node] = None


class Linear:
    """Is there a run without end that breaks a formula? With `chaos`, anything may come where a run stops."""

    def __init__(self, nodes: Nodes, formula: Node, *, chaos: bool, most: int = 20_000) -> None:
        self.formula = core(formula)
        found: dict[Node, None] = {}
        _temporal(self.formula, found)
        self.guessed = list(found)
        self.letters = list(nodes.letters)
        unknown: list[int] = []
        if chaos:
            atoms = atoms_of(formula)
            for chosen in itertools.product((False, True), repeat=len(atoms)):
                unknown.append(len(self.letters))
                self.letters.append(frozenset(itertools.compress(atoms, chosen)))
        self.leads = [self._told(leads, nodes.unknown, unknown) for leads in nodes.leads] + [unknown] * len(unknown)
        self.first = self._told(nodes.first, nodes.unknown, unknown)
        self.guesses = list(itertools.product((False, True), repeat=len(self.guessed)))
        if len(self.letters) * len(self.guesses) > most:
            raise TooLarge

    @staticmethod
    def _told(leads: Sequence[int], unknown: int, instead: Sequence[int]) -> list[int]:
        return [lead for lead in leads if lead != unknown] + (list(instead) if unknown in leads else [])

    def value(self, node: Node, letter: frozenset[str], guess: tuple[bool, ...]) -> bool:
        match node[0]:
            case "true":
                return True
            case "atom":
                return node[1] in letter
            case "not":
                return not self.value(node[1], letter, guess)
            case "and":
                return all(self.value(part, letter, guess) for part in node[1:])
            case "X":
                return guess[self.guessed.index(node)]
        _, left, right = node
        return self.value(right, letter, guess) or (self.value(left, letter, guess) and guess[self.guessed.index(node)])

    def is_broken(self) -> bool:
        """Whether there is such a run."""
        values: dict[tuple[int, int], tuple[bool, ...]] = {}
        for place, letter in enumerate(self.letters):
            for number, guess in enumerate(self.guesses):
                wanted = [each[1] if each[0] == "X" else each for each in self.guessed]
                values[place, number] = tuple(self.value(each, letter, guess) for each in wanted)
        by_values: dict[tuple[int, tuple[bool, ...]], list[tuple[int, int]]] = {}
        for (place, number), told in values.items():
            by_values.setdefault((place, told), []).append((place, number))
        edges = {
            (place, number): [
                each for lead in self.leads[place] for each in by_values.get((lead, self.guesses[number]), ())
            ]
            for place, number in values
        }
        fair = []
        for each in self.guessed:
            if each[0] == "U":
                fair.append(
                    {
                        (place, number)
                        for place, number in values
                        if not self.value(each, self.letters[place], self.guesses[number])
                        or self.value(each[2], self.letters[place], self.guesses[number])
                    }
                )
        good = _fair(edges, fair or [set(edges)])
        return any(
            (place, number) in good and not self.value(self.formula, self.letters[place], guess)
            for place in self.first
            for number, guess in enumerate(self.guesses)
        )


def _fair(edges: Mapping[Any, Sequence[Any]], fair: Sequence[set[Any]]) -> set[Any]:
    """From where there is a way without end that meets each of these sets again and again (Emerson and Lei)."""
    before: dict[Any, list[Any]] = {each: [] for each in edges}
    for each, leads in edges.items():
        for lead in leads:
            before[lead].append(each)
    good = set(edges)
    while True:
        then = set(good)
        for wanted in fair:
            reached = set(then & wanted)
            waiting = list(reached)
            while waiting:
                for each in before[waiting.pop()]:
                    if each in then and each not in reached:
                        reached.add(each)
                        waiting.append(each)
            then = {each for each in then if any(lead in reached for lead in edges[each])}
        if then == good:
            return good
        good = then


def value_on_lasso(formula: Node, path: Sequence[frozenset[str]], loop: Sequence[frozenset[str]]) -> bool:
    """The truth of an LTL formula on the word that repeats the loop for ever: each operator by going round twice."""
    word = [*path, *loop]
    size, back = len(word), len(path)

    def labels(node: Node) -> list[bool]:
        op, *parts = node
        if op == "true":
            return [True] * size
        if op == "atom":
            return [parts[0] in letter for letter in word]
        given = [labels(part) for part in parts]
        match op:
            case "not":
                return [not value for value in given[0]]
            case "and":
                return [a and b for a, b in zip(*given, strict=True)]
            case "X":
                return [given[0][at + 1 if at + 1 < size else back] for at in range(size)]
        left, right = given
        now = [False] * size
        for _ in range(size + 1):
            now = [right[at] or (left[at] and now[at + 1 if at + 1 < size else back]) for at in range(size)]
        return now

    return labels(core(formula))[0]
