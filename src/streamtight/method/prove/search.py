"""Two programs on RDDs: tried on small inputs, proved equal, or not decided and why.

The programs are run as they are on RDDs without Spark (local.py), where a difference is cheap to find. If none is
found, they are read (recorded.py) and compared by the solver. What differs is run on Spark before it is told.
"""

from __future__ import annotations

import dis
import inspect
import random
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streamtight.errors import EncodingError, StreamtightError, UnsupportedError
from streamtight.method.prove.inputs import RDDInput, some_rows
from streamtight.method.prove.local import LocalRDD
from streamtight.method.prove.recorded import Collected, RecordedRDD
from streamtight.program.relation import Input, Relation
from streamtight.solver.ask import Budget
from streamtight.solver.equivalence import Equivalence, Outcome
from streamtight.verdict import Counterexample, Scope, Table, Verdict
from streamtight.verdict import Outcome as Answer

TRIED = 150
"""On so many small inputs the programs are run before a proof is looked for."""
SECONDS = 10.0
"""How long a proof is looked for, if the caller does not say."""
SMALLER = 200
"""So many smaller inputs are tried for one that differs."""

Program = Callable[..., Any]
Tables = tuple[tuple[Any, ...], ...]
Confirm = Callable[["Difference"], bool]
"""Whether a difference is seen on real Spark as well."""
_FORBIDDEN = ("isinstance", "type", "open", "print", "input", "random", "time", "os", "sys", "requests", "globals")


@dataclass(frozen=True, slots=True)
class Difference:
    """An input on which two programs differ; or one program, on two ways of spreading it."""

    tables: Tables
    ways: tuple[int, int]
    """How many partitions each of the two runs has."""
    one: Program
    other: Program
    results: tuple[Any, Any]

    @property
    def is_one_program(self) -> bool:
        """Whether it is a program that differs from itself."""
        return self.one is self.other


@dataclass(frozen=True, slots=True)
class Question:
    """Are two programs equal on every input?"""

    claim: str
    left: Program
    right: Program
    inputs: tuple[RDDInput, ...]
    confirm: Confirm
    replay: Callable[[Difference], str]
    seconds: float = SECONDS
    seed: int = 0


def search(question: Question) -> Verdict:
    """The verdict."""
    return _Search(question).verdict()


class _Search:
    def __init__(self, question: Question) -> None:
        self.question = question
        self.started = time.perf_counter()
        self.tried = 0
        """On how many inputs they were run."""
        self.unconfirmed = 0

    def verdict(self) -> Verdict:
        question = self.question
        try:
            found = self._told(self._candidates())
            if found is not None:
                return found
            equivalence = Equivalence(Budget(question.seconds))
            reason, rows = self._not_proved(equivalence)
        except UnsupportedError as error:
            return self._answer(Answer.UNDECIDED, reason=f"{error.where}: {error.came}. Try: {error.hint}")
        except EncodingError:
            raise
        except StreamtightError as error:
            return self._answer(Answer.UNDECIDED, reason=str(error))
        if reason is None:
            assumed = sorted(equivalence.meaning.assumptions)
            claim = question.claim + (f", assuming that {' and '.join(assumed)}" if assumed else "")
            return Verdict(claim, Answer.HOLDS, Scope.proved(), None, None, self._cost())
        found = self._told(self._near(rows))
        if found is not None:
            return found
        if self.unconfirmed:
            reason += f"; {self.unconfirmed} inputs differ without Spark, but not on it"
        return self._answer(Answer.UNDECIDED, reason=reason)

    def _cost(self) -> dict[str, float]:
        return {"seconds": time.perf_counter() - self.started}

    def _answer(self, outcome: Answer, found: Counterexample | None = None, reason: str | None = None) -> Verdict:
        scope = Scope.tested(self.tried, seed=self.question.seed)
        return Verdict(self.question.claim, outcome, scope, found, reason, self._cost())

    # -- inputs on which they may differ -----------------------------------------------------------------------------

    def _candidates(self) -> Iterator[Tables]:
        question = self.question
        chance = random.Random(question.seed)
        near = [*constants_of(question.left), *constants_of(question.right)]
        yield tuple(() for _ in question.inputs)
        for number in range(TRIED):
            most = 1 + number // 20
            yield tuple(tuple(some_rows(each.row, near, chance, most)) for each in question.inputs)

    def _near(self, rows: Sequence[tuple[str, Any]]) -> Iterator[Tables]:
        """The rows of a model, each once and twice."""
        names = [f"r{place}" for place in range(len(self.question.inputs))]
        for times in (1, 2):
            yield tuple(tuple(row for of, row in rows if of == name) * times for name in names)

    def _told(self, candidates: Iterator[Tables]) -> Verdict | None:
        question = self.question
        for tables in candidates:
            self.tried += 1
            found = self._difference(tables)
            if found is None:
                continue
            small = self._smallest(found)
            for one in dict.fromkeys((small.tables, found.tables)):
                difference = self._difference(one)
                if difference is not None and question.confirm(difference):
                    return self._answer(Answer.FAILS, self._counterexample(difference))
            self.unconfirmed += 1
            if self.unconfirmed > 3:
                return None
        return None

    def _difference(self, tables: Tables) -> Difference | None:
        """The programs on this input, spread in two ways; None if nothing differs."""
        left, right = self.question.left, self.question.right
        first: dict[Program, Any] = {}
        for program in (left, right):
            one, again, other = (outcome_of(program, tables, partitions) for partitions in (1, 1, 3))
            if one != again:
                raise UnsupportedError(
                    getattr(program, "__name__", repr(program)),
                    needed="a program that always gives the same",
                    came=f"{told(one)} and {told(again)} for the same rows",
                    hint="a seed, a time or an id as an input",
                )
            if one != other:
                return Difference(tables, (1, 3), program, program, (one, other))
            first[program] = one
        if first[left] != first[right]:
            return Difference(tables, (1, 1), left, right, (first[left], first[right]))
        return None

    def _smallest(self, found: Difference) -> Difference:
        """The same with fewer rows and simpler values, as far as it still differs."""
        best, tried = found, 0
        progress = True
        while progress and tried < SMALLER:
            progress = False
            for tables in _smaller(best.tables):
                tried += 1
                smaller = self._difference(tables)
                if smaller is not None and smaller.is_one_program is found.is_one_program:
                    best, progress = smaller, True
                    break
                if tried >= SMALLER:
                    break
        return best

    def _counterexample(self, found: Difference) -> Counterexample:
        if found.is_one_program:
            name = getattr(found.one, "__name__", "the program")
            finding = "NOT_WELL_DEFINED"
            text = (
                f"{name} gives one result if the rows are in {found.ways[0]} partition, another if in {found.ways[1]}"
            )
            columns = tuple(f"in {way} partition{'s' if way > 1 else ''}" for way in found.ways)
        else:
            finding, text = "DIFFERENT", "they give different results on this input"
            columns = tuple(getattr(each, "__name__", "?") for each in (found.one, found.other))
        names = [f"input {place + 1}" for place in range(len(found.tables))]
        cells = ["\n".join(map(repr, rows)) or "-" for rows in found.tables]
        return Counterexample(
            finding=finding,
            explanation=text,
            table=Table((*names, *columns), ((*cells, *map(told, found.results)),)),
            replay=self.question.replay(found),
            reruns=1,
            failing_reruns=1,
        )

    # -- a proof -----------------------------------------------------------------------------------------------------

    def _not_proved(self, equivalence: Equivalence) -> tuple[str | None, list[tuple[str, Any]]]:
        """None if the programs are proved to be equal; else why not, and rows on which they may differ."""
        question = self.question
        relations = [Input(f"r{place}", each.row) for place, each in enumerate(question.inputs)]

        def outcomes_of(program: Program, name: str) -> list[Outcome]:
            require_readable(program)
            return equivalence.outcomes(lambda value: program(*[RecordedRDD(each, value) for each in relations]), name)

        left, right = outcomes_of(question.left, "a"), outcomes_of(question.right, "b")
        for outcomes in (left, right):
            unclear = equivalence.ill_defined(outcomes, relation_of)
            if unclear is not None:
                return f"{unclear}: it is not proved that the result is the same however the rows are spread", []
        found = equivalence.difference(left, right, relation_of)
        return (None, []) if found is None else (found.reason, found.values())


def relation_of(result: object) -> tuple[str, Relation] | None:
    """The relation that a program gives, and as what; None if it gives a value."""
    if isinstance(result, RecordedRDD):
        return "bag of rows", result.relation
    return (result.how, result.relation) if isinstance(result, Collected) else None


def outcome_of(program: Program, tables: Tables, partitions: int) -> Any:
    """What a program gives, in a form that can be compared: rows in any order, or the exception that it raises."""
    try:
        return comparable(program(*[LocalRDD.of(rows, partitions) for rows in tables]))
    except UnsupportedError:
        return None  # the proof will tell
    except Exception as error:
        return ("raises", type(error).__name__)


def comparable(result: Any) -> Any:
    """A result of a program, so that equal results are equal."""
    if callable(getattr(result, "collect", None)):
        return ("rows", *sorted(result.collect(), key=repr))
    if isinstance(result, dict):
        return ("dict", *sorted(result.items(), key=repr))
    return ("rows", *sorted(result, key=repr)) if isinstance(result, list) else ("value", result)


def told(result: Any) -> str:
    """A result as it is shown."""
    if result is None:
        return "not known"
    kind, *values = result
    if kind == "raises":
        return f"raises {values[0]}"
    return "\n".join(map(repr, values)) or "no rows"


def _smaller(tables: Tables) -> Iterator[Tables]:
    for place, rows in enumerate(tables):
        for number in range(len(rows)):
            yield (*tables[:place], rows[:number] + rows[number + 1 :], *tables[place + 1 :])
    for place, rows in enumerate(tables):
        for number, row in enumerate(rows):
            for simpler in _simpler(row):
                yield (*tables[:place], (*rows[:number], simpler, *rows[number + 1 :]), *tables[place + 1 :])


def _simpler(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for place, part in enumerate(value):
            for simpler in _simpler(part):
                yield (*value[:place], simpler, *value[place + 1 :])
    elif isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int | float):
        if value:
            yield type(value)(0)
            if value < 0:
                yield -value
            if abs(value) > 1:
                yield type(value)(int(value / 2))
                yield type(value)(value - 1 if value > 0 else value + 1)
    elif isinstance(value, str) and value:
        yield ""


def constants_of(program: Any) -> list[Any]:
    """The numbers and texts in the code of a program and of the functions in it."""
    found: list[Any] = []
    waiting: list[Any] = [getattr(program, "__code__", None)]
    for cell in getattr(program, "__closure__", None) or ():
        try:
            waiting.append(getattr(cell.cell_contents, "__code__", cell.cell_contents))
        except ValueError:
            continue
    while waiting:
        code = waiting.pop()
        if isinstance(code, types.CodeType):
            waiting += code.co_consts
        elif isinstance(code, tuple):
            waiting += code
        elif isinstance(code, int | float | str) and not (isinstance(code, str) and len(code) > 20):
            found.append(code)
    return found


def require_readable(program: Program) -> None:
    """Raise if the program itself uses what the values that stand for its aggregates cannot show."""
    code = getattr(program, "__code__", None)
    if code is None:
        raise UnsupportedError(
            repr(program), needed="a function of Python", came="a callable without code", hint="lambda rdd: ..."
        )
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME") and instruction.argval in _FORBIDDEN:
            line = instruction.positions.lineno if instruction.positions else code.co_firstlineno
            raise UnsupportedError(
                f"line {line} of {code.co_filename}",
                needed="a program that only works on its inputs",
                came=f"one that uses {instruction.argval}",
                hint="give what it needs as an argument of the functions inside",
            )


def parameters_of(program: Program) -> int | None:
    """How many inputs a program takes; None if that cannot be known."""
    try:
        return len(inspect.signature(program).parameters)
    except (TypeError, ValueError):
        return None
