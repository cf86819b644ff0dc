"""Models as SMV text, which NuSMV and nuXmv read.

>>> from streamtight.program.limits import Limits, modulo
>>> from streamtight.program.pipeline import Pipeline
>>> from streamtight.program.processor import Trim
>>> from streamtight.method.explore.build import World, model_of
>>> model = model_of(Pipeline.wired("in -> t -> out", t=Trim(1)), World(Limits(queue=3, integers=modulo(4))))
>>> print(smv_text(model, [Ctl("an event may still come out", always(possibly(model.pipes["out"].present)))]))
-- A state is one step: what is remembered before it (VAR with next), what the world chooses for it (other VAR).
MODULE main
VAR
  in_value : 0..3;  -- in
  t : 0..1;
ASSIGN
  init(t) := 0;
  next(t) := case t_present : t; TRUE : t + 1; esac;
DEFINE
  in_present := TRUE;
  t_present := t = 1;
  t_value := in_value;
  out_present := t_present;
  out_value := in_value;
CTLSPEC NAME an_event_may_still_come_out := AG EF t_present;

Only what is remembered and what is chosen are variables: pipes, and what is calculated twice, are definitions. Choices
are VAR and not IVAR, because CTL formulas may not speak of IVAR.

Where a run stops (a full queue, a number out of its range), it is followed no further, and neither that step nor what
would come after it is judged. `stopped` remembers it, and formulas speak of `judged` steps only: what must hold always
must hold at judged steps, what must be possible must be possible in judged steps, and a run that stops breaks no
promise that something will come. So E and A stay each other's opposites, and what breaks a promise before the stop
breaks it, whether the run stops later or not.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from streamtight.errors import FormulaError, PipelineError
from streamtight.program.model import (
    BOOL,
    Bools,
    Domain,
    Model,
    Range,
    Signal,
    Symbols,
    Table,
    Term,
    Value,
    Variable,
    evaluate,
    parts_of,
)

MOST_ROWS = 20_000
"""A function that can only be called is written as its table; one with more rows is refused."""
MOST_TRIED = 2_000
"""Assignments that are tried to see that a variable stays in its domain; beyond that it is guarded."""


# -- properties ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Op:
    """An operator over formulas.

    Boolean: not, and, or, implies, iff. Of CTL: AX EX AG EG AF EF AU EU. Of LTL: X G F U R. The second part of AU, EU
    and U is what comes at last; that of R is what holds until it is released.
    """

    op: str
    parts: tuple[Formula, ...]


Formula = Term | Op
"""Atoms are Boolean terms of the model."""


def op(name: str, *parts: Formula) -> Op:
    """The operator of this name over these formulas."""
    wanted = _ARITIES.get(name)
    if wanted is None or (wanted and wanted != len(parts)):
        raise FormulaError(
            f"op({name!r})",
            needed=f"{wanted} formulas" if wanted else f"an operator among {', '.join(_ARITIES)}",
            came=str(len(parts)) if wanted else repr(name),
            hint="op('AG', op('EF', term))",
        )
    return Op(name, parts)


def always(formula: Formula) -> Op:
    """At every step that can be reached: AG."""
    return op("AG", formula)


def possibly(formula: Formula) -> Op:
    """Now or at some step that can still be reached: EF."""
    return op("EF", formula)


@dataclass(frozen=True, slots=True)
class Invariant:
    """True at every step."""

    name: str
    good: Term


@dataclass(frozen=True, slots=True)
class Ctl:
    """True at every first step; so `EF p` asks that p can be reached whatever the first step brings."""

    name: str
    formula: Formula


@dataclass(frozen=True, slots=True)
class Ltl:
    """True of every run."""

    name: str
    formula: Formula


Spec = Invariant | Ctl | Ltl

_BOOLEAN: Final = {"not": 1, "and": 0, "or": 0, "implies": 2, "iff": 2}
_OF_CTL: Final = {"AX": 1, "EX": 1, "AG": 1, "EG": 1, "AF": 1, "EF": 1, "AU": 2, "EU": 2}
_OF_LTL: Final = {"X": 1, "G": 1, "F": 1, "U": 2, "R": 2}
_ARITIES: Final = {**_BOOLEAN, **_OF_CTL, **_OF_LTL}
_DUAL: Final = {"X": "X", "G": "F", "F": "G", "U": "R", "R": "U", "and": "or", "or": "and"}


def _checked(formula: Formula, known: Mapping[str, int], where: str) -> None:
    if isinstance(formula, Term):
        if not isinstance(formula.domain, Bools):
            raise FormulaError(
                where, needed="atoms that are true or false", came=f"{formula}, one of {formula.domain}", hint="x = 0"
            )
        return
    if formula.op not in _BOOLEAN and formula.op not in known:
        raise FormulaError(
            where, needed=f"operators among {', '.join((*_BOOLEAN, *known))}", came=formula.op, hint="op('AG', term)"
        )
    for part in formula.parts:
        _checked(part, known, where)


def _while_judged(formula: Formula, judged: Term) -> Formula:
    """A CTL formula that speaks of judged steps only. These come first in each run, so p before q needs no guard."""
    if isinstance(formula, Term):
        return formula
    parts = [_while_judged(part, judged) for part in formula.parts]
    if formula.op not in _BOOLEAN:
        guard = "implies" if formula.op.startswith("A") else "and"
        parts[-1] = Op(guard, (judged, parts[-1]))
    return Op(formula.op, tuple(parts))


def _until_stopped(formula: Formula, judged: Term, *, wanted: bool = True) -> Formula:
    """An LTL formula, or its opposite, whose atoms are all true once the run has stopped."""
    if isinstance(formula, Term):
        return Op("implies", (judged, formula if wanted else Op("not", (formula,))))
    name, parts = formula.op, formula.parts
    if name == "not":
        return _until_stopped(parts[0], judged, wanted=not wanted)
    if name == "implies":
        return _until_stopped(Op("or", (Op("not", parts[:1]), parts[1])), judged, wanted=wanted)
    if name == "iff":
        one, other = parts
        both = Op("and", (Op("implies", (one, other)), Op("implies", (other, one))))
        return _until_stopped(both, judged, wanted=wanted)
    return Op(name if wanted else _DUAL[name], tuple(_until_stopped(part, judged, wanted=wanted) for part in parts))


# -- names -----------------------------------------------------------------------------------------------------------

_RESERVED_WORDS: Final = """
    MODULE process DEFINE MDEFINE VAR FUN FROZENVAR IVAR INIT TRANS INVAR SPEC CTLSPEC LTLSPEC PSLSPEC COMPUTE
    INVARSPEC NAME CONSTRAINT ITYPE CONSTANTS SIMPWFF NEXTWFF CTLWFF LTLWFF LTLPSL COMPWFF COMPID IN FAIRNESS JUSTICE
    COMPASSION ISA ASSIGN PRED MIRROR array bool of boolean word1 word Word signed unsigned extend uwconst swconst
    resize sizeof toint floor count typeof READ WRITE CONSTARRAY EX AX EF AF EG AG E F O G H X Y Z A U S V T BU EBF
    ABF EBG ABG MIN MAX FALSE TRUE case esac mod next init self union in abs min max xor xnor integer real clock sin
    cos tan exp ln pi
"""
_MEANT: Final = {"?": "_present", "!": "_value", "#": "_count", "=": "_last"}


_LEAVES: Final = ("variable", "constant")
_JUDGED: Final = " judged"
"""The name of the atom that tells judged steps; no variable of a model has it."""


class _Names:
    """SMV names: no two things have the same, and each is as near to its own name as SMV allows."""

    def __init__(self) -> None:
        self.taken: set[str] = set(_RESERVED_WORDS.split())

    def new(self, wanted: str) -> str:
        text = "".join(_MEANT.get(char, char) for char in wanted)
        text = "".join(char if char.isascii() else f"u{ord(char):x}" for char in text)
        text = re.sub(r"[\W_]+", "_", text).strip("_") or "unnamed"
        text = f"v{text}" if text[0].isdigit() else text
        numbered = (f"{text}_{number}" for number in itertools.count(2))
        name = next(each for each in itertools.chain([text], numbered) if each not in self.taken)
        self.taken.add(name)
        return name


# -- text ------------------------------------------------------------------------------------------------------------


def smv_text(model: Model, specs: Sequence[Spec], *, comments: Sequence[str] = (), cone: bool = False) -> str:
    """The model and the properties, as SMV text. With `cone`, without what the properties do not depend on."""
    return _Writer(model, specs, cone=cone).text(comments)


# How strongly the operators of SMV bind.
_IMPLIES, _IFF, _OR, _AND, _UNTIL, _TEMPORAL, _COMPARE, _IN, _ADD, _TIMES, _UNARY, _ATOM = range(12)
_SIGNS: Final = {
    "add": ("+", _ADD),
    "subtract": ("-", _ADD),
    "multiply": ("*", _TIMES),
    "equal": ("=", _COMPARE),
    "less": ("<", _COMPARE),
    "at_most": ("<=", _COMPARE),
}
_OPPOSITES: Final = {"equal": "!=", "less": ">=", "at_most": ">"}


class _Writer:
    def __init__(self, model: Model, specs: Sequence[Spec], *, cone: bool) -> None:
        self.model, self.specs, self.terms = model, specs, model.terms
        for spec in specs:
            known = {} if isinstance(spec, Invariant) else _OF_CTL if isinstance(spec, Ctl) else _OF_LTL
            _checked(_formula(spec), known, f"the property {spec.name!r}")
        asked = [atom for spec in specs for atom in _atoms(_formula(spec))]
        self.stops = self.terms.or_(*(stop.when for stop in model.stops))
        self.has_stops = self.stops is not self.terms.false
        if cone:
            self.pipes: Mapping[str, Signal] = {}
            self.variables, self.choices = model.cone([*asked, self.stops])
        else:
            self.pipes = model.pipes
            self.variables, self.choices = list(model.variables.values()), list(model.choices.values())
        self.names = _Names()
        self.smv: dict[str, str] = {}
        """The names of variables and choices."""
        self.symbols: dict[Value, str] = {}
        """The names of values that are no numbers."""
        self.called: dict[Term, str] = {}
        """Terms that are written as a name, and defined once."""
        self.definitions: list[tuple[str, Term, str]] = []
        """Names, what they mean, and for the reader what they are."""
        self.name_all()
        roots = [each.after for each in self.variables] + [model.allowed, self.stops, *asked]
        roots += [term for signal in self.pipes.values() for term in (signal.present, signal.value)]
        self.name_shared(roots)

    # -- what gets a name ----------------------------------------------------------------------------------------------

    def name_all(self) -> None:
        self.stopped, self.stopping, self.judged = map(self.names.new, ("stopped", "stops_now", "judged"))
        self.smv[_JUDGED] = self.judged
        for name in self.model.choices:
            # An input is called as its pipe, which has two parts: whether there is an event, and its value.
            signal = self.model.pipes.get(name)
            is_value = signal is not None and signal.value.op == "variable" and signal.value.value == name
            self.smv[name] = self.names.new(f"{name}!" if is_value else name)
        for name in self.model.variables:
            self.smv[name] = self.names.new(name)
        for domain in self.domains().values():
            if isinstance(domain, Symbols):
                for value in domain.values:
                    self.symbol(value)
        for pipe, signal in self.pipes.items():
            for mark, term in (("?", signal.present), ("!", signal.value)):
                if term.op == "variable" and term.value == (pipe if mark == "!" else f"{pipe}?"):
                    continue  # an input: it is declared under this name
                name = self.names.new(pipe + mark)
                self.definitions.append((name, term, "" if name == pipe + _MEANT[mark] else f"pipe {pipe}"))
                if term.op not in _LEAVES:
                    self.called.setdefault(term, name)

    def domains(self) -> dict[str, Domain]:
        return {
            **{each.name: each.domain for each in self.choices},
            **{each.name: each.domain for each in self.variables},
        }

    def name_shared(self, roots: Sequence[Term]) -> None:
        """Names for terms that are used twice, if they are more than a glance."""
        parts = parts_of(roots)
        uses = dict.fromkeys(parts, 0)
        for term in itertools.chain(roots, *(part.arguments for part in parts)):
            uses[term] += 1
        repeating = [
            part
            for part in parts
            if part.op == "call" or (part.op in ("divide", "modulo") and not _is_plain_division(part))
        ]
        twice = {each for part in repeating for each in part.arguments[part.op == "call" :]}
        numbers = itertools.count(1)
        for part in parts:
            is_long = part.op == "call" or any(
                each.op not in _LEAVES and each not in self.called for each in part.arguments
            )
            if part.op not in _LEAVES and part not in self.called and (part in twice or (is_long and uses[part] > 1)):
                self.called[part] = self.names.new(f"part_{next(numbers)}")
                self.definitions.append((self.called[part], part, ""))

    def symbol(self, value: Value) -> str:
        if value not in self.symbols:
            self.symbols[value] = self.names.new(value if isinstance(value, str) else repr(value))
        return self.symbols[value]

    # -- the whole -----------------------------------------------------------------------------------------------------

    def text(self, comments: Sequence[str]) -> str:
        lines = [line for comment in comments for line in comment.splitlines()]
        lines += [
            "A state is one step: what is remembered before it (VAR with next), "
            "what the world chooses for it (other VAR)."
        ]
        if self.has_stops:
            lines += [
                f"A run stops at a step where {self.stopping} is TRUE; only {self.judged} steps, before it, count."
            ]
        body = self.body()
        lines += [f"{name} stands for {value!r}." for value, name in self.symbols.items() if name != value]
        return "\n".join([*(f"-- {line}" for line in lines), "MODULE main", *body])

    def body(self) -> list[str]:
        # NuSMV refuses assignments to a variable that has one value.
        free = {name: domain for name, domain in self.domains().items() if len(domain.values) > 1}
        fixed = {name: domain.values[0] for name, domain in self.domains().items() if name not in free}
        declared = [self.line(name, ":", self.domain(domain)) for name, domain in free.items()]
        assigned = [
            line
            for each in self.variables
            if each.name in free
            for line in (
                f"  init({self.smv[each.name]}) := {self.constant(each.first)};",
                f"  next({self.smv[each.name]}) := {self.next_value(each)};",
            )
        ]
        defined = [self.line(name, ":=", self.constant(value)) for name, value in fixed.items()]
        if self.has_stops:
            declared += [f"  {self.stopped} : boolean;"]
            assigned += [
                f"  init({self.stopped}) := FALSE;",
                f"  next({self.stopped}) := {self.stopped} | {self.stopping};",
            ]
            defined += [
                f"  {self.stopping} := {self.expression(self.stops)};",
                f"  {self.judged} := !({self.stopped} | {self.stopping});",
            ]
        for name, term, comment in self.definitions:
            text = self.called[term] if self.called.get(term, name) != name else self.written(term)[0]
            defined.append(f"  {name} := {text};" + (f"  -- {comment}" if comment else ""))
        allowed = [] if self.model.allowed is self.terms.true else [f"INVAR {self.expression(self.model.allowed)};"]
        specs = [self.spec(spec) for spec in self.specs]
        in_domains = {value for domain in free.values() if isinstance(domain, Symbols) for value in domain.values}
        others = [name for value, name in self.symbols.items() if value not in in_domains]
        sections = (("VAR", declared), ("ASSIGN", assigned), ("DEFINE", defined))
        lines = [f"CONSTANTS {', '.join(others)};"] if others else []
        lines += [line for title, part in sections if part for line in (title, *part)]
        return [*lines, *allowed, *specs]

    def line(self, own: str, sign: str, text: str) -> str:
        name = self.smv[own]
        return f"  {name} {sign} {text};" + ("" if own == name else f"  -- {own}")

    def domain(self, domain: Domain) -> str:
        if isinstance(domain, Bools):
            return "boolean"
        if isinstance(domain, Range):
            return f"{domain.low}..{domain.high}"
        return "{" + ", ".join(map(self.symbol, domain.values)) + "}"

    def next_value(self, variable: Variable) -> str:
        after = variable.after
        text = self.cases(after)
        if _stays_in(after, variable.domain):
            return text
        # NuSMV wants a value of the domain in states that no run reaches, too.
        values = self.domain(variable.domain)
        return (
            f"case {self.at_least(after, _IN + 1)} in {values} : {text}; TRUE : {self.constant(variable.first)}; esac"
        )

    def cases(self, term: Term) -> str:
        """A choice, and a choice in its last branch, as the rows of one `case`."""
        rows = []
        while term.op == "choose" and term not in self.called:
            condition, one, term = term.arguments
            rows.append(f"{self.expression(condition)} : {self.expression(one)};")
        if not rows:
            return self.expression(term)
        return f"case {' '.join(rows)} TRUE : {self.expression(term)}; esac"

    def spec(self, spec: Spec) -> str:
        name = self.names.new(spec.name)
        comment = "" if name == spec.name.replace(" ", "_") else f"-- {' '.join(spec.name.split())}\n"
        formula = _formula(spec)
        if self.has_stops:
            judged = self.terms.variable(_JUDGED, BOOL)
            if isinstance(spec, Ltl):
                formula = _until_stopped(formula, judged)
            else:
                formula = Op("implies", (judged, _while_judged(formula, judged)))
        word = "INVARSPEC" if isinstance(spec, Invariant) else "CTLSPEC" if isinstance(spec, Ctl) else "LTLSPEC"
        return f"{comment}{word} NAME {name} := {self.formula(formula)[0]};"

    # -- formulas and terms --------------------------------------------------------------------------------------------

    def formula(self, formula: Formula) -> tuple[str, int]:
        if isinstance(formula, Term):
            return self.term(formula)
        name = formula.op
        if name in ("AU", "EU"):
            one, other = (self.formula(part)[0] for part in formula.parts)
            return f"{name[0]} [ {one} U {other} ]", _TEMPORAL
        if name in ("U", "R"):
            sign = "V" if name == "R" else "U"
            return f" {sign} ".join(_bound(self.formula(part), _TEMPORAL) for part in formula.parts), _UNTIL
        if name in _OF_CTL or name in _OF_LTL:
            return f"{name} {_bound(self.formula(formula.parts[0]), _TEMPORAL)}", _TEMPORAL
        if name == "not":
            return f"!{_bound(self.formula(formula.parts[0]), _UNARY)}", _UNARY
        if name in ("and", "or") and not formula.parts:
            return ("TRUE" if name == "and" else "FALSE"), _ATOM
        sign, level = {"and": ("&", _AND), "or": ("|", _OR), "implies": ("->", _IMPLIES), "iff": ("<->", _IFF)}[name]
        return f" {sign} ".join(_bound(self.formula(part), level + 1) for part in formula.parts), level

    def expression(self, term: Term) -> str:
        return self.term(term)[0]

    def at_least(self, term: Term, level: int) -> str:
        return _bound(self.term(term), level)

    def term(self, term: Term) -> tuple[str, int]:
        """The text of a term, and how strongly it holds together."""
        name = self.called.get(term)
        return (name, _ATOM) if name is not None else self.written(term)

    def written(self, term: Term) -> tuple[str, int]:
        arguments = term.arguments
        match term.op:
            case "constant":
                return self.constant(term.value), _ATOM if type(term.value) is not int or term.value >= 0 else _UNARY
            case "variable":
                return self.smv[term.value], _ATOM
            case "not":
                (inner,) = arguments
                if (
                    inner.op in _OPPOSITES
                    and inner not in self.called
                    and not isinstance(inner.arguments[0].domain, Bools)
                ):
                    one, other = (self.at_least(each, _COMPARE + 1) for each in inner.arguments)
                    return f"{one} {_OPPOSITES[inner.op]} {other}", _COMPARE
                return f"!{self.at_least(inner, _UNARY)}", _UNARY
            case "and" | "or":
                sign, level = ("&", _AND) if term.op == "and" else ("|", _OR)
                return f" {sign} ".join(self.at_least(each, level + 1) for each in arguments), level
            case "choose":
                condition, one, other = (self.at_least(each, _OR) for each in arguments)
                return f"({condition} ? {one} : {other})", _ATOM
            case "equal" if isinstance(arguments[0].domain, Bools):
                return " <-> ".join(self.at_least(each, _IFF + 1) for each in arguments), _IFF
            case "divide" | "modulo":
                return self.division(term)
            case "call":
                return self.table(term), _ATOM
        sign, level = _SIGNS[term.op]
        one, other = self.at_least(arguments[0], level + (level == _COMPARE)), self.at_least(arguments[1], level + 1)
        return f"{one} {sign} {other}", level

    def constant(self, value: Value) -> str:
        if type(value) is bool:
            return "TRUE" if value else "FALSE"
        return str(value) if type(value) is int else self.symbol(value)

    def division(self, term: Term) -> tuple[str, int]:
        """Rounded down, as in Python. SMV rounds to zero or, by an option, down: the same if nothing is negative."""
        a, b = term.arguments
        is_modulo = term.op == "modulo"
        sign = "mod" if is_modulo else "/"
        if _is_plain_division(term):
            low = a.domain.values[0]
            if low >= 0:
                return f"{self.at_least(a, _TIMES)} {sign} {self.at_least(b, _UNARY)}", _TIMES
            # Moved up by a multiple of the divisor, nothing is negative.
            count = -(low // b.value)
            moved = f"({self.at_least(a, _ADD)} + {count * b.value}) {sign} {b.value}"
            return (moved, _TIMES) if is_modulo else (f"{moved} - {count}", _ADD)
        one, other = self.at_least(a, _ATOM), self.at_least(b, _ATOM)
        # NuSMV divides in branches that are not taken, too, so even there the divisor must not be 0. A remainder may
        # be negative: the divisor is added and the remainder taken again. For a negative divisor both signs change.
        size = f"({other} = 0 ? 1 : ({other} < 0 ? -{other} : {other}))"
        rest = f"(({other} < 0 ? -{one} : {one}) mod {size} + {size}) mod {size}"
        remainder = f"({other} = 0 ? 0 : ({other} < 0 ? -({rest}) : {rest}))"
        if is_modulo:
            return remainder, _ATOM
        return f"({other} = 0 ? 0 : ({one} - {remainder}) / ({other} = 0 ? 1 : {other}))", _ATOM

    def table(self, term: Term) -> str:
        """A function that can only be called: what it gives, row by row."""
        when, *arguments = term.arguments
        table: Table = term.value
        rows = 1
        for each in arguments:
            rows *= len(each.domain.values)
        if rows > MOST_ROWS:
            raise PipelineError(
                f"{table.name} as SMV text",
                needed=f"at most {MOST_ROWS:,} rows for a function that can only be called",
                came=f"{rows:,}",
                hint="a smaller domain, or a function that only calculates: lambda x, y: x + 2 * y",
            )
        given: dict[Value, list[tuple[Value, ...]]] = {}
        for values in itertools.product(*(each.domain.values for each in arguments)):
            try:
                result = table(*values)
            except PipelineError:
                continue  # Domains of terms can be too large; what never comes may be outside of the function's.
            if _is_in(result, table.domain):
                given.setdefault(result, []).append(values)
        usual = max(given, key=lambda result: len(given[result]), default=table.default)
        lines = [] if when is self.terms.true else [f"!{self.at_least(when, _UNARY)} : {self.constant(table.default)};"]
        for result, found in given.items():
            if result is usual:
                continue
            lasts: dict[tuple[Value, ...], list[Value]] = {}
            for values in found:
                lasts.setdefault(values[:-1], []).append(values[-1])
            for leading, last in lasts.items():
                tests = [
                    self.is_one_of(each, values)
                    for each, values in zip(arguments, (*([value] for value in leading), last), strict=True)
                ]
                lines.append(f"{' & '.join(filter(None, tests)) or 'TRUE'} : {self.constant(result)};")
        return f"case {' '.join(lines)} TRUE : {self.constant(usual)}; esac"

    def is_one_of(self, term: Term, values: Sequence[Value]) -> str:
        """The test that a term has one of these values; none if it always has."""
        if len(values) == len(term.domain.values):
            return ""
        if isinstance(term.domain, Bools):
            return ("" if values[0] else "!") + self.at_least(term, _UNARY)
        texts = list(map(self.constant, values))
        text = self.at_least(term, _IN + 1)
        return f"{text} = {texts[0]}" if len(texts) == 1 else f"{text} in {{{', '.join(texts)}}}"


def _bound(text: tuple[str, int], level: int) -> str:
    """The text, in brackets if it would fall apart here."""
    return text[0] if text[1] >= level else f"({text[0]})"


def _is_plain_division(term: Term) -> bool:
    """Whether SMV's own division can be used: the divisor is positive, and the other is, or can be made so."""
    a, b = term.arguments
    return bool(b.domain.values[0] > 0 and (a.domain.values[0] >= 0 or b.is_constant))


def _is_in(value: Value, domain: Domain) -> bool:
    return any(type(value) is type(each) and value == each for each in domain.values)


def _is_within(inner: Domain, outer: Domain) -> bool:
    if isinstance(inner, Range) and isinstance(outer, Range):
        return outer.low <= inner.low and inner.high <= outer.high
    return type(inner) is type(outer) and set(inner.values) <= set(outer.values)


def _stays_in(term: Term, domain: Domain, known: tuple[tuple[Term, bool], ...] = ()) -> bool:
    """Whether a term has only values of a domain, where these conditions are known; a no may be wrong."""
    if _is_within(term.domain, domain):
        return True
    if term.op == "choose":
        condition, one, other = term.arguments
        return _stays_in(one, domain, (*known, (condition, True))) and _stays_in(
            other, domain, (*known, (condition, False))
        )
    names = _variables(term)
    rows = 1
    for each in names.values():
        rows *= len(each.values)
    if rows > MOST_TRIED:
        return False
    helpful = [(condition, wanted) for condition, wanted in known if _variables(condition).keys() <= names.keys()]
    for row in itertools.product(*(each.values for each in names.values())):
        values = dict(zip(names, row, strict=True))
        if all(evaluate(condition, values) is wanted for condition, wanted in helpful) and not _is_in(
            evaluate(term, values), domain
        ):
            return False
    return True


def _variables(term: Term) -> dict[str, Domain]:
    return {part.value: part.domain for part in parts_of([term]) if part.op == "variable"}


def _formula(spec: Spec) -> Formula:
    return spec.good if isinstance(spec, Invariant) else spec.formula


def _atoms(formula: Formula) -> Iterator[Term]:
    if isinstance(formula, Term):
        yield formula
    else:
        for part in formula.parts:
            yield from _atoms(part)
