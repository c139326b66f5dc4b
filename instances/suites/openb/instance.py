"""A pod list on a node list, as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stowplan.instances.documents import Document, read_file
from stowplan.instances.suites.openb.lists import WHOLE, Cluster, read_lists
from stowplan.instances.suites.openb.placing import DeviceProblem, check_devices, device_problem
from stowplan.instances.suites.suite import Instance, Reference, Verdict

ALLOCATED = "GPUs allocated, %"


@dataclass(frozen=True)
class DeviceInstance(Instance):
    """Two files of openb."""

    name: str
    group: str
    nodes: Path
    pods: Path
    known: Reference
    suffix = ".csv"

    @property
    def reference(self) -> Reference:
        """What others found."""
        return self.known

    def measures(self, values: Sequence[int]) -> Mapping[str, float]:
        """Return the percentage of devices that are allocated, the figure of the published experiments."""
        cluster = self._read()
        asked = WHOLE * int(cluster.whole.sum()) + int(cluster.share.sum())
        return {ALLOCATED: 100 * (asked - values[0]) / (WHOLE * max(1, int(cluster.devices.sum())))}

    def state(self) -> DeviceProblem:
        """Read both lists, and state them as a problem."""
        return device_problem(self._read())

    def check(self, file: str, data: bytes) -> Verdict:
        """Count unscheduled demand and pods, and name what is wrong."""
        pending, violations = check_devices(self._read(), file, data)
        return Verdict(pending, tuple(violations))

    def _read(self) -> Cluster:
        nodes, pods = (Document(str(path), read_file(path)) for path in (self.nodes, self.pods))
        return read_lists(nodes, pods)
