"""Filters and scores of the operations platform, on random platforms, against ones written a second time."""

from __future__ import annotations

import random

import pytest

from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.framework.scheduler import Scored, examine
from stowplan.plugins_compat.platform_scores import platform_profile
from stowplan.plugins_compat.release import PLATFORM
from tests.support.cases import WANTED
from tests.support.platform_formulas import Machines
from tests.support.platforms import platform_of, random_platform

SCORES = ("GlobalVariance", "LeastUtilized", "BalancedShares", "TargetUtilization", "LoadRisk", "LeastMemory")


def examined(seed: int) -> tuple[Machines, Scored, list[int]]:
    """Return a random platform where some new instances have been placed, and what is said of the next one."""
    rng = random.Random(seed)
    content = random_platform(rng, machines=4, instances=8)
    names = [one["name"] for one in content["machines"]]
    last = content["instances"][-1]
    last.pop("machine", None)
    new = [one["name"] for one in content["instances"][:-1] if "machine" not in one]
    placed = {name: rng.choice(names) for name in new if rng.random() < 0.5}
    cluster = platform_of(content)
    target = {"name": "TargetUtilization", "args": {"target": rng.choice([40, 50, 70])}}
    profile = platform_profile(
        {"scores": [target if name == "TargetUtilization" else {"name": name} for name in SCORES]}, PLATFORM
    )
    where = {**cluster.assignment, **{f"platform/{name}": node for name, node in placed.items()}}
    machines = Machines({**content, "target": target["args"]}, placed, last["name"])
    found = examine(populated(cluster, profile, where), cluster.pods[-1], score_single=True)
    return machines, found, found.diagnosis.feasible.tolist()


@pytest.mark.parametrize("seed", range(max(60, WANTED)))
def test_filters_and_scores(seed: int) -> None:
    machines, found, feasible = examined(seed)
    assert sorted(feasible) == [n for n, one in enumerate(machines.machines) if machines.fits(one)]
    if not feasible:
        return
    said = {name: [float(points) for points in values] for name, values in found.scores.items()}
    fits = [machines.machines[n] for n in feasible]
    close = {"abs": 1e-6, "rel": 1e-9}
    assert said["LeastUtilized"] == pytest.approx([machines.least_utilized(one) for one in fits], **close)
    assert said["BalancedShares"] == pytest.approx([machines.balanced_shares(one) for one in fits], **close)
    target = machines.content["target"]["target"]
    assert said["TargetUtilization"] == pytest.approx([machines.target_utilization(m, target) for m in fits], **close)
    assert said["LoadRisk"] == pytest.approx([machines.load_risk(one) for one in fits], **close)
    assert said["LeastMemory"] == pytest.approx(
        proportional([float(machines.used(m, "memory")) for m in fits]), **close
    )
    variances = [machines.variance(one) for one in fits]
    if max(variances) - min(variances) > 1e-9:
        assert said["GlobalVariance"] == pytest.approx(proportional(variances), abs=1e-4)


def proportional(values: list[float]) -> list[float]:
    """Return 100 for the least, 0 for the largest, and others in proportion."""
    span = max(values) - min(values)
    return [100 * (max(values) - value) / span if span else 100.0 for value in values]
