"""Letters: what a formula sees of a micro-batch."""

from __future__ import annotations

from streamtight.program.letter import Letter, letters_of
from streamtight.program.run import Cause, Run, Step
from streamtight.stream.event import Kind

N = Kind("N", n=int)


def _word(*batches: tuple[list[int], list[int]]) -> tuple[Letter, ...]:
    steps = [
        Step(number, Cause.DATA, (tuple(map(N, given)),), (tuple(map(N, came)),))
        for number, (given, came) in enumerate(batches)
    ]
    return letters_of({"output": Run(tuple(steps))}, {"input": (N,)})


def test_a_letter_knows_what_came_so_far():
    word = _word(([1, 2], [1]), ([], []), ([3], [6]))

    assert [len(letter.so_far("input")) for letter in word] == [2, 2, 3]
    assert word[2].so_far("input") == (N(1), N(2), N(3))
    assert word[2].so_far("output") == (N(1), N(6))


def test_a_letter_made_by_hand_knows_itself_only():
    assert Letter({"input": (N(1),)}, {"output": ()}).so_far("input") == (N(1),)


def test_letters_are_equal_whatever_came_before():
    assert _word(([1], []), ([2], []))[1] == _word(([7], []), ([2], []))[1]
