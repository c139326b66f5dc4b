"""Feature gates, as ``--feature-gates`` of kube-scheduler takes them: who knows which, and what each changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stowplan.models.errors import InputError
from stowplan.plugins_compat.release import RELEASES, Release

OPTION = "--feature-gates"
WORDS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate of one release.

    Parameters
    ----------
    field
        The field of `Release` that it is.
    locked
        It cannot be set to anything but its default.
    """

    field: str
    locked: bool = False


GATES: dict[str, dict[str, Gate]] = {
    "1.20": {
        "BalanceAttachedNodeVolumes": Gate("balances_volumes"),
        "LocalStorageCapacityIsolation": Gate("ephemeral_storage"),
        "PodOverhead": Gate("pod_overhead"),
    },
    "1.24": {
        "LocalStorageCapacityIsolation": Gate("ephemeral_storage"),
        "MinDomainsInPodTopologySpread": Gate("spread_min_domains"),
        "PodOverhead": Gate("pod_overhead", locked=True),
        "ReadWriteOncePod": Gate("read_write_once_pod"),
        "VolumeCapacityPriority": Gate("volume_capacity_priority"),
    },
}
"""Gates by release and name; a gate is on by default where its field is true."""


def gated(release: Release, gates: str | None) -> Release:
    """Return a release with gates set.

    Parameters
    ----------
    gates
        Pairs such as ``ReadWriteOncePod=true``, separated by commas; the last word on a gate counts.

    Raises
    ------
    InputError
        If a pair cannot be read, or the release does not know the gate, or has it locked.
    """
    changes: dict[str, bool] = {}
    known = GATES.get(release.name, {})
    for pair in (gates or "").split(","):
        name, equals, word = pair.strip().partition("=")
        if not pair.strip():
            continue
        if not equals or word.lower() not in WORDS:
            raise InputError(f"{pair.strip()!r} must be NAME=true or NAME=false", field=OPTION)
        if name not in known:
            raise InputError(_unknown(name, release), field=OPTION)
        gate, value = known[name], WORDS[word.lower()]
        if gate.locked and value is not getattr(release, gate.field):
            raise InputError(f"{name} is locked to {str(not value).lower()} in release {release.name}", field=OPTION)
        changes[gate.field] = value
    # mypy does not match the names of a mapping with the fields of a dataclass.
    return replace(release, **changes) if changes else release  # type: ignore[arg-type]


def _unknown(name: str, release: Release) -> str:
    others = [other for other in RELEASES if name in GATES.get(other, {})]
    if others:
        return f"{name} is no gate of release {release.name}; {' and '.join(others)} have it"
    known = ", ".join(GATES.get(release.name, {}))
    return f"{name} is unknown; release {release.name} has {known or 'no gates here'}"
