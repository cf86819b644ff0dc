"""Property directed reachability: a proof for runs of any length, from steps of length one.

Frames are sets of states, each described by cubes that are not in it: a cube is a part of a state, as literals. Frame i
has all states that are reached within i steps, and more. A bad state in the last frame is traced back, cube by cube; a
cube that no state of the frame before leads to is taken out, together with as many others as the solver's reason
allows. If two frames in a row are equal, nothing new is reached, ever.

From Aaron Bradley: SAT-based model checking without unrolling (2011), and Niklas Eén, Alan Mishchenko, Robert Brayton:
Efficient implementation of property directed reachability (2011).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamtight.solver.transitions import Clock, Solver, System, new_solver

Cube = tuple[int, ...]
"""Literals of the state: those states in which all are true."""

_QUESTIONS = 3_000
"""So many questions leave clauses behind that are of no use; then a solver is made anew."""


@dataclass(frozen=True, slots=True)
class _Aim:
    """States that lead to a violation: with these choices to those of the next aim, if there is one."""

    cube: Cube
    choices: tuple[bool, ...]
    then: _Aim | None


class Proof:
    """Work on a proof that no violation is reached.

    steps     no violation within so many steps
    proved    nor in any number of them
    violation the choices of a run to one; not always a shortest
    """

    def __init__(self, system: System, solver: str, clock: Clock) -> None:
        self._system, self._name, self._clock = system, solver, clock
        self.steps = 0
        self.proved = False
        self.violation: list[tuple[bool, ...]] | None = None
        self._after = dict(zip(system.state, system.after, strict=True))
        self._after.update((-wire, -after) for wire, after in zip(system.state, system.after, strict=True))
        self._first = {wire if begin else -wire for wire, begin in zip(system.state, system.first, strict=True)}
        self._clauses = system.circuit.clauses([*system.after, system.runs, system.bad, *system.inside])
        self._blocked: list[set[Cube]] = [set()]
        """For each frame the cubes that are in no earlier one's list: those of later ones are out of it, too."""
        self._often: dict[int, int] = {}
        """How often a literal was in a cube that was taken out: others may be of no use."""
        self._numbers = itertools.count()
        self._model: list[int] = []
        self._fill()

    # -- solvers -----------------------------------------------------------------------------------------------------

    def _new_solver(self) -> Solver:
        solver: Solver = new_solver(self._name)
        solver.append_formula(self._clauses)
        return solver

    def _fill(self) -> None:
        """The solver for steps, with all that is known of frames; and the one that lifts."""
        system = self._system
        self._lifting = self._new_solver()
        self._solver = self._new_solver()
        self._solver.append_formula([[system.runs], *([wire] for wire in system.inside)])
        self._last = self._lifts = system.circuit.last
        self._questions = 0
        self._active: list[int] = []
        for _ in self._blocked:
            self._activate()
        self._solver.append_formula([[-self._active[0], literal] for literal in self._first])
        for level, cubes in enumerate(self._blocked):
            self._solver.append_formula([[-self._active[level], *(-each for each in cube)] for cube in cubes])

    def _activate(self) -> None:
        self._last += 1
        self._active.append(self._last)

    @property
    def _top(self) -> int:
        return len(self._blocked) - 1

    # -- the search --------------------------------------------------------------------------------------------------

    def work(self) -> Iterator[None]:
        """Go on, a moment at a time, until it is proved or a violation is found."""
        while True:
            while self._clock.ask(self._solver, [*self._active[self._top :], self._system.bad]):
                yield from self._trace(self._lifted(None))
                if self.violation is not None:
                    return
            self.steps = self._top + 1
            self._blocked.append(set())
            self._activate()
            for level in range(1, self._top):
                for cube in sorted(self._blocked[level], key=len):
                    yield
                    if cube in self._blocked[level] and (more := self._leads_not(cube, level + 1)) is not None:
                        self._take_out(more, level + 1)
                if not self._blocked[level]:
                    self.proved = True
                    return

    def _trace(self, bad: _Aim) -> Iterator[None]:
        waiting = [(self._top, next(self._numbers), bad)]
        while waiting:
            yield
            level, number, aim = heapq.heappop(waiting)
            if level == 0 or self._has_first(aim.cube):
                self.violation = []
                then: _Aim | None = aim
                while then is not None:
                    self.violation.append(then.choices)
                    then = then.then
                return
            if self._is_out(aim.cube, level):
                if level < self._top:
                    heapq.heappush(waiting, (level + 1, number, aim))
                continue
            smaller = self._comes_not(aim.cube, level)
            if smaller is None:
                heapq.heappush(waiting, (level - 1, next(self._numbers), self._lifted(aim)))
                heapq.heappush(waiting, (level, number, aim))
                continue
            smaller = self._generalised(smaller, level)
            while level < self._top and (pushed := self._comes_not(smaller, level + 1)) is not None:
                smaller, level = pushed, level + 1
            self._take_out(smaller, level)
            if level < self._top:
                heapq.heappush(waiting, (level + 1, number, aim))

    def _generalised(self, cube: Cube, level: int) -> Cube:
        """More states around these that cannot be reached either: literals are left out, one after the other."""
        often = self._often
        for literal in sorted(cube, key=lambda each: often.get(each, 0)):
            if literal not in cube:
                continue
            fewer = tuple(each for each in cube if each != literal)
            if not fewer or self._has_first(fewer):
                continue
            found = self._comes_not(fewer, level)
            if found is not None:
                cube = found
        for literal in cube:
            often[literal] = often.get(literal, 0) + 1
        return cube

    # -- cubes and frames --------------------------------------------------------------------------------------------

    def _has_first(self, cube: Cube) -> bool:
        return self._first.issuperset(cube)

    def _is_out(self, cube: Cube, level: int) -> bool:
        """Is it known not to be in a frame?"""
        literals = set(cube)
        return any(literals.issuperset(known) for cubes in self._blocked[level:] for known in cubes)

    def _take_out(self, cube: Cube, level: int) -> None:
        """Note that no state of a cube is in the frames up to this one."""
        literals = set(cube)
        for cubes in self._blocked[1 : level + 1]:
            cubes.difference_update([known for known in cubes if literals.issubset(known)])
        self._blocked[level].add(cube)
        self._solver.add_clause([-self._active[level], *(-each for each in cube)])

    # -- questions ---------------------------------------------------------------------------------------------------

    def _leads_not(self, cube: Cube, level: int) -> Cube | None:
        """Does the frame before lead to none of these states? Then, to none of even more."""
        return self._reason(cube, self._active[level - 1 :])

    def _comes_not(self, cube: Cube, level: int) -> Cube | None:
        """The same without what these states lead to themselves: a run comes to them from outside first."""
        if self._questions > _QUESTIONS:
            self._solver.delete()
            self._lifting.delete()
            self._fill()
        self._questions += 1
        self._last += 1
        outside = self._last
        self._solver.add_clause([-outside, *(-each for each in cube)])
        found = self._reason(cube, [outside, *self._active[level - 1 :]])
        # After the reason is read: a new clause lets the solver forget it. The model is read by `_lifted`.
        self._model = self._solver.get_model() if found is None else []
        self._solver.add_clause([-outside])
        return found

    def _reason(self, cube: Cube, assumptions: Sequence[int]) -> Cube | None:
        after = self._after
        if self._clock.ask(self._solver, [*assumptions, *(after[each] for each in cube)]):
            return None
        core = set(self._solver.get_core() or ())
        found = []
        for literal in cube:
            if after[literal] in core:
                core.discard(after[literal])  # several bits may become the same: one of them is enough
                found.append(literal)
        if self._has_first(tuple(found)):
            found.append(next(literal for literal in cube if literal not in self._first))
        return tuple(found)

    def _lifted(self, aim: _Aim | None) -> _Aim:
        """States that lead to the aim (none: to a violation), around the one that the solver found."""
        system, after = self._system, self._after
        model = self._model if aim is not None else self._solver.get_model()
        true = set(model)
        choices = tuple(wire in true for wire in system.inputs)
        state = [wire if wire in true else -wire for wire in system.state]
        target = [-system.bad] if aim is None else [-system.runs, *(-after[each] for each in aim.cube)]
        self._lifts += 1
        solver = self._lifting
        solver.add_clause([-self._lifts, *target])
        assumptions = [self._lifts, *(wire if on else -wire for wire, on in zip(system.inputs, choices, strict=True))]
        if self._clock.ask(solver, [*assumptions, *state]):
            raise AssertionError("a state and its choices do not determine what follows")
        core = set(solver.get_core())
        solver.add_clause([-self._lifts])
        return _Aim(tuple(literal for literal in state if literal in core), choices, aim)
