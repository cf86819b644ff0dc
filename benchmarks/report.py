"""How long reports and pictures take, and how large they are. Processor time, medians of five."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

import streamtight as tight
from streamtight.program.run import Cause, Run, Step
from streamtight.program.timeline_picture import columns_of_run, timeline_picture
from streamtight.report.write import FORMATS, render
from streamtight.stream.order_picture import order_picture

Click = tight.Kind("Click", user=int, ms=int)


def median_seconds(work: Callable[[], object], times: int = 5) -> float:
    taken = []
    for _ in range(times):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def failing(events: int) -> tight.Verdict:
    chance = random.Random(events)
    rows = [Click(chance.randint(1, 5), number) for number in range(events)]
    middle = events // 2
    other = [*rows[:middle], Click(0, 0), *rows[middle + 1 :]]
    found = tight.Counterexample(
        "WRONG_ROWS",
        "a row is another one",
        tight.Schedule.of(rows, cuts=[middle]),
        tuple(rows),
        tuple(other),
        picture=order_picture(rows, other, tight.same("user")),
        replay="print(1)",
    )
    return tight.Verdict("clicks are the same", tight.Outcome.FAILS, tight.Scope.tested(9, seed=1), found)


def pages() -> None:
    print(f"{'verdicts':>10} {'format':>8} {'seconds':>9} {'size':>10}   each fails on 20 rows, with a picture")
    data = failing(20).as_data()
    for count in (1, 100, 1_000):
        for name in FORMATS:
            made = [data] * count
            seconds = median_seconds(lambda made=made, name=name: render(made, name, "report"))  # type: ignore[misc]
            size = len(render(made, name, "report").encode())
            print(f"{count:>10,} {name:>8} {seconds:>9.3f} {size / 1e6:>7.2f} MB")


def large_rows() -> None:
    print(f"\n{'rows':>10} {'seconds':>9} {'size':>10}   a page with one verdict on so many rows")
    for count in (100, 10_000, 100_000):
        data = [failing(count).as_data()]
        seconds = median_seconds(lambda data=data: render(data, "html", "report"), 3)  # type: ignore[misc]
        print(f"{count:>10,} {seconds:>9.3f} {len(render(data, 'html', 'report').encode()) / 1e6:>7.2f} MB")


def pictures() -> None:
    print(f"\n{'events':>10} {'order':>9} {'any order':>9} {'a function':>10} {'timeline':>9}   seconds for a picture")
    for count in (10, 1_000, 10_000):
        chance = random.Random(count)
        rows = [Click(chance.randint(1, 5), number) for number in range(count)]
        other = [*rows]
        other[count // 2], other[count // 2 + 1] = other[count // 2 + 1], other[count // 2]
        batches = tuple((tuple(rows[at : at + 10]),) for at in range(0, count, 10))
        run = Run(tuple(Step(number, Cause.DATA, batch, batch) for number, batch in enumerate(batches)))
        schedule = tight.Schedule(batches)
        told = [
            median_seconds(lambda r=rows, o=other: order_picture(r, o, tight.ordered)),  # type: ignore[misc]
            median_seconds(lambda r=rows, o=other: order_picture(r, o[:-1], tight.unordered)),  # type: ignore[misc]
            median_seconds(
                lambda r=rows, o=other: order_picture(r, o[:-1], tight.depends(lambda a, b: a.user == b.user))  # type: ignore[misc]
            ),
            median_seconds(
                lambda r=run, s=schedule, e=rows[-1]: timeline_picture(columns_of_run(r, s, [e]), key=("user",))  # type: ignore[misc]
            ),
        ]
        print(f"{count:>10,} {told[0]:>9.4f} {told[1]:>9.4f} {told[2]:>10.4f} {told[3]:>9.4f}")


if __name__ == "__main__":
    pages()
    large_rows()
    pictures()
