"""Are the relation and the equality that a user gave what they must be, on the events seen?

Three rules (DiffStream, 4.1): the relation is symmetric, the equality is an equivalence, and equal events are related
alike: if x depends on y and x' equals x, then x' depends on y. A matcher that is given something else answers a
question that nobody asked, so a broken rule is an error that names the rule and shows the events.

Looking at all pairs would cost more than the matching. A sample is kept, in which the n-th new event takes a place with
probability SIZE / n; each event is checked when it comes in against all that are there. So a short stream is checked
completely and a long one costs next to nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from streamtight.errors import DependenceError
from streamtight.stream.dependence import Dependence
from streamtight.stream.event import Event

SIZE = 32


class Validator:
    """Checks the rules on a sample of the events that it sees."""

    def __init__(self, upto: Dependence, equal: Callable[[Event, Event], bool] | None) -> None:
        self._upto = upto
        self._equal = equal
        self._sample: list[Event] = []
        self._known: set[Event] = set()
        self._seen = 0
        self._rng = random.Random(0)  # the same questions raise the same errors

    def see(self, event: Event) -> None:
        """Raise if this event, with those of the sample, breaks a rule."""
        if event in self._known:
            return
        self._seen += 1
        if len(self._sample) < SIZE:
            place = len(self._sample)
        else:
            place = self._rng.randrange(self._seen)
            if place >= SIZE:
                return
        self._upto.require_known(event)
        self._check(event)
        if place == len(self._sample):
            self._sample.append(event)
        else:
            self._known.discard(self._sample[place])
            self._sample[place] = event
        self._known.add(event)

    def _check(self, event: Event) -> None:
        for clause in self._upto.clauses:
            for other in self._sample:
                clause.relates(event, other)  # raises where the relation is not symmetric
        if self._equal is None:
            return
        self._require(self._equals(event, event), "reflexive", f"{event} is not equal to itself")
        twins = []
        for other in self._sample:
            forth, back = self._equals(event, other), self._equals(other, event)
            came = f"{event} is {'' if forth else 'not '}equal to {other}, but the other way round it is"
            self._require(forth == back, "symmetric", f"{came}{'' if back else ' not'}")
            if forth:
                twins.append(other)
        for twin in twins:
            for other in self._sample:
                if other is twin:
                    continue
                self._require(
                    self._equals(twin, other) == (other in twins),
                    "transitive",
                    f"{event} is equal to {twin}, but only one of them to {other}",
                )
                self._require_alike(event, twin, other)

    def _equals(self, a: Event, b: Event) -> bool:
        return bool(self._equal(a, b)) if self._equal is not None else a == b

    def _require(self, keeps: bool, rule: str, came: str) -> None:
        if not keeps:
            raise DependenceError(
                f"equal={getattr(self._equal, '__name__', self._equal)}",
                needed=f"an equivalence; it is not {rule}",
                came=came,
                hint="equality(places=...) or equality(buckets=...) for a tolerance, else equality(by=...)",
            )

    def _require_alike(self, event: Event, twin: Event, other: Event) -> None:
        one, two = self._upto.depends(event, other), self._upto.depends(twin, other)
        if one != two:
            related, unrelated = (event, twin) if one else (twin, event)
            raise DependenceError(
                repr(self._upto),
                needed="a relation that treats equal events alike (if x depends on y, so does every x' equal to x)",
                came=f"{event} and {twin} are equal, but only {related} depends on {other}, not {unrelated}",
                hint="a relation that reads only what the equality compares",
            )
