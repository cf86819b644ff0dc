from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from streamtight import errors
from streamtight.errors import (
    DependenceError,
    EventError,
    FieldError,
    InconsistentError,
    JobError,
    KindError,
    PredicateError,
    QueryError,
    SchemaError,
    StreamtightError,
    TimeLimitError,
    TraceError,
    VerdictError,
)
from streamtight.stream.dependence import barrier, between, depends, ordered, same, unordered
from streamtight.stream.event import Kind
from streamtight.stream.schedule import Restart, Schedule
from streamtight.stream.schema import Bag, Par, PartitionBy, Schema, Seq, Sync, schema_of
from streamtight.stream.series_parallel import parse
from streamtight.stream.trace import Trace
from streamtight.verdict import Counterexample, Outcome, Scope, Verdict, combine

A, B, Other = Kind("A", k=int, x=float), Kind("B", k=int), Kind("Other", j=int)
a = A(1, 0.5)
counterexample = Counterexample("LOST", "an event is missing", Schedule.of([a]))


def related(*pairs: str) -> Callable[[Kind, Kind], bool]:
    wanted = {frozenset(pair) for pair in pairs}
    return lambda one, other: frozenset({one.name, other.name}) in wanted


def four(*pairs: str) -> Schema:
    return schema_of([Kind(name, n=int) for name in "PQRS"], related(*pairs, "PP", "QQ", "RR", "SS"))


# Every way in which the kernel refuses a question: its class, what it names, and the question.
REFUSALS: dict[str, tuple[type[StreamtightError], str, Callable[[], object]]] = {
    # event
    "no such field": (FieldError, "'z'", lambda: a.z),
    "an assignment": (FieldError, "A.x = 2.0", lambda: setattr(a, "x", 2.0)),
    "a kind without a name": (KindError, "''", lambda: Kind("", x=int)),
    "a kind whose name is no string": (KindError, "3", lambda: Kind(3)),
    "a kind with an unhashable name": (KindError, "['A']", lambda: Kind(["A"])),
    "a reserved field": (KindError, "'replace'", lambda: Kind("K", replace=int)),
    "a field without a name": (KindError, "''", lambda: Kind("K", **{"": int})),
    "an unknown type": (KindError, "complex", lambda: Kind("K", x=complex)),
    "an unhashable type": (KindError, "[", lambda: Kind("K", x=[int])),
    "an unknown type inside": (KindError, "list[int]", lambda: Kind("K", x=dict[str, list[int]])),
    "a surplus value": (EventError, "99", lambda: A(1, 0.5, 99)),
    "an unknown field": (EventError, "z=7", lambda: A(1, 0.5, z=7)),
    "a surplus value for no field": (EventError, "99", lambda: Kind("End")(99)),
    "a missing field": (EventError, "A.x", lambda: A(1)),
    "a wrong type": (EventError, "'one'", lambda: A("one", 0.5)),
    "None": (EventError, "None", lambda: A(None, 0.5)),
    "a bool for an int": (EventError, "True", lambda: A(True, 0.5)),
    "a wrong type in a tuple": (EventError, "'x'", lambda: Kind("T", t=tuple[int, ...])((1, "x"))),
    "a wrong type in a map": (EventError, "'x'", lambda: Kind("M", m=dict[str, int])({"a": "x"})),
    "a wrong key in a map": (EventError, "M.m key", lambda: Kind("M", m=dict[str, int])({1: 1})),
    "an event of another kind": (EventError, "Other(j=1)", lambda: Kind("N", b=B)(Other(1))),
    "a value that cannot be hashed": (EventError, "bytearray", lambda: Kind("O", o=object)(bytearray(b"a"))),
    # dependence
    "a key that a kind lacks": (DependenceError, "'k'", lambda: same("k").depends(a, Other(1))),
    "a key that a kind of a trace lacks": (DependenceError, "'k'", lambda: Trace([Other(1)], same("k")).levels),
    "a kind outside the domain": (DependenceError, "Other(j=1)", lambda: (Bag(A) & ordered).depends(a, Other(1))),
    "no domain at all": (DependenceError, "no kind", lambda: (Bag(A) & Bag(B)).depends(a, a)),
    "not symmetric": (
        DependenceError,
        "A(k=2, x=0.5)",
        lambda: depends(lambda one, other: one.k < other.k).validate([a, A(2, 0.5)]),
    ),
    "an equality that is not respected": (
        DependenceError,
        "A(k=2, x=0.5)",
        lambda: same("k").validate([a, A(2, 0.5), A(2, 1.5)], equal=lambda one, other: one.x == other.x),
    ),
    "same without a field": (DependenceError, "()", lambda: same()),
    "same of what is no name": (DependenceError, "3", lambda: same(3)),
    "same of what is no kind": (DependenceError, "'A'", lambda: same("k", of="A")),
    "a barrier of what is no kind": (DependenceError, "3", lambda: barrier(3)),
    "a barrier of no kinds": (DependenceError, "[]", lambda: barrier([])),
    "between what is no kind": (DependenceError, "'B'", lambda: between(A, ["B"])),
    "depends on what is no function": (DependenceError, "3", lambda: depends(3)),
    "depends on a kind": (DependenceError, "A(", lambda: depends(A)),
    # schema
    "an event of no kind of a schema": (SchemaError, "Other(j=1)", lambda: Bag(A).depends(a, Other(1))),
    "a relaxation of what is no schema": (SchemaError, "ordered", lambda: Bag(A).relaxes(ordered)),
    "a bag of what is no kind": (SchemaError, "'A'", lambda: Bag("A")),
    "a bag of numbers": (SchemaError, "3", lambda: Bag(3)),
    "a sync without a schema": (SchemaError, "B(", lambda: Sync(A, B)),
    "a split without a schema": (SchemaError, "A(", lambda: PartitionBy("k", A)),
    "a part that is no schema": (SchemaError, "ordered", lambda: Par(Bag(A), ordered)),
    "a kind twice": (SchemaError, "A twice", lambda: Sync(A, Bag(A))),
    "a kind twice in a bag": (SchemaError, "A twice", lambda: Bag(A, A)),
    "a kind in two parts": (SchemaError, "B twice", lambda: Par(Bag(B), Seq(B))),
    "a split by no name": (SchemaError, "3", lambda: PartitionBy(3, Bag(A))),
    "a split by nothing": (SchemaError, "[]", lambda: PartitionBy([], Bag(A))),
    "a split by what is no field": (SchemaError, "'j'", lambda: PartitionBy("j", Bag(A))),
    "a split by two types": (SchemaError, "str in Text", lambda: PartitionBy("k", Bag(A, Kind("Text", k=str)))),
    "a key split twice": (SchemaError, "'k'", lambda: PartitionBy("k", PartitionBy("k", Bag(A)))),
    "a path of four": (SchemaError, "P4 P - Q - R - S", lambda: four("PQ", "QR", "RS")),
    "a cycle of four": (SchemaError, "C4 P - Q - R - S", lambda: four("PQ", "QR", "RS", "SP")),
    "no marker": (SchemaError, "A - B", lambda: schema_of([A, B], related("AB"))),
    "a relation on what is no kind": (SchemaError, "'A'", lambda: schema_of(["A"], related())),
    # series-parallel streams
    "relaxed to a stronger schema": (SchemaError, "Seq(A)", lambda: Bag(A).parse([]).relax(Seq(A))),
    "streams of two schemas": (SchemaError, "Bag(B)", lambda: Bag(A).parse([]) + Bag(B).parse([])),
    "a stream and a number": (SchemaError, "3", lambda: Bag(A).parse([]) + 3),
    "after a stream of another schema": (SchemaError, "Bag(B)", lambda: Bag(A).parse([]).after(Bag(B).parse([]))),
    "a prefix of another schema": (SchemaError, "Bag(B)", lambda: Bag(B).parse([]) <= Bag(A).parse([])),
    "parsed by what is no schema": (SchemaError, "ordered", lambda: parse(ordered, [])),
    "an event of no kind of a stream": (SchemaError, "Other(j=1)", lambda: Bag(A).parse([Other(1)])),
    # trace
    "a trace up to nothing": (TraceError, "'k'", lambda: Trace([], "k")),
    "a trace of numbers": (TraceError, "3", lambda: Trace([3], ordered)),
    "an event of no kind of a trace": (SchemaError, "Other(j=1)", lambda: Trace([Other(1)], Bag(A))),
    "traces up to different dependences": (TraceError, "unordered", lambda: Trace([], ordered) == Trace([], unordered)),
    "a prefix up to another dependence": (TraceError, "unordered", lambda: Trace([], ordered) <= Trace([], unordered)),
    "a trace and a number": (TraceError, "3", lambda: Trace([], ordered) + 3),
    # schedule
    "a batch that is no tuple": (TraceError, "[A(", lambda: Schedule(([a],))),
    "a batch without partitions": (TraceError, "()", lambda: Schedule(((),))),
    "a partition that is no tuple": (TraceError, "[A(", lambda: Schedule((([a],),))),
    "a schedule of numbers": (TraceError, "3", lambda: Schedule((((3,),),))),
    "no shuffle partitions": (TraceError, "0", lambda: Schedule((), 0)),
    "a restart that never comes": (TraceError, "[7]", lambda: Schedule((((a,),),), 1, (Restart(7),))),
    "restarts out of order": (TraceError, "[1, 0]", lambda: Schedule((((a,),),) * 2, 1, (Restart(1), Restart(0)))),
    "a schedule made of numbers": (TraceError, "3", lambda: Schedule.of([3])),
    "a cut beyond the end": (TraceError, "[7]", lambda: Schedule.of([a], cuts=[7])),
    "cuts out of order": (TraceError, "[1, 0]", lambda: Schedule.of([a], cuts=[1, 0])),
    "no partitions": (TraceError, "0", lambda: Schedule.of([a], partitions=0)),
    # verdict
    "FAILS without a counterexample": (VerdictError, "FAILS", lambda: Verdict("c", Outcome.FAILS, Scope.proved())),
    "HOLDS with a counterexample": (
        VerdictError,
        "HOLDS",
        lambda: Verdict("c", Outcome.HOLDS, Scope.proved(), counterexample),
    ),
    "UNDECIDED without a reason": (VerdictError, "'c'", lambda: Verdict("c", Outcome.UNDECIDED, Scope.proved())),
    "a verdict as a condition": (VerdictError, "'c'", lambda: bool(Verdict("c", Outcome.HOLDS, Scope.proved()))),
    "no verdicts": (VerdictError, "'c'", lambda: combine([], claim="c")),
}


def refusal(name: str) -> tuple[type[StreamtightError], str, StreamtightError]:
    expected, named, ask = REFUSALS[name]
    with pytest.raises(StreamtightError) as caught:
        ask()
    return expected, named, caught.value


@pytest.mark.parametrize("name", REFUSALS)
def test_a_wrong_question_is_refused_with_its_class_and_four_parts(name: str):
    expected, named, error = refusal(name)

    assert type(error) is expected
    assert all(part.strip() for part in (error.where, error.needed, error.came, error.hint))
    assert named in f"{error.where} {error.needed} {error.came}"
    assert str(error) == f"{error.where}: needed {error.needed}; came {error.came}. Try: {error.hint}"


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_survives_pickling_and_copying(name: str):
    *_, error = refusal(name)

    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert vars(other) == vars(error)


EXTRAS: dict[type[StreamtightError], dict[str, object]] = {
    QueryError: {"witness": ("a", "b")},
    SchemaError: {"rule": "2.8"},
    JobError: {"batch": 3, "raised": "ValueError: no"},
    TimeLimitError: {"seconds": 2.5},
    InconsistentError: {"story": "FAILS  it", "verdict": None},
    PredicateError: {"letter": 2, "record": (1, "a")},
}
CLASSES = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, StreamtightError)]


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_pickles_with_its_attributes(cls: type[StreamtightError]):
    extras = EXTRAS.get(cls, {})
    error = cls("here", needed="this", came="that", hint="something else", **extras)

    other = pickle.loads(pickle.dumps(error))

    assert type(other) is cls
    assert vars(other) == {"where": "here", "needed": "this", "came": "that", "hint": "something else", **extras}
    assert str(other).splitlines()[0] == "here: needed this; came that. Try: something else"
    assert str(other) == str(error)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_is_listed_in_the_picture_of_the_module(cls: type[StreamtightError]):
    assert f"{cls.__name__} " in f"{errors.__doc__}".replace("\n", " ")


def test_a_missing_field_is_an_attribute_error_too():
    assert issubclass(FieldError, AttributeError)
    assert issubclass(FieldError, EventError)


def test_a_note_survives_pickling():
    error = KindError("here", needed="this", came="that", hint="x")
    error.add_note("seen in batch 3")

    assert pickle.loads(pickle.dumps(error)).__notes__ == ["seen in batch 3"]
