"""SMV text: what is written for a model, compared with files, and read back."""

from __future__ import annotations

import itertools
import operator
import os
from pathlib import Path

import pytest

from streamtight.errors import FormulaError, PipelineError
from streamtight.method.explore.build import World, model_of
from streamtight.method.explore.smv import Ctl, Invariant, Ltl, always, op, possibly, smv_text
from streamtight.program.kripke import Kripke
from streamtight.program.limits import Limits, modulo, whole
from streamtight.program.model import (
    BOOL,
    Choice,
    Model,
    Range,
    Stop,
    Symbols,
    Table,
    Terms,
    Variable,
    evaluate,
)
from streamtight.program.pipeline import Pipeline
from streamtight.program.processor import (
    Apply,
    CountDecimate,
    Cumulate,
    Filter,
    Fork,
    Insert,
    Passthrough,
    Trim,
    TurnInto,
    Window,
    is_even,
)

GOLDEN = Path(__file__).parents[1] / "golden"
wired = Pipeline.wired

FIGURE_2A = wired(
    "in -> A; A.0 -> B; A.1 -> C.1; B -> C.0; C -> out", A=Fork(2), B=CountDecimate(3), C=Apply(operator.add)
)
WINDOW_OF_3 = wired("in -> w -> out", w=Window(Cumulate(operator.add), 3))
SUM_OF_ODDS = wired(
    "in -> o1 -> s1 -> f; f.0 -> t -> e -> flt.1; f.1 -> a.0; f.2 -> o2 -> a.1; a -> flt.0; flt -> s2 -> out",
    o1=TurnInto(1),
    s1=Cumulate(operator.add),
    f=Fork(3),
    t=Trim(1),
    e=Apply(is_even),
    o2=TurnInto(1),
    a=Apply(operator.add),
    flt=Filter(),
    s2=Cumulate(operator.add),
)
CHAIN_OF_3 = wired(
    "in -> f; f.0 -> a1.0; f.1 -> t1 -> a1.1; f.2 -> t2 -> a2.1; a1 -> a2.0; a2 -> out",
    f=Fork(3),
    t1=Trim(1),
    a1=Apply(operator.add),
    t2=Trim(2),
    a2=Apply(operator.add),
)
WINDOW_SUMS = wired(
    "in -> F; F.0 -> l -> out0; F.1 -> r -> out1",
    gives=("out0", "out1"),
    F=Fork(2),
    l=WINDOW_OF_3,
    r=CHAIN_OF_3,
)
LIGHTS = wired(
    "in -> n -> i -> out",
    takes={"in": ["red", "green", "dark blue", "off?"]},
    n=Apply(lambda colour: {"red": "green", "green": "red"}.get(colour, "dark blue")),
    i=Insert("start"),
)
TOTAL = wired("in -> c -> out", c=Cumulate(operator.add))


def explored(pipeline, *, queue=2, integers=None, **world):
    return model_of(pipeline, World(Limits(queue=queue, integers=integers or modulo(4)), **world))


def no_full_queues(model):
    terms = model.terms
    counts = [(terms.variable(f"{name}#", Range(0, each.places)), each.places) for name, each in model.queues.items()]
    return Invariant(
        "no full queues", terms.and_(*(terms.not_(terms.equal(count, terms.constant(q))) for count, q in counts))
    )


def live(model):
    return Ctl("an event may still come out", always(possibly(model.pipes["out"].present)))


def soon(model):
    present = model.pipes["out"].present
    return Ltl(
        "an event comes within 3 steps", op("G", op("or", present, op("X", op("or", present, op("X", present)))))
    )


def stepwise(model):
    terms, one, other = model.terms, model.pipes["out0"], model.pipes["out1"]
    both = terms.or_(terms.not_(one.present), terms.equal(one.value, other.value))
    return Invariant("equal step by step", terms.and_(terms.equal(one.present, other.present), both))


def assert_golden_smv(name, text):
    path = GOLDEN / f"explore_{name}.smv"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text + "\n", encoding="utf-8")
    assert path.exists(), f"no {path}: run again with UPDATE_GOLDEN=1"
    assert text + "\n" == path.read_text(encoding="utf-8"), f"{path} differs: if that is right, UPDATE_GOLDEN=1"


# -- what a person reads ---------------------------------------------------------------------------------------------


def test_figure_2a_is_written_with_its_queues():
    model = explored(FIGURE_2A)

    assert_golden_smv("figure_2a", smv_text(model, [no_full_queues(model)], comments=["Figure 2a"]))


def test_a_window_of_3_is_written_with_the_windows_that_are_open():
    model = explored(WINDOW_OF_3, pauses=True)

    assert_golden_smv("window_of_3", smv_text(model, [live(model), soon(model)], comments=["Sum on a window of 3"]))


def test_the_sum_of_odds_is_written_with_pipes_as_definitions():
    model = explored(SUM_OF_ODDS)

    assert_golden_smv("sum_of_odds", smv_text(model, [no_full_queues(model), live(model), soon(model)]))


def test_a_stepwise_comparison_is_written_as_one_model():
    model = explored(WINDOW_SUMS, integers=modulo(2))

    assert_golden_smv("window_sums_stepwise", smv_text(model, [stepwise(model)]))


def test_symbols_and_functions_are_written_as_enumerations_and_cases():
    model = explored(LIGHTS, pauses=True, ends=True)
    terms = model.terms
    start = terms.equal(model.pipes["out"].value, terms.constant("start"))
    spec = Ctl("starts once", op("AG", op("implies", terms.and_(model.pipes["out"].present, start), op("AX", start))))

    assert_golden_smv("symbols", smv_text(model, [spec]))


def test_a_whole_range_is_written_with_the_steps_where_runs_stop():
    model = explored(TOTAL, integers=whole(0, 3))
    terms = model.terms
    spec = Invariant("at most 3", terms.at_most(model.pipes["out"].value, terms.constant(3)))
    some = terms.less(terms.constant(0), model.pipes["out"].value)

    specs = [spec, live(model), Ltl("something comes", op("F", some)), Ctl("can go on", always(op("EX", some)))]
    assert_golden_smv("whole_with_stops", smv_text(model, specs))


# -- what is written is what was meant -------------------------------------------------------------------------------


def plainly(model):
    """The transition system of a model, tried out: states are what is remembered and what is chosen."""
    names, choices = list(model.variables), list(model.choices.values())
    stop = model.terms.or_(*(each.when for each in model.stops))
    has_stops = stop is not model.terms.false
    kept = [name for name in names if len(model.variables[name].domain.values) > 1]

    def steps(memory):
        for chosen in itertools.product(*(each.domain.values for each in choices)):
            values = {**memory, **dict(zip((each.name for each in choices), chosen, strict=True))}
            if evaluate(model.allowed, values):
                free = (value for value, each in zip(chosen, choices, strict=True) if len(each.domain.values) > 1)
                after = {name: evaluate(model.variables[name].after, values) for name in names}
                after["stopped"] = memory["stopped"] or evaluate(stop, values)
                stopped = (memory["stopped"],) if has_stops else ()
                yield (*free, *(memory[name] for name in kept), *stopped), after

    found, edges = {}, set()
    waiting = [{**model.first(), "stopped": False}]
    while waiting:
        memory = waiting.pop()
        key = tuple(memory.items())
        if key not in found:
            found[key] = list(steps(memory))
            waiting += [after for _, after in found[key]]
    for made in found.values():
        edges |= {(state, following) for state, after in made for following, _ in found[tuple(after.items())]}
    return edges


def read_back(text):
    system = Kripke.from_smv("\n".join(line for line in text.splitlines() if "SPEC" not in line))
    return {
        (state, system.states[each])
        for state, after in zip(system.states, system.successors, strict=True)
        for each in after
    }


def with_names(edges, names):
    """SMV has names where the model has other values."""
    named = [tuple(tuple(names.get(value, value) for value in state) for state in edge) for edge in edges]
    return set(named)


@pytest.mark.parametrize(
    ("pipeline", "world"),
    [
        (FIGURE_2A, {"integers": modulo(2)}),
        (FIGURE_2A, {"integers": whole(-1, 1), "queue": 1, "pauses": True}),
        (WINDOW_OF_3, {"pauses": True, "integers": modulo(3)}),
        (SUM_OF_ODDS, {"integers": modulo(3), "queue": 1}),
        (WINDOW_SUMS, {"integers": modulo(2)}),
        (TOTAL, {"integers": whole(0, 3)}),
        (TOTAL, {"integers": whole(-2, 2), "resets": True, "ends": True}),
        (wired("in -> p -> out", p=Passthrough()), {"integers": modulo(1), "pauses": True}),
        (wired("in -> d -> out", d=Apply(lambda x: (x - 3) // 2 + x % 3)), {"integers": whole(-3, 3)}),
    ],
)
def test_text_that_is_read_back_is_the_same_system(pipeline, world):
    model = explored(pipeline, **world)

    assert read_back(smv_text(model, [])) == plainly(model)


def test_symbols_that_are_read_back_are_the_same():
    model = explored(wired("in -> i -> out", takes={"in": ["red", "dark blue", "off?"]}, i=Insert("red")), pauses=True)
    names = {"dark blue": "dark_blue", "off?": "off_present"}

    assert read_back(smv_text(model, [])) == with_names(plainly(model), names)


def test_with_a_cone_only_what_the_properties_depend_on_is_written():
    model = explored(FIGURE_2A)

    text = smv_text(model, [no_full_queues(model)], cone=True)

    assert "C_1_count : 0..2;" in text
    assert "C_1_0" not in text
    assert "in_value" not in text


def test_a_variable_with_one_value_is_a_definition():
    model = explored(wired("in -> c -> out", c=Cumulate(operator.add)), integers=modulo(1))

    text = smv_text(model, [live(model)])

    assert "  c := 0;" in text
    assert "init(c)" not in text


# -- names -----------------------------------------------------------------------------------------------------------


def made_of(*variables, allowed=None, terms=None, choices=(), stops=()):
    terms = terms or Terms()
    return Model(
        terms,
        {each.name: each for each in variables},
        {each.name: each for each in choices},
        allowed or terms.true,
        stops=stops,
    )


def kept(terms, name, domain=BOOL, first=False):
    return Variable(name, domain, first, terms.variable(name, domain), is_data=False)


def test_no_two_names_become_one():
    terms = Terms()
    names = ["a.b", "a_b", "a[b]", "a b", "F", "in", "é", "9", "a?", "a_present", "stopped", "next", "?!"]

    text = smv_text(made_of(*(kept(terms, name) for name in names), terms=terms), [])

    declared = [line.split()[0] for line in text.splitlines() if " : boolean" in line]
    assert len(set(declared)) == len(names)
    assert all(each.isascii() and each.isidentifier() for each in declared)
    assert not {"F", "in", "next"} & set(declared)


def test_every_name_that_was_changed_is_told():
    terms = Terms()

    text = smv_text(made_of(kept(terms, "C.1#"), kept(terms, "t"), terms=terms), [])

    assert "  C_1_count : boolean;  -- C.1#" in text
    assert "  t : boolean;\n" in text


def test_symbols_are_told_apart_from_variables_and_from_each_other():
    terms = Terms()
    domain = Symbols(("t", "a b", "a_b", None, ("x", 1)))

    text = smv_text(made_of(kept(terms, "t", domain, "t"), terms=terms), [])

    assert "t : {t_2, a_b, a_b_2, None, x_1};" in text
    assert "-- x_1 stands for ('x', 1)." in text


# -- formulas --------------------------------------------------------------------------------------------------------


def written(formula, *, ltl=False, stops=False):
    terms = formula.terms if isinstance(formula, Terms) else FORMULA_TERMS
    stop = (Stop("RAISES", "s", terms.variable("s", BOOL)),) if stops else ()
    model = made_of(*(kept(terms, name) for name in "pqs"), terms=terms, stops=stop)
    text = smv_text(model, [Ltl("f", formula) if ltl else Ctl("f", formula)])
    return text.splitlines()[-1].split(" := ")[1]


FORMULA_TERMS = Terms()
P, Q = (FORMULA_TERMS.variable(name, BOOL) for name in "pq")


def test_operators_hold_together_as_they_were_given():
    implied = op("implies", op("implies", P, Q), op("iff", P, op("and", P, op("or", Q, P))))

    assert written(implied) == "(p -> q) -> p <-> p & (q | p);"
    assert written(op("AU", op("not", op("EX", P)), op("or", P, Q))) == "A [ !(EX p) U p | q ];"
    assert (
        written(op("G", op("implies", P, op("F", op("U", P, op("R", P, Q))))), ltl=True) == "G (p -> F (p U (p V q)));"
    )


def test_where_runs_stop_ctl_speaks_of_judged_steps():
    assert written(always(possibly(P)), stops=True) == "judged -> AG (judged -> EF (judged & p));"
    assert written(op("AF", op("EG", P)), stops=True) == "judged -> AF (judged -> EG (judged & p));"
    assert written(op("AU", P, op("EU", P, Q)), stops=True) == "judged -> A [ p U judged -> E [ p U judged & q ] ];"


def test_where_runs_stop_no_atom_of_ltl_is_broken_afterwards():
    assert written(op("G", op("F", P)), ltl=True, stops=True) == "G F (judged -> p);"
    assert written(op("not", op("U", P, op("X", Q))), ltl=True, stops=True) == "(judged -> !p) V X (judged -> !q);"
    assert written(op("implies", P, op("G", Q)), ltl=True, stops=True) == "(judged -> !p) | G (judged -> q);"


def test_operators_of_the_other_logic_are_refused():
    with pytest.raises(FormulaError, match=r"operators among .*AG"):
        written(op("G", P))
    with pytest.raises(FormulaError, match=r"operators among .*U, R; came AG"):
        written(op("AG", P), ltl=True)
    with pytest.raises(FormulaError, match="an operator among"):
        op("GF", P)
    with pytest.raises(FormulaError, match="1 formulas; came 2"):
        op("AG", P, Q)


def test_an_atom_that_is_a_number_is_refused():
    terms = Terms()

    with pytest.raises(FormulaError, match="atoms that are true or false"):
        smv_text(made_of(kept(terms, "x", Range(0, 1), 0), terms=terms), [Ctl("x", terms.variable("x", Range(0, 1)))])


def test_a_function_with_too_many_rows_is_refused():
    terms = Terms()
    domain = Range(0, 200)
    choices = [Choice(name, domain) for name in "ab"]
    table = Table("far", lambda a, b: a == b, BOOL, False)
    called = terms.call(table, terms.true, *(terms.variable(name, domain) for name in "ab"))

    with pytest.raises(PipelineError, match="at most 20,000 rows"):
        smv_text(made_of(choices=choices, terms=terms), [Invariant("far", called)])
