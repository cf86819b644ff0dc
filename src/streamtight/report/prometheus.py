r"""The jobs of a board as Prometheus reads them: its text format, version 0.0.4.

>>> label("a \"b\"\n")
'"a \\"b\\"\\n"'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streamtight.source.board import OUTCOMES, Watched

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Samples = Iterator[tuple[Labels, float]]


def exposition(jobs: Sequence[Watched], *, refused: int = 0) -> str:
    """All metrics of these jobs; `refused` is how much on the board could not be read."""
    lines: list[str] = []
    for name, kind, told, samples in (
        ("rows_total", "counter", "Rows so far, by side or input.", _by_name(jobs, "rows", "side")),
        ("rows_per_second", "gauge", "Rows a second in the last micro-batch.", _latest(jobs, "rate")),
        ("unmatched_rows", "gauge", "Rows without a match, by side.", _by_name(jobs, "unmatched", "side")),
        ("oldest_unmatched_seconds", "gauge", "How long the oldest of them waits.", _latest(jobs, "oldest")),
        ("watermark_lag_seconds", "gauge", "How far the watermark is behind the clock.", _latest(jobs, "lag")),
        ("batch_seconds", "gauge", "How long the last micro-batch took.", _latest(jobs, "seconds")),
        ("keys", "gauge", "Keys that have a state.", _latest(jobs, "keys")),
        ("answers_total", "counter", "Answers so far, by query and kind.", _by_query(jobs, "counts", "what")),
        ("query_value", "gauge", "Values of queries in the last micro-batch.", _by_query(jobs, "values", "of")),
        ("verdict", "gauge", "1 for the outcome that it has now, 0 for the others.", _verdicts(jobs)),
        ("alarms_total", "counter", "Alarms so far, by finding.", _alarms(jobs)),
        ("running", "gauge", "0 if it was stopped or failed.", ((_of(job), float(job.ended is None)) for job in jobs)),
        ("last_seen_timestamp_seconds", "gauge", "When it was last there.", ((_of(job), job.alive) for job in jobs)),
        ("jobs", "gauge", "Jobs on the board.", iter([({}, float(len(jobs)))])),
        ("refused", "gauge", "Things on the board that could not be read.", iter([({}, float(refused))])),
    ):
        found = [f"streamtight_{name}{_labels(labels)} {_value(value)}" for labels, value in samples]
        if found:
            lines += [f"# HELP streamtight_{name} {told}", f"# TYPE streamtight_{name} {kind}", *found]
    return "\n".join([*lines, ""])


def label(text: str) -> str:
    """A text as the value of a label."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f"{name}={label(value)}" for name, value in labels.items()) + "}" if labels else ""


def _value(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


def _of(job: Watched) -> dict[str, str]:
    """Two jobs may have one name, but not one folder; and equal labels would spoil the whole answer."""
    return {"name": job.name, "folder": job.folder}


def _latest(jobs: Sequence[Watched], what: str) -> Samples:
    return ((_of(job), job.latest[what]) for job in jobs if what in job.latest)


def _by_name(jobs: Sequence[Watched], what: str, called: str) -> Samples:
    return ((_of(job) | {called: name}, one) for job in jobs for name, one in job.latest.get(what, {}).items())


def _by_query(jobs: Sequence[Watched], what: str, called: str) -> Samples:
    for job in jobs:
        for query, numbers in job.latest.get(what, {}).items():
            for name, number in numbers.items():
                yield _of(job) | {"query": query, called: name}, number


def _verdicts(jobs: Sequence[Watched]) -> Samples:
    for job in jobs:
        if job.verdict is not None:
            for outcome in OUTCOMES:
                yield _of(job) | {"outcome": outcome}, float(job.verdict == outcome)


def _alarms(jobs: Sequence[Watched]) -> Samples:
    return ((_of(job) | {"finding": name}, count) for job in jobs for name, count in job.alarm_counts.items())
