"""What more workers of a Ray cluster bring, and when their coordinator is at work all the time.

``python -m benchmarks.ray_workers [NODES] [--workers 1 2 4] [--seconds 60] [--seed 7]``: a cluster of ``stowplan
generate`` with ten pods a node, objective ``balance``, solved by as many processes of this machine, and by a real Ray
cluster on it whose nodes have one processor each. Printed are the last tier's value and bound, the jobs done, by second
of the time in which there were jobs, the processor seconds of workers by second of the whole, the coordinator's share
of the time in which there were jobs, and the most that Ray's object stores held. Workers' seconds for jobs over the
coordinator's are the number of workers that it can keep busy. Processors that the machine does not have are shared, so
this number holds and the speed does not.
"""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from stowplan.answers.solve import solve_snapshot
from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.optimizer.backend import RayBackend
from stowplan.optimizer.distributed.cluster import leave
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.problem import make_problem
from tests.support.ray_clusters import nodes_on_one_machine

SHARED = "/dev/shm"
"""Where object stores are."""


def main() -> int:
    """Solve with each number of workers, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ray_workers")
    parser.add_argument("nodes", nargs="?", type=int, default=1000)
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args()
    snapshot = synthetic_snapshot(chosen.nodes, 10 * chosen.nodes, chosen.seed)
    compiled = make_problem(snapshot, Settings())
    print(f"{chosen.nodes} nodes, {10 * chosen.nodes} pods, {chosen.seconds:g} s", flush=True)
    for workers in chosen.workers:
        print(f"{workers} of this machine: {solved(compiled, Options(chosen.seconds, processes=workers))}", flush=True)
    for workers in chosen.workers:
        print(f"{workers} in Ray: {in_ray(compiled, workers, chosen.seconds)}", flush=True)
    return 0


def solved(compiled: Compiled, options: Options, backend: RayBackend | None = None) -> str:
    """Return the last tier's value and bound in words."""
    outcome = solve_snapshot(compiled, options, backend=backend).outcome
    tier, found = compiled.problem.tiers[-1], outcome.tiers[-1]
    return f"{tier.name} {tier.shown(found.value):,.0f}, bound {tier.shown(found.bound):,.0f}"


def in_ray(compiled: Compiled, workers: int, seconds: float) -> str:
    """Solve in a Ray cluster of its own."""
    with nodes_on_one_machine(workers) as cluster:
        with watched_store() as most:
            backend = RayBackend(cluster.address, workers=workers)
            value = solved(compiled, Options(seconds), backend)
        counts, worked = backend.counts, backend.cluster.worked
        backend.close()
        leave()
    if not counts.done or not counts.seconds:
        return f"{value}; no jobs; store {most[0]} MiB"
    own = counts.coordination * counts.seconds
    theirs = workers * (counts.seconds - own)
    busy = f"{theirs / own:.0f} workers" if own else "any number of workers"
    return (
        f"{value}; {counts.done} jobs in {counts.seconds:.0f} s, {counts.done / counts.seconds:.2f} a second, "
        f"{worked / seconds:.2f} processors at work; "
        f"{counts.dropped} dropped; coordinator {counts.coordination:.0%}: keeps {busy} busy; store {most[0]} MiB"
    )


@contextmanager
def watched_store() -> Iterator[list[int]]:
    """Yield a list whose only entry is the most MiB that all object stores held together."""

    def used() -> int:
        found = os.statvfs(SHARED)
        return (found.f_blocks - found.f_bfree) * found.f_frsize // 2**20

    most, over, before = [0], threading.Event(), used()

    def look() -> None:
        while not over.wait(0.2):
            most[0] = max(most[0], used() - before)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


if __name__ == "__main__":
    raise SystemExit(main())
