"""A Python function read as a formula: it is run on symbolic values, once for each path that it can take.

    lambda x: x // 2 if x > 0 else -x           x > 0  ->  x div 2
                                          not x > 0  ->  -x

Symbolic values do what Python's values do and build Z3 terms on the way. Only `bool` has to give a real answer: there
the function is run twice, once for each answer that is possible (paths.py). So early returns, locals, helpers,
unpacking and loops have Python's meaning because Python runs them.

What could see through a symbolic value must not be in the function, and that is asked before it runs
(admit.py): its bytecode is compared with a list of harmless instructions, and what it reaches by name is
replaced by a twin: helpers by functions that were read the same way, builtins by versions that know symbolic values,
captured lists by copies, captured dicts and sets by ones that can be asked for a symbolic key. What is not on a list is
refused with its line (`NotReadable`). Afterwards the reading is compared with the function itself on concrete values
(`check_reading`).

>>> from streamtight.solver.ask import Budget
>>> from streamtight.solver.symbolic.read import read
>>> from streamtight.solver.symbolic.trees import fresh
>>> x, _ = fresh(int, "x")
>>> for path in read(lambda x: x // 2 if x > 0 else -x, [x], budget=Budget(5)):
...     print(path.guard, "->", path.result)
x <= 0 -> -x
Not(x <= 0) -> x/2

Integers are exact and unbounded. Floats are taken for real numbers; a path on which that was used says so in `assumes`.
Not for several threads: Z3's default context is not, and what is being explored is kept in paths.py.
"""
