"""Plans of random clusters carried out while chance decides; `tests.support.campaign` carries out any number."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.support.api_server import Cluster
from tests.support.campaign.alone import carried_out_alone
from tests.support.campaign.clusters import planned_for, random_manifests, seen
from tests.support.campaign.outcomes import Outcome
from tests.support.campaign.report import told_of
from tests.support.campaign.steered import carried_out_steered

IMPROVED = 12
"""Seed of a plan of which kube-scheduler alone brings a part, in some runs."""


@pytest.mark.parametrize("seed", [IMPROVED, 290])
def test_a_plan_for_kube_scheduler_alone_brings_what_replays_say(seed: int, home: Path) -> None:
    found = carried_out_alone(seed, home)
    assert found is not None
    assert not found.worse
    assert not found.twice
    assert found.in_range


def test_a_steered_plan_comes_to_its_end_although_it_is_killed_and_a_workload_changes(home: Path) -> None:
    found = carried_out_steered(4, home)
    assert found is not None
    assert found.events
    assert (found.stopped, found.worse, found.twice, found.broken) == ("", False, 0, 0)


@pytest.mark.parametrize("seed", [70069, 70074, 70106])
def test_what_a_move_makes_room_for_comes_to_its_node(seed: int) -> None:
    """Pods of one owner exchange their targets while waves are filled, after it was said what a move is for."""
    rng = random.Random(seed)
    plan = planned_for(seen(Cluster(random_manifests(rng, waiting=True)).store), rng, steered=True)
    named = 0
    for wave in plan.waves:
        coming = {(m.target, m.pod.key) for w in plan.waves if w.number >= wave.number for m in w.moves}
        for move in wave.moves:
            if found := re.search(r"makes room on (\S+) for (\S+)", move.why):
                named += 1
                assert found.groups() in coming
    assert named


def test_outcomes_are_summed_up() -> None:
    good = Outcome(3, 2, 1, "", 1.0, 0.9, 1.0, False, 0, 0, False, ("rollout of web1", "apply killed at list"))
    bad = Outcome(1, 1, 0, "pod shop/web1-5d5b-aaaab is gone", 0.5, 0.9, 1.0, True, 1, 0, True, ("rollout of web2",))
    first, gain, *rest = told_of([good, bad])
    assert first.startswith("2 plans, 4 moves, 3 waves, 1 cordons; 1 came to their end, 1 ended worse")
    assert first.endswith("0 against their budget, 1 stopped although the rest was feasible")
    assert gain == "gain kept: 75.0% on average; in the range of the replays in 1 of 2"
    assert rest == ["2 times rollout", "1 times apply killed", "1 stopped: pod … is gone"]
