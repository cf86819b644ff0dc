"""explore: what it says of pipelines, and how."""

from __future__ import annotations

import operator
import re
import sys
from pathlib import Path

import pytest

import streamtight as tight
from streamtight import ctl, pipes
from streamtight.errors import FormulaError, PipelineError, PredicateError
from streamtight.method.explore import smv_check
from streamtight.method.explore.export import smv_answer

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "examples"))
sys.path.append(str(ROOT / "benchmarks"))
import pipelines as paper  # noqa: E402

W = tight.Pipeline.wired
TOTAL = pipes.Cumulate(operator.add)


def pushes_of(verdict):
    return [row[0] for row in verdict.counterexample.table.rows]


# -- the paper -------------------------------------------------------------------------------------------------------


def problems_of_the_paper():
    import explore as benchmark

    return list(benchmark.problems())


@pytest.mark.parametrize(
    ("question", "expected"), [pytest.param(*asked, id=name) for name, *asked in problems_of_the_paper()]
)
def test_a_problem_of_the_paper_is_decided_as_the_reference_says(question, expected):
    assert question().outcome.name == expected


def test_there_are_162_problems():
    assert len(problems_of_the_paper()) == 162


@pytest.mark.parametrize(("queue", "pushes"), [(1, 2), (2, 3), (3, 5), (4, 6), (64, 96)])
def test_the_shortest_way_to_fill_the_queue_of_1_and_third(queue, pushes):
    verdict = tight.explore(paper.product_of_1_and_kth(), tight.no_full_queues(), queue=queue, domain=16)

    assert verdict.counterexample.explanation.startswith(f"after {pushes} pushes, the queue m.0 holds {queue} event")


def test_with_pauses_nothing_is_live_within_three_pushes():
    for make in paper.SEVEN.values():
        verdict = tight.explore(make(), tight.live(within=3), queue=3, domain=4, full="drop", pauses=True)

        assert (verdict.outcome.name, pushes_of(verdict)) == ("FAILS", ["1", "2", "3"])


def test_figures_5a_and_5b_give_the_same_sequence_but_not_the_same_steps():
    same = tight.explore(paper.figure_5a(), tight.same_sequence(paper.figure_5b()), domain=tight.modulo(8))
    steps = tight.explore(paper.figure_5a(), tight.same_steps(paper.figure_5b()), domain=8)

    assert same.holds
    assert "wrap around at 8" in str(same)
    assert steps.counterexample.explanation == "at push 1, figure 5a gives nothing and figure 5b gives 1"


def test_with_odd_numbers_the_wrap_around_breaks_figure_5a():
    meant = tight.explore(paper.figure_5a(), tight.same_sequence(paper.figure_5b()), domain=tight.modulo(7))
    stand_in = tight.explore(paper.figure_5a(), tight.same_sequence(paper.figure_5b()), domain=7)

    assert meant.fails
    assert stand_in.undecided
    assert stand_in.reason.startswith("it breaks if whole numbers wrap around at 7; but they do not: ")


def test_figure_5a_with_odd_is_figure_5c():
    assert tight.explore(
        paper.figure_5a_with_odd(), tight.same_sequence(paper.figure_5c()), domain=tight.modulo(8)
    ).holds


def test_a_window_sum_is_its_chain_for_numbers_of_any_size():
    verdict = tight.explore(paper.window_sum(4), tight.same_steps(paper.chain_sum(4)))

    assert str(verdict).endswith(
        "(proved for every stream of whole numbers of any size, assuming that every push brings an event)"
    )


@pytest.mark.skipif(smv_check.find() is None, reason="neither NuSMV nor nuXmv is on the PATH")
def test_nusmv_agrees_on_all_problems_of_the_paper(monkeypatch):
    import explore as benchmark

    def asked(pipeline, claim, queue, numbers, **options):
        return (
            pipeline,
            claim,
            {"queue": queue, "domain": tight.modulo(numbers), "full": "drop", "pauses": True} | options,
        )

    monkeypatch.setattr(benchmark, "asked", asked)

    for name, (pipeline, claim, options), expected in benchmark.problems():
        assert smv_answer(pipeline, claim, **options) is (expected == "HOLDS"), name


@pytest.mark.parametrize(
    ("pipeline", "claim"),
    [
        (W("in -> a -> b -> out", a=pipes.Apply(lambda x: x + 1), b=pipes.Apply(lambda x: x < 4)), tight.stays_true()),
        (W("in -> a -> out", a=pipes.Apply(lambda x: x - 1)), "AG (out >= 0)"),
        (paper.window_sum(3), "G (out -> out <= 5)"),
        (
            W("in -> o -> s -> k -> out", o=pipes.TurnInto(1), s=TOTAL, k=pipes.Apply(lambda n: n <= 3)),
            tight.stays_true(),
        ),
    ],
)
def test_what_holds_only_since_numbers_wrap_fails_with_numbers_that_do_not(pipeline, claim):
    verdict = tight.explore(pipeline, claim)

    assert verdict.fails
    assert tight.explore(pipeline, claim, domain=tight.modulo(4)).holds


def test_a_promise_that_a_counter_keeps_is_not_broken_by_its_wrap_around():
    counter = W("in -> o -> s -> out", o=pipes.TurnInto(1), s=TOTAL)

    verdict = tight.explore(counter, "F (out >= 1000)")

    assert verdict.undecided
    assert "it breaks if whole numbers wrap around at 4; but they do not" in verdict.reason


# -- claims ----------------------------------------------------------------------------------------------------------


def test_a_pipeline_that_falls_silent_is_not_live():
    until_true = W(
        "in -> z -> n -> flt.1; in -> flt.0; flt -> out",
        takes={"in": bool},
        z=pipes.Cumulate(pipes.either),
        n=pipes.Apply(operator.not_),
        flt=pipes.Filter(),
    )

    verdict = tight.explore(until_true, tight.live())

    assert verdict.counterexample.explanation == "after 1 push, nothing comes on the output any more, whatever comes in"
    assert verdict.counterexample.table.rows[0][1] == "True"


def test_a_pipeline_that_never_speaks_is_silent_from_the_beginning():
    mute = W("in -> w -> out", w=pipes.Window(pipes.Trim(2), 2))

    verdict = tight.explore(mute, tight.live())

    assert "from the beginning, nothing comes on the output" in verdict.counterexample.explanation


def test_a_full_queue_is_an_end_of_what_is_known_unless_it_drops():
    stopping = tight.explore(paper.figure_2a(), tight.live(), queue=3)
    dropping = tight.explore(paper.figure_2a(), tight.live(), queue=3, full="drop")

    assert stopping.undecided
    assert stopping.reason.startswith("C.1 at push 6: an event comes to a queue of 3 that is full")
    assert dropping.holds
    assert "a full queue drops what comes" in str(dropping)


def test_sequences_say_how_many_outputs_were_compared_before_a_queue_was_full():
    half = W("in -> d -> out", d=pipes.CountDecimate(2))
    pairs = W(
        "in -> f; f.0 -> d -> a.0; f.1 -> a.1; a -> out",
        f=pipes.Fork(2),
        d=pipes.CountDecimate(2),
        a=pipes.Apply(lambda x, y: x),
    )

    one_value = tight.explore(half, tight.same_sequence(paper.passthrough()), queue=3, inputs={"in": [0]})
    many = tight.explore(pairs, tight.same_sequence(half), queue=3)

    assert one_value.holds  # only how many come can differ, and that is no difference
    assert many.undecided
    assert re.match(r"the first \d outputs are the same, but left_a.1 at push \d: an event comes to", many.reason)


def test_queues_can_have_sizes_of_their_own():
    small = tight.explore(paper.figure_5a(), tight.no_full_queues(), queue={"flt.0": 2, "flt.1": 1}, domain=4)
    full = tight.explore(paper.figure_5a(), tight.no_full_queues(), queue={"flt.0": 1}, domain=4)
    one = tight.explore(paper.figure_5a(), tight.no_full_queues("flt.1"), queue=1, domain=4)

    assert (small.holds, full.fails, one.holds) == (True, True, True)


def test_an_approximation_says_true_only_where_the_other_does():
    def compared(with_what, limit):
        return W("in -> k -> c.1; in -> c.0; c -> out", k=pipes.TurnInto(limit), c=pipes.Apply(with_what))

    strict, loose = compared(operator.gt, 2), compared(operator.gt, 1)

    assert tight.explore(strict, tight.approximates(loose)).holds
    verdict = tight.explore(loose, tight.approximates(strict))
    assert verdict.counterexample.table.rows[0][1] == "2"


def test_whole_numbers_that_leave_their_range_are_a_stop_that_can_be_asked_for():
    verdict = tight.explore(paper.sum_of_doubles(), tight.never_stops(), domain=tight.whole(0, 9))
    fine = tight.explore(paper.passthrough(), tight.never_stops(), domain=tight.whole(0, 9))

    assert verdict.counterexample.explanation == "at push 1, m: 10 is not in 0..9"
    assert fine.holds


def test_a_function_that_raises_is_a_stop():
    inverse = W("in -> i -> out", i=pipes.Apply(lambda x: 6 // x))

    assert tight.explore(inverse, tight.never_stops()).counterexample.explanation.startswith(
        "at push 1, i: f raises ZeroDivisionError for 0"
    )
    assert "raises ZeroDivisionError" in tight.explore(inverse, tight.live()).reason
    assert tight.explore(inverse, tight.live(), inputs={"in": [1, 2, 3]}).holds


@pytest.mark.parametrize("claim", [tight.stays_true(), "G (out -> X out)", "AG (out -> AX out)", "G (out -> F in)"])
def test_a_claim_that_is_kept_by_doing_nothing_is_vacuous(claim):
    mute = W("in -> w -> b -> out", w=pipes.Window(pipes.Trim(2), 2), b=pipes.Apply(pipes.is_even))

    verdict = tight.explore(mute, claim)

    assert (verdict.outcome.name, "(vacuous)" in (verdict.reason or "")) == ("UNDECIDED", True)


def test_two_pipelines_that_never_speak_are_no_proof_that_they_are_equal():
    mute = W("in -> w -> out", w=pipes.Window(pipes.Trim(2), 2))

    assert "(vacuous)" in tight.explore(mute, tight.same_steps(mute)).reason


def test_events_that_leak_break_what_holds_without():
    sound = tight.explore(paper.window_sum(2), tight.same_steps(paper.chain_sum(2)))
    leaking = tight.explore(paper.window_sum(2), tight.same_steps(paper.chain_sum(2)), leaks=["right_t1"])

    assert sound.holds
    assert "lost before right_t1" in str(leaking.counterexample.table)


def test_a_reset_loses_what_was_held():
    keeps = W("in -> s -> out", takes={"in": bool}, s=pipes.Cumulate(pipes.either))

    assert tight.explore(keeps, "G (out == TRUE -> G !(out == FALSE))").holds
    verdict = tight.explore(keeps, "G (out == TRUE -> G !(out == FALSE))", resets=True)
    assert [row[1] for row in verdict.counterexample.table.rows] == ["True", "a reset", "False"]


def test_the_end_of_the_stream_can_come_at_any_time():
    last = W("in -> l -> out", l=pipes.Last())

    assert tight.explore(last, tight.pipe("out").present >> tight.next("out"), ends=True).holds
    assert tight.explore(last, "EF out", ends=True).fails  # not if it ends at once
    assert tight.explore(last, "AX EF out", ends=True).fails
    assert tight.explore(last, "in -> EF out", ends=True).holds


def test_a_query_can_be_a_property():
    q = tight.query
    difference = q.count("in") - q.count("out")

    assert tight.explore(paper.chain_sum(3), tight.stays(difference, lambda n: n <= 2), states=2_000).undecided
    greatest = tight.stays(q.greatest(q.cur, "out", before=0), lambda n: n <= 8)
    assert tight.explore(paper.window_sum(3), greatest).fails  # 3 + 3 + 3
    assert tight.explore(paper.window_sum(3), greatest, inputs={"in": [0, 1, 2]}).holds
    verdict = tight.explore(paper.chain_sum(3), tight.stays(difference, lambda n: n < 2))
    assert len(verdict.counterexample.table.rows) == 2


# -- formulas --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "outcome"),
    [
        ("AG EF out", "HOLDS"),
        ("G F out", "HOLDS"),
        ("G (in -> F out)", "HOLDS"),
        ("F G out", "HOLDS"),
        ("AG out", "FAILS"),
        ("AX AX out", "HOLDS"),
        ("AX AX !out", "FAILS"),
        ("EF (out == 3)", "HOLDS"),
        ("AG (out == 3 -> EF out == 0)", "HOLDS"),
        ("A[!out U out]", "HOLDS"),
        ("E[out U out == 9]", "UNDECIDED"),  # of numbers from 0 to 3
        ("G !(out > 2)", "FAILS"),
        ("G (out > 2 -> X out)", "HOLDS"),
        ("!out U out", "HOLDS"),
        ("F (out == 3)", "FAILS"),
        ("always(eventually(out, within=3))", "HOLDS"),
        ("EG !(out == 3)", "HOLDS"),
        ("AF out == 3", "FAILS"),
        (tight.always(tight.eventually(tight.pipe("out") == tight.pipe("in"))), "FAILS"),
        (tight.always(tight.eventually("out", within=2)), "FAILS"),
        (ctl.AG(ctl.EF(tight.pipe("out") == 2)), "HOLDS"),
        (ctl.AG("in") & ~ctl.AG("out"), "HOLDS"),
        (tight.always(lambda push: "in" in push), "HOLDS"),
        (tight.always(lambda push: push["out"] is pipes.NOTHING or push["out"] < 3), "FAILS"),
    ],
    ids=str,
)
def test_a_formula_over_pipes(formula, outcome):
    assert tight.explore(paper.window_sum(3), formula).outcome.name == outcome


def test_a_run_that_goes_round_is_told_as_such():
    verdict = tight.explore(paper.window_sum(2), "F (out == 3)")

    assert verdict.counterexample.explanation == "the last push can go on for ever, and so it is never kept"
    assert "(again and again)" in pushes_of(verdict)[-1]


def test_queues_can_be_asked_about():
    assert tight.explore(paper.figure_5a(), tight.always(tight.queue("flt.0") <= 1)).holds
    assert tight.explore(paper.figure_2a(), "G !(#C.1 >= 2)").fails


@pytest.mark.parametrize(
    "text",
    ["", "G", "AG EF", "out &", "(out", "out)", "out == ", "AG F out", "G AF out", "A[out]", "1 2", "out = = 3", "£"],
)
def test_a_text_that_is_no_formula_is_refused_with_its_place(text):
    with pytest.raises(FormulaError, match=r"at \d+"):
        tight.explore(paper.window_sum(2), text)


# -- systems that are watched ----------------------------------------------------------------------------------------


def counting_system(is_right=True):
    """b is the number of times that a was true in the two states before; or, wrongly, in the last two."""

    def after(now):
        counts = {a: now.a + now.before if is_right else a + now.a for a in (False, True)}
        return [{"a": a, "before": now.a, "b": count} for a, count in counts.items()]

    return tight.Kripke({"a": bool, "before": bool, "b": range(3)}, {"b": 0, "before": False}, after)


def test_a_monitor_in_the_model_checker_judges_all_runs_of_a_system():
    right = tight.explore(tight.watched(counting_system(), paper.figure_2b(2)), tight.stays_true())
    wrong = tight.explore(tight.watched(counting_system(False), paper.figure_2b(2)), tight.stays_true())

    assert right.holds
    assert "that the system gives" in str(right)
    assert wrong.counterexample.explanation == "at push 3, out carries False"
    assert [row[1:3] for row in wrong.counterexample.table.rows] == [("False", "0"), ("False", "0"), ("True", "1")]


def test_a_system_can_be_given_as_smv_text():
    light = tight.Kripke.from_smv(
        "MODULE main VAR go : boolean; n : 0..3; ASSIGN init(go) := FALSE; init(n) := 0; "
        "next(n) := (n + 1) mod 4; next(go) := n = 2;"
    )
    monitor = W("n -> k -> c.1; n -> c.0; c -> out", takes={"n": int}, k=pipes.TurnInto(3), c=pipes.Apply(operator.le))

    assert tight.explore(tight.watched(light, monitor), tight.stays_true()).holds


def test_a_pipeline_must_see_variables_that_there_are():
    with pytest.raises(PipelineError, match="a variable of the system: a, before, b; came 'c'"):
        tight.watched(counting_system(), paper.figure_2b(2), b="c")
    with pytest.raises(PipelineError, match="needed int; came boolean"):
        tight.explore(tight.watched(counting_system(), paper.figure_2b(2), b="a"), tight.stays_true())


# -- sizes of queues, dead paths -------------------------------------------------------------------------------------


def test_the_smallest_queues_of_the_figures():
    assert dict(tight.smallest_queues(paper.figure_5a(), domain=8).sizes) == {"flt.0": 1, "flt.1": 0}
    assert dict(tight.smallest_queues(paper.figure_5b(), domain=8).sizes) == {"m.0": 0, "m.1": 0}
    assert dict(tight.smallest_queues(paper.chain_sum(4)).sizes) == {
        "a1.0": 1,
        "a1.1": 0,
        "a2.0": 1,
        "a2.1": 0,
        "a3.0": 1,
        "a3.1": 0,
    }


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_queue_that_grows_for_ever_is_proved_to(k):
    sizes = tight.smallest_queues(paper.product_of_1_and_kth(k))

    by, pushes, after = sizes.grows["m.0"]
    assert (by, pushes) == (k - 1, k)
    run = list(paper.product_of_1_and_kth(k).pushes([0] * (after + 10 * pushes)))
    lengths = [0, *(len(push.queues["m.0"]) for push in run)]
    assert [lengths[after + n * pushes] - lengths[after] for n in range(10)] == [n * by for n in range(10)]


def test_a_smallest_queue_is_enough_and_one_less_is_not():
    for pipeline in (paper.figure_5a(), paper.chain_sum(3), paper.delay()):
        sizes = tight.smallest_queues(pipeline, domain=4).sizes
        fits = tight.explore(pipeline, tight.never_stops(), queue=dict(sizes), domain=tight.modulo(4))
        assert fits.holds
        for name, size in sizes.items():
            if size:
                assert tight.explore(
                    pipeline, tight.never_stops(), queue={**sizes, name: size - 1}, domain=tight.modulo(4)
                ).fails


def test_a_path_that_never_matters_is_found_and_one_that_does_is_not():
    @tight.pipeline
    def guarded(numbers: int):
        return pipes.Filter()(numbers, numbers >= 0) + 1

    dead = tight.dead_paths(guarded, domain=4)

    assert str(dead[0]).startswith(
        "filter, at_least, turninto never matter: without filter, the pipeline gives the same"
    )
    assert dead[0].shorter.run([1, 2]) == [2, 3]
    assert tight.dead_paths(paper.sum_of_doubles(), domain=5) == []


# -- what is wrong with the question ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "options", "message"),
    [
        ("G outt", {}, "one of in, w, out; came 'outt'"),
        (tight.always(tight.queue("C.1") < 2), {}, "it has no box with several inputs"),
        (tight.no_full_queues("x"), {}, "the queue 'x'"),
        (tight.stays_true(), {}, "a pipe that carries True or False"),
        (7, {}, "a claim, a formula, or a text; came 7"),
        (tight.live("x"), {}, "one of in, w, out"),
        ("G out", {"engine": "magic"}, "auto, symbols, search or sat"),
        ("G out", {"queue": -1}, "numbers of events from 0"),
        ("G out", {"queue": {"C.1": 2}}, "none: it has no queues"),
        ("G out", {"full": "explode"}, "'stop' or 'drop'"),
        ("G out", {"domain": 0}, "how many whole numbers there are"),
        ("G out", {"inputs": {"x": [1]}}, "inputs among in; came 'x'"),
        ("G out", {"inputs": {"in": []}}, "one value or more"),
        ("G out", {"inputs": {"in": [9]}, "domain": tight.modulo(4)}, "whole numbers in 0..3; came 9"),
        ("G out", {"inputs": {"in": ["a"]}}, "needed int"),
        ("G out", {"leaks": ["x"]}, "came 'x'"),
        ("G out < 'a'", {}, "two whole numbers"),
        ("G out == 'a'", {}, "two values of one sort"),
        (tight.always(tight.once("out")), {}, "operators of the future"),
    ],
    ids=str,
)
def test_a_wrong_question_is_an_error_that_says_what_is_needed(claim, options, message):
    with pytest.raises((PipelineError, FormulaError), match=message):
        tight.explore(paper.window_sum(2), claim, **options)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x / 2, r"values inside the domain.*came f\(0\) = 0.0"),
        (lambda x: [x], r"came f\(0\) = \[0\]"),
        (lambda x: "a" if x else 0, "whole numbers, Booleans, or others"),
    ],
)
def test_a_function_that_leaves_the_domain_is_told_with_what_it_gave(function, message):
    with pytest.raises(PipelineError, match=message):
        tight.explore(W("in -> f -> out", f=pipes.Apply(function)), tight.live())


def test_values_of_a_function_can_be_listed():
    named = W("in -> f -> out", f=pipes.Apply(lambda x: "few" if x < 2 else "many", values=["few", "many", "none"]))

    assert tight.explore(named, "EF out == 'many'").holds
    assert tight.explore(named, "G !(out == 'none')").holds
    with pytest.raises(PipelineError, match="one of 'few'"):
        tight.explore(W("in -> f -> out", f=pipes.Apply(lambda x: "lots", values=["few"])), tight.live())


def test_a_test_that_raises_is_told_with_its_push():
    with pytest.raises(PredicateError, match="TypeError"):
        tight.explore(paper.window_sum(2), tight.always(tight.now(lambda push: push["out"] > 2)))


def test_functions_are_read_with_the_domain_of_their_own_inputs():
    twice = W(
        "a -> x -> t.0; b -> y -> t.1; t -> out",
        takes={"a": [0, 1], "b": int},
        x=pipes.Apply(lambda v: v + 1),
        y=pipes.Apply(lambda v: v + 1),
        t=pipes.Apply(operator.add),
    )

    assert tight.explore(twice, "EF out == 6", domain=tight.modulo(10)).holds


def test_a_model_too_large_is_undecided_and_says_how_far_it_came():
    both = paper.product_of_1_and_kth()

    few = tight.explore(
        both, tight.same_steps(both), queue=6, domain=tight.modulo(16), full="drop", engine="search", states=5_000
    )
    wide = tight.explore(paper.window_sum(2), "G !(out == 3)", domain=10**6)

    assert few.reason.startswith("5,000 states were used up after all runs of")
    assert wide.reason == "each push has 1,000,000 choices; 200,000 can be gone through"


def test_time_is_kept():
    both = paper.product_of_1_and_kth()

    verdict = tight.explore(
        both, "G (out == 3 -> F out == 5)", queue=6, domain=tight.modulo(16), full="drop", seconds=0.2
    )

    assert re.match(r"0\.[12] seconds were used up", verdict.reason)


# -- what a person sees ----------------------------------------------------------------------------------------------


def test_a_counterexample_is_told_push_by_push_with_what_changed_and_drawn():
    verdict = tight.explore(paper.figure_2a(), tight.no_full_queues(), queue=3)

    assert verdict.story() == STORY
    assert verdict.picture().startswith("<svg")


STORY = """\
FAILS  figure 2a: no_full_queues(): QUEUE_FULL (explored for every stream of any values, with queues of 3, assuming \
that every push brings an event)
  decided by all states searched, nearest first
  QUEUE_FULL: after 5 pushes, the queue C.1 holds 3 events, as many as it can
  push by push
    push  in  inside           out
    1     0   B = 1            0
    2     1   C.1 = [1]        -
              B = 2
    3     2   C.1 = [1, 2]     -
              B = 0
    4     3   C.1 = [2, 3]     4
              B = 1
    5     0   C.1 = [2, 3, 0]  -
              B = 2
  run again: failed 1 of 1 times
  to see it again
    for push in pipeline.pushes([0, 1, 2, 3, 0]):
        print(push.number, push.given, push.outs, push.queues)"""


def test_a_run_that_needs_its_limits_is_shown_again_with_them():
    verdict = tight.explore(paper.figure_5a(), tight.same_sequence(paper.figure_5b()), domain=tight.modulo(7))

    assert "limits=pipes.Limits(" in verdict.counterexample.replay
    assert "whole numbers wrap around at 7" in str(verdict)
    space = {"pipeline": paper.figure_5a(), "other": paper.figure_5b()}
    exec(verdict.counterexample.replay.split("for push")[0], space)
    lines = verdict.counterexample.replay.split("in ", 1)[1].split(":\n")[0]
    run = eval(lines[lines.index("pipes.beside") :], space)  # noqa: S307
    outs = list(zip(*[(push.outs["left"], push.outs["right"]) for push in run], strict=True))
    left, right = ([each for each in side if each is not pipes.NOTHING] for side in outs)
    assert any(a != b for a, b in zip(left, right, strict=False))


def test_numbers_in_a_table_are_those_of_the_real_run():
    verdict = tight.explore(paper.figure_5b(), tight.same_steps(paper.figure_5c()), domain=3)

    assert verdict.counterexample.explanation == "at push 1, figure 5b gives 1 and figure 5c gives 2"
    later = tight.explore(paper.figure_5b(), "G !(out > 8)", domain=3)
    assert later.counterexample.table.rows[-1][-1] == "9"


def test_of_a_long_run_the_first_and_the_last_pushes_are_told():
    verdict = tight.explore(paper.product_of_1_and_kth(), tight.no_full_queues(), queue=64)

    assert pushes_of(verdict)[7:10] == ["8", "...", "89"]


# -- engines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["search", "sat", "auto"])
def test_engines_agree_on_what_holds_and_on_the_length_of_what_fails(engine):
    options = {"engine": engine, "domain": tight.modulo(4), "full": "drop"}

    window = tight.explore(paper.window_sum(3), tight.same_steps(paper.chain_sum(3)), **options)
    product = tight.explore(paper.product_of_1_and_kth(), tight.no_full_queues(), queue=8, **options)
    other = tight.explore(paper.window_sum(3), tight.same_steps(paper.product_on_window(3)), **options)

    assert window.holds
    assert product.counterexample.explanation.startswith("after 12 pushes")
    assert len(other.counterexample.table.rows) == 3


def test_where_the_search_runs_out_of_its_budget_a_solver_takes_over():
    both = paper.product_of_1_and_kth()
    asked = {"queue": 6, "domain": tight.modulo(16), "full": "drop", "states": 3_000}
    late = W("in -> w -> out", w=pipes.Window(TOTAL, 4))
    early = W("in -> t -> w -> out", t=pipes.Trim(1), w=pipes.Window(TOTAL, 3))

    holds = tight.explore(both, "AG TRUE", **asked)
    verdict = tight.explore(late, tight.same_steps(early), **{**asked, "domain": tight.modulo(64)})

    assert holds.holds
    assert verdict.method.startswith("a SAT solver")
    assert len(verdict.counterexample.table.rows) == 4


def test_without_the_solver_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("streamtight.method.explore.decide.sat_is_there", lambda: False)
    early = W("in -> t -> w -> out", t=pipes.Trim(1), w=pipes.Window(TOTAL, 3))

    verdict = tight.explore(paper.window_sum(4), tight.same_steps(early), domain=tight.modulo(64), states=3_000)

    assert verdict.reason.endswith('pip install "streamtight[sat]" adds an engine for large models')


@pytest.mark.parametrize("name", ["ends", "ended", "resets", "system", "moves", "joined", "left", "right", "out_"])
def test_boxes_and_inputs_may_be_called_anything(name):
    box = W(f"in -> {name} -> out", **{name: TOTAL})
    given = W(f"{name} -> t -> out", takes={name: int}, t=pipes.Trim(1))

    for pipeline in (box, given):
        assert tight.explore(pipeline, tight.live(), ends=True, resets=True).holds
        assert tight.explore(pipeline, tight.same_steps(pipeline)).holds
        assert tight.explore(pipeline, tight.same_sequence(pipeline)).holds


def test_a_system_that_goes_round_shows_how():
    blinking = tight.Kripke(
        {"on": bool, "n": range(3)}, {"on": False, "n": 0}, lambda now: {"n": min(now.n + 1, 2), "on": {now.on, False}}
    )
    same = W("on -> p -> out", takes={"on": bool}, p=pipes.Passthrough())

    verdict = tight.explore(tight.watched(blinking, same), "F (out == TRUE)")

    assert "(again and again)" in pushes_of(verdict)[-1]
    assert tight.explore(tight.watched(blinking, same), "G !(out == TRUE)").holds


# -- numbers that stand for others -----------------------------------------------------------------------------------


def test_that_no_tried_number_brings_an_event_out_is_no_proof_that_none_does():
    @tight.pipeline
    def large(amount: int):
        return pipes.Filter()(amount, pipes.Apply(lambda x: x > 100)(amount))

    assert tight.explore(large, tight.live()).reason.startswith("no run does it with 0..3 on amount")
    assert tight.explore(large, "AG EF out").undecided
    assert tight.explore(large, tight.live(), inputs={"amount": [99, 100, 101]}).holds
    assert tight.explore(large, tight.live(), inputs={"amount": [99, 100]}).fails


def test_numbers_near_those_that_a_pipeline_names_are_tried():
    @tight.pipeline
    def large(amount: int):
        return amount > 100

    @tight.pipeline
    def never(amount: int):
        return pipes.TurnInto(False)(amount)

    verdict = tight.explore(large, tight.same_steps(never))

    assert verdict.counterexample.explanation == "at push 1, large gives True and never gives False"
    assert tight.explore(large, "AG EF out == TRUE").holds


def test_a_pipeline_may_name_numbers_that_the_domain_does_not_have():
    assert tight.explore(
        W("in -> k -> a.1; in -> a.0; a -> out", k=pipes.TurnInto(-1), a=pipes.Apply(operator.add)),
        "G (out -> out >= 0)",
    ).fails
    growing = W("in -> t -> s -> out", t=pipes.TurnInto(50), s=TOTAL)
    assert tight.explore(growing, tight.never_stops()).reason.startswith("a number leaves -128..127 at push 3")


# -- what a new user ran into ----------------------------------------------------------------------------------------


def test_a_size_is_not_known_if_another_queue_cut_the_search_off():
    @tight.pipeline
    def lag(a: bool):
        return pipes.Trim(1)(a) & (pipes.Filter()(a, a) & a)

    found = tight.smallest_queues(lag)

    assert found.sizes["both_2.0"] is None
    assert found.at_least["both_2.0"] == 31
    assert "not known, at least 31" in str(found)


@pytest.mark.parametrize("values", [[1, True], [0.0, -0.0], [float("nan"), 1.0], [[1], [2]]])
def test_values_that_cannot_be_told_apart_are_refused(values):
    with pytest.raises(PipelineError, match=r"values that (Python tells apart|have a hash)"):
        W("in -> p -> out", takes={"in": values}, p=pipes.Passthrough())
    with pytest.raises(PipelineError, match=r"values that (Python tells apart|have a hash)"):
        tight.explore(W("in -> p -> out", takes={"in": object}, p=pipes.Passthrough()), "G in", inputs={"in": values})


def test_what_may_happen_in_a_push_is_told():
    last = W("in -> p -> out", p=pipes.Passthrough())

    assert "unless the stream ends" in str(tight.explore(last, "G in", ends=True))
    assert "events may be lost before p" in str(tight.explore(last, "G in", leaks="p"))
    assert "only the first push is asked about" in str(tight.explore(last, "in -> out"))


def test_a_queue_of_too_many_places_is_refused():
    with pytest.raises(PipelineError, match="at most 5,000 places"):
        tight.explore(paper.figure_2a(), tight.live(), queue=10**9)


def test_a_watched_system_does_not_leak():
    with pytest.raises(PipelineError, match="a system that alone says what comes"):
        tight.explore(tight.watched(counting_system(), paper.figure_2b(2)), tight.stays_true(), leaks=True)
