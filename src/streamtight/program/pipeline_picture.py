"""Pictures of pipelines: SVG, which notebooks and browsers show.

Boxes stand in layers from the inputs on the left to the outputs on the right; pipes are lines from port to port, and a
dot is where one leads to several inputs. With a push: a pipe that carried an event is bold and has its value, one that
carried nothing is dashed, and what waits in a queue stands in cells before its port, the next one beside the port.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streamtight.errors import PipelineError
from streamtight.program.pipeline import Pipeline, Port, Push
from streamtight.program.processor import NOTHING, Value
from streamtight.stream import svg
from streamtight.stream.svg import LETTER, SMALL

LINE, MARGIN = 16, 8
"""In pixels: the height of a line, around texts."""
CELL, ROW, GAP, STEM, HEAD = 18, 22, 46, 14, 10
"""The height of a cell, between boxes, between layers, of a line before it may branch, of the head of an arrow."""
MOST_LETTERS, MOST_OF_VALUE, MOST_CELLS = 28, 12, 5
"""So much is told; the whole text is there when the pointer rests on it."""
SWEEPS, STRAIGHTENINGS = 8, 6
"""How often boxes are put in another order, to have fewer lines cross; and moved, to have straighter lines."""


def picture(pipeline: Pipeline, push: Push | None = None, mark: str | None = None) -> str:
    """A pipeline as SVG; with a push, what each pipe carried in it and what waits in each queue after it.

    mark   the name of a box, a pipe or a queue that is shown in another colour; if not given, where the push stopped
    """
    drawing = _Drawing(pipeline, push, _marked(pipeline, push, mark))
    width, height = drawing.size
    told = f"pipeline {pipeline.name}: {len(pipeline.boxes)} boxes, {len(pipeline.feeds) + len(pipeline.outputs)} pipes"
    return svg.frame(drawing.lines(), width, height, told if push is None else f"{told}, at push {push.number}")


def _marked(pipeline: Pipeline, push: Push | None, mark: str | None) -> str | None:
    known = {*pipeline.boxes, *pipeline.pipes, *pipeline.queues}
    if mark is not None and mark not in known:
        raise PipelineError(
            f"the picture of {pipeline.name}, mark={mark!r}",
            needed=f"a box, a pipe or a queue: {', '.join(sorted(known))}",
            came=repr(mark),
            hint=sorted(known)[0],
        )
    if mark is None and push is not None and push.stopped is not None:
        where = push.stopped.where
        inside, _, _ = where.partition(".")  # of a box that stands for a pipeline
        return where if where in known else inside if inside in known else None
    return mark


@dataclass(slots=True, eq=False)
class _Node:
    """What a line begins at, ends at, or passes: an input, a box, an output, or a place between boxes of a layer."""

    layer: int
    name: str
    texts: Sequence[str] = ()
    title: str = ""
    inputs: int = 1
    outputs: int = 1
    is_end: bool = False
    links: list[_Link] = field(default_factory=list)
    left: float = 0.0
    top: float = 0.0

    @property
    def passes(self) -> bool:
        return not self.texts

    @property
    def width(self) -> float:
        # What comes first is large, the rest small.
        widths = [len(text) * (SMALL if number else LETTER) for number, text in enumerate(self.texts)]
        return max(widths) + 2 * MARGIN if widths else 0.0

    @property
    def height(self) -> float:
        ports = max(self.inputs, self.outputs)
        return max(LINE * len(self.texts) + 2 * MARGIN, (CELL + 6) * ports if ports > 1 else 0) if self.texts else LINE

    def into(self, place: int) -> float:
        """How far below its top a line comes in."""
        return self.height * (place + 0.5) / self.inputs

    def out(self, place: int) -> float:
        """How far below its top a line goes out."""
        return self.height * (place + 0.5) / self.outputs


@dataclass(slots=True, eq=False)
class _Link:
    """A line from one layer to the next."""

    source: _Node
    source_place: int
    target: _Node
    target_place: int
    pipe: str
    ends: str | None = None
    """The name of the input or output where it ends; None if it goes on."""

    @property
    def begin(self) -> float:
        return self.source.top + self.source.out(self.source_place)

    @property
    def end(self) -> float:
        return self.target.top + self.target.into(self.target_place)


class _Drawing:
    """Where everything is."""

    def __init__(self, pipeline: Pipeline, push: Push | None, mark: str | None) -> None:
        self._pipeline, self._push, self._mark = pipeline, push, mark
        self._carried: Mapping[str, Value] = {} if push is None else {**push.pipes, **push.given}
        self._nodes, self._outputs = self._made_nodes()
        self._links = list(self._made_links())
        nodes = [*self._nodes.values(), *self._outputs.values()]
        nodes += [link.target for link in self._links if link.target.passes]
        layers: list[list[_Node]] = [[] for _ in range(max(node.layer for node in nodes) + 1)]
        for node in dict.fromkeys(nodes):
            layers[node.layer].append(node)
        for link in self._links:
            link.source.links.append(link)
            link.target.links.append(link)
        self._layers = _untangled(layers, self._links)
        self._entries: list[float] = []
        self._branches: list[float] = []
        self.size = self._placed()

    # -- what there is -------------------------------------------------------------------------------------------------

    def _made_nodes(self) -> tuple[dict[str, _Node], dict[str, _Node]]:
        pipeline = self._pipeline
        nodes = {name: _Node(0, name, [_cut(name)], f"input {name}", inputs=0, is_end=True) for name in pipeline.inputs}
        for name in pipeline.order:
            box = pipeline.boxes[name]
            layer = 1 + max(nodes[pipeline.feeds[Port(name, place)].box].layer for place in range(box.inputs))
            title = f"{name}: {box}"
            if self._push is not None:
                title += f", state {self._push.states[name]!r}"
            nodes[name] = _Node(layer, name, [_cut(str(box)), _cut(name)], title, box.inputs, box.outputs)
        last = 1 + max(node.layer for node in nodes.values())
        ends = {}
        for name in pipeline.outputs:
            given = NOTHING if self._push is None else self._push.outs.get(name, NOTHING)
            texts = [_cut(name)] if given is NOTHING else [_cut(name), _cut(repr(given), MOST_OF_VALUE)]
            title = f"output {name}" if given is NOTHING else f"output {name}: {given!r}"
            ends[name] = _Node(last, name, texts, title, outputs=0, is_end=True)
        return nodes, ends

    def _made_links(self) -> Iterator[_Link]:
        """All lines. One that leads to several inputs branches as late as it can."""
        pipeline = self._pipeline
        targets: dict[Port, list[tuple[_Node, int, str]]] = {}
        for target, source in pipeline.feeds.items():
            targets.setdefault(source, []).append((self._nodes[target.box], target.place, pipeline.input_name(target)))
        for name, source in pipeline.outputs.items():
            targets.setdefault(source, []).append((self._outputs[name], 0, name))
        for source, ends in targets.items():
            pipe, node, place = pipeline.pipe_name(source), self._nodes[source.box], source.place
            for layer in range(node.layer + 1, max(end[0].layer for end in ends) + 1):
                for target_node, target_place, name in ends:
                    if target_node.layer == layer:
                        yield _Link(node, place, target_node, target_place, pipe, name)
                if any(end[0].layer > layer for end in ends):
                    passing = _Node(layer, pipe)
                    yield _Link(node, place, passing, 0, pipe)
                    node, place = passing, 0

    # -- where it is ---------------------------------------------------------------------------------------------------

    def _placed(self) -> tuple[float, float]:
        for layer in self._layers:
            top = 0.0
            for node in layer:
                node.top = top
                top += node.height + ROW
        for number in range(STRAIGHTENINGS):
            # By turns each box follows those after it, and those before it.
            for layer in self._layers[:: -1 if number % 2 == 0 else 1]:
                _straightened(layer, backwards=number % 2 == 0)
        nodes = [node for layer in self._layers for node in layer]
        highest = min(node.top for node in nodes)
        for node in nodes:
            node.top += ROW - highest
        left = float(ROW)
        for layer in self._layers:
            before = max((self._queue_width(node) for node in layer), default=0.0)
            inside = max(node.width for node in layer)
            stem = max((self._stem(node) for node in layer), default=0.0)
            begin = left + (before + HEAD if layer is not self._layers[0] else 0.0)
            for node in layer:
                node.left = begin + (inside - node.width) / 2
            self._entries.append(left)
            self._branches.append(begin + inside + stem)
            left = self._branches[-1] + GAP
        bottom = max(node.top + node.height for node in nodes) + ROW
        caption = LETTER * len(self._caption) + 2 * ROW
        return max(left - GAP + ROW, caption), bottom + (LINE if self._caption else 0)

    @property
    def _caption(self) -> str:
        if self._push is None:
            return ""
        stopped = self._push.stopped
        return f"push {self._push.number}" + ("" if stopped is None else f" stops: {_cut(stopped.text, 90)}")

    def _stem(self, node: _Node) -> float:
        if node.passes or not node.outputs:
            return 0.0
        values = {link.pipe: self._value(link.pipe) for link in node.links if link.source is node}
        return STEM + max((LETTER * len(text) for text in values.values() if text), default=0.0)

    def _value(self, pipe: str) -> str:
        given = self._carried.get(pipe, NOTHING)
        return "" if given is NOTHING else _cut(repr(given), MOST_OF_VALUE)

    def _queue(self, name: str) -> list[str] | None:
        """The texts of the cells of a queue, the next event last; None if no queue is shown."""
        if self._push is None or name not in self._push.queues:
            return None
        waiting = [_cut(repr(event), MOST_OF_VALUE) for event in reversed(self._push.queues[name])]
        if len(waiting) > MOST_CELLS:
            waiting[: len(waiting) - MOST_CELLS + 1] = [f"{len(waiting) - MOST_CELLS + 1} more"]
        return waiting or [""]

    def _queue_width(self, node: _Node) -> float:
        queues = [self._queue(link.ends) for link in node.links if link.target is node and link.ends]
        return max((sum(map(_cell_width, cells)) for cells in queues if cells), default=0.0)

    # -- how it looks --------------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        """What is drawn: lines first, so that texts are above them."""
        for link in self._links:
            yield from self._drawn_link(link)
        for layer in self._layers:
            for node in layer:
                if node.passes:
                    begin = f"M{self._entries[node.layer]:g} {node.top + node.out(0):g}"
                    yield self._line(node.name, f"{begin}H{self._branch(node):g}")
                else:
                    yield from self._drawn_box(node)
                yield from self._drawn_outputs(node)
        if self._caption:
            yield svg.words(self._caption, ROW, self.size[1] - MARGIN)

    def _branch(self, node: _Node) -> float:
        return self._branches[node.layer]

    def _line(self, pipe: str, path: str) -> str:
        return f'<path{self._class(pipe)} d="{path}" fill="none" stroke="currentColor" {self._weight(pipe)}/>'

    def _class(self, name: str) -> str:
        return ' class="tight-mark"' if name == self._mark else ""

    def _weight(self, pipe: str) -> str:
        if pipe not in self._carried:
            return 'stroke-opacity="0.6"'
        if self._carried[pipe] is NOTHING:
            return 'stroke-opacity="0.6" stroke-dasharray="4 4"'
        return 'stroke-width="2.5"'

    def _drawn_link(self, link: _Link) -> Iterator[str]:
        begin, end = self._branch(link.source), self._entries[link.target.layer]
        bend = (end - begin) / 2
        curve = f"M{begin:g} {link.begin:g}C{begin + bend:g} {link.begin:g} {end - bend:g} {link.end:g}"
        curve += f" {end:g} {link.end:g}"
        if link.ends is None:
            yield self._line(link.pipe, curve)
            return
        cells = self._queue(link.ends)
        port = link.target.left
        last = port - (0.0 if cells is None else sum(map(_cell_width, cells)))
        yield self._line(link.pipe, f"{curve}H{last:g}")
        yield f'<path{self._class(link.pipe)} d="M{last:g} {link.end:g}l-{HEAD - 2} -4v8z"/>'
        if self._push is not None and link.ends in self._push.front.leaks:
            yield f'<g class="tight-mark"><title>an event is lost here</title><path d="M{end - 6:g} {link.end - 6:g}'
            yield 'l12 12m0 -12l-12 12" fill="none" stroke="currentColor" stroke-width="2.5"/></g>'
        if cells is not None:
            yield from self._drawn_queue(link.ends, cells, last, link.end)

    def _drawn_queue(self, name: str, cells: Sequence[str], left: float, middle: float) -> Iterator[str]:
        waiting = self._push.queues[name] if self._push is not None else ()
        told = ", ".join(map(repr, waiting)) or "nothing"
        yield f"<g{self._class(name)}><title>{_title(f'queue {name}: {told}')}</title>"
        for text in cells:
            width = _cell_width(text)
            empty = "" if text else ' stroke-dasharray="2 2"'
            yield (
                f'<rect x="{left:g}" y="{middle - CELL / 2:g}" width="{width:g}" height="{CELL}" '
                f'fill-opacity="{0.16 if text else 0.02}" stroke="currentColor"{empty}/>'
            )
            if text:
                yield svg.words(text, left + width / 2, middle + 4, size=10, anchor="middle")
            left += width
        yield "</g>"

    def _drawn_box(self, node: _Node) -> Iterator[str]:
        yield f"<g{self._class(node.name)}><title>{_title(node.title)}</title>"
        yield (
            f'<rect x="{node.left:g}" y="{node.top:g}" width="{node.width:g}" height="{node.height:g}" '
            f'rx="{min(node.height / 2, 16) if node.is_end else 5:g}" fill-opacity="{0.04 if node.is_end else 0.12}" '
            f'stroke="currentColor" stroke-width="{2.5 if node.name == self._mark else 1}"/>'
        )
        middle = node.left + node.width / 2
        baseline = node.top + (node.height - LINE * len(node.texts)) / 2 + LINE * 0.75
        for number, text in enumerate(node.texts):
            # The name of a box is small beside what it does; the value of an output is what one looks for.
            is_small = bool(number) and not node.is_end
            size = 10 if is_small else 12
            yield svg.words(text, middle, baseline + LINE * number, size=size, bold=not is_small, anchor="middle")
        yield "</g>"

    def _drawn_outputs(self, node: _Node) -> Iterator[str]:
        """The lines from its outputs to where they may branch, with what they carried."""
        ways: dict[int, list[_Link]] = {}
        for link in node.links:
            if link.source is node:
                ways.setdefault(link.source_place, []).append(link)
        for links in ways.values():
            first = links[0]
            if not node.passes:
                right = node.left + node.width
                yield self._line(first.pipe, f"M{right:g} {first.begin:g}H{self._branch(node):g}")
                if value := self._value(first.pipe):
                    title = _title(f"{first.pipe}: {self._carried[first.pipe]!r}")
                    yield f"<g{self._class(first.pipe)}><title>{title}</title>"
                    at = self._branch(node) - STEM / 2
                    yield svg.words(value, at, first.begin - 5, bold=True, anchor="end") + "</g>"
            if len(links) > 1:
                yield f'<circle{self._class(first.pipe)} cx="{self._branch(node):g}" cy="{first.begin:g}" r="3.5"/>'


# -- order and places --------------------------------------------------------------------------------------------------


def _untangled(layers: list[list[_Node]], links: Sequence[_Link]) -> list[list[_Node]]:
    """The layers, each in an order in which few lines cross: boxes go to the middle of those they lead to or from."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers, links)
    for sweep in range(SWEEPS):
        ways = layers if sweep % 2 == 0 else layers[::-1]
        for layer in ways:
            places = _places(layers)
            layer.sort(key=lambda node: _middle_of_neighbours(node, places, backwards=sweep % 2 == 1))
        crossings = _crossings(layers, links)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    return best


def _places(layers: Iterable[Iterable[_Node]]) -> dict[int, int]:
    return {id(node): place for layer in layers for place, node in enumerate(layer)}


def _middle_of_neighbours(node: _Node, places: Mapping[int, int], *, backwards: bool) -> float:
    if backwards:
        found = [_arrives(link, places) for link in node.links if link.source is node]
    else:
        found = [_leaves(link, places) for link in node.links if link.target is node]
    return sum(found) / len(found) if found else float(places[id(node)])


def _leaves(link: _Link, places: Mapping[int, int]) -> float:
    return places[id(link.source)] + (link.source_place + 0.5) / link.source.outputs


def _arrives(link: _Link, places: Mapping[int, int]) -> float:
    return places[id(link.target)] + (link.target_place + 0.5) / link.target.inputs


def _crossings(layers: Iterable[Iterable[_Node]], links: Sequence[_Link]) -> int:
    places = _places(layers)
    ends: dict[int, list[tuple[float, float]]] = {}
    for link in links:
        ends.setdefault(link.source.layer, []).append((_leaves(link, places), _arrives(link, places)))
    return sum(
        (one[0] - other[0]) * (one[1] - other[1]) < 0
        for lines in ends.values()
        for number, one in enumerate(lines)
        for other in lines[:number]
    )


def _straightened(layer: Sequence[_Node], *, backwards: bool) -> None:
    """Moves the boxes of a layer to where the lines on one side of it are straight, as far as their order allows."""
    # Where the tops would be if boxes needed no room: these must not decrease. Neighbours that would are put together,
    # in the middle of where they want to be.
    blocks: list[tuple[float, int]] = []
    rooms, room = [], 0.0
    for node in layer:
        into = [link.begin - node.into(link.target_place) for link in node.links if link.target is node]
        out = [link.end - node.out(link.source_place) for link in node.links if link.source is node]
        wanted = out or into if backwards else into or out
        rooms.append(room)
        block = (sum(wanted) / len(wanted) - room if wanted else node.top - room, 1)
        while blocks and blocks[-1][0] > block[0]:
            at, count = blocks.pop()
            block = ((at * count + block[0] * block[1]) / (count + block[1]), count + block[1])
        blocks.append(block)
        room += node.height + ROW
    tops = [at for at, count in blocks for _ in range(count)]
    for node, at, room in zip(layer, tops, rooms, strict=True):
        node.top = at + room


# -- texts -------------------------------------------------------------------------------------------------------------


def _cell_width(text: str) -> float:
    return max(SMALL * len(text) + 8, 16)


def _cut(text: str, most: int = MOST_LETTERS) -> str:
    return svg.cut(text, most)


def _title(text: str) -> str:
    return svg.escaped(svg.cut(text, svg.MOST_OF_TITLE))
