"""What a seed means: what runs, what comes in, what goes wrong, and what must be answered, in plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

RELATIONS = ("live keyed", "live ordered", "live bag")
WHATS = (*RELATIONS, "query", "formula", "parallel")
NULL_ROW: Row = {"k": None, "n": None, "v": None}
CORRUPT = '{"k": 1, "n": 12'
LARGEST = 1_000
"""Values above are never right."""

# Which faults there are, for what. Those after the bar need a cluster.
FAULTS = {
    "live": ("driver", "replay", "delay", "late", "duplicates", "corrupt", "failfast", "|", "executor", "worker"),
    "query": ("driver", "replay", "delay", "late", "duplicates", "corrupt", "failfast", "|", "executor", "worker"),
    "formula": ("driver", "replay", "delay", "duplicates", "corrupt", "|", "executor", "worker"),
    "parallel": ("driver", "replay", "delay", "late", "corrupt", "|", "executor", "worker"),
}
BUGS = {
    "live keyed": ("drop", "wrong", "double", "swap"),
    "live ordered": ("drop", "wrong", "double", "swap"),
    "live bag": ("drop", "wrong", "double"),
    "query": ("wrong",),
    "formula": ("wrong", "drop"),
    "parallel": ("join",),
}
EXCLUDED = {"failfast": {"corrupt", "driver", "replay"}, "late": {"corrupt"}}
"""What is not asked together, so that there is one thing that must be told."""


@dataclass(frozen=True)
class Scenario:
    """One run."""

    seed: int
    what: str
    faults: tuple[str, ...]
    bug: str | None
    is_on_cluster: bool
    files: tuple[tuple[str, ...], ...]
    """The lines of each file that comes in; for a parallel program those of its values."""
    barriers: tuple[tuple[str, ...], ...] = ()
    target: int = -1
    """The number of the row that the bug is about."""
    delayed: int = -1
    """The file before which one input is late."""
    struck: int = 0
    """The file after which something is killed."""
    pause: float = 0.0
    """Seconds between that file and the blow."""

    def told(self) -> str:
        """The faults in words."""
        bug = [f"bug: {self.bug}"] if self.bug else []
        return ", ".join([*self.faults, *bug])


def scenario(seed: int) -> Scenario:
    """The run that a seed stands for. Every third has a bug; two seeds of three that may need the cluster use it."""
    chance = random.Random(f"faults {seed}")
    what = WHATS[seed % len(WHATS)]
    turn = seed // len(WHATS)
    bug = BUGS[what][(turn // 3) % len(BUGS[what])] if (turn + seed) % 3 == 0 else None
    family = "live" if what in RELATIONS else what
    known = [fault for fault in FAULTS[family] if fault != "|"]
    needing = set(FAULTS[family][FAULTS[family].index("|") + 1 :])
    faults: list[str] = []
    if bug == "double":
        faults.append("replay")  # it shows only there
    # The turn chooses the first fault, so that each is met; chance adds others.
    wanted = [known[(turn * 2 + seed) % len(known)], *chance.sample(known, chance.randint(0, 2))]
    for fault in wanted:
        clash = any(fault in EXCLUDED.get(one, ()) or one in EXCLUDED.get(fault, ()) for one in faults)
        # A job that fails says so, whatever is wrong with it.
        ends = fault == "failfast" or (what == "parallel" and fault == "late")
        if fault not in faults and not clash and not (ends and bug):
            faults.append(fault)
    blows = [fault for fault in faults if fault in ("driver", "replay", "executor", "worker")]
    for fault in blows[1:]:  # one blow a run
        faults.remove(fault)
    is_on_cluster = bool(needing & set(faults)) or chance.random() < 0.35
    if what == "parallel":
        # A program that would change its outputs is refused before anything can break.
        return _parallel(seed, what, [] if bug else faults, bug, is_on_cluster, chance)
    files, target = _files(what, faults, bug, chance)
    return Scenario(
        seed,
        what,
        tuple(faults),
        bug,
        is_on_cluster,
        files,
        target=target,
        delayed=chance.randrange(1, len(files)) if "delay" in faults else -1,
        struck=chance.randrange(1, len(files) - 1),
        pause=chance.uniform(0.0, 1.5),
    )


# -- what comes in ---------------------------------------------------------------------------------------------------


def _files(what: str, faults: Sequence[str], bug: str | None, chance: random.Random) -> tuple[Any, int]:
    """The lines of each file, and the row that a bug is about."""
    count = chance.randint(4, 5)
    keys = chance.randint(2, 4)
    rows: list[list[Row]] = []
    number = 0
    for _ in range(count):
        mine = []
        for _ in range(chance.randint(8, 25)):
            mine.append({"k": chance.randrange(keys), "n": number, "v": chance.randrange(LARGEST)})
            number += 1
        rows.append(mine)
    target = chance.randrange(len(rows[0]), number)  # not in the first file: it is about something that runs
    if "late" in faults:
        for _ in range(3):
            start = chance.randrange(count - 1)
            if len(rows[start]) > 3:
                moved = rows[start].pop(chance.randrange(len(rows[start])))
                rows[chance.randrange(start + 1, count)].append(moved)
    if "duplicates" in faults:
        for _ in range(4):
            start = chance.randrange(count)
            rows[chance.randrange(start, count)].append(dict(chance.choice(rows[start])))
    if what == "formula":
        for number_of_file, mine in enumerate(rows):
            mine.append({"k": -1, "n": -1 - number_of_file, "v": 0})  # each micro-batch must have a row of key -1
        if bug == "drop":
            target = -1 - chance.randrange(1, count)
    lines = [[json.dumps(row) for row in mine] for mine in rows]
    if "corrupt" in faults or "failfast" in faults:
        broken = lines[chance.randrange(1, count)]
        broken.insert(chance.randrange(len(broken)), CORRUPT)
    return tuple(map(tuple, lines)), target


def parsed(line: str) -> Row:
    """What a lenient reader makes of a line."""
    try:
        row: Row = json.loads(line)
    except ValueError:
        return dict(NULL_ROW)
    return row


def is_corrupt(lines: Sequence[str]) -> bool:
    return CORRUPT in lines


# -- what must come out ----------------------------------------------------------------------------------------------


def with_bug(rows: Sequence[Row], bug: str | None, target: int) -> list[Row]:
    """What the job under test makes of the rows of a file."""
    made = [dict(row) for row in rows]
    places = [place for place, row in enumerate(made) if row["n"] == target]
    for place in reversed(places):
        if bug == "drop":
            del made[place]
        elif bug == "wrong":
            made[place]["v"] += LARGEST
        elif bug == "swap":
            _swap(made, place)
    return made


def _swap(rows: list[Row], place: int) -> None:
    """Exchange a row with another of its key in its file, which is not the same."""
    others = [at for at, row in enumerate(rows) if row["k"] == rows[place]["k"] and row != rows[place]]
    if others:
        rows[place], rows[others[0]] = rows[others[0]], rows[place]


def expected_of_live(what: str, old: Sequence[Row], new: Sequence[Row]) -> str:
    """What a comparison must say of two streams that have ended."""
    one, other = ([tuple(row.values()) for row in rows] for rows in (old, new))
    if what == "live bag":
        return "HOLDS" if Counter(one) == Counter(other) else "FAILS LEFT_OVER"
    keys = {0} if what == "live ordered" else {row[0] for row in (*one, *other)}
    is_longer = False
    for key in keys:
        mine, theirs = ([row for row in rows if what == "live ordered" or row[0] == key] for rows in (one, other))
        if any(a != b for a, b in zip(mine, theirs, strict=False)):
            return "FAILS DIVERGED"
        is_longer |= len(mine) != len(theirs)
    return "FAILS LEFT_OVER" if is_longer else "HOLDS"


def expected_answers(files: Sequence[Sequence[str]], bug: str | None, target: int) -> list[list[Any]]:
    """The answers of a watched query: key, order, total of the values, were all small; None and "late" if too late."""
    totals: dict[int, int] = {}
    are_small: dict[int, bool] = {}
    last: dict[int, int] = {}
    found: list[list[Any]] = []
    for lines in files:
        rows = with_bug([row for row in map(parsed, lines) if row["k"] is not None], bug, target)
        reached = dict(last)
        for row in sorted(rows, key=lambda row: row["n"]):
            key = row["k"]
            if key in reached and row["n"] <= reached[key]:
                found.append([key, row["n"], None, None, "late"])
                continue
            totals[key] = totals.get(key, 0) + row["v"]
            are_small[key] = are_small.get(key, True) and row["v"] < LARGEST
            last[key] = row["n"]
            found.append([key, row["n"], totals[key], are_small[key], "defined"])
    return sorted(found, key=repr)


def expected_of_formula(files: Sequence[Sequence[str]], bug: str | None, target: int) -> str:
    """Are all values small, and is there a row of key -1, in every micro-batch?"""
    for lines in files:
        rows = with_bug([row for row in map(parsed, lines) if row["k"] is not None], bug, target)
        if any(row["v"] >= LARGEST for row in rows) or all(row["k"] != -1 for row in rows):
            return "FAILS VIOLATED"
    return "HOLDS"


# -- a parallel program ----------------------------------------------------------------------------------------------


def _parallel(
    seed: int, what: str, faults: list[str], bug: str | None, is_on_cluster: bool, chance: random.Random
) -> Scenario:
    count, size = chance.randint(3, 4), chance.randint(20, 40)
    values: list[list[Row]] = []
    barriers: list[list[Row]] = []
    for number in range(count):
        times = range(1 + number * size, 1 + (number + 1) * size)
        values.append([{"kind": "Value", "time": time, "value": chance.randrange(100)} for time in times])
        ends = sorted(chance.sample(times, chance.randint(1, 3)))
        barriers.append([{"kind": "Barrier", "time": time} for time in ends])
    end = count * size + 1
    values.append([{"kind": "heartbeat", "time": end, "value": None}])
    barriers.append([{"kind": "heartbeat", "time": end}])
    late = chance.randrange(1, count)
    if "late" in faults:
        values[late].append(values[late - 1].pop(0))
    lines = [[json.dumps(row) for row in mine] for mine in values]
    if "corrupt" in faults:
        lines[late].insert(3, '{"kind": "Value", "ti')
    return Scenario(
        seed,
        what,
        tuple(faults),
        bug,
        is_on_cluster,
        tuple(map(tuple, lines)),
        tuple(tuple(json.dumps(row) for row in mine) for mine in barriers),
        delayed=chance.randrange(1, count) if "delay" in faults else -1,
        struck=chance.randrange(1, count),
        pause=chance.uniform(0.0, 1.5),
    )


def expected_totals(files: Sequence[Sequence[str]], barriers: Sequence[Sequence[str]]) -> list[list[int]]:
    """The sums of the values up to each barrier since the one before."""
    values = [row for lines in files for row in map(_event, lines) if row and row["kind"] == "Value"]
    ends = sorted(row["time"] for lines in barriers for row in map(_event, lines) if row and row["kind"] == "Barrier")
    found, start = [], 0
    for end in ends:
        found.append([end, sum(row["value"] for row in values if start < row["time"] <= end)])
        start = end
    return found


def _event(line: str) -> Row | None:
    try:
        row: Row = json.loads(line)
    except ValueError:
        return None
    return row
