"""Compiles problems from snapshots and settings, and returns the settings that documents hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from stowplan.models.errors import InputError
from stowplan.models.objective import Objective
from stowplan.models.platform import MASTERS
from stowplan.models.settings import Settings, SettingsDocument, nearest_release
from stowplan.models.snapshot import Snapshot
from stowplan.plans.cordons import cordon
from stowplan.plans.movability.costs import has_costs, move_weight
from stowplan.plugins_compat.compiler.compile import Compiled, compile_problem
from stowplan.plugins_compat.compiler.goals import DrainAndAdmit
from stowplan.plugins_compat.feature_gates import gated
from stowplan.plugins_compat.framework.profile import DEFAULT_SCHEDULER, Profile
from stowplan.plugins_compat.plugins.gpu_share import GpuShare
from stowplan.plugins_compat.profiles import choose_release, default_profile, read_profiles, readers
from stowplan.plugins_compat.release import PLATFORM, RELEASES
from stowplan.settings.devices import asks_for_devices, with_device_note
from stowplan.settings.freeze import EVERYTHING, Stays, idle_owners, who_stays
from stowplan.settings.kept_pods import with_violations_of_kept_pods
from stowplan.settings.metrics import with_metrics
from stowplan.settings.move_limits import group_limits, idle_limits
from stowplan.settings.objective import chosen_objective
from stowplan.settings.prices import node_prices


def make_problem(snapshot: Snapshot, settings: Settings | None = None, frozen: Stays | None = None) -> Compiled:
    """Compile a snapshot with settings.

    Parameters
    ----------
    snapshot
        The cluster.
    settings
        The settings; by default those of the command line.
    frozen
        Returns why a further pod is to stay on its node, or ``None``.

    Raises
    ------
    InputError
        With the setting that cannot be used.
    """
    settings = settings or Settings()
    for key in set(settings.admit) - {pod.key for pod in snapshot.pods}:
        raise InputError("is not in the snapshot", obj=f"Pod {key}", field="admit")
    objective = chosen_objective(settings)
    stays = _either(who_stays(snapshot, settings), frozen)
    profile = make_profile(settings, snapshot)
    snapshot = with_device_note(with_metrics(snapshot, profile, settings.metrics), profile, settings.config)
    try:
        compiled = _compiled(snapshot, settings, objective, profile, stays)
        return replace(compiled, notes=(*_release_note(settings, snapshot), *compiled.notes))
    except InputError as error:
        named = error.obj == "objective" and isinstance(settings.objective, str)
        raise error.in_file(str(settings.objective)) if named else error from None


def make_ideal(snapshot: Snapshot, settings: Settings) -> Compiled:
    """Compile a snapshot as if every pod could move that is not tied to its node, but for those that the user freezes.

    Parameters
    ----------
    settings
        The executor and what may move do not count.

    Raises
    ------
    InputError
        With the setting that cannot be used.
    """
    return make_problem(snapshot, settings.model_copy(update={"executor": None, "may_move": (EVERYTHING,)}))


def same_problem(
    snapshot: Snapshot,
    settings: SettingsDocument,
    profile: Profile,
    *,
    freeze: Stays | None = None,
    limited: bool = True,
) -> Compiled:
    """Compile a snapshot as it was compiled for a document.

    Parameters
    ----------
    freeze
        Returns why a pod stays; by default computed anew.
    limited
        Whether to apply the limit on moves.
    """
    settings = settings if limited else settings.model_copy(update={"max_moves": None, "max_moves_of": ()})
    return _compiled(snapshot, settings, settings.objective, profile, freeze or who_stays(snapshot, settings))


def _compiled(snapshot: Snapshot, settings: Settings, objective: Objective, profile: Profile, stays: Stays) -> Compiled:
    limits = group_limits(snapshot, settings.max_moves_of)
    compiled = compile_problem(
        cordon(snapshot, settings.drain),
        profile,
        objective,
        freeze=stays,
        max_moves=settings.max_moves,
        group_limits=limits,
        weigh=move_weight if settings.move_costs and has_costs(snapshot) else None,
        drain_and_admit=DrainAndAdmit(frozenset(settings.drain), frozenset(settings.admit)),
        prices=_prices(settings, snapshot),
    )
    idle = (*idle_limits(limits, compiled.pods), *idle_owners(snapshot, settings))
    compiled = replace(compiled, notes=(*compiled.notes, *idle))
    return with_violations_of_kept_pods(compiled, settings.drain)


def settings_document(compiled: Compiled, settings: Settings) -> SettingsDocument:
    """Return the settings of a problem as documents hold them; an operations platform has no tool that evicts."""
    profile = compiled.profile
    if profile.release.name == PLATFORM.name:
        settings = settings.model_copy(update={"executor": None})
    return settings.resolved(compiled.objective, profile.release.name, profile.scheduler_name, compiled.prices)


def _prices(settings: Settings, snapshot: Snapshot) -> Mapping[str, float] | None:
    """Return the cost of each node per hour, or ``None`` if unknown.

    Raises
    ------
    InputError
        If some node has no price.
    """
    if settings.prices is None:
        return None
    if isinstance(settings.prices, str):
        return node_prices(settings.prices, snapshot.nodes)
    if missing := [node.name for node in snapshot.nodes if node.name not in settings.prices]:
        raise InputError(f"has no price for node {missing[0]}", field="prices")
    return settings.prices


def _either(first: Stays, second: Stays | None) -> Stays:
    return first if second is None else lambda pod: first(pod) or second(pod)


def make_profile(settings: Settings, snapshot: Snapshot | None = None) -> Profile:
    """Return the scheduler profile that the settings name.

    Parameters
    ----------
    settings
        The settings, of which ``release``, ``scheduler``, and ``config`` count.
    snapshot
        If its pods request devices and no configuration is given, the profile has the plugin for devices.

    Raises
    ------
    InputError
        If the configuration cannot be read, or has no such profile.
    """
    profile = _named_profile(settings, snapshot)
    siblings = tuple(replace(other, samples=settings.sample_nodes) for other in profile.siblings)
    return replace(profile, samples=settings.sample_nodes, siblings=siblings)


def document_profile(made_with: SettingsDocument, config: str | None, snapshot: Snapshot) -> Profile:
    """Return the scheduler profile that a document was made with.

    Parameters
    ----------
    config
        Path of the configuration file.

    Raises
    ------
    InputError
        If the release is not known, or the configuration cannot be used.
    """
    choose_release(made_with.release)
    chosen = Settings(
        release=made_with.release,
        config=config,
        scheduler=made_with.scheduler,
        feature_gates=made_with.feature_gates,
    )
    return make_profile(chosen, snapshot)


def require_config(made_with: SettingsDocument, config: str | None, file: str | None = None) -> None:
    """Raise if a document was made with a scheduler configuration and none is given.

    Parameters
    ----------
    file
        The document, for the error.

    Raises
    ------
    InputError
        If the configuration is missing.
    """
    if made_with.config is not None and config is None:
        raise InputError(f"was made with {made_with.config}; give it with --config", file, None, "settings.config")


def chosen_release(snapshot: Snapshot | None, config: str | None = None) -> tuple[str, str]:
    """Return the release if none is given, and why it was chosen.

    Parameters
    ----------
    config
        Path of a configuration: only releases that read it are considered. Without one, those that are configured by
        policies are not: what a cluster's policy says is not known.

    Returns
    -------
    tuple of str
        The release, and the version of the newest kubelet; empty if nodes do not report it.
    """
    versions = {node.kubelet_version for node in snapshot.nodes if node.kubelet_version} if snapshot else set()
    if snapshot is not None and _is_platform(snapshot):
        return PLATFORM.name, ""
    ordinary = tuple(name for name, release in RELEASES.items() if release.config_versions)
    suitable = ordinary if config is None else readers(config) or ordinary
    newest = max(versions, key=_in_order, default="")
    return nearest_release(newest, suitable) or suitable[-1], newest


def _is_platform(snapshot: Snapshot) -> bool:
    return any(MASTERS in node.labels for node in snapshot.nodes)


def _in_order(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def _release_note(settings: Settings, snapshot: Snapshot) -> Sequence[str]:
    """Return a note on the release that was chosen by the nodes' kubelets, if none was given."""
    release, kubelet = chosen_release(snapshot, settings.config)
    if settings.release is not None or not kubelet:
        return ()
    nearest, _ = chosen_release(snapshot)
    of = "" if release == nearest else f"of the releases that read {settings.config} "
    return (
        f"decided as kube-scheduler {release}, {of}the nearest to the nodes' kubelets ({kubelet}); --profile chooses",
    )


def _named_profile(settings: Settings, snapshot: Snapshot | None) -> Profile:
    release = gated(
        choose_release(settings.release or chosen_release(snapshot, settings.config)[0]), settings.feature_gates
    )
    if release.real_scores and snapshot is not None and not _is_platform(snapshot):
        raise InputError(f"{release.name} is for files of an operations platform", field="--profile")
    if settings.config is None:
        if settings.scheduler not in (None, DEFAULT_SCHEDULER):
            raise InputError(f"{settings.scheduler!r} needs a --config with that profile", field="--scheduler")
        more = (GpuShare.name,) if snapshot is not None and asks_for_devices(snapshot, release) else ()
        return default_profile(release, more=more)
    profiles = read_profiles(settings.config, release)
    if settings.scheduler is None:
        return next(iter(profiles.values()))
    if settings.scheduler not in profiles:
        known = ", ".join(profiles)
        raise InputError(
            f"has no profile {settings.scheduler!r}; it has {known}", settings.config, None, "schedulerName"
        )
    return profiles[settings.scheduler]
