from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from stowplan.instances.suites.roadef import Model, account, read_assignment, read_model, reassignment, write_assignment
from stowplan.models.errors import InputError
from stowplan.models.problem import Attract, Placement
from stowplan.optimizer.evaluate import Evaluator

# The example of the challenge's statement: two resources, four machines, two services, three processes.
EXAMPLE = """
2
1 100
0 10
4
0 0 30 400 16 80   0 1 4 5
0 0 10 240 8 160   1 0 3 4
1 1 15 100 12 80   4 3 0 2
1 2 10 100 8 80    5 4 2 0
2
2 0
1 1 0
3
0 12 10 1000
0 10 20 100
1 6 200 1
1
0 1 20
10
1 10 100
"""
INITIAL = "0 3 0\n"


def example(text: str = EXAMPLE) -> Model:
    return read_model("model", text.encode())


def test_the_statements_example_costs_what_the_statement_says() -> None:
    model = example()
    initial = read_assignment("initial", INITIAL.encode(), model)
    for assignment, cost in (([0, 3, 0], 4200), ([0, 2, 0], 3510), ([0, 2, 1], 2411)):
        result = account(model, initial, np.array(assignment))
        assert not result.violations
        assert result.total == cost
        again = reassignment(model, initial)
        evaluation = Evaluator(again.problem).evaluate(again.placement(np.array(assignment)))
        assert evaluation.legal
        assert evaluation.values == (cost,)


def test_every_hard_constraint_is_told_by_name() -> None:
    model, initial = example(), np.array([0, 3, 0])
    broken = {
        (0, 0, 0): "service 0: 2 processes on machine 0",
        (2, 3, 0): "service 1: depends on service 0, which is not in neighbourhood 0",
        (0, 1, 0): "service 0: is in 1 locations; must be in 2",
        (0, 3, 3): "machine 3: 220 of resource 1 exceed its capacity 100",
        (0, 2, 2): "machine 2: 16 of resource 0 exceed its capacity 15",
    }
    for assignment, line in broken.items():
        assert line in account(model, initial, np.array(assignment)).violations


def test_what_moves_goes_on_occupying_transient_resources() -> None:
    """Two processes that fill two machines cannot change places, although either would fit in the end."""
    text = "1\n{} 1\n2\n0 0 10 10 0 1\n0 0 10 10 1 0\n2\n0 0\n0 0\n2\n0 10 1\n1 9 1\n0\n1 1 1\n"
    for transient, violations in ((0, 0), (1, 2)):
        model = example(text.format(transient))
        initial, swapped = np.array([0, 1]), np.array([1, 0])
        assert len(account(model, initial, swapped).violations) == violations
        found = reassignment(model, initial)
        assert Evaluator(found.problem).evaluate(found.placement(swapped)).legal is (violations == 0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("10\n1 10 100", "10\n1 10", "model: ends after 72 numbers; the weights of process, service and"),
        ("1 10 100\n", "1 10 100 7\n", "model: has 1 more numbers after its end"),
        ("1 6 200 1", "2 6 200 1", "model: service of a process is 2; must be below 2"),
        ("1 1 0", "1 1 2", "model: dependency is 2; must be below 2"),
        ("0 1 20", "0 2 20", "model: resource of a balance cost is 2; must be below 2"),
        ("\n0 10\n4", "\n3 10\n4", "model: transient flag is 3; must be below 2"),
        ("240", "-240", "model: line 7: '-240' is not an integer of 0 or more"),
        ("240", "24O", "model: line 7: 'O' is not an integer of 0 or more"),
        ("240", "9" * 19, f"model: line 7: '{'9' * 19}' is too large"),
        ("240", "9" * 18, "model: its amounts and weights are too large: costs could exceed 64 bits"),
    ],
)
def test_a_malformed_model_is_refused_in_one_line(old: str, new: str, message: str) -> None:
    assert EXAMPLE.count(old) == 1
    with pytest.raises(InputError) as caught:
        example(EXAMPLE.replace(old, new))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 3", "new: contains 2 machines; must be one for each of 3 processes"),
        ("0 4 0", "new: process 1: is machine 4; must be below 4"),
        ("0 -1 0", "new: line 1: '-1' is not an integer of 0 or more"),
        ("", "new: contains 0 machines; must be one for each of 3 processes"),
    ],
)
def test_a_malformed_assignment_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_assignment("new", text.encode(), example())
    assert str(caught.value) == message


def test_an_initial_assignment_that_breaks_a_rule_is_refused() -> None:
    with pytest.raises(
        InputError, match="initial: the initial assignment violates a constraint: service 0: 2 processes"
    ):
        reassignment(example(), np.array([0, 0, 0]), file="initial")


def test_alike_processes_share_a_class_and_stay_where_they_can() -> None:
    """Three alike processes of unbound services, two of which start on one machine."""
    text = (
        "1\n0 1\n3\n0 0 9 9 0 0 0\n0 1 9 9 0 0 0\n0 2 9 9 0 0 0\n3\n0 0\n0 0\n0 0\n3\n0 2 1\n1 2 1\n2 2 1\n0\n1 0 1\n"
    )
    model, initial = example(text), np.array([0, 0, 1])
    found = reassignment(model, initial)
    assert found.problem.shape == (1, 3)
    assert found.assignment(Placement.of([(0, 0, 1), (0, 2, 2)])).tolist() == [0, 2, 2]
    assert found.assignment(found.problem.start).tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="does not place every process"):
        found.assignment(Placement.of([(0, 0, 1)]))


def test_services_with_a_cost_of_their_own_do_not_share_a_class() -> None:
    text = "1\n0 1\n2\n0 0 9 9 0 0\n0 1 9 9 0 0\n2\n0 0\n0 0\n2\n0 2 1\n1 2 1\n0\n1 10 1\n"
    assert reassignment(example(text), np.array([0, 0])).problem.shape == (2, 2)


def test_dependencies_of_one_pair_become_one_rule() -> None:
    text = EXAMPLE.replace("1 1 0", "1 3 0 0 1")
    rules = reassignment(example(text), np.array([0, 3, 0])).problem.rules
    assert sum(isinstance(rule, Attract) for rule in rules) == 1


def agree(model: Model, initial: np.ndarray, rng: np.random.Generator, tries: int) -> int:
    """Compare judge and checker on random changes, legal and illegal; return how many were legal."""
    found = reassignment(model, initial)
    evaluator, legal = Evaluator(found.problem), 0
    for _ in range(tries):
        assignment = initial.copy()
        some = rng.choice(model.processes, rng.integers(1, min(12, model.processes + 1)), replace=False)
        only_legal = rng.random() < 0.5
        for p in some:
            before = assignment[p]
            assignment[p] = rng.integers(model.machines)
            if only_legal and account(model, initial, assignment).violations:
                assignment[p] = before
        placement = found.placement(assignment)
        written = read_assignment("new", write_assignment(found.assignment(placement)).encode(), model)
        assert found.placement(written).same_as(placement)
        result, evaluation = account(model, initial, written), evaluator.evaluate(placement)
        assert evaluation.values == (result.total,)
        assert evaluation.legal == (not result.violations)
        legal += evaluation.legal
    return legal


def random_model(rng: np.random.Generator) -> Model:
    """Make a small model with all kinds of rules and costs, without a thought for its initial assignment."""
    r, m, s, p, b = 3, int(rng.integers(3, 7)), int(rng.integers(2, 6)), int(rng.integers(4, 14)), 2

    def row(*parts: object) -> str:
        return " ".join(str(x) for part in parts for x in np.atleast_1d(part))  # type: ignore[arg-type]

    lines = [row(r), *(row(rng.integers(0, 2), rng.integers(0, 5)) for _ in range(r)), row(m)]
    for _ in range(m):
        room, moves = rng.integers(20, 60, r), rng.integers(0, 3, m)
        lines.append(row(rng.integers(0, 2), rng.integers(0, 3), room, room * rng.integers(0, 3) // 2, moves))
    lines.append(row(s))
    for _ in range(s):
        needed = rng.integers(0, s, rng.integers(0, 3))
        lines.append(row(rng.integers(0, 3), len(needed), *needed.tolist()))
    lines.append(row(p))
    lines += [row(rng.integers(0, s), rng.integers(0, 12, r), rng.integers(0, 3)) for _ in range(p)]
    lines += [row(b), *(row(rng.integers(0, r, 2), rng.integers(0, 4), rng.integers(0, 9)) for _ in range(b))]
    return example("\n".join([*lines, row(rng.integers(0, 10, 3))]))


def test_judge_and_checker_agree_on_random_models() -> None:
    rng = np.random.default_rng(2012)
    tried = legal = 0
    while tried < 25:
        model = random_model(rng)
        starts = (rng.integers(0, model.machines, model.processes) for _ in range(60))
        initial = next((start for start in starts if not account(model, start, start).violations), None)
        if initial is not None:
            tried += 1
            legal += agree(model, initial, rng, 12)
    assert 0 < legal < 25 * 12


@pytest.mark.parametrize("name", ["A/{}_a1_1", "A/{}_a1_4", "A/{}_a2_3"])
def test_judge_and_checker_agree_on_published_models(name: str, shared_data: Path) -> None:
    folder = shared_data / "benchmarks" / "roadef"

    def data(kind: str) -> bytes:
        return gzip.decompress((folder / (name.format(kind) + ".txt.gz")).read_bytes())

    model = read_model("model", data("model"))
    initial = read_assignment("initial", data("assignment"), model)
    legal = agree(model, initial, np.random.default_rng(1), 20)
    assert 0 < legal < 20
