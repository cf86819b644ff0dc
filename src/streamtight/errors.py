"""Every exception that streamtight raises for a wrong question.

StreamtightError
├── KindError         a kind that cannot be: a bad name, a type we do not know
├── EventError        an event that does not fit its kind
│   └── FieldError    an event has no such field (also an AttributeError)
├── DependenceError   a relation that is not one: not symmetric, a field that is not there
├── SchemaError       a schema that is not well formed, or a stream that is not of it
├── GraphError        a graph of operators that cannot be: types that do not fit, a cycle, a name twice
├── PipelineError     a pipeline of processors that cannot be, or cannot be run or explored so
├── PlanError         a fork/join program, or a plan for one, that cannot be
├── InconsistentError a fork/join program whose parallel runs would give something else; `verdict` shows it
├── InputError        input streams that cannot be run: not increasing, not advancing, a tag that nobody handles
├── TraceError        traces that cannot be compared, schedules that cannot be run
├── SourceError       a source of traces that cannot be, or that does not keep what it promises
├── FormulaError      a temporal formula that cannot be, or cannot be judged
├── QueryError        a query that cannot be, or cannot be asked of this stream; `witness` is a word that shows why
├── PredicateError    a test in a formula raised, or gave no answer: with the letter, and the exception as its cause
├── VerdictError      a verdict that contradicts itself
├── ReportError       a report that cannot be written or read
├── RowError          a Spark row or type that is not an event or a kind, and the other way round
├── JobError          the user's job raised: with the batch, and the exception as its cause
├── CheckpointError   a checkpoint that this version, or this user, did not write
├── TimeLimitError    a run did not end in the time it was given
├── UnsupportedError  this engine cannot do that
├── SparkStartError   Spark did not start
└── EncodingError     our own bug: reasoning and running disagree

A wrong question is an exception; "no" and "don't know" are verdicts, never exceptions.
"""

from __future__ import annotations

from streamtight.redaction import without_secrets


class StreamtightError(Exception):
    """Where it went wrong, what was needed, what came instead, and what to try.

    The four parts stay readable as attributes, so that a report can show them its own way. Secrets are hidden in them.

    >>> print(StreamtightError("same('taxi')", needed="a field of GPS", came="'taxi'", hint="same('taxi_id')"))
    same('taxi'): needed a field of GPS; came 'taxi'. Try: same('taxi_id')
    """

    def __init__(self, where: str, *, needed: str, came: str, hint: str) -> None:
        where, needed, came, hint = map(without_secrets, (where, needed, came, hint))
        super().__init__(f"{where}: needed {needed}; came {came}. Try: {hint}")
        self.where = where
        self.needed = needed
        self.came = came
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions pickle by calling the class with self.args, which keyword-only parameters refuse.
        return (_rebuild, (type(self), str(self), self.__dict__))


def _rebuild(cls: type[StreamtightError], text: str, attributes: dict[str, object]) -> StreamtightError:
    error = cls.__new__(cls, text)
    error.__dict__.update(attributes)
    return error


class KindError(StreamtightError):
    """A kind that cannot be: a bad name, or a field type that is not known."""


class EventError(StreamtightError):
    """An event that does not fit its kind: a field missing, surplus or of a wrong type."""


class FieldError(EventError, AttributeError):
    """An event has no such field."""


class DependenceError(StreamtightError):
    """A relation that is not a dependence on the given events."""


class SchemaError(StreamtightError):
    """A schema that is not well formed, or a stream that is not of it. `rule` names the broken rule."""

    def __init__(self, where: str, *, needed: str, came: str, hint: str, rule: str | None = None) -> None:
        super().__init__(where, needed=needed, came=came, hint=hint)
        self.rule = rule


class GraphError(StreamtightError):
    """A graph of operators that cannot be: types that do not fit, a cycle, a name twice."""


class PipelineError(StreamtightError):
    """A pipeline of processors that cannot be: a loose pipe, a cycle; or that cannot be run or explored so."""


class PlanError(StreamtightError):
    """A fork/join program, or a plan for one, that cannot be."""


class InconsistentError(StreamtightError):
    """A fork/join program whose parallel runs may give something else; `verdict` shows it, or says what is unknown."""

    def __init__(self, where: str, *, needed: str, came: str, hint: str, story: str, verdict: object) -> None:
        super().__init__(where, needed=needed, came=came, hint=hint)
        self.args = (f"{self.args[0]}\n{story}",)
        self.story, self.verdict = story, verdict


class InputError(StreamtightError):
    """Input streams that cannot be run: not increasing in time, not advancing, an event that nobody handles."""


class TraceError(StreamtightError):
    """Traces that cannot be compared, or a schedule that cannot be run."""


class SourceError(StreamtightError):
    """A source of traces that cannot be, or that does not keep what it promises."""


class FormulaError(StreamtightError):
    """A temporal formula that cannot be, or that cannot be judged on this word."""


class QueryError(StreamtightError):
    """A query that cannot be, or that cannot be asked of this stream. `witness` is a word of tags that shows why."""

    def __init__(
        self, where: str, *, needed: str, came: str, hint: str, witness: tuple[str, ...] | None = None
    ) -> None:
        super().__init__(where, needed=needed, came=came, hint=hint)
        self.witness = witness


class PredicateError(StreamtightError):
    """A test in a formula raised, or gave no answer. `letter` and `record` say for what, `__cause__` what it raised."""

    def __init__(self, where: str, *, needed: str, came: str, hint: str, letter: int, record: object) -> None:
        super().__init__(where, needed=needed, came=came, hint=hint)
        self.letter = letter
        self.record = record


class VerdictError(StreamtightError):
    """A verdict that contradicts itself."""


class ReportError(StreamtightError):
    """A report that cannot be written or read."""


class RowError(StreamtightError):
    """A Spark row or type that is not an event or a kind, or the other way round."""


class JobError(StreamtightError):
    """The user's job raised. `batch` says in which micro-batch, `raised` what, `__cause__` is the exception."""

    def __init__(self, where: str, *, needed: str, came: str, hint: str, batch: int | None, raised: str) -> None:
        super().__init__(where, needed=needed, came=without_secrets(came, strict=True), hint=hint)
        self.batch = batch
        self.raised = without_secrets(raised, strict=True)


class TimeLimitError(StreamtightError):
    """A run did not end in the time it was given. `seconds` is that time."""

    def __init__(self, where: str, *, needed: str, came: str, hint: str, seconds: float) -> None:
        super().__init__(where, needed=needed, came=came, hint=hint)
        self.seconds = seconds


class UnsupportedError(StreamtightError):
    """This engine, or this kind of session, cannot do that."""


class CheckpointError(StreamtightError):
    """What is kept in a checkpoint is not what this version writes, or may be another user's: it is not read."""


class SparkStartError(StreamtightError):
    """Spark did not start, with what `streamtight doctor` would say about it."""


class EncodingError(StreamtightError):
    """Our own bug: a counterexample found by reasoning does not fail when it is run."""
