"""One pod moved: what the few rules that speak of it say is what all of them say."""

from __future__ import annotations

from hypothesis import strategies as st

from stowplan.models.problem import Placement, Problem
from stowplan.optimizer.evaluate import Evaluator, OneMove
from tests.support.cases import cases, count
from tests.support.problems import affinity_problems, problems, problems_with_room


@cases(
    150,
    at_least={"legal": 100, "illegal": 100},
    problem=st.one_of(problems(broken=None), affinity_problems(broken=None), problems_with_room()),
)
def test_a_single_move_is_as_legal_and_as_much_better_as_the_whole_evaluation_says(problem: Problem) -> None:
    every = Evaluator(problem)
    today = every.evaluate(problem.start)
    start, there = list(problem.start.entries()), set()
    for cls, source, _ in start:
        there.add((cls, source))
    unplaced = problem.size - problem.start.placed(len(problem.classes))
    there |= {(cls, None) for cls in range(len(problem.classes)) if unplaced[cls]}
    for cls, source in sorted(there, key=str):
        move = OneMove(problem, cls, source)
        for node in range(len(problem.nodes)):
            taken = [] if source is None else [(cls, source, -1)]
            whole = every.evaluate(Placement.of([*start, *taken, (cls, node, 1)]))
            quick = move.to(node)
            assert quick.legal == whole.legal
            assert quick.moves == whole.moves
            gained = [new - old for new, old in zip(whole.values, today.values, strict=True)]
            assert [new - old for new, old in zip(quick.values, move.start.values, strict=True)] == gained
            count("legal" if whole.legal else "illegal")
