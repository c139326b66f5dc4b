"""In-tree volumes whose work a CSI driver does: what the driver sees of them, and on which nodes it does.

A node says in its CSINode object which in-tree plugins its drivers have taken over. There, and only there, an in-tree
volume counts as a volume of the driver, and is reached through the driver's own topology label.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from stowplan.models.arrays import Bools
from stowplan.models.interning import FrozenMap
from stowplan.models.kubernetes import NodeSelector, PersistentVolume
from stowplan.models.kubernetes.pod import AWSElasticBlockStore, AzureDisk, Cinder, GCEPersistentDisk, Volume
from stowplan.models.kubernetes.selectors import NodeSelectorRequirement, NodeSelectorTerm
from stowplan.models.kubernetes.storage import PersistentVolumeSpec
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.state import REGION_LABELS, ZONE_LABELS, ClusterState

Disk = AWSElasticBlockStore | GCEPersistentDisk | AzureDisk | Cinder

UNSPECIFIED = "UNSPECIFIED"
ZONE_DELIMITER = "__"
GCE_DASHES = 2
BETA_ZONE, ZONE = ZONE_LABELS
BETA_REGION, REGION = REGION_LABELS

_AWS_URL = re.compile(r"aws://[^/]*/+(?P<id>vol-[^/]*)/*")


def split_zones(value: str) -> set[str] | None:
    """Return the zones that a volume's label names; ``None`` if it cannot be read, and so is ignored."""
    zones = {zone.strip() for zone in value.split(ZONE_DELIMITER)}
    return None if "" in zones else zones


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """An in-tree volume plugin that a CSI driver can take over.

    Parameters
    ----------
    name
        What storage classes call it, and CSINode objects where it is migrated.
    driver
        The CSI driver.
    source
        Finds the plugin's source in a pod's volume or in a persistent volume.
    handle
        What the driver calls a disk, given the labels of its persistent volume; ``None`` if it cannot be told.
    topology_key
        The node label that takes the place of the zone label; empty if the volume's node affinity stays as it is.
    problem
        Why the driver cannot be told which disk is meant, as upstream says it; empty if it can.
    """

    name: str
    driver: str
    source: Callable[[Volume | PersistentVolumeSpec], Disk | None]
    handle: Callable[[Disk, FrozenMap[str]], str | None]
    topology_key: str = ""
    problem: Callable[[Disk, FrozenMap[str]], str] = lambda disk, labels: ""


def _aws_handle(disk: Disk, labels: FrozenMap[str]) -> str | None:
    assert isinstance(disk, AWSElasticBlockStore)
    if not disk.volume_id.startswith("aws://"):
        return disk.volume_id
    url = _AWS_URL.fullmatch(disk.volume_id)
    return url["id"] if url else None


def _gce_handle(disk: Disk, labels: FrozenMap[str]) -> str | None:
    assert isinstance(disk, GCEPersistentDisk)
    zones = _gce_zones(labels)
    if len(zones) == 1:
        return f"projects/{UNSPECIFIED}/zones/{zones[0] or UNSPECIFIED}/disks/{disk.pd_name}"
    if _gce_problem(disk, labels):
        return None
    return f"projects/{UNSPECIFIED}/regions/{zones[0].rpartition('-')[0]}/disks/{disk.pd_name}"


def _gce_zones(labels: FrozenMap[str]) -> list[str]:
    return (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(ZONE_DELIMITER)


def _gce_problem(disk: Disk, labels: FrozenMap[str]) -> str:
    """Say what is wrong with the zones of a regional disk: each must be of the form a-b-c, and all of one a-b."""
    zones = _gce_zones(labels)
    if len(zones) == 1:
        return ""
    said = "failed to get region from zones"
    if (odd := next((zone for zone in zones if zone.count("-") != GCE_DASHES), None)) is not None:
        return f"{said}: zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {odd}"
    regions = sorted({zone.rpartition("-")[0] for zone in zones})
    if len(regions) == 1:
        return ""
    return f"{said}: multiple or no regions gotten from zones, got: map[{' '.join(f'{r}:{{}}' for r in regions)}]"


def _azure_handle(disk: Disk, labels: FrozenMap[str]) -> str | None:
    assert isinstance(disk, AzureDisk)
    return disk.disk_uri or None


def _cinder_handle(disk: Disk, labels: FrozenMap[str]) -> str | None:
    assert isinstance(disk, Cinder)
    return disk.volume_id


AWS_EBS = InTreePlugin(
    "kubernetes.io/aws-ebs",
    "ebs.csi.aws.com",
    lambda volume: volume.aws_elastic_block_store,
    _aws_handle,
    "topology.ebs.csi.aws.com/zone",
)
GCE_PD = InTreePlugin(
    "kubernetes.io/gce-pd",
    "pd.csi.storage.gke.io",
    lambda volume: volume.gce_persistent_disk,
    _gce_handle,
    "topology.gke.io/zone",
    _gce_problem,
)
AZURE_DISK = InTreePlugin(
    "kubernetes.io/azure-disk", "disk.csi.azure.com", lambda volume: volume.azure_disk, _azure_handle
)
CINDER = InTreePlugin(
    "kubernetes.io/cinder",
    "cinder.csi.openstack.org",
    lambda volume: volume.cinder,
    _cinder_handle,
    "topology.cinder.csi.openstack.org/zone",
)
MIGRATABLE = {plugin.name: plugin for plugin in (AWS_EBS, GCE_PD, AZURE_DISK, CINDER)}


def plugin_of(volume: Volume | PersistentVolumeSpec) -> tuple[InTreePlugin, Disk] | None:
    """Return the migratable plugin that a volume belongs to, with its source."""
    for plugin in MIGRATABLE.values():
        if (disk := plugin.source(volume)) is not None:
            return plugin, disk
    return None


def migrated_plugins(snapshot: Snapshot, always: frozenset[str]) -> list[frozenset[str]]:
    """``[n]`` the in-tree plugins that each node has handed over.

    Parameters
    ----------
    always
        Plugins that count as handed over wherever there is a CSINode object, whatever it says.
    """
    stated = {csi.metadata.name: csi.migrated_plugins | always for csi in snapshot.csi_nodes}
    return [stated.get(node.name, frozenset()) & frozenset(MIGRATABLE) for node in snapshot.nodes]


def migrated(state: ClusterState, plugin: InTreePlugin, always: frozenset[str] = frozenset()) -> Bools:
    """``[n]`` the nodes that have handed a plugin over; see `migrated_plugins`."""

    def make() -> Bools:
        plugins = migrated_plugins(state.snapshot, always)
        return np.array([plugin.name in there for there in plugins], dtype=np.bool_)

    return state.memo(("migrated", plugin.name, always), make)


def driver_affinity(volume: PersistentVolume, topology_key: str) -> NodeSelector | None:
    """Return the node affinity of an in-tree volume as its driver has it."""
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity else None
    terms = required.node_selector_terms if required else ()
    labels = volume.metadata.labels
    keys = {requirement.key for term in terms for requirement in term.match_expressions}
    beta = ZONE not in keys and (BETA_ZONE in keys or (ZONE not in labels and BETA_ZONE in labels))
    zone = BETA_ZONE if beta else ZONE
    named = {r.key for term in terms for r in term.match_expressions if r.values}
    renamed = {BETA_REGION: REGION} if beta else {}
    added: tuple[NodeSelectorRequirement, ...] = ()
    if zone in named:
        renamed[zone] = topology_key
    elif zones := sorted({z.strip() for z in labels.get(zone, "").split(ZONE_DELIMITER)} - {""}):
        added = (NodeSelectorRequirement(topology_key, "In", tuple(zones)),)
        terms = terms or (NodeSelectorTerm(),)
    if not terms:
        return required
    return NodeSelector(
        tuple(
            replace(
                term,
                match_expressions=(
                    *(replace(r, key=renamed.get(r.key, r.key)) for r in term.match_expressions),
                    *added,
                ),
            )
            for term in terms
        )
    )
