"""What programs take: types of rows, columns of tables, and what is known of them."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from streamtight.errors import SourceError
from streamtight.method.prove.draw import as_row, constants_in, simpler, some_rows, some_tables
from streamtight.method.prove.inputs import are_tables, nullable, rdd, table
from streamtight.method.prove.parse_input import parse_input
from streamtight.program.expression import Field, is_known

# -- tables ----------------------------------------------------------------------------------------------------------


class Schema:
    """What a StructType can do."""

    def __init__(self, *fields: dict[str, Any]) -> None:
        self.fields = fields

    def jsonValue(self) -> dict[str, Any]:  # noqa: N802
        return {"type": "struct", "fields": list(self.fields)}


class Sample:
    """What a DataFrame has."""

    schema = Schema(
        {"name": "k", "type": "long", "nullable": False, "metadata": {}},
        {"name": "d", "type": "decimal(10,2)", "nullable": True, "metadata": {}},
    )


def test_types_of_python_are_columns_that_are_never_null():
    made = table(k=int, x=float, s=str, b=bool, d=date, t=datetime)

    assert [field.type for field in made.fields] == ["long", "double", "string", "boolean", "date", "timestamp"]
    assert not any(field.nullable for field in made.fields)


def test_a_column_may_be_null_if_its_type_says_so():
    assert table(k=nullable(int)) == table(k=int | None) == table("k BIGINT")
    assert table(k=nullable("int")).fields == (Field("k", "integer", True),)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("k BIGINT NOT NULL, v STRING", [("k", "long", False), ("v", "string", True)]),
        ("k: int, `a b` decimal(5, 2) not null", [("k", "integer", True), ("a b", "decimal(5,2)", False)]),
        (
            "x DOUBLE, n smallint, d decimal",
            [("x", "double", True), ("n", "short", True), ("d", "decimal(10,0)", True)],
        ),
    ],
)
def test_columns_as_in_create_table(text: str, fields: list[Any]):
    made = table(text)

    assert list(made.fields) == [Field(*field) for field in fields]
    assert table(made.ddl) == made


@pytest.mark.parametrize("sample", [Sample(), Sample.schema])
def test_a_sample_has_the_columns(sample: Any):
    assert table(sample) == table("k BIGINT NOT NULL, d DECIMAL(10,2)")


@pytest.mark.parametrize(
    "make",
    [
        lambda: table(),
        lambda: table("k BIGINT", v=int),
        lambda: table(k=list),
        lambda: table(k=Decimal),
        lambda: table(k=int | str),
        lambda: table(k="array<int>"),
        lambda: table("k"),
        lambda: table(""),
        lambda: table(5),
        lambda: table(k=int, K=int),
        lambda: parse_input("table[k: int, k: str]"),
        lambda: table(Schema({"name": "a", "type": {"type": "array"}, "nullable": True})),
        lambda: table(k=int).key("v"),
        lambda: table(k=int).key(),
        lambda: table(k=int).where(lambda k: k > 0),
        lambda: table(k=int).where(" "),
        lambda: rdd(int).where("x > 0"),
        lambda: rdd((int, dict)),
        lambda: rdd(int | str),
        lambda: are_tables([rdd(int), table(k=int)]),
    ],
)
def test_what_cannot_be_an_input_is_told(make: Any):
    with pytest.raises(SourceError):
        make()


@pytest.mark.parametrize(
    ("make", "came"),
    [
        (lambda: table("k array<int>, v int"), "arrays are not supported"),
        (lambda: table(k="map<int,int>"), "maps are not supported"),
        (lambda: parse_input("rdd[(int, itn)]"), "came itn"),
        (lambda: parse_input("table[k: int, k: str]"), "k more than once"),
    ],
    ids=["array", "map", "typo", "twice"],
)
def test_what_is_wrong_is_named(make: Any, came: str):
    with pytest.raises(SourceError, match=came):
        make()


def test_a_test_that_raises_is_told_with_the_row():
    with pytest.raises(SourceError, match="ZeroDivisionError for 0"):
        rdd(int).where(lambda x: 1 // x > 0).allows([0])


def test_no_two_rows_share_a_key_and_null_is_shared():
    made = table(a=int | None, b=int).key("a").key("a", "b")

    assert made.keeps_keys([(1, 1), (2, 1), (None, 1)])
    assert not made.keeps_keys([(1, 1), (1, 2)])
    assert not made.keeps_keys([(None, 1), (None, 2)])


# -- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("rdd[int]", rdd(int)),
        ("rdd[(str, (int | None, float?))]", rdd((str, (int | None, float | None)))),
        ("table[k: int, v: int?]", table(k=int, v=int | None)),
        ("table[k: bigint, d: decimal(10, 2) | None]", table(k="bigint", d=nullable("decimal(10,2)"))),
        ("table['a b': str]", table(**{"a b": str})),
        ("table[k: int].key('k').where('k > 0')", table(k=int).key("k").where("k > 0")),
        ("table[k: str].where(\"k != '?'\")", table(k=str).where("k != '?'")),
    ],
)
def test_inputs_from_text(text: str, made: Any):
    assert parse_input(text) == made


@pytest.mark.parametrize(
    "text",
    ["", "int", "rdd", "rdd[list]", "rdd[__import__('os')]", "table[k]", "table[k: int + 1]", "rdd[int].where('x')",
     "table[k: int].key(k)", "table[k: int].drop('k')", "table[k: int", "table[k: array(int)]", "rdd[int | str]"],
)  # fmt: skip
def test_other_text_is_refused_and_never_run(text: str):
    with pytest.raises(SourceError):
        parse_input(text)


# -- rows ------------------------------------------------------------------------------------------------------------

TYPES = ["long", "integer", "short", "byte", "double", "boolean", "string", "date", "timestamp", "decimal(4,2)"]


def test_drawn_rows_are_of_their_types():
    assert all(map(is_known, TYPES))
    fields = tuple(Field(f"c{place}", type_, nullable=place % 2 == 0) for place, type_ in enumerate(TYPES))
    near = [100, 2**40, 0.5, "abc", date(2020, 1, 1), Decimal("3.25"), float("nan"), True]

    for row in some_rows(fields, near, random.Random(3), most=200):
        assert all(value is not None or field.nullable for value, field in zip(row, fields, strict=True))
        assert row[3] is None or (isinstance(row[3], int) and -128 <= row[3] < 128)
        assert row[9] is None or (abs(row[9]) < 100 and row[9] == round(row[9], 2))
        assert isinstance(row[5], bool)


def test_drawn_rows_keep_what_is_declared():
    inputs = [table(k=int, v=int).key("k"), rdd(int).where(lambda x: x > 98)]
    keeps = [inputs[0].keeps_keys, inputs[1].allows]
    chance = random.Random(1)
    drawn = [some_tables(inputs, [100], chance, 5, lambda place, rows: keeps[place](rows)) for _ in range(50)]

    assert all(keep(rows) for tables in drawn for keep, rows in zip(keeps, tables, strict=True))
    assert max(len(tables[0]) for tables in drawn) > 3
    assert max(len(tables[1]) for tables in drawn) > 3


def test_simpler_values_are_of_the_same_type_and_come_to_an_end():
    for value in (7, -7, 2.5, True, "ab", (3, ("x", -1)), None, float("nan")):
        seen = 0
        while (one := next(simpler(value), None)) is not None and seen < 50:
            assert type(one) is type(value)
            value, seen = one, seen + 1
        assert seen < 50


def test_constants_are_found_in_sql_as_well():
    found = constants_in("SELECT k FROM t WHERE v > 41 AND s = 'new'", (1, [2.5]), {"a": date(2020, 1, 1)})

    assert {41, "new", 1, 2.5, "a", date(2020, 1, 1)} <= set(found)


def test_rows_of_the_solver_are_rows_of_a_table_or_none():
    fields = table(k=int, v=nullable("int"), d=nullable(date), m=nullable("decimal(4,2)")).fields

    assert as_row((1, None, None, None), fields) == (1, None, None, None)
    assert as_row((1, 2, 738_945, 1.25), fields) == (1, 2, date(2024, 2, 29), Decimal("1.25"))
    for value in ((None, 1, None, None), (2**63, 1, None, None), (1, 2**31, None, None), (1, 1, 10**9, None)):
        assert as_row(value, fields) is None
    assert as_row((1, 1, None, 100.0), fields) is None
