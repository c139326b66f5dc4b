"""Before kernels are compiled, small problems are answered without them, and compiling tells how far it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from stowplan.answers.solve import solve_snapshot
from stowplan.cli import progress
from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.options import Options
from stowplan.models.stop import Stop
from stowplan.optimizer.compiled import kernel_cache
from stowplan.report.words import headline
from stowplan.settings.problem import make_problem

COMPILED = make_problem(synthetic_snapshot(4, 20, seed=1))


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """A folder without kernels, and a compiler that reports four steps; what it was called for is counted."""
    calls: list[int] = []
    folder = kernel_cache.Folder(tmp_path, writable=True)
    now = iter(range(0, 1000, 6))

    def warm_ahead(stop: Stop, tell: Callable[[int], None]) -> Sequence[str]:
        calls.append(1)
        for number in range(4):
            (tmp_path / f"{number}.nbc").touch()
            tell(folder.kernels)
        return []

    monkeypatch.setattr(kernel_cache, "folder", lambda: folder)
    monkeypatch.setattr(progress, "warm_ahead", warm_ahead)
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(now)))
    return calls


def test_a_small_problem_does_not_wait(compiling: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    options = progress.ready(COMPILED.problem, Options(), quiet=False, stop=Stop())
    assert options == Options(kernels=False)
    assert not compiling
    assert "small enough to be solved without them" in capsys.readouterr().err


def test_a_large_problem_and_a_deterministic_answer_wait_and_are_told(
    compiling: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    for options in (Options(largest_model=10), Options(deterministic=True)):
        assert progress.ready(COMPILED.problem, options, quiet=False, stop=Stop()) == options
        said = capsys.readouterr().err
        assert "not part of the time limit" in said
        assert "kernels after " in said
    assert len(compiling) == 2


def test_kernels_that_are_there_are_used(compiling: list[int], tmp_path: Path) -> None:
    (tmp_path / "complete").touch()
    assert progress.ready(COMPILED.problem, Options(), quiet=False, stop=Stop()) == Options()
    assert not compiling


def test_what_was_not_searched_is_not_called_best() -> None:
    """Stopped before anything was looked at: today's placement is the answer, and nothing is claimed about it."""
    stop = Stop()
    stop.set()
    solution = solve_snapshot(COMPILED, Options(), stop=stop)
    assert not solution.moves
    assert headline(solution).startswith("Not searched: interrupted before the search began.")
    over = replace(solution, outcome=replace(solution.outcome, interrupted=False))
    assert headline(over).startswith("Not searched: the time limit was over before the search began.")
    searched = replace(solution, outcome=replace(solution.outcome, stages=(("annealing", 1.0),)))
    assert headline(searched).startswith("No improvement found: 6 pods stay unscheduled")
