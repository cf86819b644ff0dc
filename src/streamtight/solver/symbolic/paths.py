"""All paths of a run: where Python asks for a truth value, the run is made once for each answer that is possible."""

from __future__ import annotations

import dis
import os
import sys
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import z3

from streamtight.errors import StreamtightError, UnsupportedError
from streamtight.solver.ask import Budget, check

_OWN_FILES = (os.path.dirname(__file__) + os.sep, os.path.dirname(z3.__file__))


class NotReadable(UnsupportedError):
    """A function that cannot be read exactly. `line` says where in `file`, `what` says why: "uses random.random()"."""

    def __init__(self, what: str, *, line: int | None, file: str | None = None) -> None:
        place = "a function without source" if line is None else f"line {line}" + (f" of {file}" if file else "")
        super().__init__(
            place,
            needed="a function that can be run on symbolic values",
            came=f"one that {what}",
            hint="rewrite that line with arithmetic, comparisons and tuples, or compare on generated inputs instead",
        )
        self.line = line
        self.file = file
        self.what = what


@dataclass(frozen=True, slots=True)
class Path:
    """Where `guard` is true, the function gives `result`, or raises `raised`.

    The result is a tree of tuples, lists, namedtuples and dataclasses; its leaves are None, int, bool, str, float and
    symbolic values. `assumes` holds what is assumed on this path.
    """

    guard: z3.BoolRef
    result: object = None
    raised: Exception | None = None
    assumes: frozenset[str] = frozenset()


class Followed(Protocol):
    """The function that is being run."""

    codes: dict[int, types.CodeType]
    """The code that was made for it, by the id."""
    place: tuple[int | None, str | None]

    def require_unchanged(self) -> None:
        """Refuse if it has changed what is not its own."""


@dataclass(slots=True)
class _Step:
    """One decision of the current run. It is forced if the other answer is impossible."""

    condition: Any
    taken: bool
    forced: bool
    other_is_open: bool
    other_model: Any

    @property
    def literal(self) -> Any:
        return self.condition if self.taken else z3.Not(self.condition)


exploring: list[Exploration] = []


def is_reading() -> bool:
    """Whether a function is being read at the moment, not a program that decides by what is read."""
    return bool(exploring) and exploring[-1].function is not None


class Exploration:
    """Depth first over the answers that `bool` may give. The solver's stack holds the decisions of the current run."""

    def __init__(self, given: Sequence[z3.BoolRef], budget: Budget, most: int) -> None:
        self.given = list(given)
        self.budget = budget
        self.most = most
        self.solver = z3.Solver()
        self.solver.add(*self.given)
        self.model: Any = None
        self.trail: list[_Step] = []
        self.depth = 0
        self.finished = 0
        self.known: dict[int, bool] = {}
        self.simple: dict[int, tuple[Any, bool]] = {}
        self.kept: list[Any] = []
        self.assumes: set[str] = set()
        self.refusal: NotReadable | None = None
        self.own_error: Exception | None = None
        self.error_of_builtin: Exception | None = None
        self.function: Followed | None = None

    def start(self) -> bool:
        if not self.given:
            self.model = z3.Model()
            return True
        status, _ = check(self.solver, self.budget.left)
        self.model = self.solver.model() if status == z3.sat else None
        return bool(status != z3.unsat)

    def decide(self, condition: Any) -> bool:
        condition, turned = self._simple(condition)
        if condition is None:
            return turned
        answer = self.known.get(condition.get_id())
        if answer is None:
            answer = self.known[condition.get_id()] = self._next(condition).taken
        return answer != turned

    def _simple(self, condition: Any) -> tuple[Any, bool]:
        """A simpler condition and whether its answer is to be turned; or None and the answer."""
        key = condition.get_id()  # equal terms have one id, as long as one of them lives
        if key not in self.simple:
            self.kept.append(condition)
            simple, turned = z3.simplify(condition), False
            while z3.is_not(simple):
                simple, turned = simple.arg(0), not turned
            decided = z3.is_true(simple) or z3.is_false(simple)
            self.simple[key] = (None, bool(z3.is_true(simple)) != turned) if decided else (simple, turned)
        return self.simple[key]

    def _next(self, condition: Any) -> _Step:
        if self.depth == len(self.trail):
            self.trail.append(self._branch(condition))
        step = self.trail[self.depth]
        self.depth += 1
        if step.condition.get_id() != condition.get_id():
            refuse("does not take the same decisions when it is run again")
        return step

    def _branch(self, condition: Any) -> _Step:
        if self.budget.left <= 0:
            refuse(f"has paths that were not all followed in {self.budget.seconds:g} s")
        in_model = None if self.model is None else self.model.eval(condition, model_completion=True)
        models: dict[bool, Any] = {}
        for answer in (True, False):
            if in_model is not None and (z3.is_true if answer else z3.is_false)(in_model):
                models[answer] = self.model
                continue
            self.solver.push()
            self.solver.add(condition if answer else z3.Not(condition))
            status, _ = check(self.solver, min(self.budget.left, 2.0))
            if status != z3.unsat:
                models[answer] = self.solver.model() if status == z3.sat else None
            self.solver.pop()
        if not models:
            refuse("cannot be followed: the solver contradicts itself")
        taken = True in models
        step = _Step(condition, taken, len(models) == 1, len(models) == 2, models.get(False))
        self.model = models[taken]
        if not step.forced:
            if self.finished + 1 + sum(step.other_is_open for step in self.trail) >= self.most:
                refuse(f"has more than {self.most} paths")
            self.solver.push()
            self.solver.add(step.literal)
        return step

    def run(self, call: Callable[[], object], replay: Callable[[Any], object] | None) -> Path:
        self.depth = 0
        self.known = {}
        self.assumes = set()
        self.own_error = self.error_of_builtin = None
        result, raised = None, None
        exploring.append(self)
        try:
            try:
                result = call()
            except StreamtightError:
                raise
            except Exception as error:
                raised = error
            if self.refusal is not None:
                raise self.refusal  # C code swallowed it
            if self.function is not None:
                self.function.require_unchanged()
            if raised is not None:
                if not self._is_of_python(raised, replay):
                    refuse(f"raises {type(raised).__name__} on a symbolic value: {raised}", raised)
                raised = raised.with_traceback(None)
        finally:
            exploring.pop()
        self.finished += 1
        # Decisions that follow from earlier ones say nothing new, unless they follow from what is given.
        literals = [step.literal for step in self.trail if self.given or not step.forced]
        guard = z3.And(literals) if len(literals) > 1 else literals[0] if literals else z3.BoolVal(True)
        return Path(guard, result, raised, frozenset(self.assumes))

    def _is_of_python(self, error: Exception, replay: Callable[[Any], object] | None) -> bool:
        """Would real values of these types raise it too, or is it C code that does not know symbolic values?"""
        if error is self.own_error:
            return True
        if isinstance(error, (RecursionError, MemoryError)):  # when depends on more than the function
            return False
        frame = last_frame(error)
        if frame.tb_frame.f_code.co_filename.startswith(_OWN_FILES) and error is not self.error_of_builtin:
            return False
        if not isinstance(error, (TypeError, AttributeError, SystemError)):
            return True
        if dis.opname[frame.tb_frame.f_code.co_code[frame.tb_lasti]] == "RAISE_VARARGS":
            return True
        if replay is None or self.model is None:
            return False
        try:
            replay(self.model)
        except Exception as real:
            # Whether types fit depends on types, which are the same for all values of this path.
            return type(real) is type(error) and _last_line(real) == _last_line(error)
        return False

    def backtrack(self) -> bool:
        while self.trail:
            step = self.trail.pop()
            if step.forced:
                continue
            self.solver.pop()
            if step.other_is_open:
                self.trail.append(_Step(step.condition, not step.taken, False, False, None))
                self.solver.push()
                self.solver.add(self.trail[-1].literal)
                self.model = step.other_model
                return True
        return False


def last_frame(error: BaseException) -> types.TracebackType:
    """Where the error was raised."""
    frame = typing.cast(types.TracebackType, error.__traceback__)
    while frame.tb_next is not None:
        frame = frame.tb_next
    return frame


def decide(condition: Any) -> bool:
    """An answer for this run; another run will have the other one, if that is possible."""
    if not exploring:
        simple = z3.simplify(condition)
        if z3.is_true(simple) or z3.is_false(simple):
            return bool(z3.is_true(simple))
        refuse("asks for the truth of a symbolic value while nothing is explored")
    return exploring[-1].decide(condition)


def assume(what: str) -> None:
    """Note what this run takes for granted."""
    if exploring:
        exploring[-1].assumes.add(what)


def python_raises(error: Exception) -> NoReturn:
    """Raise what Python raises for values of these types."""
    if exploring:
        exploring[-1].own_error = error
    raise error


def refuse(what: str, cause: BaseException | None = None) -> NoReturn:
    """Refuse at the line that is being run, or at the one where `cause` came from."""
    exploration = exploring[-1] if exploring else None
    twin = exploration.function if exploration else None
    frames = _frames_of(cause) if cause else _frames_now()
    places = [(line, code.co_filename) for code, line in frames if twin is None or id(code) in twin.codes]
    line, file = places[-1] if places else twin.place if twin else (None, None)
    refusal = NotReadable(what, line=line, file=file)
    if exploration is not None and exploration.refusal is None:
        exploration.refusal = refusal
    raise refusal from cause


def _frames_now() -> list[tuple[types.CodeType, int]]:
    """The frames of the run that is being made, innermost last."""
    frames: list[tuple[types.CodeType, int]] = []
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code is not Exploration.run.__code__:
        if not frame.f_code.co_filename.startswith(_OWN_FILES):
            frames.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return frames[::-1] if frame is not None else []


def _frames_of(error: BaseException) -> list[tuple[types.CodeType, int]]:
    frames: list[tuple[types.CodeType, int]] = []
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_OWN_FILES):
            frames.append((trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    return frames


def _last_line(error: BaseException) -> int | None:
    frames = _frames_of(error)
    return frames[-1][1] if frames else None


def all_paths(
    exploration: Exploration, call: Callable[[], object], replay: Callable[[Any], object] | None
) -> list[Path]:
    """One run for each way in which its decisions can be answered."""
    if not exploration.start():
        return []
    paths = [exploration.run(call, replay)]
    while exploration.backtrack():
        paths.append(exploration.run(call, replay))
    return paths
