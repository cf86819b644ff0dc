"""Python functions: do they always give the same? And which constants are in them?

The code of a function is read, and that of the user's functions it calls. What hides in a library is not seen.

>>> import random
>>> why_varies(lambda x: x + random.random())
'uses random.random'
>>> why_varies(lambda x: random.Random(x).random()) is None
True
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Function = Callable[..., Any]

_VARYING: dict[str, frozenset[str] | None] = {
    "random": None,
    "secrets": None,
    "uuid": frozenset({"uuid1", "uuid4", "getnode"}),
    "time": frozenset(
        {
            "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "ctime",
            "localtime", "gmtime",
        }
    ),
    "os": frozenset({"urandom", "getpid", "times"}),
    "numpy.random": None,
    "threading": frozenset({"get_ident", "current_thread"}),
    "platform": frozenset({"node"}),
    "builtins": frozenset({"id", "input"}),
    "pyspark": frozenset({"TaskContext", "BarrierTaskContext"}),
    "pyspark.taskcontext": None,
    **dict.fromkeys(
        (
            "socket", "requests", "httpx", "urllib", "urllib.request", "http.client", "redis", "boto3", "psycopg2",
            "pymongo", "sqlite3", "sqlalchemy", "subprocess", "kafka",
        )
    ),
}  # fmt: skip
"""Modules, and which of their names are not always the same; None for all."""
_CLOCKS = frozenset({"now", "today", "utcnow"})
_HAVE_CLOCKS = ("datetime", "pandas", "pendulum", "arrow")
_SEEDED = frozenset({"Random", "default_rng", "RandomState", "Generator", "PCG64"})
"""Of random and numpy.random: always the same if they are given a seed."""


def why_varies(function: Function, *, across_processes: bool = False) -> str | None:
    """How it can give different results for the same arguments, as it follows "it"; None if no way is seen.

    across_processes   whether it runs in several processes, where the hash of a text is another one in each
    """
    noticed = (one for one in _noticed(function) if across_processes or not one.is_across_processes)
    return next((one.why for one in noticed if one.is_certain), None)


def why_unclear(function: Function) -> str | None:
    """What it does that cannot be told from its code, as it follows "it"; None if there is nothing of the kind.

    >>> why_unclear(lambda text: eval(text))
    'calls eval'
    """
    return next((one.why for one in _noticed(function) if not one.is_certain), None)


def constants_of(functions: Iterable[types.FunctionType], most: int = 8) -> list[int]:
    """The whole numbers in the code of functions, but the smallest, which are tried anyway."""
    found = [each for each in _constants(functions) if type(each) is int and 3 < abs(each) < 10**9]
    return list(dict.fromkeys(found))[:most]


def texts_of(functions: Iterable[types.FunctionType], most: int = 8) -> list[str]:
    """The short texts in the code of functions that could be values.

    >>> texts_of([lambda event: event.level == "error"])
    ['error']
    """
    found = [each for each in _constants(functions) if isinstance(each, str) and 0 < len(each) <= 12]
    return list(dict.fromkeys(found))[:most]


def _constants(functions: Iterable[types.FunctionType]) -> Iterator[object]:
    waiting = [function.__code__ for function in functions]
    while waiting:
        for constant in waiting.pop().co_consts:
            if isinstance(constant, types.CodeType):
                waiting.append(constant)
            else:
                yield from constant if isinstance(constant, tuple) else (constant,)


def values_known_to(functions: Iterable[types.FunctionType], owner: object = None) -> list[object]:
    """The numbers and texts that functions may compare with: in their code, or named by it.

    Those named are globals, captured variables, defaults and attributes of what these are, and of `owner`, whose
    methods they are.

    >>> LIMIT = 20
    >>> values_known_to([lambda count: count < LIMIT or count == 99])
    [99, 20]
    """
    found: list[object] = []
    waiting, seen = list(functions), set()
    while waiting:
        for function, code in codes_of(waiting.pop(0)):
            if code in seen:
                continue
            seen.add(code)
            space = getattr(function, "__globals__", {})
            named = [space[name] for name in code.co_names if name in space]
            named += [*_cells(function).values(), *(function.__defaults__ or ())]
            holders = [
                each for each in (owner, *named) if each is not None and not isinstance(each, _NUMBERS_AND_TEXTS)
            ]
            parts = [inspect.getattr_static(each, name, None) for each in holders for name in code.co_names]
            waiting += [each for each in parts if isinstance(each, types.FunctionType) and not _is_library(each)]
            for value in (*code.co_consts[code.co_consts[:1] == (function.__doc__,) :], *named, *parts):
                found += _numbers_and_texts(value)
    return [value for _, value in dict.fromkeys((type(value), value) for value in found)]


def _numbers_and_texts(value: object) -> Iterator[object]:
    if type(value) in (int, float, str):
        yield value
    elif isinstance(value, (tuple, list, set, frozenset)) and len(value) <= _MOST_LISTED:
        for each in sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value:
            yield from _numbers_and_texts(each)
    elif type(value) is dict and len(value) <= _MOST_LISTED:
        yield from _numbers_and_texts((*value, *value.values()))


_MOST_LISTED = 50
"""Of longer lists, no value is likelier than any other."""


def file_of(function: Function) -> tuple[str, int] | None:
    """The file and the line of a function."""
    code = getattr(bare(function), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else None


def is_readable(function: Function) -> bool:
    """Whether it has code of Python that can be read."""
    return isinstance(getattr(bare(function), "__code__", None), types.CodeType)


# -- what a function does, step by step ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Noticed:
    """Why a result may not always be the same."""

    why: str
    is_certain: bool = True
    """If not, it cannot be told from the code."""
    is_across_processes: bool = False
    """Whether it is always the same in one process."""


_UNKNOWN: Any = object()
"""Stands for a value that is not known."""


@dataclass(frozen=True, slots=True)
class _Held:
    """What is known of a value on the stack, or of a variable."""

    name: str = ""
    value: Any = _UNKNOWN
    shared: bool = False
    """Whether other calls see it: it is global, captured or a default, or a part of something that is."""

    @property
    def rank(self) -> tuple[bool, bool]:
        """Where two ways meet, what other calls see goes before what they do not."""
        return self.shared, self.value is not _UNKNOWN


_FRESH = _Held()
_NULL = _Held("NULL")
_Names = dict[str, _Held]


@dataclass(frozen=True, slots=True)
class _Task:
    """Code to be read, with the function that it is in, and what is known of its parameters and captured variables."""

    owner: types.FunctionType
    code: types.CodeType
    known: _Names

    @property
    def identity(self) -> tuple[types.CodeType, frozenset[tuple[str, int]]]:
        """What a second reading would have to differ in, to bring anything new."""
        return self.code, frozenset((name, id(one.value)) for name, one in self.known.items() if one.shared)


def _noticed(function: Any) -> Iterator[_Noticed]:
    """All that is noticed in a function, and in the user's functions that it reaches."""
    waiting = list(_tasks(_Held(getattr(function, "__name__", "it"), function), [], {}, whosever=True))
    seen = set()
    while waiting:
        task = waiting.pop()
        if task.identity not in seen:
            seen.add(task.identity)
            walk = _Walk(task)
            yield from walk.noticed
            waiting += walk.reached


def _tasks(called: _Held, arguments: list[_Held], named: _Names, *, whosever: bool = False) -> Iterator[_Task]:
    """The code that runs if this is called so; none if it is a library's, or not known."""
    function = called.value
    while not isinstance(function, types.FunctionType | type):
        if isinstance(function, functools.partial):
            arguments = [*(_Held("an argument of a partial", one, True) for one in function.args), *arguments]
            named = {name: _Held(name, one, True) for name, one in function.keywords.items()} | named
            function = function.func
        elif isinstance(function, types.MethodType):
            arguments = [_Held(called.name.rpartition(".")[0] or "self", function.__self__, True), *arguments]
            function = function.__func__
        elif isinstance(wrapped := getattr(function, "__wrapped__", None), types.FunctionType):
            function = wrapped  # functools.lru_cache
        elif isinstance(call := inspect.getattr_static(type(function), "__call__", None), types.FunctionType):
            function = types.MethodType(call, function)
        else:
            return
    if _is_library(function) and not whosever:
        return
    if isinstance(function, type):
        for name in ("__new__", "__init__", "__post_init__"):
            made = inspect.getattr_static(function, name, None)
            if isinstance(made, types.FunctionType):
                yield from _tasks(_Held(name, made), [_FRESH, *arguments], named)
        return
    code = function.__code__
    places, defaults = code.co_varnames[: code.co_argcount], function.__defaults__ or ()
    given = dict(zip(places[len(places) - len(defaults) :], defaults, strict=True))
    given |= (function.__kwdefaults__ or {}) | _cells(function)
    held = {name: _Held(name, one, True) for name, one in given.items()}
    held |= dict(zip(places, arguments, strict=False)) | named
    held |= {name: _Held(name, shared=True) for name in code.co_freevars if name not in held}
    yield _Task(function, code, held)


_CHANGING = frozenset(
    {
        "append", "extend", "insert", "add", "update", "pop", "popitem", "remove", "clear", "setdefault", "discard",
        "appendleft", "popleft", "extendleft", "rotate", "sort", "reverse", "put", "get_nowait", "push", "subtract",
        "move_to_end", "difference_update", "intersection_update", "symmetric_difference_update", "__setitem__",
        "__delitem__", "__setattr__", "__iadd__", "__next__", "send", "write", "writelines", "read", "readline",
        "seek", "incr", "inc", "increment",
    }
)  # fmt: skip
"""Methods that change their object."""
_CHANGING_FUNCTIONS = frozenset(
    {
        "setattr", "delattr", "next", "anext", "heappush", "heappop", "heapify", "heappushpop", "heapreplace",
        "insort", "insort_left", "insort_right", "setitem", "delitem", "iadd", "iconcat", "ior",
    }
)  # fmt: skip
"""Functions that change their first argument."""
_GIVING_PARTS = frozenset({"get", "setdefault", "values", "items", "__getitem__", "pop", "popleft"})
"""Methods that give a part of their object."""
_UNCLEAR = frozenset({"eval", "exec", "compile", "globals", "locals", "open", "object"})
"""Builtins that can do anything, or that make what only its place in memory tells apart."""
_NUMBERS_AND_TEXTS = (int, float, complex, str, bytes, types.NoneType)
_NO_EFFECT = frozenset({"CACHE", "RESUME", "PRECALL", "NOP", "EXTENDED_ARG", "MAKE_CELL", "COPY_FREE_VARS"})
_GIVES_NOTHING = ("POP_", "STORE_", "DELETE_", "LIST_", "SET_", "MAP_", "DICT_", "JUMP_", "RETURN_", "RAISE", "RERAISE")
_GOES_AWAY = ("RETURN_", "RAISE", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD")
_MOST_ROUNDS = 4
_State = tuple[list[_Held], _Names]
"""The stack and the variables."""


class _Walk:
    """One code, read from top to bottom with what is known of the values on the stack; again, if jumps back bring more.

    `_load_attr` is for the steps that Python calls LOAD_ATTR, and so on; other steps give values that are fresh.
    """

    def __init__(self, task: _Task) -> None:
        self._task = task
        self._stack: list[_Held] = []
        self._names: _Names = {}
        self._ever: _Names = dict(task.known)
        """What variables were at some time: what a handler of exceptions, or a function inside, may find."""
        self._entries: dict[int, _State] = {}
        """The states in which places are jumped to."""
        self._keywords: tuple[str, ...] = ()
        """The names of the last arguments of the next call."""
        self.noticed: list[_Noticed] = []
        self.reached: list[_Task] = []
        for _ in range(_MOST_ROUNDS):
            before = self._ranks()
            self.noticed, self.reached = [], []
            self._read()
            if self._ranks() == before:
                break
        for inner in task.code.co_consts:
            if isinstance(inner, types.CodeType):
                seen = {name: self._ever[name] for name in inner.co_freevars if name in self._ever}
                self.reached.append(_Task(task.owner, inner, seen))

    def _ranks(self) -> dict[int, list[tuple[bool, bool]]]:
        return {
            place: [one.rank for one in (*stack, *names.values())] for place, (stack, names) in self._entries.items()
        }

    def _read(self) -> None:
        state: _State | None = ([], self._task.known)
        for step in dis.get_instructions(self._task.code):
            if step.offset in self._entries:
                state = _met(self._entries[step.offset], state)
            stack, names = state or ([], self._ever)  # without a state, it is a handler of exceptions
            self._stack, self._names = list(stack), dict(names)
            if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
                effect = dis.stack_effect(step.opcode, step.arg, jump=True)
                there = [*self._stack, *[_FRESH] * effect][: len(self._stack) + effect]
                self._entries[step.argval] = _met((there, self._names), self._entries.get(step.argval))
            self._step(step)
            state = None if step.opname.startswith(_GOES_AWAY) else (self._stack, self._names)

    def _step(self, step: dis.Instruction) -> None:
        name = step.opname
        special: Callable[[dis.Instruction], None] | None = getattr(self, f"_{name.lower()}", None)
        if special is not None:
            special(step)
        elif name.startswith(("LOAD_FAST", "STORE_FAST")):
            self._variables(step)
        elif name not in _NO_EFFECT:
            effect = dis.stack_effect(step.opcode, step.arg, jump=False)
            self._pop(max(0, -effect))
            if effect <= 0 and not name.startswith(_GIVES_NOTHING):
                self._pop()
                effect = 1
            self._stack += [_FRESH] * max(0, effect)

    def _note(self, why: str, *, is_certain: bool = True) -> None:
        self.noticed.append(_Noticed(why, is_certain))

    # -- the stack and variables -------------------------------------------------------------------------------------

    def _pop(self, count: int = 1) -> list[_Held]:
        """The topmost values, the last one first."""
        return [self._stack.pop() if self._stack else _FRESH for _ in range(count)]

    def _push(self, held: _Held) -> None:
        """A value that the code looks at."""
        self._stack.append(held)
        if held.shared and held.value is not _UNKNOWN:
            self._look_at(held)

    def _swap(self, step: dis.Instruction) -> None:
        place = -(step.arg or 1)
        if len(self._stack) >= -place:
            self._stack[-1], self._stack[place] = self._stack[place], self._stack[-1]

    def _copy(self, step: dis.Instruction) -> None:
        place = -(step.arg or 1)
        self._stack.append(self._stack[place] if len(self._stack) >= -place else _FRESH)

    def _push_null(self, _: dis.Instruction) -> None:
        self._stack.append(_NULL)

    def _load_const(self, step: dis.Instruction) -> None:
        self._stack.append(_Held(value=step.argval))

    def _variables(self, step: dis.Instruction) -> None:
        """Python 3.13 has steps for two at once."""
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        ways = [one for one in step.opname.split("_") if one in ("LOAD", "STORE")]
        for way, name in zip(ways, names, strict=False):
            if way == "LOAD":
                self._push(self._names.get(name, _FRESH))
            else:
                self._bind(name, self._pop()[0])

    def _bind(self, name: str, held: _Held) -> None:
        self._names[name] = held
        self._ever[name] = max(self._ever.get(name, held), held, key=lambda one: one.rank)

    def _load_deref(self, step: dis.Instruction) -> None:
        self._push(self._names.get(step.argval, _FRESH))

    _load_classderef = _load_deref

    def _store_deref(self, step: dis.Instruction) -> None:
        if step.argval in self._task.code.co_freevars and step.argval in self._task.owner.__code__.co_freevars:
            self._note(f"changes {step.argval}, which other calls see")
        self._bind(step.argval, self._pop()[0])

    def _load_global(self, step: dis.Instruction) -> None:
        value = self._task.owner.__globals__.get(step.argval, getattr(builtins, step.argval, _UNKNOWN))
        if step.opname == "LOAD_GLOBAL" and (step.arg or 0) & 1:
            self._stack.append(_NULL)
        self._push(_Held(step.argval, value, shared=True))

    _load_name = _load_global

    def _store_global(self, step: dis.Instruction) -> None:
        self._pop()
        self._note(f"changes the global {step.argval}")

    # -- parts of values ---------------------------------------------------------------------------------------------

    def _load_attr(self, step: dis.Instruction) -> None:
        self._push(self._part(self._pop()[0], step.argval))
        if step.opname == "LOAD_METHOD" or (sys.version_info >= (3, 12) and (step.arg or 0) & 1):
            self._stack.append(_NULL)

    _load_method = _load_attr

    def _import_name(self, step: dis.Instruction) -> None:
        wanted, _ = self._pop(2)
        self._push(_module(step.argval if wanted.value else step.argval.split(".")[0]))

    def _import_from(self, step: dis.Instruction) -> None:
        self._push(self._part(self._stack[-1], step.argval))

    def _binary_subscr(self, _: dis.Instruction) -> None:
        _key, of = self._pop(2)
        self._stack.append(_Held(of.name, shared=of.shared))

    def _get_iter(self, _: dis.Instruction) -> None:
        """What is taken from a list that other calls see is seen by them, too."""

    def _for_iter(self, _: dis.Instruction) -> None:
        of = self._stack[-1] if self._stack else _FRESH
        self._stack.append(_Held(of.name, shared=of.shared))

    def _store_attr(self, _: dis.Instruction) -> None:
        self._change(self._pop(2)[0])

    def _delete_attr(self, _: dis.Instruction) -> None:
        self._change(self._pop()[0])

    def _store_subscr(self, _: dis.Instruction) -> None:
        self._change(self._pop(3)[1])

    def _delete_subscr(self, _: dis.Instruction) -> None:
        self._change(self._pop(2)[1])

    def _store_slice(self, _: dis.Instruction) -> None:
        self._change(self._pop(4)[2])

    def _binary_op(self, step: dis.Instruction) -> None:
        _right, left = self._pop(2)
        if step.argrepr.endswith("=") and left.value is not _UNKNOWN:
            self._change(left)  # a list is extended in its place
        is_part = step.argrepr == "[]"
        self._stack.append(_Held(left.name, shared=left.shared) if is_part else _FRESH)

    def _change(self, held: _Held) -> None:
        if held.shared and not isinstance(held.value, _NUMBERS_AND_TEXTS):
            self._note(f"changes {held.name}, which other calls see")

    def _part(self, of: _Held, name: str) -> _Held:
        """An attribute, without running any code of the user's."""
        told = f"{of.name}.{name}"
        if isinstance(of.value, types.ModuleType):
            module = of.value.__name__
            if _is_varying(module, name) and name not in _SEEDED:
                self._note(f"uses {module}.{name}")
            return _Held(told, vars(of.value).get(name, sys.modules.get(f"{module}.{name}", _UNKNOWN)), shared=True)
        if not of.shared or isinstance(of.value, _NUMBERS_AND_TEXTS):
            return _Held(name)
        value = _UNKNOWN if of.value is _UNKNOWN else inspect.getattr_static(of.value, name, _UNKNOWN)
        if name in _CLOCKS and str(_home(of.value)).startswith(_HAVE_CLOCKS):
            self._note(f"uses {str(_home(of.value)).split('.')[0]}.{name}")
        if isinstance(value, property):
            self.reached += _tasks(_Held(told, value.fget), [of], {})
            return _Held(told, shared=True)
        is_type = isinstance(of.value, type)
        if isinstance(value, staticmethod):
            value = value.__func__
        elif isinstance(value, classmethod):
            value = types.MethodType(value.__func__, of.value if is_type else type(of.value))
        elif isinstance(value, types.FunctionType) and not is_type:
            value = types.MethodType(value, of.value)
        elif inspect.isroutine(value) and not is_type:
            value = _UNKNOWN  # a method of a builtin type
        if name in _CHANGING and value is _UNKNOWN and not isinstance(of.value, types.FunctionType | type):
            self._change(of)
        return _Held(told, value, shared=True)

    # -- calls -------------------------------------------------------------------------------------------------------

    def _kw_names(self, step: dis.Instruction) -> None:
        self._keywords = self._task.code.co_consts[step.arg or 0]

    def _call(self, step: dis.Instruction) -> None:
        arguments = self._pop(step.arg or 0)[::-1]
        called = next((one for one in self._pop(2)[::-1] if one is not _NULL), _FRESH)
        split = len(arguments) - len(self._keywords)
        named = dict(zip(self._keywords, arguments[split:], strict=False))
        self._keywords = ()
        self._stack.append(self._result(called, arguments[:split], named))

    def _call_kw(self, step: dis.Instruction) -> None:
        (names,) = self._pop()
        self._keywords = names.value if isinstance(names.value, tuple) else ()
        self._call(step)

    def _result(self, called: _Held, arguments: list[_Held], named: _Names) -> _Held:
        name = called.name.rpartition(".")[2]
        first = arguments[0] if arguments else _FRESH
        if called.value is getattr or called.value is __import__ or name == "import_module":
            text = next((one.value for one in arguments[:2] if isinstance(one.value, str)), None)
            if text is None and (called.value is not getattr or first.shared):
                self._note(f"calls {name} with a name that its code does not tell", is_certain=False)
            if text is None:
                return _FRESH
            return self._part(first, text) if called.value is getattr else _module(text)
        changes = name in _CHANGING_FUNCTIONS or (name in _CHANGING and inspect.ismethoddescriptor(called.value))
        if (
            changes
            and called.value is not _UNKNOWN
            and (not inspect.isfunction(called.value) or _is_library(called.value))
        ):
            self._change(first)
        if name in _SEEDED and not arguments and not named and _is_varying(str(_home(called.value)), name):
            self._note(f"uses {_home(called.value)}.{name}")
        self.reached += _tasks(called, arguments, named)
        return _Held(called.name, shared=called.shared and called.value is _UNKNOWN and name in _GIVING_PARTS)

    def _look_at(self, held: _Held) -> None:
        """What is reached with a value that is known, and whether it is always the same."""
        value, home = held.value, str(_home(held.value))
        name = getattr(value, "__name__", "")
        if isinstance(value, Iterator):
            self._note(f"takes the next of {held.name}, which other calls see")
        elif not isinstance(value, types.ModuleType) and _is_varying(home, name) and name not in _SEEDED:
            told = f"uses {home}.{name}" if name else f"uses {held.name}, which gives something else each time"
            self._note(told)
        elif value is hash:
            self.noticed.append(_Noticed("uses hash, which differs from process to process", is_across_processes=True))
        elif name in _UNCLEAR and getattr(builtins, name, None) is value:
            self._note(f"calls {name}", is_certain=False)
        if not isinstance(inspect.getattr_static(type(value), "__call__", None), types.FunctionType):
            self.reached += _tasks(held, [], {})  # an object that can be called is read where it is
        if isinstance(value, type) and not _is_library(value):  # what its instances may be asked for
            methods = [inspect.getattr_static(value, one, None) for one in self._task.code.co_names]
            self.reached += [task for one in methods for task in _tasks(_Held(held.name, one), [], {})]


def _met(one: _State, other: _State | None) -> _State:
    """What is known where two ways meet."""
    if other is None:
        return one
    stack = [max(pair, key=lambda held: held.rank) for pair in zip(one[0], other[0], strict=False)]
    names = {
        name: max(one[1].get(name, _FRESH), other[1].get(name, _FRESH), key=lambda held: held.rank)
        for name in {**one[1], **other[1]}
    }
    return stack, names


def _module(name: str) -> _Held:
    return _Held(name, sys.modules.get(name) or types.ModuleType(name), shared=True)


def _is_varying(module: str, name: str) -> bool:
    names = _VARYING.get(module, frozenset())
    return names is None or name in names


def _home(value: Any) -> str | None:
    """The module that a value is, or is from."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    owner = getattr(value, "__self__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        value = type(owner)  # random.random is a method of a hidden object
    home = getattr(value, "__module__", None) or type(value).__module__
    if not isinstance(home, str):
        return None
    return "numpy.random" if home.startswith("numpy.random") else home


def _cells(function: Any) -> dict[str, Any]:
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    cells = getattr(function, "__closure__", None) or ()
    found = {}
    for name, cell in zip(names, cells, strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not yet bound
            continue
    return found


def bare(function: Any) -> Any:
    """The function of Python behind a partial, a decorator or a method."""
    for _ in range(10):
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, types.MethodType):
            function = function.__func__
    return function


def codes_of(function: Any) -> Iterator[tuple[Any, types.CodeType]]:
    """The code of a function and of those of the user that it reaches, each with the function that it is in."""
    start = function if isinstance(function, types.FunctionType) else bare(function)  # a decorator is read, too
    waiting: list[tuple[Any, Any]] = [(start, getattr(start, "__code__", None))]
    seen: set[types.CodeType] = set()
    while waiting:
        owner, code = waiting.pop()
        if not isinstance(code, types.CodeType) or code in seen:
            continue
        seen.add(code)
        yield owner, code
        waiting += [(owner, inner) for inner in code.co_consts]
        space = getattr(owner, "__globals__", {})
        for value in (*_cells(owner).values(), *(space[name] for name in code.co_names if name in space)):
            reached = bare(value)
            if isinstance(reached, types.FunctionType) and not _is_library(reached):
                waiting.append((reached, reached.__code__))


def _is_library(value: types.FunctionType | type) -> bool:
    root = (value.__module__ or "").split(".")[0]
    file = value.__code__.co_filename if isinstance(value, types.FunctionType) else ""
    known = root in sys.stdlib_module_names or root in ("pyspark", "numpy", "pandas", "streamtight")
    return known or "site-packages" in file or "dist-packages" in file
