"""What a plan says that a move is for, when pods that are alike exchange their nodes after it was said."""

from __future__ import annotations

from stowplan.answers.assessment import Assessor
from stowplan.answers.solve import today
from stowplan.models.settings import Settings
from stowplan.planning.plan import planning_problem, sequence_placement
from stowplan.settings.terms import Terms
from tests.plans.test_sequencing import running, spread, zones
from tests.support.clusters import node, snapshot


def test_a_move_names_the_pod_that_comes_into_its_room() -> None:
    """The room on b was for web-1, which would leave its zone; web-0 takes it, and web-1 stays in its own."""
    rules = {"topologySpreadConstraints": spread()}
    pods = [running("web-0", "a", **rules), running("web-1", "c", **rules), running("db-0", "b", cpu="4")]
    cluster = snapshot(nodes=[*zones(a="z1", b="z1", c="z2", d="z2"), node("e")], pods=pods)
    compiled = planning_problem(cluster, Settings(), Terms())
    target = today(compiled) | {"default/web-0": "d", "default/web-1": "b", "default/db-0": "e"}
    made = sequence_placement(Assessor(compiled), target, (), Settings(), Terms(), keep=True).plan
    where = {move.pod.name: (move.target, move.why) for move in made.moves}
    assert {name: node for name, (node, _) in where.items()} == {"web-0": "b", "web-1": "d", "db-0": "e"}
    assert where["db-0"][1] == "makes room on b for default/web-0"
