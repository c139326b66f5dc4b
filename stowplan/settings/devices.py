"""Devices of nodes, and notes on whether the profile knows them."""

from __future__ import annotations

from dataclasses import replace

from stowplan.models.kubernetes.devices import device_count
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.plugins.gpu_share import GpuShare, devices_asked
from stowplan.plugins_compat.release import Release


def asks_for_devices(snapshot: Snapshot, release: Release) -> bool:
    """Whether any node has devices and any pod requests devices."""
    if not any(device_count(node) for node in snapshot.nodes):
        return False
    return any(devices_asked(pod, release) for pod in snapshot.pods if not pod.finished)


def with_device_note(snapshot: Snapshot, profile: Profile, config: str | None) -> Snapshot:
    """Return the snapshot with a note on whether the profile knows its devices, if it has any.

    Parameters
    ----------
    config
        The configuration file that the profile was read from.
    """
    knows = GpuShare.name in profile.at("filter")
    if (knows and config is not None) or not asks_for_devices(snapshot, profile.release):
        return snapshot
    note = f"pods ask for shared GPUs, so {GpuShare.name}, which upstream does not have, is part of the profile"
    if not knows:
        note = (
            f"pods ask for shared GPUs, but {config} does not enable {GpuShare.name}: shares may be split over devices"
        )
    return replace(snapshot, notes=(*snapshot.notes, note))
