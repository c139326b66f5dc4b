"""Pending pods and few moves in large clusters: sub-problems of some nodes, or CP-SAT if there is no time for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.options import Options
from stowplan.models.problem import Placement, Problem
from stowplan.models.settings import Settings
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.node_changes.turns import NodeChangeTurns
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.portfolio import solve
from stowplan.optimizer.proofs import ProofTurns
from stowplan.settings.problem import make_problem

EVERY = Parameters()
PARTS = replace(EVERY, portfolio=replace(EVERY.portfolio, largest_room_model=0))


def tight() -> Problem:
    """Return a problem with pending pods for which few moves make room."""
    return make_problem(synthetic_snapshot(16, 180, 1, fill=0.97), Settings(max_moves=2)).problem


@pytest.mark.parametrize("in_time", [True, False])
def test_cp_sat_has_the_whole_tier_only_where_parts_had_no_time(
    monkeypatch: pytest.MonkeyPatch, *, in_time: bool
) -> None:
    asked: list[tuple[str, int]] = []
    let_in, take = NodeChangeTurns.let_in, ProofTurns.take

    def watched(self: NodeChangeTurns, tier: int, share: float, placement: Placement) -> bool:
        if self.run.is_open(tier):
            asked.append(("parts", tier))
        return let_in(self, tier, share, placement) if in_time else False

    def taken(self: ProofTurns, tier: int, share: float | None = None) -> bool:
        if share is not None and self._run.is_open(tier):
            asked.append(("whole", tier))
        return take(self, tier, share)

    monkeypatch.setattr(NodeChangeTurns, "let_in", watched)
    monkeypatch.setattr(ProofTurns, "take", taken)
    problem = tight()
    outcome = solve(problem, Options(time_limit=0.3, deterministic=True, parameters=PARTS))
    evaluator = Evaluator(problem)
    assert evaluator.evaluate(outcome.placement).legal
    assert outcome.values < evaluator.evaluate(problem.start).values
    parts = [tier for name, tier in asked if name == "parts"]
    whole = [tier for name, tier in asked if name == "whole"]
    assert parts
    assert whole == ([] if in_time else parts)
