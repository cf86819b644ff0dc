"""Is a temporal formula still true of a running stream? Each micro-batch is a letter.

The rows of each micro-batch are kept beside the query's checkpoint until the formula is decided, as Parquet files of
Spark: a restart reads them again, and so does whoever wants to know why it is false.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from streamtight.errors import FormulaError, StreamtightError
from streamtight.method.check.words import picture, step_by_step, told
from streamtight.program.letter import OUTPUT, Letter, Rows
from streamtight.properties.temporal import Formula
from streamtight.source.journal import Journal
from streamtight.spark.live_journal import follow, journal_on, note_finding
from streamtight.spark.rows import Table, kind_of
from streamtight.spark.session import java_class
from streamtight.spark.ship import require_shared
from streamtight.verdict import Counterexample, Outcome, Scope, Verdict

_LETTERS = "letters"


class WatchedFormula:
    """A formula that is judged while a stream runs, micro-batch by micro-batch. Made by `watch(formula, stream)`."""

    def __init__(
        self,
        formula: Formula,
        frame: DataFrame,
        checkpoint: str | os.PathLike[str],
        name: str = "Row",
        board: str | os.PathLike[str] | None = None,
    ) -> None:
        if not frame.isStreaming:
            raise FormulaError(
                f"watch({formula!r}, frame)",
                needed="a streaming DataFrame, whose micro-batches are the letters",
                came="one that ends",
                hint="check(job, formula, on=...) tests jobs; formula.evaluate(word) judges words",
            )
        self.formula = formula
        self._spark = frame.sparkSession
        self._kind = kind_of("Row", frame.schema)
        self._table = Table([self._kind])
        self._folder = os.fspath(checkpoint)
        require_shared(self._spark, "watch(checkpoint=...)", checkpoint)
        self._judge = formula.judge(keep=True)
        self._letters: list[Letter] = []
        self._error: StreamtightError | None = None
        self._rows = 0
        self._is_decided = threading.Event()
        self._untold: deque[tuple[int, float, float, int, int, bool | None]] = deque(maxlen=1_000)
        self._numbers = self._read_again()
        if self._numbers:
            self._untold.append((max(self._numbers), time.time(), 0.0, 0, self._rows, self._judge.value))
        writer = frame.writeStream.foreachBatch(self._batch).option("checkpointLocation", f"{self._folder}/query")
        self.query: StreamingQuery = writer.start()
        journal = journal_on(board, self._folder, kind="watch", asks=f"{formula!r}")
        if journal is not None:
            follow(self.query, journal, lambda: self._tell(journal), lambda: self._error)

    @property
    def value(self) -> bool | None:
        """True or False once that is decided, None before. Raises what a test of the formula raised."""
        if self._error is not None:
            raise self._error
        return self._judge.value

    @property
    def letters(self) -> int:
        """How many micro-batches were judged."""
        return self._judge.letters

    def wait(self, seconds: float | None = None) -> bool | None:
        """Wait until it is decided, or so long; gives the value."""
        self._is_decided.wait(seconds)
        return self.value

    def verdict(self) -> Verdict:
        """Is it true of all that has come so far? UNDECIDED while that is open."""
        value = self.value
        claim, scope = f"{self.formula!r} of the stream", Scope.observed(self._rows)
        if value is None:
            rest = f"the micro-batches to come must satisfy {self._judge.rest!r}"
            return Verdict(claim, Outcome.UNDECIDED, scope, reason=f"open after {self.letters} micro-batches: {rest}")
        if value:
            return Verdict(claim, Outcome.HOLDS, scope)
        # Judged once more, from the rows that were kept.
        word = tuple(self._letters)
        why = self.formula.explain(word)
        explanation, table = told(why, word), step_by_step(self.formula, word, why.letters, None)
        again = self.formula.evaluate(word)
        drawn = picture(self.formula, word, why.letters, None)
        return Verdict(
            claim,
            Outcome.FAILS,
            scope,
            Counterexample(
                "VIOLATED", explanation, table=table, picture=drawn, reruns=1, failing_reruns=int(again is False)
            ),
        )

    def stop(self) -> None:
        """Stop the query. `watch` with the same checkpoint goes on from here."""
        self.query.stop()

    def _tell(self, journal: Journal) -> None:
        """Write on the board what the micro-batches since the last look did."""
        while self._untold:
            number, at, seconds, rows, rows_so_far, value = self._untold.popleft()
            outcome = Outcome.UNDECIDED if value is None else Outcome.HOLDS if value else Outcome.FAILS
            reason = "open: micro-batches to come decide it" if value is None else None
            journal.note(
                at=at,
                batch=number,
                rows={"rows": rows_so_far},
                rate=rows / seconds if seconds > 0 else None,
                seconds=seconds or None,
                verdict=outcome.name,
                reason=reason,
            )
            found = None if outcome is not Outcome.FAILS else self.verdict()
            if found is not None and found.counterexample is not None:
                note_finding(journal, found)
                if seconds:  # else it was told before the restart
                    journal.alarm(found.counterexample.finding, found.counterexample.explanation, at=at)

    # -- letters -------------------------------------------------------------------------------------------------

    def _batch(self, frame: DataFrame, number: int) -> None:
        if number in self._numbers or self._is_decided.is_set():
            return  # Spark does a batch again if it does not know whether it was done
        began, before = time.time(), self._rows
        path = f"{self._folder}/{_LETTERS}/{number:012d}"
        frame.write.mode("overwrite").parquet(path)
        self._step(number, self._spark.read.schema(frame.schema).parquet(path))
        self._untold.append((number, time.time(), time.time() - began, self._rows - before, self._rows, self.value))

    def _read_again(self) -> set[int]:
        """Judge what was kept before a restart."""
        numbers: set[int] = set()
        self._numbers = numbers
        folder = f"{self._folder}/{_LETTERS}"
        java_path = java_class(self._spark, "org.apache.hadoop.fs.Path")
        path = java_path(folder)
        files = path.getFileSystem(self._spark._jsc.hadoopConfiguration())
        if files.exists(path):
            for name in sorted(each.getPath().getName() for each in files.listStatus(path)):
                if files.exists(java_path(f"{folder}/{name}/_SUCCESS")):
                    self._step(int(name), self._spark.read.schema(self._table.struct).parquet(f"{folder}/{name}"))
        return numbers

    def _step(self, number: int, frame: DataFrame) -> None:
        rows: Rows = tuple(map(self._table.from_row, frame.collect()))
        previous = self._letters[-1] if self._letters else None
        letter = Letter({}, {OUTPUT: rows}, batch=number, previous=previous, to_frame=self._to_frame)
        self._letters.append(letter)
        self._numbers.add(number)
        self._rows += len(rows)
        try:
            self._judge.step(letter)
        except StreamtightError as error:
            self._error = error
            self._is_decided.set()
            raise
        if self._judge.value is not None:
            self._is_decided.set()

    def _to_frame(self, _: str, rows: Rows) -> Any:
        return self._spark.createDataFrame([self._table.to_row(row) for row in rows], self._table.struct)
