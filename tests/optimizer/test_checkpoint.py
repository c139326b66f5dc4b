"""A checkpoint holds the best answer of each problem, whole at any time, and for no other problem."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.models.problem import Placement, Problem
from stowplan.optimizer import checkpoint as checkpoints
from stowplan.optimizer.checkpoint import Checkpoint, fingerprint
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import solve
from tests.optimizer.test_backend import uneven


def test_a_search_goes_on_from_the_answer_in_the_file(tmp_path: Path) -> None:
    file = str(tmp_path / "kept.json")
    problem = uneven()
    first = solve(problem, Options(0.2, deterministic=True, largest_model=0, checkpoint=file))
    assert first.values < Evaluator(problem).evaluate(problem.start).values
    recalled = Checkpoint(file, problem).recall()
    assert recalled is not None
    assert recalled.same_as(first.placement)
    again = solve(problem, Options(0.1, deterministic=True, largest_model=0, checkpoint=file))
    assert again.values <= first.values
    assert f"the search began with the answer in {file}" in again.notes


def test_another_problem_has_an_answer_of_its_own(tmp_path: Path) -> None:
    file = str(tmp_path / "kept.json")
    problem = uneven()
    other = replace(problem, optional=problem.optional + 1)
    mine, another = Placement.of([(0, 0, 1)]), Placement.of([(1, 1, 2)])
    for asked, answer in ((problem, mine), (other, another)):
        kept = Checkpoint(file, asked)
        assert kept.recall() is None
        kept.keep(answer, (1, 2))
        kept.flush()
    for asked, answer in ((problem, mine), (other, another)):
        recalled = Checkpoint(file, asked).recall()
        assert recalled is not None
        assert recalled.same_as(answer)


def test_an_answer_that_is_no_longer_legal_is_passed_over(tmp_path: Path) -> None:
    file = str(tmp_path / "kept.json")
    problem = uneven()
    crowded = Placement.of([(c, 0, int(n)) for c, n in enumerate(problem.start.placed(problem.shape[0]))])
    kept = Checkpoint(file, problem)
    kept.keep(crowded, (0,))
    kept.flush()
    outcome = solve(problem, Options(0.1, deterministic=True, largest_model=0, checkpoint=file))
    assert not any("checkpoint" in note or "began" in note for note in outcome.notes)


def test_the_fingerprint_is_that_of_every_process() -> None:
    code = "from tests.optimizer.test_backend import uneven; from stowplan.optimizer.checkpoint import fingerprint; "
    other = subprocess.run(
        [sys.executable, "-c", code + "print(fingerprint(uneven()))"], capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == fingerprint(uneven())


@pytest.mark.parametrize("part", ["nodes", "size", "optional", "start", "tiers", "rules"])
def test_the_fingerprint_tells_problems_apart(part: str) -> None:
    problem = uneven()
    start = problem.start
    changed: dict[str, object] = {
        "nodes": (*problem.nodes[:-1], "another"),
        "size": problem.size + (np.arange(len(problem.size)) == 0),
        "optional": problem.optional + 1,
        "start": Placement(start.cls, start.node[::-1].copy(), start.count),
        "tiers": problem.tiers[:-1],
        "rules": problem.rules[:-1],
    }
    assert fingerprint(replace(problem, **{part: changed[part]})) != fingerprint(problem)  # type: ignore[arg-type]


def test_an_answer_is_written_at_once_and_then_now_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writings: list[bytes] = []
    monkeypatch.setattr(checkpoints, "write_whole", lambda data, path: writings.append(data))
    kept = Checkpoint(str(tmp_path / "kept.json"), uneven())
    monkeypatch.setattr(kept, "_written_at", -1e9)
    for value in range(100):
        kept.keep(Placement.of([(0, 0, 1)]), (value,))
    assert len(writings) == 2  # when it was opened, and the first answer
    kept.flush()
    assert json.loads(writings[-1])["answers"][fingerprint(uneven())]["values"] == [99]


@pytest.mark.parametrize("content", ["", "no JSON", "[]", '{"kind": "Solution"}', '{"kind": "stowplan/checkpoint/v1"}'])
def test_another_file_is_refused_and_stays_as_it_is(tmp_path: Path, content: str) -> None:
    file = tmp_path / "mine.json"
    file.write_text(content)
    with pytest.raises(InputError, match="is no checkpoint; must be one that --checkpoint wrote, or not be there"):
        Checkpoint(str(file), uneven())
    assert file.read_text() == content


@pytest.mark.parametrize(
    "answer",
    [
        {"cls": [0], "node": [0]},
        {"cls": [0], "node": [10**6], "count": [1]},
        {"cls": [-1], "node": [0], "count": [1]},
        {"cls": ["a"], "node": [0], "count": [1]},
        {"cls": [0, 1], "node": [0], "count": [1]},
        [],
    ],
)
def test_a_damaged_answer_is_refused(tmp_path: Path, answer: object) -> None:
    problem: Problem = uneven()
    file = tmp_path / "kept.json"
    file.write_text(json.dumps({"kind": checkpoints.KIND, "answers": {fingerprint(problem): answer}}))
    with pytest.raises(InputError, match="has an answer"):
        Checkpoint(str(file), problem).recall()


def test_a_folder_that_is_not_there_is_said_before_the_search(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        solve(uneven(), Options(0.1, checkpoint=str(tmp_path / "none" / "kept.json")))


def test_a_disk_that_fills_up_does_not_end_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = uneven()
    writings = 0

    def write(data: bytes, path: Path) -> None:
        nonlocal writings
        writings += 1
        if writings > 1:
            raise InputError("cannot be written: No space left on device", str(path))

    monkeypatch.setattr(checkpoints, "write_whole", write)
    outcome = solve(problem, Options(0.2, deterministic=True, largest_model=0, checkpoint=str(tmp_path / "kept.json")))
    assert writings > 1
    assert any("the best answer is not in the checkpoint" in note for note in outcome.notes)
