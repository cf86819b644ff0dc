"""One verdict of each kind, found by the methods themselves, on jobs in plain Python: what a page has to show."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import streamtight as tight
from streamtight import pipes
from streamtight.method.check.search import Question, search
from streamtight.method.compare import jobs
from streamtight.method.typecheck.graphs import typecheck_graph
from streamtight.program.run import Cause, Run, Step
from streamtight.source.cases import cases_of
from streamtight.spark.metrics_picture import Panel, chart
from streamtight.stream.svg import stacked
from streamtight.verdict import Table

Click = tight.Kind("Click", user=str, ms=int)
Total = tight.Kind("Total", user=str, total=int)
Note = tight.Kind("Note", key=int, text=str)
NASTY = "<script>document.title = 'hacked'</script><img src=x onerror=\"document.title='hacked'\">"
USERS = ("ann", "bob", "eve")


class Plain:
    """A back end for functions from a schedule to a run."""

    def packs(self, job: object, mode: str) -> bool:
        return True

    def runner(self, job: Callable[[tight.Schedule], Run], mode: str) -> Callable[..., list[Run]]:
        return lambda schedules, packed: [job(schedule) for schedule in schedules]


def asked(source: Any, **more: Any) -> jobs.Asked[Any]:
    settings = {"upto": tight.same("user"), "mode": "append", **more}
    upto, mode = settings.pop("upto"), settings.pop("mode")
    return jobs.Asked(Plain(), source, upto, None, mode, (), 60, 7, lambda schedule: schedule.code(), **settings)


def clicks(upto: tight.Dependence) -> Any:
    return tight.generated(Click, upto=upto, size=(6, 9), user=list(USERS))


def run_of(schedule: tight.Schedule, outputs: Sequence[Any]) -> Run:
    steps = zip(schedule.batches, outputs, strict=True)
    return Run(tuple(Step(n, Cause.DATA, given, tuple(map(tuple, made))) for n, (given, made) in enumerate(steps)))


def totals(schedule: tight.Schedule) -> Run:
    """Adds up the times of each user, and gives each total in the batch in which it changes."""
    known: dict[str, int] = {}
    outputs = []
    for batch in schedule.batches:
        made = []
        for event in (event for part in batch for event in part):
            known[event.user] = known.get(event.user, 0) + event.ms
            made.append(Total(event.user, known[event.user]))
        outputs.append([made])
    return run_of(schedule, outputs)


def forgets(schedule: tight.Schedule) -> Run:
    """The same, but begins anew after a restart."""
    known: dict[str, int] = {}
    steps = []
    stops = {restart.after: restart for restart in schedule.restarts}
    for number, batch in enumerate(schedule.batches):
        again = [Cause.DATA, Cause.REPLAY] if number in stops and stops[number].replay else [Cause.DATA]
        for cause in again:
            made = []
            for event in (event for part in batch for event in part):
                known[event.user] = known.get(event.user, 0) + event.ms
                made.append(Total(event.user, known[event.user]))
            steps.append(Step(number, cause, batch, (tuple(made),)))
        if number in stops:
            known = {}
    return Run(tuple(steps))


def sorts(schedule: tight.Schedule) -> Run:
    """Gives the rows of a batch sorted by their times: those of a user may change places."""
    rows = [sorted((event for part in batch for event in part), key=lambda one: one.ms) for batch in schedule.batches]
    return run_of(schedule, [[each] for each in rows])


def copies(schedule: tight.Schedule) -> Run:
    return run_of(schedule, [[[event for part in batch for event in part]] for batch in schedule.batches])


def order_lost() -> tight.Verdict:
    question = replace(asked(clicks(tight.same("user"))), shrink_seconds=0.0)
    return jobs.compare(question, copies, sorts, reference_mode="append", claim="sorted gives what copied gives")


def lost_on_restart() -> tight.Verdict:
    question = replace(asked(clicks(tight.same("user")), upto=tight.unordered), shrink_seconds=0.0)
    return jobs.law(question, forgets, name="totals", law="restarts")


def violated() -> tight.Verdict:
    """A promise that is broken when the third user clicks for the first time."""
    clicked = tight.now(lambda letter: bool(letter["clicks"]), name="somebody clicks")
    answered = tight.now(lambda letter: len(letter["totals"]) == len(letter["clicks"]), name="every click has a total")
    formula = tight.always(clicked >> (answered & tight.eventually(answered, within=2)), during=6)

    def words(cases: Sequence[tight.Schedule], steps: Sequence[Any], packed: bool) -> Iterator[list[tight.Letter]]:
        for case, step in zip(cases, steps, strict=True):
            word: list[tight.Letter] = []
            for number, batch in enumerate(case.batches):
                rows = tuple(event for part in batch for event in part)
                made = tuple(Total(event.user, event.ms) for event in rows if event.user != "eve")
                word.append(tight.Letter({"clicks": rows}, {"totals": made}, batch=number))
                if step(word[-1]):
                    break
            yield word

    cases = cases_of(
        tight.generated(Click, upto=tight.ordered, size=(8, 12), user=["ann", "bob", "bob", "ann", "eve"]), length=6
    )
    asks = Question("every click has a total, two batches later", formula, cases, words, lambda case: case.code())
    return search(replace(asks, shrink_seconds=0.0), runs=80, seed=4)


def diverged() -> tight.Verdict:
    matcher = tight.Matcher(upto=tight.same("key"))
    matcher.feed("left", [Note(1, "a"), Note(1, NASTY), Note(2, "שלום עולם"), Note(3, "🎉 emoji 表")])
    matcher.feed("right", [Note(1, "a"), Note(1, "b\x00\u202enothing")])
    return matcher.finish(claim=f"the notes are the same, even with {NASTY}")


def left_over_live() -> tight.Verdict:
    """As a live comparison tells it: the events, and the metrics over time."""
    matcher = tight.Matcher(upto=tight.unordered)
    matcher.feed("left", [Note(1, "x"), Note(2, "y")])
    matcher.feed("right", [Note(1, "x")])
    verdict = matcher.finish(claim="left and right give the same stream, while they run")
    begin = datetime(2024, 5, 1, tzinfo=UTC).timestamp()
    seconds = [begin + 2 * number for number in range(60)]
    panels = [
        Panel(
            "unmatched rows",
            {"left": [(n * 7) % 23 + n // 3 for n in range(60)], "right": [(n * 5) % 9 for n in range(60)]},
        ),
        Panel("rows a second", {"both": [4000 + 500 * ((n * 37) % 11) for n in range(60)]}),
        Panel("seconds a batch", {"seconds": [0.4 + 0.05 * ((n * 13) % 7) for n in range(60)]}),
    ]
    drawn = chart(seconds, panels, label="metrics", marks=[(seconds[48], "STUCK: Note(2, 'y') is unmatched for 60 s")])
    found = verdict.counterexample
    assert found is not None
    return replace(verdict, counterexample=replace(found, picture=stacked(found.picture, drawn)))


def order_matters() -> tight.Verdict:
    last = tight.KeyedUnordered(
        "last click of each user",
        takes=tight.U(Click),
        gives=tight.U(Total),
        key="user",
        summary=lambda click: click.ms,
        identity=0,
        combine=lambda a, b: b,
        initial_state=0,
        update_state=lambda state, total: state + total,
        on_marker=lambda state, user, marker, emit: emit(Total(user, state)),
    )
    return typecheck_graph(last)


def queue_full() -> tight.Verdict:
    drift = tight.Pipeline.wired(
        "in -> copy; copy.0 -> sample -> minus.0; copy.1 -> minus.1; minus -> out",
        copy=pipes.Fork(2),
        sample=pipes.CountDecimate(3),
        minus=pipes.Apply(operator.sub),
        name="drift",
    )
    return tight.explore(drift, tight.no_full_queues(), queue=3)


def wide_and_long() -> tight.Verdict:
    wide = tight.Kind("Wide", **{f"column_{number}": int for number in range(300)})
    left = [wide(*range(number, number + 300)) for number in range(400)]
    right = [row if number != 250 else wide(*row[1:280], 7, *row[281:]) for number, row in enumerate(left)]
    found = tight.Counterexample("WRONG_ROWS", "one cell of 120,000 differs", expected=tuple(left), actual=tuple(right))
    return tight.Verdict("wide tables are the same", tight.Outcome.FAILS, tight.Scope.tested(3, seed=1), found)


def different() -> tight.Verdict:
    table = Table(("input 1", "old", "new"), (("(user='ann', ms=50)", "100", "no rows"),), "input and results")
    found = tight.Counterexample(
        "DIFFERENT", "they give different results on this input", table=table, replay="old(rows)\nnew(rows)",
        reruns=2, failing_reruns=1,
    )  # fmt: skip
    return tight.Verdict("new gives what old gives", tight.Outcome.FAILS, tight.Scope.proved(), found)


def passes() -> list[tight.Verdict]:
    outcome, scope = tight.Outcome, tight.Scope
    return [
        tight.Verdict("clicks are counted once", outcome.HOLDS, scope.tested(3, seed=7), cost={"seconds": 1.5}),
        tight.Verdict(
            "old and new are equal", outcome.HOLDS, scope.proved(), method="NoAgg: rows compared one by one",
            assumptions=("integers do not overflow", "user is never null"),
        ),
        tight.Verdict("the stream is in order", outcome.HOLDS, scope.observed(12_000)),
        tight.Verdict(
            "totals means the same in any order", outcome.UNDECIDED, scope.tested(60, seed=7),
            reason="vacuous: the source promises same('user'), which left its inputs no other order",
        ),
    ]  # fmt: skip


def failures() -> list[tight.Verdict]:
    return [
        order_lost(),
        lost_on_restart(),
        violated(),
        diverged(),
        left_over_live(),
        order_matters(),
        queue_full(),
        wide_and_long(),
        different(),
    ]
