"""What SQL expressions mean for rows of which the values are not known: Spark's rules, in Z3.

Every expression has three parts: when it is null, what it is if not, and when it raises. Integers are taken to be as
large as need be: that none of them overflows is an assumption, which the verdict tells; or, if so wanted, an integer
that does not fit raises as it does in Spark. Dates are days, and decimals are the numbers that they are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import z3

from streamtight.errors import UnsupportedError
from streamtight.program.expression import (
    INTEGER_BITS,
    WHOLE,
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Coalesce,
    Column,
    Compare,
    Comparison,
    Expression,
    Field,
    IsNull,
    Literal,
    Mode,
    Most,
    Not,
    Operation,
    Or,
    PythonUDF,
    digits,
)
from streamtight.solver.symbolic.values import (
    KNOWN_CHARACTERS,
    REAL_NUMBERS,
    SymbolicBool,
    SymbolicFloat,
    SymbolicInt,
    SymbolicStr,
    term_of,
)
from streamtight.solver.values import NO, YES, Maybe, Row, Truth, conjunction, either, negation, number

NO_OVERFLOW = "integers do not overflow"
DECIMALS_FIT = "no decimal has more digits than its type"
_SORTS = {
    **dict.fromkeys((*INTEGER_BITS, WHOLE), (SymbolicInt, z3.IntSort())),
    "date": (SymbolicInt, z3.IntSort()),
    "boolean": (SymbolicBool, z3.BoolSort()),
    "double": (SymbolicFloat, z3.RealSort()),
    "string": (SymbolicStr, z3.StringSort()),
}
Applied = Callable[[Callable[..., Any], Sequence[Row], Truth], Iterable[tuple[Truth, Row, Exception | None]]]
"""What a Python function gives for rows, path by path."""


@dataclass(frozen=True, slots=True)
class Cell:
    """When it is null, what it is if not, and when it raises instead."""

    null: Truth
    value: Any
    fails: Truth = NO

    def leaf(self, type_: str) -> Any:
        """As a leaf of a row."""
        null = z3.simplify(self.null)
        if z3.is_true(null):
            return None
        made = _sort(type_)[0](self.value)
        return made if z3.is_false(null) else Maybe(null, made)


class Reading:
    """Reads expressions; notes what is assumed. `overflows` if integers that do not fit shall raise."""

    def __init__(self, applied: Applied, *, overflows: bool = False) -> None:
        self.assumptions: set[str] = set()
        self.fails_anyway: list[Truth] = []
        """When functions of Python raise. Spark calls them for all rows, also in branches that are not taken."""
        self._applied = applied
        self._overflows = overflows

    def cell(self, expression: Expression, row: Row) -> Cell:
        """What an expression means for this row."""
        match expression:
            case Column(path, type_):
                for position in path:
                    row = row[position]
                if type_ == "double":  # also if it is only compared: it may be NaN
                    self.assumptions.add(REAL_NUMBERS)
                return _of_leaf(row, type_)
            case Literal(constant, type_):
                return _of_leaf(constant, type_)
            case Cast():
                return self._cast(expression, self.cell(expression.of, row))
            case Arithmetic():
                return self._arithmetic(expression, row)
            case Compare(comparison, left, right):
                return self._compare(comparison, self.cell(left, row), self.cell(right, row))
            case And(parts):
                return _decided([self.cell(part, row) for part in parts], by=False)
            case Or(parts):
                return _decided([self.cell(part, row) for part in parts], by=True)
            case Not(of):
                inner = self.cell(of, row)
                return Cell(inner.null, negation(inner.value), inner.fails)
            case IsNull(of):
                inner = self.cell(of, row)
                return Cell(NO, inner.null, inner.fails)
            case Coalesce(parts):
                return _first([self.cell(part, row) for part in parts])
            case Case(branches, otherwise):
                found = self.cell(otherwise, row)
                for condition, value in reversed(branches):
                    found = _if(self.cell(condition, row), self.cell(value, row), found)
                return found
            case Most(parts, greatest):
                return self._most([self.cell(part, row) for part in parts], greatest)
            case Call(name, arguments):
                cells = [self.cell(argument, row) for argument in arguments]
                return _strict(cells, _called(name, [cell.value for cell in cells], expression.type))
            case PythonUDF():
                return self._python(expression, row)
        raise UnsupportedError(
            f"the expression {getattr(expression, 'name', type(expression).__name__)}",
            needed="one whose meaning the solver knows",
            came=repr(expression)[:100],
            hint="tight.compare, which runs both programs",
        )

    def _cast(self, cast: Cast, of: Cell) -> Cell:
        source, target = cast.of.type, cast.type
        numbers = (*INTEGER_BITS, WHOLE)
        if source == target or source == "void":
            return of if source == target else Cell(YES, _default(target), of.fails)
        if target in numbers and source in (*numbers, "boolean"):
            narrow = source != "boolean" and INTEGER_BITS.get(source, 99) > INTEGER_BITS.get(target, 99)
            made = Cell(of.null, number(of.value), of.fails)
            return self._fitting(made, target, cast.mode, is_sum=source == WHOLE) if narrow else made
        if target in numbers and (source == "double" or digits(source)):
            cut = z3.If(of.value >= 0, z3.ToInt(of.value), -z3.ToInt(-of.value))
            self.assumptions |= {REAL_NUMBERS} if source == "double" else set()
            return self._fitting(Cell(of.null, cut, of.fails), target, cast.mode)
        if (target == "double" or digits(target)) and (source in (*numbers, "boolean") or digits(source)):
            value = number(of.value)
            made = Cell(of.null, z3.ToReal(value) if z3.is_int(value) else value, of.fails)
            if target == "double":
                self.assumptions.add(REAL_NUMBERS)
                return made
            return made if _holds_all(target, source) else self._fitting(made, target, cast.mode)
        if target == "boolean" and (source in (*numbers, "double") or digits(source)):
            return Cell(of.null, of.value != 0, of.fails)
        if target == "string" and source in numbers:
            text = z3.If(of.value < 0, z3.Concat(z3.StringVal("-"), z3.IntToStr(-of.value)), z3.IntToStr(of.value))
            return Cell(of.null, text, of.fails)
        if target == "string" and source == "boolean":
            return Cell(of.null, z3.If(of.value, z3.StringVal("true"), z3.StringVal("false")), of.fails)
        raise UnsupportedError(
            "cast", needed="a cast that the solver knows", came=f"{source} to {target}", hint="tight.compare"
        )

    def _fitting(self, cell: Cell, type_: str, mode: Mode, *, is_sum: bool = False) -> Cell:
        """What an integer or a decimal is in its type. What is null where it does not fit is so in any case."""
        if type_ == WHOLE:
            return cell
        if mode is not Mode.TRY and (is_sum or not self._overflows or digits(type_)):
            # Whether a sum overflows also depends on the order in which its parts come together.
            self.assumptions.add(DECIMALS_FIT if digits(type_) else NO_OVERFLOW)
            return cell
        if is_sum:
            raise UnsupportedError(
                "a sum", needed="one that is not null where it overflows", came="try_sum", hint="sum"
            )
        outside = negation(_fits(cell.value, type_))
        match mode:
            case Mode.ANSI:
                return Cell(cell.null, cell.value, either(cell.fails, conjunction((negation(cell.null), outside))))
            case Mode.TRY:
                return Cell(either(cell.null, outside), cell.value, cell.fails)
        raise UnsupportedError(
            type_, needed="integers that raise if they do not fit", came="ones that wrap around", hint="spark.sql.ansi"
        )

    def _arithmetic(self, expression: Arithmetic, row: Row) -> Cell:
        left, right = self.cell(expression.left, row), self.cell(expression.right, row)
        null, fails = either(left.null, right.null), either(left.fails, right.fails)
        a, b = left.value, right.value
        if expression.type == "double":
            self.assumptions.add(REAL_NUMBERS)
        plain = {Operation.ADD: operator.add, Operation.SUBTRACT: operator.sub, Operation.MULTIPLY: operator.mul}
        if expression.operation in plain:
            self._require_exact(expression)
            made = Cell(null, plain[expression.operation](a, b), fails)
            return made if expression.type == "double" else self._fitting(made, expression.type, expression.mode)
        if digits(expression.type) or z3.is_real(a) is not z3.is_real(b):
            raise UnsupportedError(
                expression.operation.value, needed="whole numbers or doubles", came=expression.type, hint="a cast"
            )
        zero = b == 0
        if expression.mode is Mode.ANSI:
            fails = either(fails, conjunction((negation(null), zero)))
        else:
            null = either(null, zero)
        match expression.operation:
            case Operation.DIVIDE:
                return Cell(null, a / b, fails)
            case Operation.DIV if z3.is_int(a):
                return self._fitting(Cell(null, _truncated(a, b), fails), expression.type, expression.mode)
            case Operation.REMAINDER if z3.is_int(a):
                return Cell(null, a - b * _truncated(a, b), fails)
            case Operation.PMOD if z3.is_int(a):
                # Spark calculates with 32 bits at least.
                rest, bits = a - b * _truncated(a, b), max(32, INTEGER_BITS.get(expression.type, 64))
                least = -(1 << bits - 1)
                # The sum wraps around, in every mode, if the divisor is near the least number.
                more = z3.If(rest + b < least, rest + b + (1 << bits), rest + b)
                return Cell(null, z3.If(rest < 0, more - b * _truncated(more, b), rest), fails)
        raise UnsupportedError(
            expression.operation.value, needed="whole numbers", came=expression.type, hint="cast to long"
        )

    def _require_exact(self, expression: Arithmetic) -> None:
        """Raise if Spark rounds a decimal, because all its digits would be too many."""
        made, left, right = (digits(each.type) for each in (expression, expression.left, expression.right))
        if made is None:
            return
        behind = (left or (0, 0))[1], (right or (0, 0))[1]
        exact = sum(behind) if expression.operation is Operation.MULTIPLY else max(behind)
        if made[1] < exact:
            raise UnsupportedError(
                expression.operation.value,
                needed="a decimal that is not rounded",
                came=f"{expression.type} of {expression.left.type} and {expression.right.type}",
                hint="types with fewer digits",
            )

    def _compare(self, comparison: Comparison, left: Cell, right: Cell) -> Cell:
        fails = either(left.fails, right.fails)
        a, b = left.value, right.value
        if comparison in (Comparison.LESS, Comparison.AT_MOST) and z3.is_string(a):
            self.assumptions.add(KNOWN_CHARACTERS)
        match comparison:
            case Comparison.EQUAL:
                return Cell(either(left.null, right.null), a == b, fails)
            case Comparison.SAME:
                both = conjunction((left.null, right.null))
                neither = conjunction((negation(left.null), negation(right.null), a == b))
                return Cell(NO, either(both, neither), fails)
            case Comparison.LESS:
                return Cell(either(left.null, right.null), _less(a, b), fails)
        return Cell(either(left.null, right.null), negation(_less(b, a)), fails)

    def _most(self, cells: Sequence[Cell], greatest: bool) -> Cell:
        most = cells[0]
        if z3.is_string(most.value):
            self.assumptions.add(KNOWN_CHARACTERS)
        for cell in cells[1:]:
            better = _less(most.value, cell.value) if greatest else _less(cell.value, most.value)
            takes = conjunction((negation(cell.null), either(most.null, better)))
            most = Cell(
                conjunction((most.null, cell.null)),
                z3.If(takes, cell.value, most.value),
                either(most.fails, cell.fails),
            )
        return most

    def _python(self, expression: PythonUDF, row: Row) -> Cell:
        cells = [self.cell(argument, row) for argument in expression.arguments]
        leaves = [cell.leaf(argument.type) for cell, argument in zip(cells, expression.arguments, strict=True)]
        found = Cell(YES, _default(expression.type), either(*(cell.fails for cell in cells)))
        self._require_known_to_python(expression)
        for guard, result, raised in self._applied(expression.function, leaves, YES):
            if raised is not None:
                found = Cell(found.null, found.value, either(found.fails, guard))
                continue
            self._require_declared(result, expression)
            made = _of_leaf(result, expression.type)
            found = Cell(z3.If(guard, made.null, found.null), z3.If(guard, made.value, found.value), found.fails)
        self.fails_anyway.append(found.fails)
        return found

    def _require_known_to_python(self, expression: PythonUDF) -> None:
        """Raise if the function is given what is read as something else: a day as a number, a decimal as a float."""
        for type_ in (argument.type for argument in expression.arguments):
            if type_ not in (*INTEGER_BITS, "double", "boolean", "string", "void"):
                raise UnsupportedError(
                    expression.name, needed="numbers, texts and truth values", came=f"a {type_}", hint="a column of SQL"
                )

    def _require_declared(self, result: Any, expression: PythonUDF) -> None:
        """Raise if the function does not give what it is declared to give: Spark then gives null, or raises."""
        if result is None:
            return
        value = result.value if isinstance(result, Maybe) else result
        python = getattr(value, "python", type(value))
        if _OF_PYTHON.get(expression.type) is not python:
            raise UnsupportedError(
                expression.name,
                needed=f"a function that gives {expression.type}, as is declared",
                came=f"one that gives {python.__name__}",
                hint="the type that it gives",
            )
        if python is int:
            if self._overflows:
                raise UnsupportedError(
                    expression.name,
                    needed="whole numbers that fit into their type",
                    came="ones of Python, which are as large as they like",
                    hint="overflow=False, or a column of SQL",
                )
            self.assumptions.add(NO_OVERFLOW)


_OF_PYTHON = {**dict.fromkeys(INTEGER_BITS, int), "double": float, "boolean": bool, "string": str}


def _holds_all(wide: str, narrow: str) -> bool:
    """Whether a decimal type has all values of another type. Raises if it would round them."""
    whole, behind = _digits_of(wide)
    others, others_behind = _digits_of(narrow)
    if behind < others_behind:
        raise UnsupportedError(
            "cast", needed="a decimal that is not rounded", came=f"{narrow} to {wide}", hint="as many digits"
        )
    return whole >= others


def _digits_of(type_: str) -> tuple[int, int]:
    """How many digits a number of this type has before the point, and behind it."""
    if found := digits(type_):
        return found[0] - found[1], found[1]
    if type_ == "boolean":
        return 1, 0
    return (len(str(1 << INTEGER_BITS[type_] - 1)), 0) if type_ in INTEGER_BITS else (38, 0)


def _fits(value: Any, type_: str) -> Truth:
    """Whether a number is one of its type."""
    if found := digits(type_):
        most = 10 ** (found[0] - found[1])
        return conjunction((value > -most, value < most))
    return in_range(value, INTEGER_BITS[type_])


def row_type(type_: Any) -> Any:
    """The type of the rows of an input: that of Python for the columns of a table."""
    if isinstance(type_, tuple) and type_ and all(isinstance(column, Field) for column in type_):
        return tuple(
            (_sort(column.type)[0].python | None) if column.nullable else _sort(column.type)[0].python
            for column in type_
        )
    return type_


def ranges(type_: Any, row: Row) -> Truth:
    """That the integers of a row of a table fit into their types."""
    found = []
    for column, leaf in zip(type_, row, strict=True):
        if isinstance(column, Field) and column.type in INTEGER_BITS:
            value = leaf.value if isinstance(leaf, Maybe) else leaf
            found.append(in_range(term_of(value), INTEGER_BITS[column.type]))
    return conjunction(found)


def in_range(value: Any, bits: int) -> Truth:
    """Whether an integer fits into so many bits."""
    return conjunction((value >= -(1 << bits - 1), value < 1 << bits - 1))


def _sort(type_: str) -> tuple[Any, Any]:
    if digits(type_):
        return SymbolicFloat, z3.RealSort()
    if type_ not in _SORTS:
        raise UnsupportedError(
            f"the type {type_}", needed="whole numbers, double, boolean or string", came=type_, hint="tight.compare"
        )
    return _SORTS[type_]


def _default(type_: str) -> Any:
    """Any value: it stands where there is none."""
    sort = _sort(type_ if type_ != "void" else "boolean")[1]
    if sort == z3.BoolSort():
        return NO
    return z3.StringVal("") if sort == z3.StringSort() else z3.IntVal(0) if sort == z3.IntSort() else z3.RealVal(0)


def _of_leaf(leaf: Any, type_: str) -> Cell:
    if leaf is None:
        return Cell(YES, _default(type_))
    null, value = (leaf.null, leaf.value) if isinstance(leaf, Maybe) else (NO, leaf)
    if isinstance(value, date):
        term: Any = z3.IntVal(value.toordinal())
    else:
        term = z3.RealVal(str(value)) if isinstance(value, Decimal) else term_of(value)
    sort = _sort(type_)[1]
    if term.sort() != sort:
        if sort == z3.RealSort():
            term = z3.ToReal(number(term))
        elif sort == z3.IntSort() and z3.is_bool(term):
            term = number(term)
        else:
            raise UnsupportedError("a column", needed=type_, came=str(term.sort()), hint="a cast")
    return Cell(null, term)


def _truncated(a: Any, b: Any) -> Any:
    """The quotient, rounded towards zero; Z3 rounds so that the rest is not negative."""
    size = z3.If(a >= 0, a, -a) / z3.If(b >= 0, b, -b)
    return z3.If((a >= 0) == (b >= 0), size, -size)


def _less(a: Any, b: Any) -> Any:
    if z3.is_bool(a):
        return conjunction((negation(a), b))
    return a < b


def _called(name: str, values: Sequence[Any], type_: str) -> Any:
    """A function of strings. Of some it is only known that they give the same for the same."""
    match name, *values:
        case "concat", *texts:
            return z3.Concat(*texts) if len(texts) > 1 else texts[0] if texts else z3.StringVal("")
        case "length", text:
            return z3.Length(text)
        case "startswith", text, part:
            return z3.PrefixOf(part, text)
        case "endswith", text, part:
            return z3.SuffixOf(part, text)
        case "contains", text, part:
            return z3.Contains(text, part)
        case "like", text, pattern, escape if z3.is_string_value(pattern) and z3.is_string_value(escape):
            parts = _pattern(pattern.as_string(), escape.as_string())
            return z3.InRe(text, z3.Concat(*parts) if len(parts) > 1 else parts[0]) if parts else text == ""
    sorts = [value.sort() for value in values]
    return z3.Function(f"sql {name}", *sorts, _sort(type_)[1])(*values)


def _pattern(pattern: str, escape: str) -> list[Any]:
    """The parts of a pattern of LIKE."""
    letter, parts, letters = z3.AllChar(z3.ReSort(z3.StringSort())), [], iter(pattern)
    for one in letters:
        if one == escape:
            one = next(letters, "")
            if one not in ("_", "%", escape) or not one:
                raise UnsupportedError(
                    f"LIKE {pattern!r}", needed=f"_, % or {escape} after {escape}", came=repr(one), hint="a pattern"
                )
            parts.append(z3.Re(one))
        else:
            parts.append(z3.Star(letter) if one == "%" else letter if one == "_" else z3.Re(one))
    return parts


def _strict(cells: Sequence[Cell], value: Any) -> Cell:
    return Cell(either(*(cell.null for cell in cells)), value, either(*(cell.fails for cell in cells)))


def _decided(cells: Sequence[Cell], *, by: bool) -> Cell:
    """AND and OR in three values, read from the left until one decides."""
    decides = [conjunction((negation(c.null), c.value if by else negation(c.value))) for c in cells]
    found = either(*decides)
    fails = either(*(conjunction((c.fails, negation(either(*decides[:n])))) for n, c in enumerate(cells)))
    null = conjunction((negation(found), either(*(cell.null for cell in cells))))
    return Cell(null, found if by else negation(found), fails)


def _first(cells: Sequence[Cell]) -> Cell:
    found = cells[-1]
    for cell in reversed(cells[:-1]):
        found = Cell(
            conjunction((cell.null, found.null)),
            z3.If(cell.null, found.value, cell.value),
            either(cell.fails, conjunction((cell.null, found.fails))),
        )
    return found


def _if(condition: Cell, one: Cell, other: Cell) -> Cell:
    met = conjunction((negation(condition.null), condition.value))
    return Cell(
        z3.If(met, one.null, other.null),
        z3.If(met, one.value, other.value),
        either(condition.fails, conjunction((met, one.fails)), conjunction((negation(met), other.fails))),
    )
