"""What dividing one part among workers costs in quality: ``python -m benchmarks.regions``; ``--help`` lists options.

A cluster of ``stowplan generate`` with ten pods a node is solved by threads of this machine, undivided, and in a real
Ray cluster on it whose nodes have one processor each, by regions of more and more numbers. All have the same seconds on
the same processors. Printed are the last tier's value and bound, and how many pairs of a class and a node a region has
at the start.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.ray_workers import solved
from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.options import Options
from stowplan.models.problem import Problem
from stowplan.models.settings import Settings
from stowplan.optimizer.backend import RayBackend
from stowplan.optimizer.distributed.cluster import leave
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.regions.drawing import Division, dealt
from stowplan.optimizer.regions.parameters import RegionParameters
from stowplan.optimizer.regions.region import Region
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.problem import make_problem
from tests.support.ray_clusters import nodes_on_one_machine


def main() -> None:
    """Print a row for each number of regions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs="*", type=int, default=[1000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--for-each", nargs="+", type=int, default=[1, 2, 4], help="regions for each worker")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--objective", default="balance")
    given = parser.parse_args()
    for nodes in given.nodes:
        snapshot = synthetic_snapshot(nodes, 10 * nodes, given.seed)
        compiled = make_problem(snapshot, Settings(objective=given.objective))
        print(f"{nodes} nodes, {10 * nodes} pods, {given.seconds:g} s", flush=True)
        options = Options(given.seconds, processes=given.workers)
        print(f"undivided: {solved(compiled, options)}; {pairs(compiled.problem):,} pairs", flush=True)
        for each in given.for_each:
            print(f"{each * given.workers} regions: {divided(compiled, options, given.workers, each)}", flush=True)


def divided(compiled: Compiled, options: Options, workers: int, each: int) -> str:
    """Solve in a Ray cluster of its own."""
    parameters = Parameters(regions=RegionParameters(per_worker=each, least_nodes=10))
    with nodes_on_one_machine(workers) as cluster:
        backend = RayBackend(cluster.address, workers=workers)
        value = solved(compiled, Options(options.time_limit, parameters=parameters), backend)
        counts = backend.counts
        backend.close()
        leave()
    region = dealt(np.zeros(len(compiled.problem.nodes)), workers * each, np.random.default_rng(0))
    one = Region(compiled.problem, compiled.problem.start, Division(region, workers * each, 0, frozenset(), {}), 0)
    return f"{value}; {counts.done} jobs done, {counts.dropped} dropped; {pairs(one.problem):,} pairs in one"


def pairs(problem: Problem) -> int:
    """Return how many pairs of a class and a node there are."""
    return len(problem.classes) * len(problem.nodes)


if __name__ == "__main__":
    main()
