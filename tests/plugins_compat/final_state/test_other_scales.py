"""The scorer by classes in releases whose scores do not go up to 100, or are real numbers."""

from __future__ import annotations

import random

import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.result import Status
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.portfolio import Options, solve
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.feature_gates import gated
from stowplan.plugins_compat.final_state.cost import FinalStateCost
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K5, K20, PLATFORM, Release
from tests.plugins_compat.final_state.test_scorer import check, of_framework, of_scorer
from tests.support.brute_force import best, placements
from tests.support.cases import cases
from tests.support.choices import Seeded
from tests.support.clusters import node, pod, snapshot
from tests.support.platforms import platform_of, random_platform
from tests.support.random_clusters import clusters, disk_clusters, random_cluster

VOLUMES = gated(K20, "BalanceAttachedNodeVolumes=true")


@cases(10, cluster=clusters())
def test_older_releases(cluster: Snapshot) -> None:
    for release in (K5, K20):
        check(compile_problem(cluster, default_profile(release), PRESETS["kube"]), 4)


@cases(10, cluster=disk_clusters())
def test_disks_that_are_balanced(cluster: Snapshot) -> None:
    check(compile_problem(cluster, default_profile(VOLUMES), PRESETS["kube"]), 4)


@pytest.mark.parametrize("seed", range(15))
def test_real_scores_are_counted_to_a_millionth(seed: int) -> None:
    cluster = platform_of(random_platform(random.Random(seed)))
    compiled = compile_problem(cluster, default_profile(PLATFORM), PRESETS["kube"])
    for placement in [compiled.problem.start, *list(placements(compiled.problem))[:4]]:
        (expected, scored), (sums, of_those) = of_framework(compiled, placement), of_scorer(compiled, placement)
        assert of_those == scored
        for plugin in {*expected, *sums}:
            off = abs(expected.get(plugin, 0) - sums.get(plugin, 0))
            assert off <= (scored + 1) * default_profile(PLATFORM).weight(plugin), plugin


def test_a_pod_misses_what_the_scale_of_its_release_has() -> None:
    """On a node with nothing left, LeastRequestedPriority scores 0 of 10, where 1.24 scores 0 of 100."""
    cluster = snapshot(nodes=[node("n", cpu="1", memory="1Gi")], pods=[pod("p", "n", cpu="1", memory="1Gi")])
    compiled = compile_problem(cluster, default_profile(K5), PRESETS["kube"])
    final = compiled.final_state
    assert isinstance(final, FinalStateCost)
    missed = final.missed(compiled.problem.start, compiled.problem.size)
    assert missed["LeastRequestedPriority"] == 10
    assert missed["BalancedResourceAllocation"] == 10
    assert missed["SelectorSpreadPriority"] == 0


def test_a_real_score_is_not_cut_off_at_the_point() -> None:
    """60 % and 60.004 % of a target: TargetUtilization tells them apart, and so does the objective."""
    machines = [
        {"name": "m1", "cpu": 4, "memory": "100G", "used": {"memory": "29.9G"}},
        {"name": "m2", "cpu": 4, "memory": "100G", "used": {"memory": "29.902G"}},
    ]
    content = {"machines": machines, "shares": {"memory": 1}, "instances": [
        {"name": "a", "cluster": "c", "kind": "proxy", "cpu": "100m", "memory": "100M", "machine": "m1"}
    ]}  # fmt: skip
    compiled = compile_problem(platform_of(content), default_profile(PLATFORM), PRESETS["kube"])
    final = compiled.final_state
    assert isinstance(final, FinalStateCost)
    missed = [final.missed(p, compiled.problem.size) for p in placements(compiled.problem) if len(p.node)]
    assert len({m["TargetUtilization"] for m in missed}) == len(missed) > 1
    assert all(0 < m["TargetUtilization"] < 100 * PLATFORM.score_unit for m in missed)


@pytest.mark.parametrize("release", [K5, K20, PLATFORM], ids=lambda release: release.name)
@pytest.mark.parametrize("seed", range(2))
def test_no_placement_is_better_than_one_that_is_proven(release: Release, seed: int) -> None:
    """Search state, value and bound agree on what a point costs."""
    made = platform_of(random_platform(random.Random(seed))) if release is PLATFORM else random_cluster(Seeded(seed))
    compiled = compile_problem(made, default_profile(release), PRESETS["kube"])
    outcome = solve(compiled.problem, Options(time_limit=5, deterministic=True, seed=seed))
    values = tuple(tier.value for tier in outcome.tiers)
    least = best(compiled.problem)
    assert values >= least
    if outcome.status is Status.OPTIMAL:
        assert values == least
