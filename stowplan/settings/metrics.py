"""Measured load that the plugins of a profile need, and its source."""

from __future__ import annotations

import os
from dataclasses import replace

from stowplan.instances.metrics.http import Access
from stowplan.instances.metrics.read import WATCHER_PATH, read_metrics
from stowplan.models.errors import InputError
from stowplan.models.metrics import LoadMetrics
from stowplan.models.network import NETWORK
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.plugins.trimaran.load import LoadAware, TrimaranArgs

TOKEN = "STOWPLAN_METRICS_TOKEN"
"""Environment variable with the bearer token for ``--metrics``."""


def with_metrics(snapshot: Snapshot, profile: Profile, where: str | None) -> Snapshot:
    """Return the snapshot with the metrics that the profile's plugins read, and notes on what is missing.

    Parameters
    ----------
    where
        A file or a URL, as `read_metrics` takes it; by default the metrics of the snapshot, or else the source that
        the arguments of a plugin name.

    Raises
    ------
    InputError
        If the metrics cannot be read.
    """
    readers = load_aware(profile)
    names = " and ".join(readers)
    if not readers:
        return _noted(snapshot, "--metrics is not used: no plugin of the profile reads it") if where else snapshot
    if where is not None:
        metrics: LoadMetrics | None = read_metrics(where, snapshot.nodes, Access(os.environ.get(TOKEN)))
    else:
        metrics = snapshot.metrics or _named_by_profile(readers, snapshot)
    if metrics is None:
        return _noted(snapshot, f"{names} without metrics: every node scores 0; --metrics names a file or an address")
    unknown = sum(1 for node in snapshot.nodes if not metrics.of(node.name))
    measured = replace(snapshot, metrics=metrics)
    if unknown:
        return _noted(measured, f"{unknown} of {len(snapshot.nodes)} nodes have no metrics: {names} scores them 0")
    return measured


def load_aware(profile: Profile) -> dict[str, TrimaranArgs]:
    """Return the arguments of the plugins that score by measured load, by name."""
    scoring = profile.at("score")
    found = {}
    for use in profile.uses:
        args = profile.args(use.plugin)
        if issubclass(use.plugin, LoadAware) and use.plugin.name in scoring and isinstance(args, TrimaranArgs):
            found[use.plugin.name] = args
    return found


def _named_by_profile(readers: dict[str, TrimaranArgs], snapshot: Snapshot) -> LoadMetrics | None:
    for plugin, args in readers.items():
        provider = args.metric_provider
        access = Access(provider.token, not provider.insecure_skip_verify)
        if args.watcher_address:
            where, access = args.watcher_address.rstrip("/") + WATCHER_PATH, Access()
        elif provider.type == "Prometheus" and provider.address:
            where = provider.address
        else:
            continue
        NETWORK.get().named_by_configuration(where, f"{plugin}, for measured load")
        try:
            return read_metrics(where, snapshot.nodes, access)
        except InputError as error:
            hint = f"{plugin} in the profile names this URL; --metrics overrides it"
            raise replace(error, problem=f"{error.problem}; {hint}") from None
    return None


def _noted(snapshot: Snapshot, note: str) -> Snapshot:
    return replace(snapshot, notes=(*snapshot.notes, note))
