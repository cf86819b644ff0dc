"""The prover against itself: what is proved to be equal is equal on every input that is tried."""

from __future__ import annotations

import pytest
from random_relations import Programs, differing

from streamtight.errors import UnsupportedError
from streamtight.solver.ask import Budget
from streamtight.solver.equivalence import Equivalence


def is_proved(seed: str, depth: int) -> bool:
    """Whether two random programs are proved to be equal; a failed test if they then differ on some rows."""
    programs = Programs(seed)
    one, other = programs.pair(depth)
    unique = programs.chance.random() < 0.3
    left, right = (node.relation(((0,),) if unique else ()) for node in (one, other))
    try:
        if Equivalence(Budget(2)).same_relations(left, right, []) is not None:
            return False
    except UnsupportedError:
        return False
    rows = differing(left, right, [programs.tables(unique=unique) for _ in range(150)])
    assert rows is None, f"seed {seed}: proved, but not so for {rows}\n{one}\n{other}"
    return True


def test_what_is_proved_is_never_contradicted_by_a_run():
    proved = sum(is_proved(f"quick/{number}", 3) for number in range(25))

    assert proved >= 3, "too few for a test"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_what_is_proved_of_larger_programs_is_never_contradicted_by_a_run(part: int):
    assert sum(is_proved(f"large/{part}/{number}", 4) for number in range(50)) >= 2
