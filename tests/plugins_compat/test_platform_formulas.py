"""Filters and scores of the operations platform, on random platforms, against ones written a second time."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.framework.scheduler import Scored, examine
from stowplan.plugins_compat.platform_scores import platform_profile
from stowplan.plugins_compat.release import PLATFORM
from tests.support.cases import WANTED
from tests.support.platform_formulas import Machines
from tests.support.platforms import platform_of, random_platform

RESOURCES = ("LeastUtilized", "BalancedShares", "LoadRisk")
METRIC = ("GlobalVariance", "TargetUtilization", "LeastMemory")
"""Scores of several resources, and of one each."""


def odd(rng: random.Random, content: dict[str, Any]) -> None:
    """Add what is rare: machines without cores, resources of some machines, instances that take next to nothing."""
    for machine in content["machines"]:
        if rng.random() < 0.15:
            machine |= {"cpu": 0, "used": {}, "peak": {}}
        if rng.random() < 0.5:
            machine["network"] = "10G"
        if rng.random() < 0.3:
            machine["resources"] = {"example.com/fpga": rng.randint(0, 3)}
    for instance in content["instances"]:
        if rng.random() < 0.2:
            instance |= {"cpu": rng.choice([0, "0.0001", "1500u"]), "memory": rng.choice(["0.5", "1.5Gi"])}
        if rng.random() < 0.1:
            instance["resources"] = {"example.com/fpga": 1}
    for sample in content["samples"]:
        if rng.random() < 0.4:
            sample["values"]["network"] = rng.random()


def examined(seed: int) -> tuple[Machines, Scored, list[int], str, dict[str, float], float]:
    """Return a random platform where some new instances have been placed, and what is said of the next one.

    The last three are the metric, the resources with their weights, and the target that are scored.
    """
    rng = random.Random(seed)
    content = random_platform(rng, machines=4, instances=8)
    if seed % 2:
        odd(rng, content)
    names = [one["name"] for one in content["machines"]]
    last = content["instances"][-1]
    last.pop("machine", None)
    new = [one["name"] for one in content["instances"][:-1] if "machine" not in one]
    placed = {name: rng.choice(names) for name in new if rng.random() < 0.5}
    has = sorted({name for m in content["machines"] for name in ("cpu", "memory", "network") if name in m})
    has += sorted({name for m in content["machines"] for name in m.get("resources", {})})
    metric, target = rng.choice(has), float(rng.choice([1, 40, 50, 70, 99]))
    weights = {name: rng.choice([0.5, 1.0, 2.0]) for name in rng.sample(has, rng.randint(1, len(has)))}
    args: dict[str, dict[str, Any]] = {name: {"resources": weights} for name in RESOURCES}
    args |= {name: {"metric": metric, **({"target": target} if "Target" in name else {})} for name in METRIC}
    cluster = platform_of(content)
    profile = platform_profile({"scores": [{"name": name, "args": args[name]} for name in args]}, PLATFORM)
    where = {**cluster.assignment, **{f"platform/{name}": node for name, node in placed.items()}}
    found = examine(populated(cluster, profile, where), cluster.pods[-1], score_single=True)
    machines = Machines(content, placed, last["name"])
    return machines, found, found.diagnosis.feasible.tolist(), metric, weights, target


@pytest.mark.parametrize("seed", range(max(120, WANTED)))
def test_filters_and_scores(seed: int) -> None:
    machines, found, feasible, metric, weights, target = examined(seed)
    assert sorted(feasible) == [n for n, one in enumerate(machines.machines) if machines.fits(one)]
    if not feasible:
        return
    said = {name: [float(points) for points in values] for name, values in found.scores.items()}
    fits = [machines.machines[n] for n in feasible]
    close = {"abs": 1e-8, "rel": 1e-10}
    assert said["LeastUtilized"] == pytest.approx([machines.least_utilized(m, weights) for m in fits], **close)
    assert said["BalancedShares"] == pytest.approx([machines.balanced_shares(m, weights) for m in fits], **close)
    risks = [machines.load_risk(m, weights) for m in fits]
    # Measured usage is whole bytes; the mean of samples is not.
    assert said["LoadRisk"] == pytest.approx(risks, abs=1e-6)
    targets = [machines.target_utilization(m, metric, target) for m in fits]
    assert said["TargetUtilization"] == pytest.approx(targets, **close)
    used = [machines.used(m, metric) for m in fits]
    assert said["LeastMemory"] == pytest.approx(proportional(used), **close)
    assert said["GlobalVariance"] == pytest.approx(proportional([machines.variance(m, metric) for m in fits]), **close)


def proportional(values: list[Fraction]) -> list[float]:
    """Return 100 for the least, 0 for the largest, and others in proportion."""
    span = max(values) - min(values)
    return [float(100 * (max(values) - value) / span) if span else 100.0 for value in values]
