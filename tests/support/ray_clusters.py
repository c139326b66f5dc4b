"""A real Ray cluster of several nodes on this machine, and what can happen to it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from stowplan.optimizer.distributed import cluster as joining

STORE = 80 * 2**20
"""Bytes of the object store of a node."""


class NodesOnOneMachine:
    """A head without processors, and nodes with one processor each."""

    def __init__(self, nodes: int) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        self._nodes: list[Any] = []
        self.address: str = self._cluster.address
        for _ in range(nodes):
            self.add_node()

    def add_node(self) -> None:
        self._nodes.append(self._cluster.add_node(num_cpus=1, object_store_memory=STORE))

    def kill_node(self) -> None:
        """End the oldest node and its workers, as a machine that loses power."""
        node = self._nodes.pop(0)
        doomed = _raylet(node).children(recursive=True)
        self._cluster.remove_node(node, allow_graceful=False)
        for process in doomed:
            _kill(process)

    def kill_worker(self, patience: float = 30.0) -> None:
        """Kill one of the processes that do jobs, once there is one."""
        until = time.monotonic() + patience
        while not (found := self.workers()):
            assert time.monotonic() < until, "no worker to kill"
            time.sleep(0.05)
        _kill(found[0])

    def workers(self) -> list[psutil.Process]:
        """Return the processes that do jobs, the oldest first."""
        found = [child for node in self._nodes for child in _raylet(node).children() if _works(child)]
        return sorted(found, key=lambda process: process.create_time())

    def await_workers(self, number: int, seconds: float = 20.0) -> bool:
        """Wait until so many processes do jobs, and no others."""
        until = time.monotonic() + seconds
        while len(self.workers()) != number and time.monotonic() < until:
            time.sleep(0.1)
        return len(self.workers()) == number

    def await_no_workers(self) -> bool:
        """Wait until no process does jobs."""
        return self.await_workers(0)

    def close(self) -> None:
        joining.leave()
        self._cluster.shutdown()


@contextmanager
def nodes_on_one_machine(nodes: int) -> Iterator[NodesOnOneMachine]:
    running = NodesOnOneMachine(nodes)
    try:
        yield running
    finally:
        running.close()


def _raylet(node: Any) -> psutil.Process:
    return psutil.Process(node.all_processes["raylet"][0].process.pid)


def _works(process: psutil.Process) -> bool:
    try:
        return any(part.startswith("ray::Worker") for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return
