"""Graphs of typed operators that also run on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from streamtight.errors import GraphError
from streamtight.program import operators
from streamtight.stream.event import Event

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streamtight.program.transformer import Transformer


_PACKAGES = {"pyarrow": "pyarrow", "pandas": "'pandas<3'", "google.protobuf": "protobuf"}
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Graph(operators.Graph):
    """Operators between inlets and outlets, without cycles; every edge fits."""

    def on_spark(
        self,
        frames: DataFrame | Mapping[str, DataFrame],
        *,
        position: str,
        lane: str | None = None,
        lanes: int = 1,
        buckets: int | None = None,
    ) -> Any:
        """The same computation as Structured Streaming: a DataFrame, or one for each outlet by name.

        Its rows have the columns of the events, and block, lane, place: a row of a smaller block comes before; inside a
        block, markers come last, and rows of the same lane are in the order of their place.

        frames     a DataFrame, or one for each inlet by name: a column `kind` and the fields, null where a kind has
                   none. Between markers of an inlet stands what came between them in the order of `position`
        position   the column that numbers the rows of a lane, such as Kafka's offset
        lane       the column that says on which of several lanes a row came, such as Kafka's partition. Every lane
                   must have every marker, and if the type of the inlet is ordered, all rows of a key
        lanes      how many lanes there are, numbered from 0
        buckets    over how many buckets the keys are spread; without it, as many as the session's shuffle partitions.
                   Fixed for a checkpoint

        Sets the session's state store to RocksDB, which Spark needs for it.
        """
        from streamtight.spark.ship import require_there
        from streamtight.spark.stages import Input, Stages

        given = self._frames(frames)
        for name, number in (("lanes", lanes), ("buckets", buckets)):
            if (name, number) != ("buckets", None) and (type(number) is not int or number < 1):
                raise GraphError(f"on_spark({name}=...)", needed="a number from 1", came=repr(number), hint=f"{name}=4")
        if lane is None and lanes != 1:
            raise GraphError(
                "on_spark(lanes=...)", needed="lane=, the column", came="no lane=", hint='lane="partition"'
            )
        session = next(iter(given.values())).sparkSession
        require_there(session, "on_spark(...)", _PACKAGES)
        session.conf.set(_PROVIDER, _ROCKSDB)  # Spark keeps such state nowhere else; checkpoints keep what they have
        count = buckets or int(session.conf.get("spark.sql.shuffle.partitions") or 1)
        stages = Stages(self, {name: Input(df, position, lane, lanes) for name, df in given.items()}, count)
        out = {outlet.name: stages.output(outlet) for outlet in self.outlets}
        return out if len(out) > 1 else next(iter(out.values()))

    def events(self, rows: Iterable[Any], outlet: str | None = None) -> list[Event]:
        """The events of rows that came out of an outlet, in an order that its type allows."""
        from streamtight.spark.stages import in_order

        found = next((one for one in self.outlets if outlet in (None, one.name)), None)
        if found is None or (outlet is None and len(self.outlets) > 1):
            names = ", ".join(one.name for one in self.outlets)
            raise GraphError(
                "events(outlet=...)", needed=f"one of {names}", came=repr(outlet), hint=f"outlet={names!r}"
            )
        type_ = self.type_of(found)
        return in_order(list(rows), list(type_.kinds), type_.markers)

    def _frames(self, frames: Any) -> Mapping[str, DataFrame]:
        names = [inlet.name for inlet in self.inlets]
        if not isinstance(frames, Mapping):
            frames = {names[0]: frames} if len(names) == 1 else {}
        if set(frames) != set(names):
            came = ", ".join(frames) or "one DataFrame"
            raise GraphError("on_spark", needed=f"a DataFrame for {', '.join(names)}", came=came, hint="{name: df}")
        for name, frame in frames.items():
            if not hasattr(frame, "sparkSession"):
                raise GraphError(f"on_spark: {name}", needed="a DataFrame", came=repr(frame)[:80], hint="run(events)")
        checked: Mapping[str, DataFrame] = frames
        return checked


def spread(transformer: Transformer, x: Any = None) -> Graph:
    """A transformer as a graph, which runs on Spark: the keys of its PartitionBy side by side, the rest in one place.

    >>> from streamtight.program.transformer_forms import Hierarchical, Partitioned, Relational
    >>> from streamtight.stream.event import Kind
    >>> from streamtight.stream.schema import Bag, PartitionBy, Seq, Sync
    >>> Ride, Hour, Most = Kind("Ride", taxi=int, cents=int), Kind("Hour", hour=int), Kind("Most", hour=int, cents=int)
    >>> rides = Relational.incremental(
    ...     "rides", takes=Bag(Ride), init=lambda x: 0, add=lambda cents, ride: cents + ride.cents)
    >>> taxis = Partitioned("taxis", "taxi", rides, agg=lambda x, totals: (max(totals.values(), default=0), []))
    >>> hours = Hierarchical(
    ...     "hours", takes=Sync(Hour, PartitionBy("taxi", Bag(Ride))), gives=Seq(Most), sub=taxis,
    ...     update=lambda most, hour: (0, [Most(hour.hour, most)]))
    >>> spread(hours).run([Ride(1, 5), Ride(2, 6), Ride(1, 3), Hour(8)])
    [Most(hour=8, cents=8)]
    """
    from streamtight.program.spread import spread as graph_of
    from streamtight.program.transformer import Transformer

    if not isinstance(transformer, Transformer):
        raise GraphError(
            "spread(...)", needed="a transformer", came=repr(transformer), hint="Hierarchical, Partitioned, ..."
        )
    return graph_of(transformer, x, Graph)
