"""How long a wave may take: its pods have the time to end that they are given, and their replacements come up."""

from __future__ import annotations

from datetime import timedelta

import pytest

from stowplan.answers.assessment import Assessor
from stowplan.answers.solve import today
from stowplan.models.limits import LimitsDocument
from stowplan.models.settings import Settings
from stowplan.planning.plan import planning_problem, sequence_placement
from stowplan.settings.terms import Terms
from tests.support.clusters import node, pod, snapshot


@pytest.mark.parametrize(
    ("graces", "wanted", "seconds"),
    [
        ((None, None), None, 600),
        ((0, 300), None, 600),
        ((None, 3600), None, 3900),
        ((None, None), timedelta(minutes=30), 1800),
        ((None, 120), timedelta(minutes=1), 420),
        ((None, None), timedelta(minutes=1), 330),
    ],
)
def test_a_wave_lasts_as_long_as_its_slowest_pod(
    graces: tuple[int | None, ...], wanted: timedelta | None, seconds: int
) -> None:
    pods = [
        pod(name, "a", owner="ReplicaSet/web", **({} if grace is None else {"terminationGracePeriodSeconds": grace}))
        for name, grace in zip(("web-0", "web-1"), graces, strict=True)
    ]
    # One that stays has no say, however long it takes.
    pods.append(pod("idle", "a", owner="ReplicaSet/idle", terminationGracePeriodSeconds=9000))
    cluster = snapshot(nodes=[node("a"), node("b")], pods=pods)
    free = LimitsDocument()
    terms = Terms(limits=free) if wanted is None else Terms(limits=free, wave_timeout=wanted)
    compiled = planning_problem(cluster, Settings(), terms)
    target = today(compiled) | {"default/web-0": "b", "default/web-1": "b"}
    made = sequence_placement(Assessor(compiled), target, (), Settings(), terms, keep=True).plan
    assert [wave.barrier.timeout_seconds for wave in made.waves] == [seconds]
