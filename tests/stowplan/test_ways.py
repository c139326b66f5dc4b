"""Plans on nearly full clusters: where moves wait for each other, a way over third nodes is found and holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from stowplan.answers.verify_plan import verify_plan
from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.settings import Settings
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.portfolio import Options
from stowplan.optimizer.reconfiguration import ReconfigurationParameters
from stowplan.planning import plan as planning
from stowplan.planning.drain import Drained, drain
from stowplan.planning.way import WayFinder
from stowplan.plans.move import Move
from tests.support.clusters import labels as selecting
from tests.support.clusters import node, pod, snapshot

WITHOUT = Parameters(reconfiguration=ReconfigurationParameters(largest_table=0))
QUICK = Options(time_limit=1.0, deterministic=True)


def drained(options: Options = QUICK) -> Drained:
    cluster = synthetic_snapshot(20, 200, 3, fill=0.85)
    found = drain(cluster, [cluster.nodes[0].name], Settings(), options)
    checked = verify_plan(cluster, found.planned.plan, found.planned.compiled.profile)
    assert checked.holds, checked.drift.problems
    return found


def test_a_nearly_full_cluster_is_drained_over_third_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[int] = []
    find = WayFinder.__call__

    def counted(self: WayFinder, moves: Sequence[Move]) -> Sequence[Move]:
        found = find(self, moves)
        ways.append(len(found))
        return found

    monkeypatch.setattr(WayFinder, "__call__", counted)
    found = drained()
    assert found.possible
    assert max(ways) > 0
    moves = [move for wave in found.planned.plan.waves for move in wave.moves]
    assert not [move for move in moves if move.target == found.planned.compiled.snapshot.nodes[0].name]


def test_without_kernels_and_under_a_limit_that_is_too_low_there_is_no_way() -> None:
    cluster = snapshot(
        nodes=[node("a", cpu="2"), node("b", cpu="2"), node("c", cpu="2")],
        pods=[pod("x", "a", cpu="2", owner="ReplicaSet/x"), pod("y", "b", cpu="1900m", owner="ReplicaSet/y")],
    )
    settings = planning._with_executor(Settings())
    compiled = planning.planning_problem(cluster, settings, planning.Terms())
    start = planning.today(compiled)
    moves = [planning.Move(p, p.node_name, "b" if p.name == "x" else "a") for p in compiled.pods]

    def way(options: Options, settings: Settings = settings) -> list[tuple[str, str, str]]:
        problem = planning.planning_problem(cluster, settings, planning.Terms())
        assessor = planning.Assessor(problem)
        finder = planning._Planning(assessor, settings, planning.Terms(), options=options)._way(problem, options)
        assert finder.start == start
        return [(move.pod.name, move.source, move.target) for move in finder(moves)]

    assert len(way(QUICK)) == 3
    assert not way(replace(QUICK, kernels=False))
    assert not way(replace(QUICK, parameters=WITHOUT))
    assert not way(QUICK, settings.model_copy(update={"max_moves": 2}))
    assert len(way(QUICK, settings.model_copy(update={"max_moves": 3}))) == 3


def test_who_may_not_be_evicted_does_not_make_room() -> None:
    pods = [
        pod("x", "a", cpu="2", owner="ReplicaSet/x"),
        pod("y", "b", cpu="1900m", owner="ReplicaSet/y"),
        pod("z", "c", cpu="1", owner="ReplicaSet/z", labels={"app": "z"}),
    ]
    nodes = [node("a", cpu="2"), node("b", cpu="2"), node("c", cpu="2"), node("d", cpu="1")]
    guard = {
        "metadata": {"name": "z", "namespace": "default"},
        "spec": {"selector": selecting(app="z"), "maxUnavailable": 0},
    }
    for budgets, expected in (([], 5), ([guard], 0)):
        cluster = snapshot(nodes=nodes, pods=pods, pod_disruption_budgets=budgets)
        settings = planning._with_executor(Settings())
        compiled = planning.planning_problem(cluster, settings, planning.Terms())
        finder = planning._Planning(planning.Assessor(compiled), settings, planning.Terms(), options=QUICK)._way(
            compiled, QUICK
        )
        swapped = {"x": "b", "y": "a"}
        moves = [planning.Move(p, p.node_name, swapped[p.name]) for p in compiled.pods if p.name in swapped]
        assert len(finder(moves)) == expected
