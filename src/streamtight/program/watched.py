"""A system watched by a pipeline: what the variables of the system are in each state is pushed into the pipeline.

>>> import operator
>>> from streamtight.program.kripke import Kripke
>>> from streamtight.program.pipeline import Pipeline
>>> from streamtight.program.processor import Apply, TurnInto
>>> counter = Kripke({"n": range(4)}, {"n": 0}, lambda now: {"n": (now.n + 1) % 4})
>>> small = Pipeline.wired(
...     "n -> t -> lt.1; n -> lt.0; lt -> out", takes={"n": int}, t=TurnInto(3), lt=Apply(operator.lt), name="small"
... )
>>> watched(counter, small)
<small watching n>
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamtight.errors import PipelineError
from streamtight.program.kripke import Kripke
from streamtight.program.pipeline import Pipeline


@dataclass(frozen=True, repr=False)
class Watched:
    """A system, the pipeline that watches it, and which variable each input of the pipeline sees."""

    system: Kripke
    pipeline: Pipeline
    sees: Mapping[str, str]

    def __repr__(self) -> str:
        return f"<{self.pipeline.name} watching {', '.join(self.sees.values())}>"


def watched(system: Kripke, by: Pipeline, **sees: str) -> Watched:
    """A system watched by a pipeline; `sees` says which variable an input sees, if it is not the one of its name."""
    found = {name: sees.get(name, name) for name in by.inputs}
    for name in sees:
        if name not in by.inputs:
            raise PipelineError("watched(...)", needed=f"inputs of {by.name}", came=name, hint=", ".join(by.inputs))
    for name, variable in found.items():
        if variable not in system.names:
            raise PipelineError(
                f"watched(...): the input {name!r} of {by.name}",
                needed=f"a variable of the system: {', '.join(system.names)}",
                came=repr(variable),
                hint=f"{name}='{system.names[0]}'",
            )
    return Watched(system, by, found)
