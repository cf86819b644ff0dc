"""Verdicts as one HTML page that needs nothing else: it opens from a file, in light and dark, and can be printed.

It is made of data (`Verdict.as_data`), so that the same page can be made later, of files. Whatever comes from there is
escaped, pictures are cleaned, and the page's own rules forbid it to run or load anything but its one script.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from streamtight import __version__
from streamtight.findings import meaning_of
from streamtight.report.rows import Pair, Row, columns_of, fields_of, kind_of, paired, sampled, with_gaps
from streamtight.report.texts import value_text, visible
from streamtight.stream.clean import cleaned
from streamtight.verdict import FEW_INPUTS

OUTCOMES = ("FAILS", "UNDECIDED", "HOLDS")
MOST_IN_CELL, MOST_IN_TEXT, MOST_OF_CODE = 300, 20_000, 200_000
"""So many letters of a cell, of an explanation and of code are shown."""

MOST_SPENT = 1e15
"""A larger amount is shown as it is."""

Data = Mapping[str, Any]


def as_page(verdicts: Sequence[Data], title: str, notes: Sequence[str] = ()) -> str:
    """The page: a line for each verdict, the worst first, the notes, and a section for each verdict."""
    ranked = sorted(verdicts, key=lambda one: OUTCOMES.index(one["outcome"]))
    named = [(f"v{number}", verdict) for number, verdict in enumerate(ranked, start=1)]
    counts = Counter(str(one["outcome"]) for one in verdicts)
    script, style = _part("page.js"), _part("page.css")
    allowed = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{allowed}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            f"<h1>{_text(title)}</h1>",
            f'<p class="soft">{_counted(counts)}</p>',
            *_controls(counts),
            *(['<ol class="summary">', *(_line(*one) for one in named), "</ol>"] if named else []),
            *(['<ul class="notes soft">', *(f"<li>{_text(note)}</li>" for note in notes), "</ul>"] if notes else []),
            "<main>",
            *(part for one in named for part in _section(*one)),
            "</main>",
            f"<footer>streamtight {_text(__version__)}</footer>",
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


@cache
def _part(name: str) -> str:
    return resources.files("streamtight.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _text(value: object, most: int = MOST_IN_TEXT) -> str:
    """A text of a user, as it may stand in the page or in an attribute."""
    return html.escape(visible(_shortened(str(value), most)))


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} letters in all)"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts.get(name)) or "no verdict"


def _controls(counts: Mapping[str, int]) -> Iterator[str]:
    yield '<div class="controls" role="search">'
    yield '<input id="search" type="search" placeholder="search" aria-label="search the verdicts" autocomplete="off">'
    for name in OUTCOMES:
        if counts.get(name):
            yield (
                f'<button type="button" data-filter="{name}" class="{name}" aria-pressed="true">'
                f'<span class="outcome">{name}</span> {counts[name]}</button>'
            )
    yield '<button type="button" id="theme" aria-label="light or dark">◐</button>'
    yield '<span id="shown" class="soft" aria-live="polite"></span>'
    yield "</div>"


# -- what a verdict rests on ------------------------------------------------------------------------------------------


def weak_points(verdict: Data) -> list[str]:
    """Why a verdict says less than it seems to, each in a sentence."""
    scope = verdict.get("scope") or {}
    points = []
    count = scope.get("count")
    if verdict["outcome"] == "HOLDS":
        match scope.get("strength"):
            case "TESTED":
                few = " Few." if isinstance(count, int) and count < FEW_INPUTS else ""
                points.append(f"It was {scope.get('text')}, and says nothing of others.{few}")
            case "OBSERVED":
                points.append(f"It was {scope.get('text')}, and says nothing of what did not come.")
            case "EXPLORED" if isinstance(count, int):
                points.append(f"It was {scope.get('text')}; larger ones were not looked at.")
        if verdict.get("reason"):
            points.append(str(verdict["reason"]))
    points += [f"It takes for granted that {one}." for one in verdict.get("assumptions") or ()]
    found = verdict.get("counterexample") or {}
    reruns, failing = found.get("reruns") or 0, found.get("failing_reruns") or 0
    if reruns and failing < reruns:
        points.append(f"Run again, it failed only {failing} of {reruns} times.")
    return points


def _line(name: str, verdict: Data) -> str:
    """The verdict in the list on top: what it is, and what it rests on."""
    outcome, found = verdict["outcome"], verdict.get("counterexample") or {}
    finding = f' <span class="finding">{_text(found.get("finding", ""))}</span>' if found else ""
    says = verdict.get("reason") if outcome == "UNDECIDED" else (verdict.get("scope") or {}).get("text", "")
    rests = [str(says or "")]
    rests += [f"assuming that {one}" for one in verdict.get("assumptions") or ()]
    if outcome == "HOLDS" and verdict.get("reason"):
        rests.append(str(verdict["reason"]))
    return (
        f'<li class="{outcome}" data-for="{name}"><a href="#{name}"><span class="outcome">{outcome}</span> '
        f'{_text(verdict["claim"], 300)}</a>{finding}<span class="soft">{_text("; ".join(rests), 400)}</span></li>'
    )


def _section(name: str, verdict: Data) -> Iterator[str]:
    outcome, found = verdict["outcome"], verdict.get("counterexample") or {}
    yield f'<section class="verdict {outcome}" id="{name}" data-outcome="{outcome}">'
    yield f'<h2><span class="outcome">{outcome}</span> {_text(verdict["claim"])}</h2>'
    decided = f"; decided by {_text(verdict['method'])}" if verdict.get("method") else ""
    yield f'<p class="soft">{_text((verdict.get("scope") or {}).get("text", ""))}{decided}</p>'
    if found:
        finding = str(found.get("finding", ""))
        meaning = meaning_of(finding)
        told = f": {_text(meaning)}" if meaning else ""
        yield f'<p><span class="finding">{_text(finding)}</span>{told}</p>'
        yield f'<p class="explanation">{_text(found.get("explanation", ""))}</p>'
    if outcome == "UNDECIDED":
        yield f"<p>{_text(verdict.get('reason') or 'no reason was given')}</p>"
    if points := weak_points(verdict):
        yield '<div class="weak"><ul>' + "".join(f"<li>{_text(point)}</li>" for point in points) + "</ul></div>"
    for picture in (found.get("picture"), verdict.get("picture")):
        if picture and (drawn := cleaned(str(picture))):
            yield f"<figure>{drawn}</figure>"
    if found:
        yield from _evidence(found)
    yield from _again(verdict, found)
    if cost := verdict.get("cost"):
        spent = ", ".join(f"{name.replace('_', ' ')} {_amount(amount)}" for name, amount in cost.items())
        yield f'<p class="soft">took: {_text(spent)}</p>'
    yield "</section>"


def _amount(amount: object) -> str:
    return f"{amount:,.4g}" if isinstance(amount, int | float) and abs(amount) < MOST_SPENT else value_text(amount)


# -- rows --------------------------------------------------------------------------------------------------------------


def _evidence(found: Data) -> Iterator[str]:
    expected, actual = found.get("expected"), found.get("actual")
    if expected is not None and actual is not None:
        yield from _side_by_side(expected, actual)
    elif expected is not None or actual is not None:
        rows = expected or actual or []
        yield f"<h3>{'came' if expected is None else 'expected'}</h3>"
        yield from _rows([(row, ()) for row in rows], ())
    if table := found.get("table"):
        yield f"<h3>{_text(table.get('title') or 'step by step')}</h3>"
        yield from _table(table)
    if found.get("batches") is not None:
        yield from _input(found)


def _side_by_side(expected: Sequence[Row], actual: Sequence[Row]) -> Iterator[str]:
    """What was expected and what came, each line what belongs together, with marks where they differ."""
    pairs = paired(expected, actual)
    differing = [place for place, pair in enumerate(pairs) if not pair.is_same]
    interesting = differing or [place for place, pair in enumerate(pairs) if pair.moved]
    shown = sampled(len(pairs), interesting)
    names = {name for pair in pairs for name in pair.differing}
    columns, count = columns_of((*expected, *actual), names)
    kinds = {kind_of(row) for row in (*expected, *actual)}
    heads = [*(["kind"] if len(kinds) > 1 else []), *columns]
    yield "<h3>expected and came</h3>"
    yield _told_of(shown=len(shown), of=len(pairs), columns=len(columns), of_columns=count, different=len(differing))
    yield '<div class="box"><table><thead><tr>'
    width = len(heads) + 1
    yield f'<th class="side" colspan="{width}">expected ({len(expected):,})</th>'
    yield f'<th class="side middle" colspan="{width}">came ({len(actual):,})</th></tr><tr>'
    for side in ("", ' class="middle"'):
        yield f"<th{side}>#</th>" + "".join(f"<th>{_text(head, 60)}</th>" for head in heads)
    yield "</tr></thead><tbody>"
    for place, left_out in with_gaps(shown, len(pairs)):
        if place is None:
            yield _gap(left_out, 2 * width)
        else:
            yield _line_of_both(pairs[place], expected, actual, columns, len(kinds) > 1)
    yield "</tbody></table></div>"


def _line_of_both(
    pair: Pair, expected: Sequence[Row], actual: Sequence[Row], columns: Sequence[str], has_kinds: bool
) -> str:
    one = None if pair.left is None else expected[pair.left]
    other = None if pair.right is None else actual[pair.right]
    cells = []
    for row, place, twin, side in ((one, pair.left, other, ""), (other, pair.right, one, " middle")):
        if row is None or place is None:
            cells.append(f'<td class="none{side}" colspan="{len(columns) + 1 + has_kinds}">nothing</td>')
            continue
        moved = ' title="at another place on the other side"' if pair.moved else ""
        cells.append(f'<td class="place{side}"{moved}>{place + 1}{"&nbsp;↕" if pair.moved else ""}</td>')
        if has_kinds:
            cells.append(f'<td class="has">{_text(kind_of(row), MOST_IN_CELL)}</td>')
        cells += [_cell(row, column, twin, column in pair.differing) for column in columns]
    status = "same" if pair.is_same and not pair.moved else "only" if one is None or other is None else "pair"
    return f'<tr class="{status}">{"".join(cells)}</tr>'


def _cell(row: Row, column: str, twin: Row | None, differs: bool) -> str:
    fields = fields_of(row)
    if column not in fields:
        return '<td class="none"></td>'
    value = value_text(fields[column])
    if differs and twin is not None and len(value) > MOST_IN_CELL and column in fields_of(twin):
        value = _from_where_they_differ(value, value_text(fields_of(twin)[column]))
    classes = " ".join(["has", *(["differ"] if differs else []), *(["none"] if fields[column] is None else [])])
    return f'<td class="{classes}" dir="auto">{_text(value, MOST_IN_CELL)}</td>'


def _from_where_they_differ(text: str, other: str) -> str:
    """The part of a long text in which it differs from the other."""
    low, high = 0, min(len(text), len(other))
    while low < high:  # how long the beginning is that both have
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] == other[:middle] else (low, middle - 1)
    begin = max(0, low - 40)
    return text if not begin else f"…{text[begin:]} (from letter {begin + 1:,})"


def _told_of(*, shown: int, of: int, columns: int, of_columns: int, different: int | None = None) -> str:
    """What a sampled table leaves out; nothing if it has all."""
    told = []
    if shown < of:
        told.append(f"{shown:,} of {of:,} rows are shown: the first, the last, and those where they differ")
        if different:
            told.append(_many(different, "row differs", "rows differ"))
    if columns < of_columns:
        told.append(f"{columns} of {of_columns} columns are shown: the first, and those that differ")
    return f'<p class="soft">{"; ".join(told)}</p>' if told else ""


def _gap(count: int, width: int) -> str:
    return f'<tr><td class="gap" colspan="{width}">⋮ {count:,} {"row" if count == 1 else "rows"} left out</td></tr>'


def _rows(rows: Sequence[tuple[Row, Sequence[str]]], heads: Sequence[str]) -> Iterator[str]:
    """Rows of one side, each after some cells of its own."""
    shown = sampled(len(rows))
    columns, count = columns_of(row for row, _ in rows)
    kinds = {kind_of(row) for row, _ in rows}
    told = [*heads, *(["kind"] if len(kinds) > 1 else []), *columns]
    yield _told_of(shown=len(shown), of=len(rows), columns=len(columns), of_columns=count)
    if not rows:
        yield '<p class="soft">nothing</p>'
        return
    yield '<div class="box"><table><thead><tr>'
    yield "".join(f"<th>{_text(head, 60)}</th>" for head in told) + "</tr></thead><tbody>"
    for place, left_out in with_gaps(shown, len(rows)):
        if place is None:
            yield _gap(left_out, len(told))
            continue
        row, own = rows[place]
        cells = [f'<td class="place">{_text(cell, MOST_IN_CELL)}</td>' for cell in own]
        cells += [f"<td>{_text(kind_of(row), MOST_IN_CELL)}</td>"] if len(kinds) > 1 else []
        yield f"<tr>{''.join(cells)}{''.join(_cell(row, column, None, False) for column in columns)}</tr>"
    yield "</tbody></table></div>"


def _table(table: Data) -> Iterator[str]:
    columns, rows = table.get("columns") or [], table.get("rows") or []
    shown = sampled(len(rows))
    yield _told_of(shown=len(shown), of=len(rows), columns=len(columns), of_columns=len(columns))
    yield '<div class="box"><table><thead><tr>'
    yield "".join(f"<th>{_text(head, 80)}</th>" for head in columns) + "</tr></thead><tbody>"
    for place, left_out in with_gaps(shown, len(rows)):
        if place is None:
            yield _gap(left_out, len(columns))
        else:
            cells = "".join(f'<td dir="auto">{_text(cell, 5 * MOST_IN_CELL)}</td>' for cell in rows[place])
            yield f"<tr>{cells}</tr>"
    yield "</tbody></table></div>"


def _input(found: Data) -> Iterator[str]:
    """The input row by row, with its batch and partition, and where the job was stopped."""
    rows = [
        (row, (str(number), str(part)))
        for number, batch in enumerate(found["batches"])
        for part, partition in enumerate(batch)
        for row in partition
    ]
    count = len(found["batches"])
    told = f"input: {_many(len(rows), 'row')} in {_many(count, 'batch', 'batches')}"
    yield f"<details><summary>{told}</summary>"
    yield from _rows(rows, ("batch", "partition"))
    for restart in found.get("restarts") or ():
        again = ", before it was committed, so that it ran again" if restart.get("replay") else ""
        yield f'<p class="soft">stopped and started again after batch {_text(restart.get("after"))}{again}</p>'
    if (found.get("shuffle_partitions") or 1) != 1:
        yield f'<p class="soft">with {_text(found["shuffle_partitions"])} shuffle partitions</p>'
    yield "</details>"


def _many(count: int, one: str, several: str = "") -> str:
    return f"{count:,} {one if count == 1 else several or one + 's'}"


# -- to see it again --------------------------------------------------------------------------------------------------


def _again(verdict: Data, found: Data) -> Iterator[str]:
    kept = verdict.get("kept") or {}
    code = str(found.get("replay") or "")
    commands = []
    if isinstance(kept, Mapping) and kept:
        which = kept.get("id") or kept.get("token")
        commands = [f"streamtight replay {which}"]
    if not code and not commands:
        return
    yield "<h3>to see it again</h3>"
    if reruns := found.get("reruns"):
        yield f'<p class="soft">run again, it failed {_text(found.get("failing_reruns"))} of {_text(reruns)} times</p>'
    for text in (*commands, code):
        if len(text) > MOST_OF_CODE:
            told = f"the code has {len(text):,} letters, too many for a page; a report as JSON has it"
            yield f'<p class="soft">{told}</p>'
        elif text:
            yield (
                '<div class="code"><button type="button" class="copy">copy</button>'
                f"<pre>{html.escape(visible(text))}</pre></div>"
            )
