"""What a search in a Ray cluster loses when workers, nodes, and its own process are killed.

``python -m benchmarks.ray_faults [--workers 20] [--nodes 3] [--coordinators 3]``: a real Ray cluster of four nodes on
this machine, and ``solve --backend ray --checkpoint FILE`` as a process of its own. Each kill hits a search in which
jobs are under way. A kill of a worker or a node has to leave a complete answer, which ``verify`` accepts; after one of
the coordinator, the same command goes on, and its answer must be verified and no worse than the one in the checkpoint.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.support.ray_clusters import nodes_on_one_machine
from tests.support.ray_solves import Solve

NODES = 4
"""Nodes with a processor each."""

SECONDS = 24.0
"""Of a search in which something is killed; in less, nodes are not divided into regions."""

APART = 4.0
"""Seconds from one kill to the next in the same search."""


def main() -> int:
    """Kill, and return 1 if an answer was lost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ray_faults")
    parser.add_argument("--workers", type=int, default=20, help="kills of workers")
    parser.add_argument("--nodes", type=int, default=3, help="kills of nodes")
    parser.add_argument("--coordinators", type=int, default=3, help="kills of the process that solves")
    chosen = parser.parse_args()
    began = time.monotonic()
    failed = 0
    with nodes_on_one_machine(NODES) as cluster, tempfile.TemporaryDirectory() as folder:
        search = Solve(Path(folder), cluster, nodes=400, pods=4000)

        def lost_node() -> None:
            cluster.kill_node()
            cluster.add_node()

        ways = (("worker", cluster.kill_worker, chosen.workers), ("node", lost_node, chosen.nodes))
        for what, kill, number in ways:
            left = number
            while left:
                kills = min(left, int(SECONDS / APART) - 2)
                try:
                    found = search.survived(kill, kills, SECONDS, APART)
                    print(f"{kills} kills of a {what}: {found['values']}; {found['notes'][-1]}", flush=True)
                except AssertionError as error:
                    failed += 1
                    print(f"kill of a {what}: {error}", flush=True)
                left -= kills
        for number in range(chosen.coordinators):
            try:
                before = search.killed_when_something_was_found()
                found = search.finished()
                assert found["values"] <= before, f"{before} became {found['values']}"
                print(f"kill {number + 1} of the coordinator: {before} kept, then {found['values']}", flush=True)
            except AssertionError as error:
                failed += 1
                print(f"kill {number + 1} of the coordinator: {error}", flush=True)
    kills = chosen.workers + chosen.nodes + chosen.coordinators
    print(f"{kills} kills, {failed} searches failed; {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
