# ruff: noqa: N802, N803 - the names of PySpark's methods
"""explore for stateful code: machines, fork/join programs, Spark's stateful processors. None of it needs a JVM."""

from __future__ import annotations

import itertools
import random

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import streamtight as tight
from streamtight.errors import EncodingError, FormulaError, PipelineError, UnsupportedError
from streamtight.program.machine import look

ONCE = tight.always(
    tight.forall(lambda at: at.output, lambda row: tight.next(tight.always(lambda later: row not in later.output)))
)
"""No row comes out twice."""


def dedup(remembered):
    """Lets a letter through if it is not among the last so many."""

    def step(last, letter):
        return ([*last, letter] if letter not in last else last)[-remembered:], [] if letter in last else [letter]

    return tight.Machine("dedup", ("a", "b", "c"), list, step)


def test_a_dedup_that_forgets_emits_twice_and_the_shortest_run_shows_it():
    verdict = tight.explore(dedup(2), ONCE)

    assert [row[1] for row in verdict.counterexample.table.rows] == ["'a'", "'b'", "'c'", "'a'"]


def test_a_dedup_that_remembers_all_never_does():
    assert tight.explore(dedup(3), ONCE).holds


def test_a_formula_of_letters_is_judged_as_on_the_word():
    """The verdict is that of the formula on all words of a length, tried one by one."""
    rng = random.Random(5)
    tests = [
        tight.always(lambda at: len(at.output) <= 1),
        tight.always(tight.now(lambda at: at.input == ("a",)) >> tight.eventually("output", within=2)),
        tight.until(lambda at: not at.output, lambda at: at.input == ("b",), within=3),
        ONCE,
    ]
    for _ in range(40):
        table = {(s, x): (rng.randrange(3), rng.choice([[], ["u"], ["v"], ["u", "v"]])) for s in range(3) for x in "ab"}
        machine = tight.Machine("random", ("a", "b"), lambda: 0, lambda s, x, table=table: table[s, x])
        for formula in tests:
            verdict = tight.explore(machine, formula)
            lengths = [
                length for length in range(1, 6) for word in itertools.product("ab", repeat=length)
                if judged(machine, formula, word) is False
            ]  # fmt: skip
            if lengths:
                assert len(verdict.counterexample.table.rows) == min(lengths)
            else:
                assert not verdict.fails or len(verdict.counterexample.table.rows) > 5


def judged(machine, formula, word):
    from streamtight.method.explore.programs import _named_tests, letter_of

    held, letters = machine.first(), []
    for given in word:
        held, outputs = machine.stepped(held, given)
        letters.append(letter_of(given, outputs))
    return _named_tests(formula).evaluate(letters)


def test_a_promise_without_an_end_is_broken_by_going_round():
    def step(waiting, event):
        return ("open" if event == "start" else waiting), (["closed"] if event == "stop" and waiting == "open" else [])

    sessions = tight.Machine("sessions", ("start", "stop", "tick"), lambda: "idle", step)
    closes = tight.always(tight.now(lambda at: at.input == ("start",)) >> tight.eventually("output"))

    verdict = tight.explore(sessions, closes)

    assert "can come for ever" in verdict.counterexample.explanation
    assert tight.explore(sessions, "AG EF output").holds
    assert tight.explore(sessions, tight.live()).holds


def test_states_that_grow_for_ever_are_undecided():
    counter = tight.Machine("counter", (1,), lambda: 0, lambda n, x: (n + x, [n]))

    assert "is there a state that grows for ever?" in tight.explore(counter, tight.live(), states=500).reason


def test_what_raises_is_a_stop():
    fragile = tight.Machine("fragile", (1, 2), lambda: 0, lambda n, x: (n if x == 1 else 1 // 0, [n]))

    assert "raises ZeroDivisionError" in tight.explore(fragile, tight.live()).reason
    stops = tight.explore(fragile, tight.never_stops()).counterexample
    assert (stops.finding, stops.explanation[:35]) == ("STOPS", "the code raises ZeroDivisionError: ")
    assert tight.explore(fragile, tight.always(lambda at: not at.output)).fails


def test_code_that_looks_at_something_else_is_found_out():
    calls = itertools.count()
    moody = tight.Machine("moody", (1,), lambda: 0, lambda n, x: (0, [next(calls)]))

    with pytest.raises(EncodingError, match="a clock or chance"):
        tight.explore(moody, tight.always(lambda at: False))


def test_a_promise_inside_a_quantifier_needs_a_timeout():
    endless = tight.always(
        tight.forall(lambda at: at.output, lambda row: tight.next(tight.eventually(lambda at: row in at.output)))
    )

    with pytest.raises(FormulaError, match="timeouts on `eventually`"):
        tight.explore(dedup(3), endless)


def test_a_promise_about_outputs_that_never_come_is_vacuous():
    mute = tight.Machine("mute", ("a",), lambda: 0, lambda n, x: (n, []))

    assert "(vacuous)" in tight.explore(mute, ONCE).reason


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (1, 1.0), (0.0, -0.0), ([1], (1,)), ({"a": 1}, {"a": True}), ({1}, frozenset([1])), ("1", 1)],
)
def test_values_that_python_has_equal_are_told_apart(one, other):
    assert look(one) != look(other)


def test_values_that_look_the_same_are_one():
    assert look(float("nan")) == look(float("nan"))
    assert look({"a": [1, {2}]}) == look({"a": [1, {2}]})


# -- fork/join programs ----------------------------------------------------------------------------------------------

Add, Read = tight.Kind("Add", time=int, n=int), tight.Kind("Read", time=int)
Total = tight.Kind("Total", time=int, total=int)


class Modulo(tight.ForkJoin):
    takes, gives = (Add, Read), (Total,)
    depends = tight.barrier(Read)

    def init(self):
        return {"total": 0}

    def update(self, state, event, emit):
        if event.kind is Add:
            state["total"] = (state["total"] + event.n) % 4
        else:
            emit(Total(event.time, state["total"]))
        return state


def test_a_fork_join_program_is_explored_by_its_own_update():
    events = [Add(0, 1), Add(0, 2), Read(0)]

    holds = tight.explore(Modulo, tight.always(lambda at: all(row.total < 4 for row in at.output)), on=events)
    fails = tight.explore(Modulo(), tight.always(lambda at: all(row.total < 3 for row in at.output)), on=events)

    assert holds.holds
    assert [str(event) for event in fails.counterexample.schedule.events][-1] == "Read(time=0)"
    assert len(fails.counterexample.table.rows) == 3


def test_events_of_another_kind_are_refused():
    with pytest.raises(PipelineError, match="events of Add, Read"):
        tight.explore(Modulo, tight.live(), on=[Total(0, 1)])


# -- Spark's stateful processors -------------------------------------------------------------------------------------


class LastOnly(StatefulProcessor):
    """Emits a row unless it is the one before."""

    def init(self, handle):
        self.last = handle.getValueState("last", "item string")

    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            if not self.last.exists() or self.last.get()[0] != row.item:
                yield Row(user=row.user, item=row.item)
            self.last.update((row.item,))


class SeenMap(LastOnly):
    """Remembers all items, in a map."""

    def init(self, handle):
        self.seen = handle.getMapState("seen", "item string", "n int")

    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            if not self.seen.containsKey((row.item,)):
                self.seen.updateValue((row.item,), (1,))
                yield Row(user=row.user, item=row.item)


ROWS = [Row(user=user, item=item) for user in ("u", "v") for item in ("x", "y")]


def test_a_stateful_processor_is_explored_key_by_key():
    verdict = tight.explore(LastOnly, ONCE, on=ROWS, key="user")

    assert [row[1] for row in verdict.counterexample.table.rows] == [
        "(user='u', item='x')",
        "(user='u', item='y')",
        "(user='u', item='x')",
    ]
    assert tight.explore(SeenMap(), ONCE, on=ROWS, key="user").holds


class Session(StatefulProcessor):
    """Opens with a row and closes when nothing came for a while."""

    forgets_timer = False

    def init(self, handle):
        self.handle = handle
        self.count = handle.getValueState("count", "n int")

    def handleInputRows(self, key, rows, timerValues):
        for _ in rows:
            count = self.count.get()[0] if self.count.exists() else 0
            for timer in list(self.handle.listTimers()):
                self.handle.deleteTimer(timer)
            if not (self.forgets_timer and count):
                self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 1000)
            self.count.update((min(count + 1, 2),))
        return iter([])

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        count = self.count.get()[0]
        self.count.clear()
        yield Row(user=key[0], count=count)


class Stuck(Session):
    forgets_timer = True


def test_a_session_that_forgets_its_timer_never_closes():
    rows = [Row(user="u")]
    can_close = "AG EF output"

    assert tight.explore(Session, can_close, on=rows, key="user").holds
    verdict = tight.explore(Stuck, can_close, on=rows, key="user")

    assert [row[1] for row in verdict.counterexample.table.rows] == ["(user='u')", "(user='u')"]


class InAttributes(LastOnly):
    def handleInputRows(self, key, rows, timerValues):
        self.count = getattr(self, "count", 0) + 1
        return iter([])


class WithTtl(LastOnly):
    def init(self, handle):
        self.last = handle.getValueState("last", "item string", ttlDurationMs=1000)


class Lists(LastOnly):
    """The last two items, in a list."""

    def init(self, handle):
        self.items = handle.getListState("items", "item string")

    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            self.items.appendValue((row.item,))
            held = [item for (item,) in self.items.get()]
            if len(held) > 2:
                self.items.put([(item,) for item in held[-2:]])
            yield Row(n=len(held))


def test_lists_are_kept():
    assert tight.explore(Lists, tight.always(lambda at: at.output[0].n <= 3), on=ROWS, key="user").holds
    assert tight.explore(Lists, tight.always(lambda at: at.output[0].n <= 2), on=ROWS, key="user").fails


def test_what_is_remembered_in_attributes_is_refused():
    with pytest.raises(PipelineError, match="all that it remembers in its state variables"):
        tight.explore(InAttributes, tight.always(lambda at: True), on=ROWS, key="user")


def test_states_that_vanish_by_themselves_are_refused():
    with pytest.raises(UnsupportedError, match="does not vanish by itself"):
        tight.explore(WithTtl, tight.live(), on=ROWS, key="user")


@pytest.mark.parametrize(
    ("program", "options", "message"),
    [
        (LastOnly, {"on": ROWS}, "key=, the columns of the key"),
        (LastOnly, {"key": "user"}, "on=, all events or rows"),
        (LastOnly, {"on": ROWS, "key": "nobody"}, "rows with the key nobody"),
        (7, {"on": ROWS}, "a pipeline, a ForkJoin program, a StatefulProcessor or a Machine"),
        (Modulo, {}, "on=, all events or rows"),
    ],
)
def test_a_wrong_question_about_code_says_what_is_needed(program, options, message):
    with pytest.raises(PipelineError, match=message):
        tight.explore(program, tight.live(), **options)


def test_comparisons_of_outputs_are_refused_since_there_may_be_several():
    for claim in ('G !(output = "a")', "AG output = 1", tight.always(tight.pipe("output") != "a")):
        with pytest.raises(FormulaError, match="a function of a step"):
            tight.explore(dedup(2), claim)


def test_a_machine_and_its_steps_are_checked():
    with pytest.raises(PipelineError, match="a function that gives the first state"):
        tight.Machine("m", ("a",), 0, lambda state, event: (state, []))
    with pytest.raises(PipelineError, match="the state after it, and a list of what comes out"):
        tight.explore(tight.Machine("m", ("a",), lambda: 0, lambda state, event: state), tight.live())
    with pytest.raises(FormulaError, match="a formula, live"):
        tight.explore(dedup(2), lambda at: True)
