"""Which parts of a pipeline never matter?

A box does not matter if the pipeline without it gives the same at every push; what only led to it goes with it. The
paper's dead paths: a pipeline compared with a truncated version of itself.

>>> import operator
>>> from streamtight.program.pipeline import pipeline
>>> from streamtight.program.processor import Apply, Filter, TurnInto
>>> @pipeline
... def guarded(numbers: int):
...     return Filter()(numbers, numbers * 0 == 0)
>>> print(dead_paths(guarded)[0])
filter, equal, turninto_2, multiply, turninto never matter: without filter, the pipeline gives the same (proved for \
every stream of whole numbers of any size)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamtight.errors import PipelineError
from streamtight.method.explore.explore import explore_pipeline
from streamtight.program.pipeline import Pipeline, Port
from streamtight.program.processor import Fork, Passthrough, Processor
from streamtight.properties.claims import same_steps
from streamtight.verdict import Verdict


@dataclass(frozen=True)
class DeadPath:
    """A box that can be taken out, with all that only led to it, and why."""

    box: str
    boxes: tuple[str, ...]
    """All that goes with it, itself first."""
    shorter: Pipeline
    verdict: Verdict

    def __str__(self) -> str:
        verb = "never matters" if len(self.boxes) == 1 else "never matter"
        return f"{', '.join(self.boxes)} {verb}: without {self.box}, the pipeline gives the same ({self.verdict.scope})"


def dead_paths(pipeline: Pipeline, **options: Any) -> list[DeadPath]:
    """The boxes without which the pipeline gives the same at every push, those with which most goes first.

    Each of them can be taken out; not all of them together. `options` are those of `explore`.
    """
    explore_pipeline(pipeline, same_steps(pipeline), **options)  # what is wrong with it, or the options, is told now
    plain = without_forks(pipeline)
    found = []
    for box in plain.boxes:
        best: DeadPath | None = None
        for shorter, gone in _without(plain, box):
            try:
                verdict = explore_pipeline(shorter, same_steps(pipeline), **options)
            except PipelineError:
                continue  # types that do not fit without it
            if verdict.holds and (best is None or len(gone) > len(best.boxes)):
                best = DeadPath(box, gone, shorter, verdict)
        if best is not None:
            found.append(best)
    return sorted(found, key=lambda each: -len(each.boxes))


def without_forks(pipeline: Pipeline) -> Pipeline:
    """The same pipeline, in which outputs lead to several inputs instead of forks."""

    def source(port: Port) -> Port:
        while isinstance(pipeline.boxes.get(port.box), Fork):
            port = pipeline.feeds[Port(port.box)]
        return port

    kept = {name: box for name, box in pipeline.boxes.items() if not isinstance(box, Fork)}
    return Pipeline(
        kept,
        {target: source(given) for target, given in pipeline.feeds.items() if target.box in kept},
        inputs=pipeline.inputs,
        outputs={name: source(port) for name, port in pipeline.outputs.items()},
        name=pipeline.name,
    )


def _without(pipeline: Pipeline, box: str) -> Iterator[tuple[Pipeline, tuple[str, ...]]]:
    """The pipeline with one of the inputs of a box in the place of its output, and the boxes that are gone then."""
    if pipeline.boxes[box].outputs != 1:
        return
    for place in range(pipeline.boxes[box].inputs):
        instead = pipeline.feeds[Port(box, place)]
        feeds = {
            target: instead if source.box == box else source
            for target, source in pipeline.feeds.items()
            if target.box != box
        }
        outputs = {name: instead if port.box == box else port for name, port in pipeline.outputs.items()}
        needed = _needed(feeds, outputs)
        boxes: dict[str, Processor] = {name: each for name, each in pipeline.boxes.items() if name in needed}
        feeds = {target: source for target, source in feeds.items() if target.box in boxes}
        unused = [name for name in pipeline.inputs if name not in needed]
        if unused:
            continue  # an input that nobody reads is no pipeline any more
        gone = (box, *reversed([name for name in pipeline.order if name not in needed and name != box]))
        if not boxes:
            boxes = {"rest": Passthrough()}
            feeds = {Port("rest"): next(iter(outputs.values()))}
            outputs = dict.fromkeys(outputs, Port("rest"))
        try:
            shorter = Pipeline(
                boxes, feeds, inputs=pipeline.inputs, outputs=outputs, name=f"{pipeline.name} without {box}"
            )
        except PipelineError:
            continue  # types that do not fit without it
        yield shorter, gone


def _needed(feeds: dict[Port, Port], outputs: dict[str, Port]) -> set[str]:
    """What leads to the outputs."""
    needed: set[str] = set()
    waiting = [port.box for port in outputs.values()]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [source.box for target, source in feeds.items() if target.box == name]
    return needed
