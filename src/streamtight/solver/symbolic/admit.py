"""Which functions can be run on symbolic values, and what takes the place of what they reach by name."""

from __future__ import annotations

import collections
import dataclasses
import dis
import functools
import math
import operator
import sys
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from streamtight.errors import StreamtightError
from streamtight.solver.symbolic.captured import Members, Table
from streamtight.solver.symbolic.groups import listed_over
from streamtight.solver.symbolic.kinds import UnknownEvents, record_class, unknown_events
from streamtight.solver.symbolic.known import KNOWN, names_in
from streamtight.solver.symbolic.paths import NotReadable, exploring, refuse
from streamtight.solver.symbolic.values import StandIn, Symbolic, is_namedtuple, is_record
from streamtight.stream.event import Kind

_BUILTINS_OF = operator.attrgetter("__builtins__")
"""Of a function; not every checker of types knows the attribute."""


# Instructions that move values, jump, calculate through the operators of the values, or build local containers.
_HARMLESS = names_in(
    """
    CACHE NOP RESUME EXTENDED_ARG COPY SWAP POP_TOP PUSH_NULL LOAD_CONST LOAD_FAST STORE_FAST DELETE_FAST
    LOAD_GLOBAL LOAD_DEREF STORE_DEREF LOAD_CLOSURE MAKE_CELL COPY_FREE_VARS MAKE_FUNCTION LOAD_ATTR LOAD_METHOD
    PRECALL CALL KW_NAMES CALL_FUNCTION_EX RETURN_VALUE BINARY_OP COMPARE_OP CONTAINS_OP IS_OP UNARY_NEGATIVE
    UNARY_POSITIVE UNARY_NOT UNARY_INVERT BINARY_SUBSCR STORE_SUBSCR DELETE_SUBSCR BUILD_TUPLE BUILD_LIST BUILD_MAP
    BUILD_SLICE BUILD_STRING BUILD_CONST_KEY_MAP LIST_EXTEND LIST_APPEND MAP_ADD DICT_UPDATE
    DICT_MERGE LIST_TO_TUPLE UNPACK_SEQUENCE UNPACK_EX GET_ITER FOR_ITER FORMAT_VALUE RAISE_VARARGS
    LOAD_ASSERTION_ERROR GET_LEN MATCH_SEQUENCE JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT
    JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP POP_JUMP_FORWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE
    POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_BACKWARD_IF_FALSE
    POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE
    POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE RETURN_CONST LOAD_FAST_CHECK
    LOAD_FAST_AND_CLEAR END_FOR BINARY_SLICE STORE_SLICE RERAISE CALL_KW TO_BOOL LOAD_FAST_LOAD_FAST
    STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST SET_FUNCTION_ATTRIBUTE CONVERT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC
    """
)
# Only in generator expressions; a function that yields is refused by its flags.
_IN_GENERATORS = frozenset({"RETURN_GENERATOR", "YIELD_VALUE"})
_HARMLESS_INTRINSICS = {"INTRINSIC_UNARY_POSITIVE", "INTRINSIC_LIST_TO_TUPLE", "INTRINSIC_STOPITERATION_ERROR"}
_REFUSED = {
    "STORE_GLOBAL": "changes the global variable {}",
    "DELETE_GLOBAL": "deletes the global variable {}",
    "STORE_ATTR": "sets the attribute {}",
    "DELETE_ATTR": "deletes the attribute {}",
    "IMPORT_NAME": "imports {}",
    "IMPORT_FROM": "imports {}",
    "PUSH_EXC_INFO": "uses try or with",
    "CHECK_EXC_MATCH": "uses try",
    "CHECK_EG_MATCH": "uses try",
    "BEFORE_WITH": "uses with",
    "LOAD_BUILD_CLASS": "defines a class",
    "MATCH_CLASS": "matches a class",
    "MATCH_MAPPING": "matches a mapping",
    "MATCH_KEYS": "matches a mapping",
    "BUILD_SET": "builds a set",
    "SEND": "yields from an iterator",
    "GET_YIELD_FROM_ITER": "yields from an iterator",
    "LOAD_SUPER_ATTR": "uses super()",
}
_PRIVATE_BUT_HARMLESS = frozenset({"_replace", "_asdict", "_fields", "_make"})
# Attributes through which a function could look behind values.
_REVEALING = names_in("format format_map gi_frame gi_code gi_yieldfrom gi_running gi_suspended")


def require_readable(function: Callable[..., object]) -> None:
    """Raise `NotReadable`, with the line, if the function could do what symbolic values cannot show."""
    Twin(function)


class Composed(StandIn):
    """A function that is made of others, each of which is admitted by itself.

    `make` is given the twin and what is admitted for the parts, and gives a function. `real` is the same function on
    known values, made of the parts themselves; if there is none, values that are known go through a twin, too.
    `besides` is what else decides what it does: with the same parts and the same of this, it is the same function. `at`
    is the line and the file where it was made, for parts that have none.
    """

    def __init__(
        self,
        make: Callable[..., Callable[..., Any]],
        *parts: Any,
        besides: tuple[Any, ...],
        real: Callable[..., Any] | None = None,
        at: tuple[int | None, str | None] = (None, None),
    ) -> None:
        self.make, self.parts, self.besides = make, parts, besides
        self._real, self._at = real, at
        self._own: Twin | None = None

    def admitted(self, twin: Twin) -> Callable[..., Any]:
        """The function, where the twin runs."""
        return self.make(twin, *[twin.admit(part, getattr(part, "__name__", "a part")) for part in self.parts])

    def __call__(self, *arguments: Any) -> Any:
        if self._real is not None:
            return self._real(*arguments)
        if self._own is None:
            self._own = Twin(self)
        return self._own.call(*arguments)

    @property
    def place(self) -> tuple[int | None, str | None]:
        """Where the first part that the user wrote begins."""
        for part in self.parts:
            if isinstance(part, Composed):
                return part.place
            if hasattr(part, "__code__"):
                return part.__code__.co_firstlineno, part.__code__.co_filename
        return self._at


class Twin:
    """A function made of the same code, in which everything that is reached by name is safe for symbolic values."""

    def __init__(
        self,
        function: object,
        arguments: Iterable[object] = (),
        instead: Callable[[Symbolic], object] | None = None,
    ) -> None:
        self.codes: dict[int, types.CodeType] = {}
        self.constants: dict[object, None] = {}
        self.captures: list[Symbolic] = []
        self.loops = False
        self._instead = instead
        self._twins: dict[int, object] = {}
        self._kept: list[object] = []  # an id is only unique while its object lives
        self._lists: list[tuple[list[object], list[object]]] = []
        self._fields: set[str] = set()
        self._written: dict[int, types.CodeType] = {}
        self._globals: dict[int, dict[str, Any]] = {}
        self._originals: dict[int, object] = {}
        code = getattr(function, "__code__", None)
        self.place: tuple[int | None, str | None] = (code.co_firstlineno, code.co_filename) if code else (None, None)
        if isinstance(function, Composed):
            self.place = function.place
        self._place = self.place
        self.arguments = tuple(arguments)
        for argument in self.arguments:  # first, since their classes say which attributes there are
            self._watch(argument)
        name = getattr(function, "__qualname__", None) or type(function).__name__
        self.call = typing.cast("Callable[..., object]", self.admit(function, name))
        if not callable(self.call):
            self._refuse(f"is a {type(function).__name__}, not a function")
        if isinstance(self.call, _Namespace):
            self._refuse(f"uses {name}()")

    def _refuse(self, what: str) -> NoReturn:
        if exploring and exploring[-1].function is self:
            refuse(what)
        raise NotReadable(what, line=self._place[0], file=self._place[1])

    def require_unchanged(self) -> None:
        for copy, before in self._lists:
            if len(copy) != len(before) or any(now is not then for now, then in zip(copy, before, strict=True)):
                refuse("changes a list that is not its own")

    def _watch(self, value: object) -> None:
        """Arguments: their classes must be known, their lists must stay as they are."""
        if type(value) is list:
            self._lists.append((value, list(value)))
        elif dataclasses.is_dataclass(type(value)) or is_namedtuple(type(value)):
            self._record_class(type(value))
        if dataclasses.is_dataclass(type(value)):
            for field in dataclasses.fields(typing.cast(Any, value)):
                self._watch(getattr(value, field.name))
        elif isinstance(value, (tuple, list)):
            for item in value:
                self._watch(item)
        elif not isinstance(value, Symbolic) and type(value) not in (int, bool, str, float, type(None)):
            self._refuse(f"takes a {type(value).__name__}")

    # -- values ----------------------------------------------------------------------------------------------------

    def admit(self, value: Any, name: str) -> Any:
        """What stands for a value that the function reaches under this name."""
        if isinstance(value, Symbolic):
            self.captures.append(value)
            return self._instead(value) if self._instead else value
        kind = type(value)
        if value is None or kind in (bool, int, float, str, bytes, range):
            if kind is float and math.isnan(value):
                self._refuse(f"uses {name}, which is nan")
            if kind in (int, float, str):
                self.constants[value] = None
            return value
        if id(value) in self._twins:
            return self._twins[id(value)]
        self._kept.append(value)
        twin = self._admit_object(value, kind, name)
        self._twins[id(value)] = twin
        self._originals[id(twin)] = value
        self._kept.append(twin)
        return twin

    def _admit_object(self, value: Any, kind: type, name: str) -> Any:
        if id(value) in KNOWN:
            return KNOWN[id(value)]
        if isinstance(value, Composed):
            return value.admitted(self)
        if kind is types.FunctionType:
            return self._function(value, name)
        if kind is tuple:
            return tuple(self.admit(item, name) for item in value)
        if kind is list:
            copy: list[object] = []
            self._twins[id(value)] = copy
            copy.extend(self.admit(item, name) for item in value)
            self._lists.append((copy, list(copy)))
            return copy
        if kind is dict:
            for key in value:
                self.admit(key, name)
            return Table({key: self.admit(item, name) for key, item in value.items()})
        if kind in (set, frozenset):
            for item in value:
                self.admit(item, name)
            return Members(frozenset(value))
        if kind is functools.partial:
            words = {word: self.admit(item, name) for word, item in value.keywords.items()}
            called = self.admit(value.func, getattr(value.func, "__name__", name))
            return functools.partial(called, *[self.admit(a, name) for a in value.args], **words)
        if kind in (operator.itemgetter, operator.attrgetter):
            for part in value.__reduce__()[1]:
                if kind is operator.attrgetter:
                    for attribute in part.split("."):
                        self._attribute(attribute)
            return value
        if kind is types.MethodType:
            return self._method(value, name)
        if kind is types.ModuleType:
            return _Namespace(value, name, self)
        if isinstance(value, Kind):
            return self.kind(value)
        if isinstance(value, type):
            return self._class(value, name)
        if is_namedtuple(kind):
            self._record_class(kind)
            return kind._make(self.admit(item, name) for item in value)  # type: ignore[attr-defined]
        if dataclasses.is_dataclass(kind):
            return self._record(value, kind, name)
        if kind in (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType):
            self._refuse(f"uses {name}()")
        return self._refuse(f"uses {name}, a {kind.__name__}")

    def kind(self, kind: Kind) -> UnknownEvents:
        """What stands for a kind; its events may be used."""
        self._record_class(record_class(kind))
        return unknown_events(kind)

    def _record(self, value: Any, kind: type, name: str) -> Any:
        self._record_class(kind)
        for field in dataclasses.fields(kind):
            inside = getattr(value, field.name)
            if self.admit(inside, f"{name}.{field.name}") is not inside:
                self._refuse(f"uses {name}.{field.name}, a {type(inside).__name__} inside a captured {kind.__name__}")
        return value

    def _method(self, value: types.MethodType, name: str) -> Any:
        if not is_record(value.__self__) or type(value.__func__) is not types.FunctionType:
            self._refuse(f"uses {name}, a method of a {type(value.__self__).__name__}")
        owner = self.admit(value.__self__, name)
        return functools.partial(self._function(value.__func__, name), owner)

    # -- what the user wrote -----------------------------------------------------------------------------------------

    def original(self, value: Any, name: str) -> tuple[Any, object]:
        """What the user wrote where a run has this value, and a key that is the same in every run."""
        kind = type(value)
        if isinstance(value, Symbolic):
            self._refuse(f"uses a value that is not known inside {name} of a group")
        if value is None or kind in (bool, int, float, str, bytes):
            return value, (kind.__name__, value)
        if kind is tuple:
            parts = [self.original(part, name) for part in value]
            return tuple(part for part, _ in parts), ("tuple", *(key for _, key in parts))
        if id(value) in self._originals:
            original = self._originals[id(value)]
            return original, fingerprint(original)
        if kind is types.FunctionType and id(value.__code__) in self._written:
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            defaults, key = self.original(value.__defaults__, name)
            made, inner = self._rewritten(value.__code__, value.__globals__, cells, name)
            made.__defaults__ = defaults
            return made, (inner, key)
        return self._refuse(f"uses a {kind.__name__} inside {name} of a group")

    def original_generator(
        self, generator: types.GeneratorType[Any, Any, Any]
    ) -> tuple[Callable[..., Iterable[Any]], object]:
        """The generator expression as a function of the iterator that it goes through, and its key."""
        code, frame = generator.gi_code, generator.gi_frame
        if frame is None or id(code) not in self._written:
            self._refuse("goes through a group in a way that is not known")
        cells = [frame.f_locals[free] for free in code.co_freevars]
        return self._rewritten(code, frame.f_globals, cells, "a generator")

    def _rewritten(
        self, code: types.CodeType, names: dict[str, Any], cells: list[Any], name: str
    ) -> tuple[types.FunctionType, object]:
        written = self._written[id(code)]
        parts = [self.original(cell, name) for cell in cells]
        closure = tuple(types.CellType(part) for part, _ in parts)
        made = types.FunctionType(written, self._globals[id(names)], written.co_name, None, closure)
        return made, (id(written), *(key for _, key in parts))

    # -- classes ---------------------------------------------------------------------------------------------------

    def _class(self, cls: type, name: str) -> Any:
        if is_namedtuple(cls) or dataclasses.is_dataclass(cls):
            self._record_class(cls)
            return cls
        if issubclass(cls, Exception) and not issubclass(cls, StreamtightError):
            for base in cls.__mro__[: cls.__mro__.index(Exception)]:
                if base.__module__ != "builtins" and any(callable(part) for part in vars(base).values()):
                    self._refuse(f"uses {name}, an exception with methods of its own")
            return cls
        if cls.__module__ == "builtins" or type(cls) is not type:
            self._refuse(f"uses {name}()" if cls.__module__ == "builtins" else f"uses {name}, a {type(cls).__name__}")
        return _Namespace(cls, name, self)

    def _record_class(self, cls: type) -> None:
        """A namedtuple or dataclass is used as it is, so its methods run among the real builtins and captures."""
        if id(cls) in self._twins:
            return
        self._twins[id(cls)] = cls
        self._kept.append(cls)
        place = self._place
        if type(cls) is not type:
            self._refuse(f"uses {cls.__name__}, whose class is a {type(cls).__name__}")
        for base in cls.__mro__:
            if base in (tuple, object, typing.Generic):
                continue
            for name, part in vars(base).items():
                self._fields.add(name)
                self._class_part(cls, name, part)
        if dataclasses.is_dataclass(cls):
            for field in dataclasses.fields(cls):
                self._fields.add(field.name)
                made = field.default_factory
                if made is not dataclasses.MISSING and made not in (list, dict, set, tuple):
                    self._refuse(f"uses {cls.__name__}, whose field {field.name} has a default_factory")
        self._place = place

    def _class_part(self, cls: type, name: str, part: object) -> None:
        if isinstance(part, (staticmethod, classmethod)):
            part = part.__func__
        for function in (part.fget, part.fset) if isinstance(part, property) else (part,):
            if type(function) is types.FunctionType:
                if function.__code__.co_filename in ("<string>", collections.__file__, dataclasses.__file__):
                    continue  # made by namedtuple or dataclass
                if name in _MAKING:
                    self._refuse(f"uses {cls.__name__}, which defines {name}")
                self._function(function, f"{cls.__name__}.{name}", as_it_is=True)
            elif not isinstance(function, type) and type(function).__name__ not in _PLAIN_DESCRIPTORS:
                changeable = isinstance(function, (list, dict, set)) and not name.startswith("_")
                if changeable or hasattr(function, "__get__"):
                    self._refuse(f"uses {cls.__name__}, whose {name} is a {type(function).__name__}")

    # -- functions -------------------------------------------------------------------------------------------------

    def _function(self, function: types.FunctionType, name: str, *, as_it_is: bool = False) -> Any:
        module = (function.__module__ or "").split(".")[0]
        if module in sys.stdlib_module_names and module != "__main__":
            self._refuse(f"uses {name}()")
        place = self._place
        code = function.__code__
        self._place = (code.co_firstlineno, code.co_filename)
        if code.co_flags & (_GENERATOR | _ASYNC) and not _is_generator_expression(code):
            self._refuse("yields" if code.co_flags & _GENERATOR else "is async")
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        captured: dict[str, Any] = {}
        for free, cell in cells.items():
            try:
                captured[free] = cell.cell_contents
            except ValueError:
                self._refuse(f"uses {free} before it has a value")
        known = _Names(function.__globals__, _BUILTINS_OF(function), captured)
        if as_it_is:
            self.codes[id(code)] = code
            twin = function
            self._twins[id(function)] = twin
            inside: dict[str, Any] = {}
            self._scan(code, known, inside)
            inside.update({free: self.admit(item, free) for free, item in captured.items()})
            for word, item in inside.items():
                if isinstance(item, (list, Table, Members)):
                    self._refuse(f"uses {word} in a method of a namedtuple or dataclass")
        else:
            names: dict[str, Any] = {"__builtins__": {}, "__name__": function.__module__}
            self._globals[id(names)] = function.__globals__
            new_cells = {free: types.CellType() for free in cells}
            twin = types.FunctionType(code, names, function.__name__, None, tuple(new_cells.values()))
            self._twins[id(function)] = twin  # before anything else, since functions may call themselves
            self._kept.append(function)
            twin.__code__ = self._scan(code, known, names)
            for free, cell in new_cells.items():
                cell.cell_contents = self.admit(captured[free], free)
            if function.__defaults__:
                twin.__defaults__ = tuple(self.admit(value, "a default") for value in function.__defaults__)
            if function.__kwdefaults__:
                twin.__kwdefaults__ = {k: self.admit(value, k) for k, value in function.__kwdefaults__.items()}
        self._place = place
        return twin

    def _scan(self, code: types.CodeType, known: _Names, names: dict[str, Any]) -> types.CodeType:
        """Refuse what is not harmless, and collect into `names` what the code reaches by name.

        Gives the same code back, in which the constants of `x in {1, 2}` and `x in (1, 2)` are `Members`.
        """
        for constant in code.co_consts:
            self._constant(constant)
        try_line = 0
        loaded: dict[int, bool] = {}  # a constant, and whether it is only looked into
        plain = code.co_name not in _COMPREHENSIONS
        before: dis.Instruction | None = None
        space: object = None  # the module or class that the instruction before has loaded
        is_kind = False  # whether it has loaded a kind
        for instruction in dis.get_instructions(code):
            opname = instruction.opname
            if opname in ("CACHE", "EXTENDED_ARG"):
                continue
            if instruction.positions is not None and instruction.positions.lineno is not None:
                self._place = (instruction.positions.lineno, code.co_filename)
            if opname == "NOP":  # where `try` stands
                try_line = try_line or self._place[0] or 0
            if opname not in _HARMLESS:
                if opname == "PUSH_EXC_INFO" and try_line:
                    self._place = (try_line, code.co_filename)
                self._questionable(instruction, code)
            if instruction.is_jump_target:  # then the value may also come from elsewhere
                before = space = None
                is_kind = False
            reached: object = None
            if opname == "LOAD_GLOBAL":
                reached = self._global(instruction.argval, known, names)
            elif opname == "LOAD_DEREF" and instruction.argval in known.captured:
                reached = known.captured[instruction.argval]
            elif opname in ("LOAD_ATTR", "LOAD_METHOD"):
                reached = self._load_attribute(instruction.argval, space)
            elif opname == "STORE_DEREF" and instruction.argval in code.co_freevars:
                self._refuse(f"changes the nonlocal variable {instruction.argval}")
            elif opname == "IS_OP" and not is_kind and not _loads_none(before):
                self._refuse("uses 'is' with something other than None")
            elif plain and "JUMP_BACKWARD" in opname:
                self.loops = True
            if before is not None and before.opname == "LOAD_CONST" and before.arg is not None:
                loaded[before.arg] = loaded.get(before.arg, True) and opname == "CONTAINS_OP"
            space = reached if isinstance(reached, (types.ModuleType, type)) else None
            is_kind = isinstance(reached, Kind)  # of which there is one in the run, too
            before = instruction
        constants: list[Any] = list(code.co_consts)
        for i, constant in enumerate(constants):
            if isinstance(constant, types.CodeType):
                constants[i] = self._nested(constant, known, names)
            elif type(constant) is frozenset or (type(constant) is tuple and loaded.get(i)):
                constants[i] = Members(constant)
        new = code.replace(co_consts=tuple(constants))
        self.codes[id(new)] = new
        self._written[id(new)] = code
        return new

    def _constant(self, constant: object) -> None:
        if type(constant) is complex or constant is ...:
            self._refuse(f"uses {constant!r}")
        for item in constant if isinstance(constant, (tuple, frozenset)) else (constant,):
            if type(item) in (int, str, float):
                self.constants[item] = None

    def _nested(self, code: types.CodeType, known: _Names, names: dict[str, Any]) -> types.CodeType:
        place = self._place
        self._place = (code.co_firstlineno, code.co_filename)
        if code.co_flags & (_GENERATOR | _ASYNC) and not _is_generator_expression(code):
            self._refuse("is async" if code.co_flags & _ASYNC else "yields")
        # A variable of the function around it may hide a captured one of the same name.
        new = self._scan(code, _Names(known.globals, known.builtins, {}), names)
        self._place = place
        if code.co_name != "<listcomp>":
            return new
        names[_LISTED] = functools.partial(listed_over, self)
        return _asked_before(new)

    def _questionable(self, instruction: dis.Instruction, code: types.CodeType) -> None:
        opname = instruction.opname
        if opname in _IN_GENERATORS and code.co_name == "<genexpr>":
            return
        if opname == "CALL_INTRINSIC_1" and instruction.argrepr in _HARMLESS_INTRINSICS:
            return
        self._refuse(_REFUSED.get(opname, "uses the instruction " + opname).format(instruction.argval))

    def _global(self, name: str, known: _Names, names: dict[str, Any]) -> object:
        if name in known.globals:
            value = known.globals[name]
        elif name in known.builtins:
            value = known.builtins[name]
        else:
            self._refuse(f"uses {name}, which is not defined")
        if name not in names:
            names[name] = self.admit(value, name)
        return value

    def _load_attribute(self, name: str, space: object) -> object:
        if space is None:
            self._attribute(name)
            return None
        if _is_record_class(space):
            self._attribute(name)
            return None
        owner = getattr(space, "__name__", "it")
        if name not in dir(space):
            self._refuse(f"uses {owner}.{name}, which is not defined")
        value = getattr(space, name)
        self.admit(value, f"{owner}.{name}")
        return value

    def _attribute(self, name: str) -> None:
        private = name.startswith("_") and name not in _PRIVATE_BUT_HARMLESS
        if name not in self._fields and (private or name in _REVEALING):
            self._refuse(f"uses the attribute {name}")
        if name.startswith("__") and name.endswith("__"):
            self._refuse(f"uses the attribute {name}")


def fingerprint(value: Any) -> object:
    """A key that values share which act the same: functions of one code that reach the same by name.

    Of what is not known, it is the id, which means something as long as the value lives.
    """
    return Fingerprints().of(value)


_MOST_ITEMS = 200


class Fingerprints:
    """Walks through what functions reach; what was met before is known by its number.

    As long as this lives, so does what it met, and no id in a key can come to mean something else.
    """

    def __init__(self) -> None:
        self.met: dict[int, tuple[int, object]] = {}

    def of(self, value: Any) -> object:
        """The key of a value."""
        if value is None or type(value) in (bool, int, float, str, bytes):
            return (type(value).__name__, value)
        if id(value) in self.met:
            return ("met", self.met[id(value)][0])
        self.met[id(value)] = (len(self.met), value)
        if isinstance(value, Composed):
            return ("composed", id(getattr(value.make, "__code__", value.make)), self.of((value.parts, value.besides)))
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if type(value) in (tuple, list, set, frozenset, dict):
            if len(value) > _MOST_ITEMS:
                return (id(value), object())  # as good as no key
            items = value.items() if type(value) is dict else value
            return (type(value).__name__, *map(self.of, items))
        if is_record(value):
            parts = value if isinstance(value, tuple) else [getattr(value, f.name) for f in dataclasses.fields(value)]
            return (id(type(value)), *map(self.of, parts))
        if isinstance(value, functools.partial):
            return ("partial", *map(self.of, (value.func, value.args, value.keywords)))
        if isinstance(value, types.MethodType):
            return ("method", self.of(value.__func__), self.of(value.__self__))
        return id(value)

    def _function(self, function: types.FunctionType) -> object:
        try:
            captured = [cell.cell_contents for cell in function.__closure__ or ()]
        except ValueError:  # a variable without a value yet
            return id(function)
        reached = {name: function.__globals__.get(name) for name in sorted(_names_in(function.__code__))}
        parts = (*captured, function.__defaults__, function.__kwdefaults__, reached)
        return ("function", id(function.__code__), id(function.__globals__), *map(self.of, parts))


def _names_in(code: types.CodeType) -> set[str]:
    inner = [_names_in(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*inner)


_LISTED = "what a list comprehension gives"


def _asked_before(comprehension: types.CodeType) -> types.CodeType:
    """The code of a list comprehension, which is handed to the function that is named `_LISTED` with its iterator.

    Before Python 3.12 a comprehension is a function of an iterator. This one has the same free variables.
    """
    free = ", ".join(comprehension.co_freevars)
    text = f"""
def around({free}):
    def comprehension(items):
        def inside(items):
            return [{free}]
        return listed(inside, items)
"""
    [around] = [code for code in compile(text, "<string>", "exec").co_consts if isinstance(code, types.CodeType)]
    [outer] = [code for code in around.co_consts if isinstance(code, types.CodeType)]
    [inner] = [code for code in outer.co_consts if isinstance(code, types.CodeType)]
    if not comprehension.co_freevars == outer.co_freevars == inner.co_freevars:
        return comprehension
    return outer.replace(
        co_name=comprehension.co_name,
        co_names=tuple(_LISTED if name == "listed" else name for name in outer.co_names),
        co_consts=tuple(comprehension if constant is inner else constant for constant in outer.co_consts),
    )


def _loads_none(instruction: dis.Instruction | None) -> bool:
    return instruction is not None and instruction.opname in _LOAD_CONSTANT and instruction.argval is None


def _is_generator_expression(code: types.CodeType) -> bool:
    return code.co_name == "<genexpr>" and not code.co_flags & _ASYNC


@dataclass(frozen=True, slots=True)
class _Names:
    """Where the names of a function are looked up."""

    globals: dict[str, Any]
    builtins: dict[str, Any]
    captured: dict[str, Any]


def _is_record_class(value: object) -> bool:
    return isinstance(value, type) and (is_namedtuple(value) or dataclasses.is_dataclass(value))


_MAKING = ("__new__", "__init__", "__getattr__", "__getattribute__", "__setattr__", "__init_subclass__", "__hash__")
_PLAIN_DESCRIPTORS = ("member_descriptor", "getset_descriptor", "_tuplegetter", "wrapper_descriptor")
_GENERATOR = 0x20
_ASYNC = 0x80 | 0x100 | 0x200
_COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>")
_LOAD_CONSTANT = ("LOAD_CONST", "RETURN_CONST")


class _Namespace:
    """A module or class of which only attributes are used, each admitted when it is reached."""

    def __init__(self, space: object, name: str, twin: Twin) -> None:
        self._space, self._name, self._twin = space, name, twin

    def __getattr__(self, attribute: str) -> Any:
        if attribute not in dir(self._space):
            refuse(f"uses {self._name}.{attribute}, which is not defined")
        return self._twin.admit(getattr(self._space, attribute), f"{self._name}.{attribute}")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        refuse(f"uses {self._name}()")
