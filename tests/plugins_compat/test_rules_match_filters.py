"""Rules and filters are two readings of one plugin: they admit the same final states.

Listed exception: where the volumes on a node exceed its attach limit, and each of them is shared by two pods there,
the filter would admit any one of these pods (it brings nothing new), though no order of arrival leads there. The rule
counts volumes, and refuses.
"""

from __future__ import annotations

import random

import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.admission import populated, rejections
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36, Release
from tests.support.brute_force import placements
from tests.support.clusters import random_cluster, random_devices, random_disks

TRIED = 40


@pytest.mark.parametrize("release", [K24, K36], ids=lambda r: r.name)
@pytest.mark.parametrize("seed", range(60))
def test_a_final_state_is_legal_exactly_when_the_filters_admit_every_pod(seed: int, release: Release) -> None:
    check_states(random_cluster(seed), release, seed)


@pytest.mark.parametrize("release", [K24, K36], ids=lambda r: r.name)
@pytest.mark.parametrize("seed", range(40))
def test_it_is_so_where_disks_of_every_kind_meet_their_limits(seed: int, release: Release) -> None:
    check_states(random_disks(seed), release, seed)


@pytest.mark.parametrize("release", [K24, K36], ids=lambda r: r.name)
@pytest.mark.parametrize("seed", range(60))
def test_it_is_so_where_pods_share_devices(seed: int, release: Release) -> None:
    check_states(random_devices(seed), release, seed, "GpuShare")


def check_states(snapshot: Snapshot, release: Release, seed: int, *more: str) -> None:
    profile = default_profile(release, more=more)
    compiled = compile_problem(snapshot, profile, PRESETS["repair"])
    evaluator = Evaluator(compiled.problem)
    states = list(placements(compiled.problem))
    random.Random(seed).shuffle(states)
    for placement in states[:TRIED]:
        where = compiled.assign(placement)
        refused = rejections(populated(snapshot, profile, where, compiled.signatures), where)
        violations = [
            b for b in evaluator.evaluate(placement).violations if refused or b.origin.plugin != "NodeVolumeLimits"
        ]
        assert bool(refused) == bool(violations), (where, [str(r) for r in refused], violations)
