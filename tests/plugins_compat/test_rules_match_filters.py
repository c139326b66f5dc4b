"""Rules and filters are two readings of one plugin: they admit the same final states.

Listed exception: where the volumes on a node exceed its attach limit, and each of them is shared by two pods there,
the filter would admit any one of these pods (it brings nothing new), though no order of arrival leads there. The rule
counts volumes, and refuses.
"""

from __future__ import annotations

import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.admission import populated, rejections
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36, Release
from tests.support.brute_force import placements
from tests.support.cases import cases, count
from tests.support.choices import steps
from tests.support.problems import let_in
from tests.support.random_clusters import clusters, device_clusters, disk_clusters

STATES = steps(40, 2)
"""Which of all final states are looked at."""
BOTH = pytest.mark.parametrize("release", [K24, K36], ids=lambda release: release.name)


@BOTH
@cases(30, at_least={"admitted": 120, "refused": 60}, cluster=clusters(broken=False), states=STATES)
def test_a_final_state_is_legal_exactly_when_the_filters_admit_every_pod(
    cluster: Snapshot, states: list[tuple[int, ...]], release: Release
) -> None:
    check_states(cluster, release, states)


@BOTH
@cases(20, at_least={"admitted": 60, "refused": 16}, cluster=disk_clusters(), states=STATES)
def test_a_final_state_is_legal_exactly_when_the_filters_admit_every_pod_with_its_disks(
    cluster: Snapshot, states: list[tuple[int, ...]], release: Release
) -> None:
    check_states(cluster, release, states)


@BOTH
@cases(30, at_least={"admitted": 80, "refused": 20}, cluster=device_clusters(broken=False), states=STATES)
def test_a_final_state_is_legal_exactly_when_the_filters_admit_every_pod_with_its_devices(
    cluster: Snapshot, states: list[tuple[int, ...]], release: Release
) -> None:
    check_states(cluster, release, states, "GpuShare")


def check_states(cluster: Snapshot, release: Release, states: list[tuple[int, ...]], *more: str) -> None:
    profile = default_profile(release, more=more)
    compiled = compile_problem(cluster, profile, PRESETS["repair"])
    evaluator = Evaluator(compiled.problem)
    every = list(placements(compiled.problem))
    for low, high in states:
        placement = every[(240 * high + low) % len(every)]
        if low % 2:
            # Of all states, few are legal, and hardly any is illegal for one reason alone.
            placement = let_in(compiled.problem, placement)
        where = compiled.assign(placement)
        refused = rejections(populated(cluster, profile, where, compiled.signatures), where)
        violations = [
            b for b in evaluator.evaluate(placement).violations if refused or b.origin.plugin != "NodeVolumeLimits"
        ]
        assert bool(refused) == bool(violations), (where, [str(r) for r in refused], violations)
        count("refused" if refused else "admitted")
