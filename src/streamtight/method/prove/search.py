"""Two programs: tried on small inputs, proved equal, or not decided and why.

The programs are run as they are, without Spark, where a difference is cheap to find. If none is found, they are read
and compared by the solver; rows on which it could not prove them equal are tried as well. What differs is run on Spark
before it is told.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from streamtight.errors import EncodingError, SourceError, StreamtightError, UnsupportedError
from streamtight.method.prove.allowed import Captured
from streamtight.method.prove.draw import Row, Tables, as_row, is_row_of, smaller, some_tables
from streamtight.method.prove.inputs import Input, RDDInput, TableInput
from streamtight.method.prove.programs import Difference, NotProved, Program, Programs, Run
from streamtight.method.prove.rdd_programs import RDDPrograms
from streamtight.method.prove.reasons import advice_of, not_proved
from streamtight.method.prove.results import Result
from streamtight.method.prove.watchdog import Watchdog
from streamtight.program import relation
from streamtight.program.expression import SqlFunction
from streamtight.program.relation import Each, How, Relation, Rows
from streamtight.solver.ask import Budget
from streamtight.solver.equivalence import Equivalence
from streamtight.verdict import Counterexample, Outcome, Scope, Table, Verdict

TRIED = 150
"""On so many small inputs the programs are run before a proof is looked for."""
THOROUGH = 40
"""On so many of them, and then on every fourth, each program is run again, with its rows spread in other ways."""
SECONDS = 10.0
"""How long an answer is looked for, if the caller does not say."""
SMALLER = 200
"""So many smaller inputs are tried for one that differs."""
ON_SPARK, SMALLER_ON_SPARK = 12, 16
"""The same, for programs that only Spark can run."""
SHARE, SHARE_ON_SPARK = 0.4, 0.8
"""Of the time, so much is for trying, before a proof is looked for; more, if none can be."""
MOST_ROWS = 3000
"""So many combinations of rows of all inputs are tried at most: a product has a row for each."""
NAMED_ROWS, EVERY = 12, 10
"""Up to so many rows a table has as many as a number says that the programs name; one of so many tables."""
ON_PATHS = 16
"""For so many ways through the functions of both a row is made and tried, before they are called equal."""
UNCONFIRMED = 3
"""After so many differences that Spark does not show, no more are looked for."""

ENDS = tuple(end for bits in (32, 64) for end in (2 ** (bits - 1) - 1, -(2 ** (bits - 1))))
"""The greatest and the least integers, which overflow soon."""

Confirm = Callable[[Difference], Difference | None]
"""The difference as real Spark shows it; None if it does not."""


@dataclass(frozen=True, slots=True)
class Question:
    """Are two programs equal on every input?"""

    claim: str
    left: Program
    right: Program
    inputs: tuple[Input, ...]
    confirm: Confirm
    replay: Callable[[Difference], str]
    seconds: float = SECONDS
    seed: int = 0
    overflows: bool = False
    """Whether integers of SQL that do not fit into their type are looked for; else that there are none is assumed."""
    programs: Programs | None = None
    """The two, by what they are written in; on RDDs, if not given."""
    conditions: Sequence[Sequence[SqlFunction]] = ()
    """What is known of the rows of each table."""
    names: tuple[str, str] = ("left", "right")
    """What the two are called where they are shown side by side."""


def search(question: Question) -> Verdict:
    """The verdict."""
    with Watchdog() as watchdog:
        return _Search(question, watchdog).verdict()


class _Search:
    def __init__(self, question: Question, watchdog: Watchdog) -> None:
        self.question, self.watchdog = question, watchdog
        self.programs = question.programs or _on_rdds(question)
        self.started = time.perf_counter()
        self.budget = Budget(question.seconds)
        self.tried = 0
        """How many inputs were drawn."""
        self.compared = 0
        """On how many of them both were run."""
        self.both_ran = False
        """Whether they were on the last."""
        self.had_rows = [False] * len(question.inputs)
        """Which inputs had rows."""
        self.kinds: set[str] = set()
        """The kinds of all results for inputs with rows."""
        self.unconfirmed = 0
        self.ignores_errors = False
        self.watched = {program: Captured(program) for program in (question.left, question.right)}

    def verdict(self) -> Verdict:
        try:
            return self._verdict()
        except (EncodingError, SourceError):
            raise
        except UnsupportedError as error:
            return self._undecided(advice_of(error))
        except StreamtightError as error:
            return self._undecided(str(error))

    def _verdict(self) -> Verdict:
        self.programs.require_allowed()
        self._require_unchanged()
        at_once = self.programs.at_once()
        seen = None if at_once is None else self.question.confirm(at_once)
        if seen is not None:
            return self._fails(seen)
        told = self._told(self._candidates(), self.question.seconds * (SHARE if self.is_quick else SHARE_ON_SPARK))
        if told is not None:
            return told
        equivalence = Equivalence(self.budget, overflows=self.question.overflows)
        found = self.programs.prove(equivalence)
        if found is None:
            if (vacuous := self._says_nothing()) is not None:
                return self._undecided(vacuous)
            told = self._told(self._on_paths(equivalence), max(1.0, self.budget.left))
            if told is not None:  # it was no proof
                return told
            assumptions = sorted({*equivalence.meaning.assumptions, *self.programs.assumptions()})
            return Verdict(
                self.question.claim,
                Outcome.HOLDS,
                Scope.proved(),
                cost=self._cost(),
                method=equivalence.proof,
                assumptions=tuple(assumptions),
            )
        likely = itertools.chain(self._near(found), self._on_paths(equivalence))
        told = self._told(likely, max(1.0, self.budget.left))
        if told is not None:
            return told
        reason = not_proved(found.reason, self.compared)
        if self.unconfirmed:
            reason += f"; {self.unconfirmed} inputs differ without Spark, but not on it"
        return self._undecided(reason)

    @property
    def is_quick(self) -> bool:
        """Whether both programs can be run without Spark."""
        return all(map(self.programs.is_quick, (self.question.left, self.question.right)))

    def _cost(self) -> dict[str, float]:
        return {"seconds": time.perf_counter() - self.started}

    def _scope(self) -> Scope:
        return Scope.tested(self.compared, seed=self.question.seed)

    def _says_nothing(self) -> str | None:
        """Why a proof would be one about no rows at all, as far as was seen; None if it says something."""
        for place, each in enumerate(self.question.inputs):
            tests = each.tests if isinstance(each, RDDInput) else self.question.conditions[place]
            if tests and not self.had_rows[place] and not self._has_rows(place, tests):
                return f"no row was found that input {place + 1} may have: {each!r}. Try: a condition that rows satisfy"
        if self.kinds == {"raises"}:
            return "both raise on every input with rows that was tried, so they are equal only in that they fail"
        return None

    def _has_rows(self, place: int, tests: Sequence[Callable[..., object]]) -> bool:
        """Whether the solver finds a row that passes the tests of an input, where none was drawn."""
        each = self.question.inputs[place]
        passing: Relation = relation.Input("r", each.row if isinstance(each, RDDInput) else each.fields)
        for test in tests:
            passing = Each(passing, test, How.FILTER)
        found = Equivalence(self.budget.part(1.0)).same_relations(passing, Rows(()), [])
        rows = [] if found is None else [row for _, row in found.values()]
        made = rows if isinstance(each, RDDInput) else [as_row(row, each.fields) for row in rows]
        return any(row is not None and self._allows(place, [row]) for row in made)

    def _undecided(self, reason: str) -> Verdict:
        if self.tried and not self.compared:
            reason += ". For the same reason they could not be run on small inputs"
        return Verdict(self.question.claim, Outcome.UNDECIDED, self._scope(), reason=reason, cost=self._cost())

    def _fails(self, found: Difference) -> Verdict:
        told = self._counterexample(found)
        return Verdict(self.question.claim, Outcome.FAILS, self._scope(), told, cost=self._cost())

    # -- inputs on which they may differ -----------------------------------------------------------------------------

    def _candidates(self) -> Iterator[Tables]:
        inputs = self.question.inputs
        chance = random.Random(self.question.seed)
        near = [*self.programs.constants(), *(ENDS if self.question.overflows else ())]
        yield tuple(() for _ in inputs)
        fewest = max(1, int(MOST_ROWS ** (1 / max(1, len(inputs)))) - 2)
        sizes = [1 + number // 25 for number in range(TRIED)] if self.is_quick else [2, 3, 4, 6] * (ON_SPARK // 4)
        named = [one + more for one in near if type(one) is int and 1 < one < NAMED_ROWS for more in (0, 1)]
        for number, size in enumerate(sizes, start=1):
            count = chance.choice(named) if named and number % EVERY == 0 else 0
            most, least = min(count or size, fewest), min(count, fewest)
            yield some_tables(inputs, near, chance, most, self.programs.allows, least)

    def _allows(self, place: int, rows: Sequence[Row]) -> bool:
        """Whether the input at this place may have these rows: they are of its types, and keep what is known of it."""
        of_its_types = all(is_row_of(row, self.question.inputs[place]) for row in rows)
        return of_its_types and self.programs.allows(place, rows)

    def _on_paths(self, equivalence: Equivalence) -> Iterator[Tables]:
        """A row for each way through the functions, and all of them at once."""
        every: list[tuple[str, Row]] = []
        for rows in equivalence.rows_on_paths(ON_PATHS):
            every += rows
            yield from self._tables(rows)
        yield from self._tables(every[:NAMED_ROWS])

    def _near(self, found: NotProved) -> Iterator[Tables]:
        """The rows of a model."""
        return self._tables(found.rows)

    def _tables(self, named: Sequence[tuple[str, Row]]) -> Iterator[Tables]:
        """These rows, each once and twice."""
        rows = [[row for of, row in named if of == name] for name in self.programs.names]
        for place, each in enumerate(self.question.inputs):
            if isinstance(each, TableInput):
                made = [as_row(row, each.fields) for row in rows[place]]
                rows[place] = [row for row in made if row is not None]
        for times in (1, 2):
            tables = tuple(tuple(each) * times for each in rows)
            if any(tables) and all(map(self._allows, range(len(tables)), tables)):
                yield tables

    def _told(self, candidates: Iterator[Tables], seconds: float) -> Verdict | None:
        ends = time.monotonic() + seconds
        for tables in candidates:
            found = self._difference(tables, in_all_ways=self.tried < THOROUGH or self.tried % 4 == 0)
            self.tried += 1
            self.compared += self.both_ran
            self._require_unchanged()
            if found is not None:
                told = self._confirmed(found)
                if told is not None:
                    return told
                self.unconfirmed += 1
                # Spark may not calculate what raises; that one of them does, without Spark, says nothing then.
                self.ignores_errors |= "raises" in [result.kind for result in found.results]
            if self.unconfirmed > UNCONFIRMED or time.monotonic() > ends:
                return None
        return None

    def _confirmed(self, found: Difference) -> Verdict | None:
        """The verdict, if Spark shows the difference on a smaller input, or on this one."""
        small = self._smallest(found)
        for one in [small] if small.one.tables == found.one.tables else [small, found]:
            seen = self.question.confirm(one)
            if seen is not None:
                return self._fails(seen)
        return None

    def _difference(self, tables: Tables, *, in_all_ways: bool = True) -> Difference | None:
        """The programs on this input, if wanted spread in several ways; None if nothing differs."""
        if not self.is_quick:
            return self._difference_on(tables, in_all_ways)
        with self.watchdog.within(self.budget.left + 1):
            return self._difference_on(tables, in_all_ways)

    def _difference_on(self, tables: Tables, in_all_ways: bool) -> Difference | None:
        left, right = Run(self.question.left, tables), Run(self.question.right, tables)
        results = {run.program: self.programs.result(run) for run in (left, right)}
        self._note(tables, list(results.values()))
        for run in (left, right):
            if in_all_ways and self.programs.is_quick(run.program):
                found = self._not_well_defined(run, results[run.program])
                if found is not None:
                    return found
        one, other = results[left.program], results[right.program]
        if one is None or other is None or one.is_same(other):
            return None
        if self.ignores_errors and "raises" in (one.kind, other.kind):
            return None
        for run in (left, right):
            found = None if self.programs.is_quick(run.program) else self._not_well_defined(run, results[run.program])
            if found is not None:
                return found
        return Difference(left, right, (one, other))

    def _note(self, tables: Tables, results: Sequence[Result | None]) -> None:
        self.both_ran = None not in results
        self.had_rows = [had or bool(rows) for had, rows in zip(self.had_rows, tables, strict=True)]
        if any(tables):
            self.kinds |= {result.kind for result in results if result is not None}

    def _not_well_defined(self, run: Run, result: Result | None) -> Difference | None:
        """The same program on the same rows in another way, if it gives something else then."""
        again = None if result is None else self.programs.result(run)
        if result is None or again is None:
            return None
        if not result.is_same(again):
            raise UnsupportedError(
                run.name,
                needed="a program that always gives the same",
                came=f"one that gives {result} and then {again} for the same rows",
                hint="a seed, a time or an id as an input",
            )
        for way in self.programs.ways(run.program, run.tables):
            other = self.programs.result(way)
            if other is not None and not result.is_same(other):
                return Difference(run, way, (result, other), "NOT_WELL_DEFINED")
        return None

    def _require_unchanged(self) -> None:
        changed = {program: captured.changed() for program, captured in self.watched.items()}
        for program, name in changed.items():
            if name is not None:
                raise UnsupportedError(
                    Run(program, ()).name,
                    needed="a program that only works on its inputs",
                    came=f"one that changes {name}, which it has from outside",
                    hint="what it needs to remember as a column, or as a fold",
                )

    def _smallest(self, found: Difference) -> Difference:
        """The same with fewer rows and simpler values, as far as it still differs."""
        best, tried, most = found, 0, SMALLER if self.is_quick else SMALLER_ON_SPARK
        progress = True
        while progress and tried < most and self.budget.left:
            progress = False
            for tables in smaller(best.one.tables):
                tried += 1
                if tried >= most:
                    break
                if not all(map(self._allows, range(len(tables)), tables)):
                    continue
                less = self._difference(tables)
                if less is not None and less.finding == found.finding:
                    best, progress = less, True
                    break
        return best

    def _counterexample(self, found: Difference) -> Counterexample:
        names = [f"input {place + 1}" for place in range(len(found.one.tables))]
        cells = ["\n".join(map(repr, rows)) or "no rows" for rows in found.one.tables]
        runs = (found.one, found.other)
        if found.finding == "NOT_WELL_DEFINED":
            text = f"{found.one.name} gives another result if the same rows come otherwise"
            columns = [_way(run, found) for run in runs]
        elif found.finding == "DIFFERENT_COLUMNS":
            text, columns = "their results have different columns", list(self.question.names)
        else:
            text, columns = "they give different results on this input", list(self.question.names)
        return Counterexample(
            finding=found.finding,
            explanation=text,
            table=Table((*names, *columns), ((*cells, *map(str, found.results)),), "input and results"),
            replay=self.question.replay(found),
            reruns=found.reruns,
            failing_reruns=found.failing_reruns,
        )


def _on_rdds(question: Question) -> Programs:
    inputs = [each for each in question.inputs if isinstance(each, RDDInput)]
    return RDDPrograms(question.left, question.right, inputs)


def _way(run: Run, found: Difference) -> str:
    """How a program was given its rows, as the head of a column."""
    order = ", from the last row to the first" if run.tables != found.one.tables else ""
    return f"in {run.partitions} partition{'s' if run.partitions > 1 else ''}{order}"
