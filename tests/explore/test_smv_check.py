"""NuSMV as a second opinion: how it is called, and whether it agrees with a plain search."""

from __future__ import annotations

import itertools
import operator
import os
import random
import sys
from pathlib import Path

import pytest

from streamtight.errors import EncodingError, PipelineError
from streamtight.method.explore import smv_check
from streamtight.method.explore.build import World, model_of
from streamtight.method.explore.smv import Ctl, Invariant, Ltl, always, op, possibly, smv_text
from streamtight.program.limits import Limits, modulo, whole
from streamtight.program.model import BOOL, Choice, Model, Range, Symbols, Table, Terms, domain_of, evaluate
from streamtight.program.pipeline import Pipeline
from streamtight.program.processor import (
    Apply,
    CountDecimate,
    Cumulate,
    Filter,
    Fork,
    Passthrough,
    Trim,
    TurnInto,
    Window,
    is_even,
)

needs_checker = pytest.mark.skipif(smv_check.find() is None, reason="no NuSMV or nuXmv on the PATH")
TEXT = """
MODULE main
VAR x : 0..3;
ASSIGN init(x) := 0; next(x) := case x = 3 : 0; TRUE : x + 1; esac;
INVARSPEC NAME small := x < 3;
CTLSPEC NAME again := AG EF x = 0;
LTLSPEC NAME stays := F G x = 3;
"""


# -- how it is called ------------------------------------------------------------------------------------------------


@pytest.fixture
def checker(tmp_path, monkeypatch):
    """Puts a script on the PATH in the place of NuSMV, and nothing else."""

    def put(body):
        path = tmp_path / "NuSMV"
        path.write_text(f"#!{sys.executable}\nimport os, sys, time\n{body}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        return path

    return put


def test_no_checker_on_the_path_is_no_error_until_it_is_wanted(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    assert smv_check.find() is None
    with pytest.raises(PipelineError, match="one of NuSMV, nusmv, nuXmv, nuxmv on the PATH; came none"):
        smv_check.run(TEXT)


def test_a_checker_on_the_path_is_found(checker):
    path = checker("")

    assert smv_check.find() == path


def test_answers_come_in_the_order_of_the_text(checker):
    checker(
        "print('000 :AG EF x = 0\\n  [CTL            True           N/A    again]')\n"
        "print('001 : F  G x = 3\\n  [LTL            False          N/A    stays]')\n"
        "print('002 :x < 3\\n  [Invar          False          1      small]')"
    )

    assert smv_check.run(TEXT) == [False, True, False]


def test_it_is_given_the_text_and_asked_for_each_property(checker, tmp_path):
    seen = tmp_path / "seen"
    checker(
        "script = open(sys.argv[3]).read()\n"
        f"open({str(seen)!r}, 'w').write(script + open(sys.argv[4]).read())\n"
        "for line in script.splitlines():\n"
        "    if line.startswith('show'): print('  [CTL  True  N/A ', line.split()[-1] + ']')"
    )

    assert smv_check.run(TEXT) == [True, True, True]
    assert "check_property -P again" in seen.read_text()
    assert TEXT in seen.read_text()


def test_what_is_not_decided_in_time_is_none_and_the_process_is_ended(checker, tmp_path):
    seen = tmp_path / "pid"
    checker(
        f"open({str(seen)!r}, 'w').write(str(os.getpid()))\n"
        "print('  [Invar  True  N/A  small]', flush=True)\n"
        "time.sleep(600)"
    )

    assert smv_check.run(TEXT, seconds=2) == [True, None, None]
    with pytest.raises(ProcessLookupError):
        os.kill(int(seen.read_text()), 0)


def test_a_text_that_it_does_not_read_is_our_own_bug(checker):
    checker("print('line 3: x undefined', file=sys.stderr)\nsys.exit(255)")

    with pytest.raises(EncodingError, match="came line 3: x undefined"):
        smv_check.run(TEXT)


def test_no_file_is_left(checker, tmp_path):
    seen = tmp_path / "folder"
    checker(f"open({str(seen)!r}, 'w').write(os.getcwd())\nsys.exit(1)")

    with pytest.raises(EncodingError):
        smv_check.run(TEXT)
    assert not Path(seen.read_text()).exists()


# -- whether it agrees -----------------------------------------------------------------------------------------------


@needs_checker
def test_the_real_one_answers():
    assert smv_check.run(TEXT) == [False, True, False]


@needs_checker
def test_the_real_one_refuses_a_wrong_text():
    with pytest.raises(EncodingError, match="undefined"):
        smv_check.run(TEXT.replace("x = 3 : 0", "y = 3 : 0"))


def some_term(terms, draw, depth, sort):
    """A term of a sort, made at random."""
    if depth == 0 or draw.random() < 0.15:
        if sort == "number":
            return draw.choice(
                [
                    terms.variable("a", Range(-3, 3)),
                    terms.variable("b", Range(-2, 2)),
                    terms.constant(draw.randint(-3, 4)),
                ]
            )
        if sort == "truth":
            return terms.variable(draw.choice("pq"), BOOL)
        return draw.choice([terms.variable("s", COLOURS), terms.constant(draw.choice(COLOURS.values))])

    def part(of):
        return some_term(terms, draw, depth - 1, of)

    if draw.random() < 0.2:
        return terms.choose(part("truth"), part(sort), part(sort))
    if sort == "number":
        name = draw.choice(["add", "subtract", "multiply", "divide", "modulo", "divide", "modulo", "call"])
        if name == "call":
            table = Table("two", lambda x, s: len(s) - 3 if x else 2, Range(-3, 9), 7)
            return terms.call(table, part("truth"), part("truth"), part("colour"))
        return getattr(terms, name)(part("number"), part("number"))
    if sort == "colour":
        return terms.call(
            Table("next", lambda s: {"red": "green"}.get(s, "red"), COLOURS, "dark blue"), part("truth"), part("colour")
        )
    name = draw.choice(["not_", "and_", "or_", "equal", "equal", "equal", "less", "at_most"])
    if name == "not_":
        return terms.not_(part("truth"))
    inner = {"equal": draw.choice(["number", "truth", "colour"]), "less": "number", "at_most": "number"}.get(
        name, "truth"
    )
    return getattr(terms, name)(part(inner), part(inner))


COLOURS = Symbols(("red", "green", "dark blue"))
CHOSEN = {"a": Range(-3, 3), "b": Range(-2, 2), "p": BOOL, "q": BOOL, "s": COLOURS}


@needs_checker
@pytest.mark.parametrize("seed", range(8))
def test_terms_are_written_with_the_meaning_that_they_have_here(seed):
    draw, terms = random.Random(seed), Terms()
    model = Model(terms, {}, {name: Choice(name, domain) for name, domain in CHOSEN.items()}, terms.true)
    specs = []
    for number in range(6):
        term = some_term(terms, draw, 4, draw.choice(["number", "truth", "colour"]))
        rows = list(itertools.product(*(domain.values for domain in CHOSEN.values())))
        meant = {row: evaluate(term, dict(zip(CHOSEN, row, strict=True))) for row in rows}
        table = Table("meant", lambda *row, meant=meant: meant[row], domain_of(meant.values(), "here"), None)
        looked_up = terms.call(table, terms.true, *(terms.variable(name, domain) for name, domain in CHOSEN.items()))
        specs.append(Invariant(f"same {number}", terms.equal(term, looked_up)))

    assert smv_check.run(smv_text(model, specs)) == [True] * 6


class Search:
    """The steps of a model that can be reached and are judged, tried out one by one."""

    def __init__(self, model, atom):
        names, choices = list(model.variables), list(model.choices.values())
        stop = model.terms.or_(*(each.when for each in model.stops))
        waiting, made = [model.first()], {}
        while waiting:
            memory = waiting.pop()
            if tuple(memory.values()) in made:
                continue
            mine = made[tuple(memory.values())] = []
            for chosen in itertools.product(*(each.domain.values for each in choices)):
                values = {**memory, **dict(zip((each.name for each in choices), chosen, strict=True))}
                if evaluate(model.allowed, values) and not evaluate(stop, values):
                    after = {name: evaluate(model.variables[name].after, values) for name in names}
                    mine.append((evaluate(atom, values), tuple(after.values())))
                    waiting.append(after)
        steps = [(place, number) for place, mine in made.items() for number in range(len(mine))]
        self.holds = {step: made[step[0]][step[1]][0] for step in steps}
        self.after = {
            (place, number): [(following, each) for each in range(len(made[following]))]
            for place, number in steps
            for following in [made[place][number][1]]
        }

    def always(self):
        return all(self.holds.values())

    def can_reach(self, good):
        found = set(good)
        while more := {step for step, after in self.after.items() if step not in found and not found.isdisjoint(after)}:
            found |= more
        return found

    def always_possibly(self):
        return len(self.can_reach(step for step, holds in self.holds.items() if holds)) == len(self.holds)

    def without_for_ever(self):
        """Steps from which a run without the atom never ends."""
        found = {step for step, holds in self.holds.items() if not holds}
        while less := {step for step in found if found.isdisjoint(self.after[step])}:
            found -= less
        return found

    def within(self, count):
        """Is there no run of so many steps without the atom?"""
        bad = {step for step, holds in self.holds.items() if not holds}
        ends = bad
        for _ in range(count - 1):
            ends = {following for step in ends for following in self.after[step]} & bad
        return not ends


wired = Pipeline.wired
SUM, PRODUCT = Cumulate(operator.add), Cumulate(operator.mul)
WINDOW_SUM = wired("in -> w -> out", w=Window(SUM, 2))
CHAIN = wired("in -> f; f.0 -> a.0; f.1 -> t -> a.1; a -> out", f=Fork(2), t=Trim(1), a=Apply(operator.add))
FIRST_AND_THIRD = wired(
    "in -> f; f.0 -> m.0; f.1 -> d; d -> m.1; m -> out", f=Fork(2), d=CountDecimate(3), m=Apply(operator.mul)
)
PIPELINES = {
    "passthrough": wired("in -> p -> out", p=Passthrough()),
    "window": wired("in -> w -> out", w=Window(PRODUCT, 3)),
    "first and third": FIRST_AND_THIRD,
    "ones": wired("in -> one -> s -> w -> out", one=TurnInto(1), s=SUM, w=Window(PRODUCT, 3)),
    "squares": wired(
        "in -> o1 -> s1 -> f; f.0 -> t -> e -> flt.1; f.1 -> flt.0; flt -> s2 -> out",
        o1=TurnInto(1),
        s1=SUM,
        f=Fork(2),
        t=Trim(1),
        e=Apply(is_even),
        flt=Filter(),
        s2=SUM,
    ),
    "chain": CHAIN,
    "difference": wired("in -> f; f.0 -> a.0; f.1 -> t -> a.1; a -> out", f=Fork(2), t=Trim(1), a=Apply(operator.sub)),
}


@needs_checker
@pytest.mark.parametrize("integers", [modulo(2), modulo(3), whole(-1, 1), whole(0, 2)], ids=str)
@pytest.mark.parametrize("pauses", [False, True], ids=["always", "pauses"])
@pytest.mark.parametrize("name", PIPELINES)
def test_it_agrees_with_a_plain_search(name, pauses, integers):
    model = model_of(PIPELINES[name], World(Limits(queue=2, integers=integers), pauses=pauses))
    terms, out = model.terms, model.pipes["out"].present
    counts = [terms.variable(f"{queue}#", Range(0, 2)) for queue in model.queues]
    room = terms.and_(*(terms.not_(terms.equal(count, terms.constant(2))) for count in counts))
    soon = op("or", out, op("X", op("or", out, op("X", out))))
    specs = [
        Invariant("room", room),
        Ctl("room again", always(room)),
        Ctl("live", always(possibly(out))),
        Ltl("soon", op("G", soon)),
        Ltl("again", op("G", op("F", out))),
        Ctl("again in CTL", always(op("AF", out))),
        Ctl("never silent", op("not", possibly(op("EG", op("not", out))))),
    ]
    searched, rooms = Search(model, out), Search(model, room).always()
    again = not searched.without_for_ever()

    assert smv_check.run(smv_text(model, specs)) == [
        rooms,
        rooms,
        searched.always_possibly(),
        searched.within(3),
        again,
        again,
        again,
    ]
    assert smv_check.run(smv_text(model, specs[:3], cone=True)) == [rooms, rooms, searched.always_possibly()]


@needs_checker
@pytest.mark.parametrize(("left", "right"), [(WINDOW_SUM, CHAIN), (CHAIN, CHAIN), (PIPELINES["passthrough"], CHAIN)])
def test_it_agrees_on_comparisons(left, right):
    both = wired("in -> F; F.0 -> l -> out0; F.1 -> r -> out1", gives=("out0", "out1"), F=Fork(2), l=left, r=right)
    model = model_of(both, World(Limits(queue=2, integers=modulo(3))))
    terms, one, other = model.terms, model.pipes["out0"], model.pipes["out1"]
    same = terms.or_(terms.not_(one.present), terms.equal(one.value, other.value))
    good = terms.and_(terms.equal(one.present, other.present), same)

    assert smv_check.run(smv_text(model, [Invariant("same", good)])) == [Search(model, good).always()]
