"""The examples of fork and join: each agrees with the plain loop for the same question, block by block, and forked."""

from __future__ import annotations

import copy
import importlib.util
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamtight as tight
from streamtight.program.fork_join import Block

EXAMPLES = Path(__file__).parents[1] / "examples"
Streams = dict[str, list[tight.Event]]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


event_windows, fraud, page_views, key_counter, outliers, smart_home = map(
    load, ("event_windows", "fraud", "page_views", "key_counter", "outliers", "smart_home")
)

# Each program with the module that makes its input and the plain loop for the same question.
PROGRAMS = [
    (event_windows, event_windows.EventWindows(), event_windows.sequential),
    (event_windows, event_windows.Revenue(), event_windows.sequential_revenue),
    (fraud, fraud.Fraud(), fraud.sequential),
    (fraud, fraud.ScoredFraud(), fraud.sequential_scored),
    (page_views, page_views.PageViews(), page_views.sequential),
    (page_views, page_views.ChosenAdverts(), page_views.sequential_adverts),
    (key_counter, key_counter.KeyCounter(), key_counter.sequential),
    (outliers, outliers.Outliers(), outliers.sequential),
    (smart_home, smart_home.SmartHome(), smart_home.sequential),
]
each_program = pytest.mark.parametrize(
    ("module", "program", "sequential"), PROGRAMS, ids=[program.name for _, program, _ in PROGRAMS]
)
Sequential = Callable[[Path], dict[str, list[Any]]]


def read(folder: Path, streams: Iterable[tight.InputStream]) -> Streams:
    """The events of the files of these streams."""
    found = {}
    for stream in streams:
        (kind,) = stream.tags.kinds
        found[stream.name] = [kind(**row) for row in pq.read_table(folder / f"{stream.name}.parquet").to_pylist()]
    return found


def write(folder: Path, streams: Streams, made_for: Iterable[tight.InputStream]) -> None:
    """A file for each stream."""
    for stream in made_for:
        (kind,) = stream.tags.kinds
        rows = [event.as_dict() for event in streams[stream.name]]
        schema = pa.schema({name: pa.int64() for name in kind.names})
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{stream.name}.parquet")


def some_events(rng: random.Random, streams: Iterable[tight.InputStream]) -> Streams:
    """A few events on each stream, many of them at equal times; some streams are empty."""
    return {
        stream.name: sorted(
            (some_event(rng, rng.choice(stream.tags.parts)) for _ in range(rng.randint(0, 12))),
            key=lambda event: event.time,
        )
        for stream in streams
    }


def some_event(rng: random.Random, part: Any) -> tight.Event:
    """An event of these tags."""
    fields = {name: rng.choice([0, 1, 2, 2, 3, 1000, 1001, 4999, 123_456]) for name in part.kind.names}
    fields |= {"time": rng.randint(-2, 8)} | {name: rng.choice(sorted(values)) for name, values in part.fields}
    if "house" in fields:
        fields["house"] %= 3
    event: tight.Event = part.kind(**fields)
    return event


def as_bag(outputs: Iterable[tight.Event]) -> Counter[tuple[Any, ...]]:
    return Counter((event.kind.name, *event[1:]) for event in outputs)


def rows_as_bag(outputs: Mapping[str, Iterable[tuple[Any, ...]]]) -> Counter[tuple[Any, ...]]:
    return Counter((name, *row) for name, rows in outputs.items() for row in rows)


# -- the plain loop ----------------------------------------------------------------------------------------------------


@each_program
@pytest.mark.parametrize(("seed", "fast"), [(0, 1), (1, 2), (2, 5)])
def test_on_its_own_input_each_program_gives_what_the_plain_loop_gives(
    module: ModuleType, program: tight.ForkJoin, sequential: Sequential, seed: int, fast: int, tmp_path: Path
) -> None:
    module.make(tmp_path, streams=fast, events=5_003, every=200, seed=seed)

    outputs = program.run(read(tmp_path, module.streams(fast, 200)))

    assert as_bag(outputs) == rows_as_bag(sequential(tmp_path))
    assert {event.kind for event in outputs} == set(program.gives)


@each_program
def test_with_equal_times_and_empty_streams_each_program_gives_what_the_plain_loop_gives(
    module: ModuleType, program: tight.ForkJoin, sequential: Sequential, tmp_path: Path
) -> None:
    for seed in range(60):
        streams = some_events(random.Random(seed), module.streams(2, 1))
        write(tmp_path, streams, module.streams(2, 1))

        assert as_bag(program.run(streams)) == rows_as_bag(sequential(tmp_path)), f"seed {seed}: {streams}"


def test_values_without_a_barrier_give_no_total() -> None:
    assert event_windows.EventWindows().run([event_windows.Value(1, 5)]) == []


def test_a_barrier_that_comes_first_closes_an_empty_window() -> None:
    barrier, total = event_windows.Barrier, event_windows.Total

    assert event_windows.EventWindows().run([barrier(0), barrier(0)]) == [total(0, 0), total(0, 0)]


def test_a_value_at_the_time_of_a_barrier_belongs_to_the_window_that_ends() -> None:
    streams = {"barriers": [event_windows.Barrier(3)], "values_0": [event_windows.Value(3, 5)]}

    assert event_windows.EventWindows().run(streams) == [event_windows.Total(3, 5)]


def test_before_the_first_rule_the_model_is_nought() -> None:
    paid = [fraud.Transaction(1, 7, 2000), fraud.Transaction(2, 7, 2001)]

    assert fraud.Fraud().run(paid) == [fraud.Flagged(1, 7, 2000)]


def test_a_view_at_the_time_of_an_update_sees_the_address_before_it() -> None:
    views = {"updates": [page_views.UpdateAddress(1, 0, 19104)], "views_0": [page_views.PageView(1, 0, 5)]}

    assert page_views.Viewed(1, 0, 5, page_views.NOWHERE) in page_views.PageViews().run(views)


def test_page_views_can_be_joined_without_being_given(tmp_path: Path) -> None:
    page_views.make(tmp_path, streams=2, events=100, every=10)
    streams = read(tmp_path, page_views.streams(2, 10))

    outputs = page_views.PageViews(views=False).run(streams)

    assert as_bag(outputs) == rows_as_bag(page_views.sequential(tmp_path, views=False))
    assert {event.kind.name for event in outputs} == {"Address", "Updated"}


def test_a_suspect_that_is_usual_after_all_is_no_outlier() -> None:
    same = [outliers.Connection(time, 1, 500) for time in range(9)]

    assert outliers.Outliers().run([*same, outliers.Check(9)]) == []


def test_the_same_connection_seen_twice_is_an_outlier_twice() -> None:
    usual = [outliers.Connection(time, 1, 500) for time in range(100)]
    far = outliers.Connection(100, 1, 9000)

    assert outliers.Outliers().run([*usual, far, far, outliers.Check(101)]) == [outliers.Outlier(100, 1, 9000)] * 2


# -- the input ---------------------------------------------------------------------------------------------------------


@each_program
def test_the_same_seed_makes_the_same_files(
    module: ModuleType, program: tight.ForkJoin, sequential: Sequential, tmp_path: Path
) -> None:
    streams = module.streams(3, 50)
    made = []
    for folder, seed in ((tmp_path / "one", 4), (tmp_path / "two", 4), (tmp_path / "other", 5)):
        module.make(folder, streams=3, events=1_000, every=50, seed=seed)
        made.append(read(folder, streams))

    assert made[0] == made[1] != made[2]
    fast = [name for name in made[0] if name.endswith(("_0", "_1", "_2"))]
    assert sum(len(made[0][name]) for name in fast) == 1_000


@each_program
def test_streams_that_were_made_before_are_gone(
    module: ModuleType, program: tight.ForkJoin, sequential: Sequential, tmp_path: Path
) -> None:
    module.make(tmp_path, streams=3, events=300, every=50)
    module.make(tmp_path, streams=1, events=300, every=50)

    assert {path.stem for path in tmp_path.iterdir()} == {stream.name for stream in module.streams(1, 50)}


@each_program
def test_long_files_have_many_row_groups_that_are_in_the_order_of_time(
    module: ModuleType, program: tight.ForkJoin, sequential: Sequential, tmp_path: Path
) -> None:
    module.make(tmp_path, streams=1, events=250_000, every=10_000)

    file = pq.ParquetFile(tmp_path / f"{module.streams(1, 1)[0].name}.parquet")
    times = file.read(["time"])["time"].to_numpy()

    assert (file.num_row_groups, len(times), bool((np.diff(times) == 1).all())) == (3, 250_000, True)


# -- blocks ------------------------------------------------------------------------------------------------------------


class Given:
    """Collects what is emitted, event by event or in blocks."""

    def __init__(self) -> None:
        self.events: list[tight.Event] = []

    def __call__(self, event: tight.Event) -> None:
        self.events.append(event)

    def block(self, kind: tight.Kind, **columns: Any) -> None:
        assert tuple(columns) == kind.names
        self.events += map(kind, *(column.tolist() for column in columns.values()))


WITH_BLOCKS = [
    (event_windows, event_windows.EventWindows()),
    (fraud, fraud.Fraud()),
    (page_views, page_views.PageViews()),
    (page_views, page_views.PageViews(views=False)),
    (key_counter, key_counter.KeyCounter()),
    (outliers, outliers.Outliers()),
]


@pytest.mark.parametrize(
    ("module", "program"), WITH_BLOCKS, ids=[f"{program.name}-{n}" for n, (_, program) in enumerate(WITH_BLOCKS)]
)
def test_a_block_gives_what_its_events_give_one_by_one(module: ModuleType, program: tight.ForkJoin) -> None:
    kind, state_type = program.takes[0], program.state_types[0]
    update_block = program.update_block_of(state_type)
    assert update_block is not None
    for seed in range(60):
        rng = random.Random(seed)
        before = program.sequence(some_events(rng, module.streams(2, 1)))
        state = program.continued(program.init(), before, lambda _: None)
        events = [some_event(rng, rng.choice(tight.tags(kind).parts)) for _ in range(rng.randint(0, 30))]
        columns = {name: np.array([getattr(event, name) for event in events], np.int64) for name in kind.names}
        one_by_one, at_once = Given(), Given()

        slowly = program.continued(copy.deepcopy(state), events, one_by_one)
        quickly = update_block(copy.deepcopy(state), Block(kind, columns, len(events)), at_once)

        if quickly is NotImplemented:
            assert not events
            continue
        assert program.same_state(slowly, quickly), f"seed {seed}"
        assert Counter(one_by_one.events) == Counter(at_once.events), f"seed {seed}"


def test_connections_whose_squares_are_too_big_for_numpy_come_one_by_one() -> None:
    kind, size = outliers.Connection, np.array([-(2**63), 5])
    block = Block(kind, {"time": size, "service": size, "bytes": size}, 2)

    assert outliers.Outliers().update_block(({}, {}, {}), block, Given()) is NotImplemented


def test_limits_fit_into_a_column() -> None:
    assert outliers.limits_of(2, 0, 2 * (2**62) ** 2) == (-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("module", "program"), WITH_BLOCKS, ids=[f"{program.name}-{n}" for n, (_, program) in enumerate(WITH_BLOCKS)]
)
def test_what_synchronizes_comes_alone(module: ModuleType, program: tight.ForkJoin) -> None:
    last = program.takes[-1]
    block = Block(last, {name: np.zeros(1, np.int64) for name in last.names}, 1)

    assert program.update_block(program.init(), block, Given()) is NotImplemented


def test_programs_that_look_things_up_are_run_event_by_event() -> None:
    for program in (event_windows.Revenue(), fraud.ScoredFraud(), page_views.ChosenAdverts()):
        assert program.update_block_of(program.state_types[0]) is None


# -- fork and join -----------------------------------------------------------------------------------------------------


def chain(module: ModuleType, program: tight.ForkJoin, fast: int) -> tight.Plan:
    """The last stream at the root, and a chain of leaves below it, one for each fast stream."""
    streams = module.streams(fast, 10)
    whole, part = (each.name for each in program.state_types)
    *leaves, root = (stream.shares for stream in streams)
    below = tight.Worker(part, leaves[-1])
    for shares in leaves[-2:0:-1]:
        below = tight.Worker(part, [], tight.Worker(part, shares), below)
    return tight.Plan(program, streams, tight.Worker(whole, root, tight.Worker(part, leaves[0]), below))


def plan_of_page_views(program: tight.ForkJoin) -> tight.Plan:
    streams = page_views.streams(4, 100)
    shares = {(share.stream, *share.tags.values("user")): share for stream in streams for share in stream.shares}
    both_sorts = tight.Worker("everyone", [shares["gets", 0], shares["views_0", 0]])
    first = tight.Worker(
        "everyone", [shares["updates", 0]], both_sorts, tight.Worker("one_user", [shares["views_2", 0]])
    )
    views = (tight.Worker("views", [shares[name, 1]]) for name in ("views_1", "views_3"))
    gets = tight.Worker("gets", [shares["gets", 1]])
    second = tight.Worker("one_user", [shares["updates", 1]], gets, tight.Worker("views", [], *views))
    return tight.Plan(program, streams, tight.Worker("everyone", [], first, second))


def plan_of_key_counter() -> tight.Plan:
    """The plan of Figure 18: two keys, and two streams of increments of the second."""
    increments, reads = key_counter.Increment, key_counter.Read
    tags = {
        "r1": tight.tags(reads, key=1),
        "i1": tight.tags(increments, key=1),
        "r2": tight.tags(reads, key=2),
        "i2a": tight.tags(increments, key=2),
        "i2b": tight.tags(increments, key=2),
    }
    streams = {name: tight.InputStream(name, each) for name, each in tags.items()}
    leaves = (tight.Worker("state", streams[name].shares) for name in ("i2a", "i2b"))
    first = tight.Worker("state", [*streams["r1"].shares, *streams["i1"].shares])
    second = tight.Worker("state", streams["r2"].shares, *leaves)
    root = tight.Worker("state", [], first, second)
    return tight.Plan(key_counter.KeyCounter(), list(streams.values()), root)


def plan_of_smart_home() -> tight.Plan:
    streams = smart_home.streams(3, 100)
    shares = {stream.name: stream.shares for stream in streams}
    loads = [tight.Worker("loads", shares[f"loads_{number}"]) for number in range(3)]
    left = tight.Worker("loads", [], tight.Worker("loads", [], loads[0], loads[1]), loads[2])
    right = tight.Worker("meters", [], tight.Worker("meters", shares["meters"]), tight.Worker("meters"))
    return tight.Plan(smart_home.SmartHome(), streams, tight.Worker("whole", shares["ends"], left, right))


PLANS = [
    (event_windows, chain(event_windows, event_windows.EventWindows(), 4)),
    (event_windows, chain(event_windows, event_windows.Revenue(), 2)),
    (fraud, chain(fraud, fraud.Fraud(), 4)),
    (fraud, chain(fraud, fraud.ScoredFraud(), 2)),
    (page_views, plan_of_page_views(page_views.PageViews())),
    (page_views, plan_of_page_views(page_views.ChosenAdverts())),
    (key_counter, plan_of_key_counter()),
    (outliers, chain(outliers, outliers.Outliers(), 4)),
    (smart_home, plan_of_smart_home()),
]
each_plan = pytest.mark.parametrize(
    ("module", "plan"), PLANS, ids=[f"{plan.program.name}-{len(plan.leaves)}" for _, plan in PLANS]
)


class Forked:
    """Runs a plan in one process, in the order of time: before an event, all states below its worker are joined."""

    def __init__(self, plan: tight.Plan, state: Any) -> None:
        self.plan, self.program, self.outputs = plan, plan.program, Given()
        self.states: dict[int, Any] = {}
        self._fork(plan.root, state)

    def feed(self, stream: str, event: tight.Event) -> None:
        worker = next(
            worker
            for worker in self.plan.workers
            for share in worker.shares
            if share.stream == stream and share.tags.holds(event)
        )
        update = self.program.update_of(self.plan.type_of(worker))
        self._fork(worker, update(self.join(worker), event, self.outputs))

    def join(self, worker: tight.Worker) -> Any:
        if worker.is_leaf:
            return self.states[id(worker)]
        return self.program.join_of(self.plan.branch_of(worker))(*map(self.join, worker.children))

    def _fork(self, worker: tight.Worker, state: Any) -> None:
        if worker.is_leaf:
            self.states[id(worker)] = state
            return
        sides = [child.all_tags for child in worker.children]
        forked = self.program.fork_of(self.plan.branch_of(worker))(state, *sides)
        for child, part in zip(worker.children, forked, strict=True):
            # As it would be on another machine: nothing is shared by the two sides.
            self._fork(child, copy.deepcopy(part))


def in_order(rng: random.Random, plan: tight.Plan) -> list[tuple[str, tight.Event]]:
    """Some events with their streams, in the order of time."""
    entries = [
        (plan.program.key(event, plan.stream_place(name)), name, event)
        for name, events in some_events(rng, plan.streams).items()
        for event in events
    ]
    return [(name, event) for _, name, event in sorted(entries, key=lambda entry: entry[0])]


@each_plan
def test_forked_and_joined_each_program_gives_the_same_outputs(module: ModuleType, plan: tight.Plan) -> None:
    for seed in range(60):
        events = in_order(random.Random(seed), plan)
        forked = Forked(plan, plan.program.init())
        for stream, event in events:
            forked.feed(stream, event)

        assert Counter(forked.outputs.events) == Counter(plan.program.run([event for _, event in events])), (
            f"seed {seed}"
        )


@each_plan
def test_forked_and_joined_each_program_has_the_same_state(module: ModuleType, plan: tight.Plan) -> None:
    for seed in range(60):
        events = in_order(random.Random(seed), plan)
        forked = Forked(plan, plan.program.init())
        for stream, event in events:
            forked.feed(stream, event)

        state = plan.program.continued(plan.program.init(), (event for _, event in events), Given())
        assert plan.program.same_state(state, forked.join(plan.root)), f"seed {seed}"


@each_plan
def test_a_state_that_is_forked_and_joined_is_what_it_was(module: ModuleType, plan: tight.Plan) -> None:
    for seed in range(60):
        events = [event for _, event in in_order(random.Random(seed), plan)]
        state = plan.program.continued(plan.program.init(), events, Given())

        joined = Forked(plan, copy.deepcopy(state)).join(plan.root)

        assert plan.program.same_state(state, joined), f"seed {seed}"


def test_an_address_that_nobody_asks_for_is_not_lost() -> None:
    one, other = tight.tags(page_views.PageView, user=1), tight.tags(page_views.PageView, user=2)
    program = page_views.PageViews()

    left, right = program.fork({1: 19104, 2: 94110, 3: 10001}, one, other)

    assert (left, right) == ({1: 19104, 3: 10001}, {2: 94110})


def test_a_counter_is_where_its_key_may_be_read() -> None:
    reads = [tight.tags(key_counter.Read, key=key) for key in (1, 2)]

    left, right = key_counter.KeyCounter().fork({1: 5, 2: 6, 3: 7}, *reads)

    assert (left, right) == ({1: 5}, {2: 6, 3: 7})
