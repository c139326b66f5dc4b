"""How evenly an operations platform can be filled: as it is, by the greedy methods, and at best.

``python -m benchmarks.platform [MACHINES INSTANCES SECONDS] [FILE.yaml]``: machines of one size, instances of 1 to 6
GiB of which a tenth is new and the others are on random machines. For each method the variance of memory over the
machines, in squared percentage points, instances that move, instances without a machine, time, and how many machines
lie how far from the mean. With a file, the platform is written there, and nothing is measured.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import yaml

from stowplan.answers.solve import solve_snapshot
from stowplan.instances.platform import NAMESPACE, as_snapshot
from stowplan.models.objective import Objective, TierSettings
from stowplan.models.options import Options
from stowplan.models.platform import KIND, VERSION, Instance, Limits, Machine, Platform
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.platform_scores import platform_profile
from stowplan.plugins_compat.release import PLATFORM
from stowplan.plugins_compat.simulate import simulate
from stowplan.settings.problem import make_problem

METHODS = {
    "old rule: least memory": [("LeastMemory", 1)],
    "least utilized and balanced": [("LeastUtilized", 1), ("BalancedShares", 1)],
    "target and risk": [("TargetUtilization", 1), ("LoadRisk", 1)],
    "variance first": [("GlobalVariance", 1000), ("TargetUtilization", 1), ("LoadRisk", 1)],
}
MOVE_COSTS = (0.1, 0.0)
"""What a move costs in the objectives that are compared: with a little for moves, and variance alone."""
KINDS = ("master", "replica", "proxy")
GIB = 2**30
WIDTHS = (0.5, 2.0, 5.0, 10.0)


def platform(machines: int, instances: int, seed: int = 1) -> Platform:
    """Return a random platform; on average 16.7 instances of 3.5 GiB share a machine of 96 GiB."""
    rng = random.Random(seed)
    made = []
    for i in range(instances):
        at = None if rng.random() < 0.1 else f"m{rng.randrange(machines):04d}"
        size = rng.randint(4, 24) * GIB // 4
        made.append(
            Instance(
                name=f"i{i:05d}", cluster=f"c{i // 12}", kind=KINDS[i % 3], machine=at, cpu="500m", memory=str(size)
            )
        )
    return Platform(
        shares={"memory": 0.9},
        limits=Limits(masters=0.75),
        machines=tuple(Machine(name=f"m{n:04d}", cpu="64", memory="96Gi") for n in range(machines)),
        instances=tuple(made),
    )


def written(made: Platform) -> str:
    """Return a platform as a file has it."""
    content = made.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return yaml.safe_dump({"kind": KIND, "apiVersion": VERSION, **content, "shares": made.shares}, sort_keys=False)


def shares(snapshot: Snapshot, assignment: Mapping[str, str]) -> np.ndarray:
    """``[n]`` memory in use on each machine, in percent of what can be allocated."""
    used = np.zeros(len(snapshot.nodes))
    for pod in snapshot.pods:
        if node := assignment.get(pod.key):
            used[snapshot.node_index[node]] += pod.spec.containers[0].requests.get("memory", 0)
    offered = np.array([node.allocatable["memory"] for node in snapshot.nodes], dtype=np.float64)
    result: np.ndarray = 100 * used / offered
    return result


def report(name: str, snapshot: Snapshot, assignment: Mapping[str, str], seconds: float, note: str = "") -> None:
    """Print one line."""
    found = shares(snapshot, assignment)
    bound = snapshot.assignment
    moves = sum(1 for key, node in bound.items() if assignment.get(key) != node)
    lost = sum(1 for pod in snapshot.pods if pod.namespace == NAMESPACE and pod.key not in assignment)
    distance = np.abs(found - found.mean())
    near = Counter({width: int((distance <= width).sum()) for width in WIDTHS})
    within = " ".join(f"{near[width]:>5}" for width in WIDTHS)
    print(f"{name:<38} {found.var():>9.4f} {moves:>6} {lost:>5} {seconds:>7.1f}  {within} {note}")


def main() -> None:
    """Print one line a method."""
    given = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    files = [word for word in sys.argv[1:] if not word.isdecimal()]
    machines, instances, limit = (given + [300, 5000, 60][len(given) :])[:3]
    if files:
        Path(files[0]).write_text(written(platform(machines, instances)), encoding="utf-8")
        return
    snapshot = as_snapshot(platform(machines, instances))
    print(f"{machines} machines, {instances} instances; machines within so many percentage points of the mean:")
    heading = " ".join(f"{width:>5g}" for width in WIDTHS)
    print(f"{'':<38} {'variance':>9} {'moves':>6} {'lost':>5} {'seconds':>7}  {heading}")
    report("before", snapshot, snapshot.assignment, 0.0)
    waiting = [pod for pod in snapshot.pods if not pod.node_name]
    for name, scores in METHODS.items():
        profile = platform_profile({"scores": [{"name": n, "weight": w} for n, w in scores]}, PLATFORM)
        began = time.perf_counter()
        done = simulate(snapshot, profile, waiting, snapshot.assignment)
        report(f"greedy, {name}", snapshot, done.assignment, time.perf_counter() - began)
    profile = platform_profile({}, PLATFORM)
    instances_of_all = [pod for pod in snapshot.pods if pod.namespace == NAMESPACE]
    fixed = {pod.key: pod.node_name for pod in snapshot.pods if pod.namespace != NAMESPACE}
    began = time.perf_counter()
    done = simulate(snapshot, profile, instances_of_all, fixed)
    report("greedy, variance first, all anew", snapshot, done.assignment, time.perf_counter() - began)
    if not limit:
        return
    for moves in MOVE_COSTS:
        tiers = (TierSettings(name="unevenness", evenness={"memory": 1}, moves=moves),)
        compiled = make_problem(snapshot, Settings(objective=Objective(name="evenness", tiers=tiers)))
        began = time.perf_counter()
        solution = solve_snapshot(compiled, Options(time_limit=float(limit)))
        tier = solution.outcome.tiers[-1]
        shown = compiled.problem.tiers[-1].shown
        note = f"objective {shown(tier.value):.5f}, not below {shown(tier.bound):.5f}, by {tier.bound_by}"
        title = f"evenness, a move costs {moves:g}" if moves else "evenness alone"
        report(f"best found: {title}", snapshot, solution.assignment, time.perf_counter() - began, note)


if __name__ == "__main__":
    main()
