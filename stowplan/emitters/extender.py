"""A scheduler configuration with ``stowplan serve`` as an extender."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import yaml

from stowplan.emitters.emission import Emission, EmitOptions, File
from stowplan.models.errors import InputError
from stowplan.models.hosts import is_address
from stowplan.models.plan import Plan
from stowplan.plugins_compat.framework.profile import DEFAULT_SCHEDULER, Profile
from stowplan.plugins_compat.profiles import GROUP, PERCENTAGE, choose_release, make_profiles, read_configuration
from stowplan.plugins_compat.release import Release
from stowplan.settings.problem import require_config

TIMEOUT = "200ms"
"""Timeout: long for a round trip, short for a scheduling cycle; a dead address costs it twice for every pod."""
KUBECONFIG = "/etc/kubernetes/scheduler.conf"
"""Where kubeadm puts the scheduler's kubeconfig: a scheduler that is given a configuration does not start without."""
FILL_IN = "# kubeadm's path; put the one of your scheduler here"


def emit_extender(plan: Plan, choices: EmitOptions) -> Emission:
    """Return a whole ``KubeSchedulerConfiguration``: the given one, or the release's default, with our extender added.

    Its weight lets the plan's node win over every other feasible one: an extender's score of 10 counts
    ``10 · weight · 10``, and all plugins of a profile together at most ``100 · Σ weights``.

    Raises
    ------
    InputError
        If the given configuration cannot be used, or has our extender already; if none is given and the plan was
        made with one.
    """
    require_config(plan.settings, choices.config)
    release = choose_release(plan.settings.release)
    if release.policy:
        problem = f"release {release.name} is configured by Policy files, which this emitter does not write"
        raise InputError(problem, field="settings.release")
    content = _base(plan, choices, release)
    try:
        profiles = make_profiles(content, release)
        _refuse_twice(content, choices.url)
    except InputError as error:
        raise error.in_file(choices.config) if choices.config else error from None
    if plan.settings.scheduler not in profiles:
        raise InputError(f"has no profile {plan.settings.scheduler!r}", choices.config, None, "profiles")
    weight = 1 + max(total_weight(profile) for profile in profiles.values())
    extender: dict[str, Any] = {
        "urlPrefix": choices.url.rstrip("/"),
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": weight,
        "nodeCacheCapable": True,
        "ignorable": True,
        "httpTimeout": TIMEOUT,
    }
    if urlsplit(choices.url).scheme == "https":
        extender |= {"enableHTTPS": True, "tlsConfig": {"caFile": "/etc/kubernetes/stowplan/ca.crt"}}
    # Above 100 nodes the scheduler looks at a sample otherwise, and the plan's node may not be in it.
    for place in (content, *(content.get("profiles") or ())):
        if place is content or place.get(PERCENTAGE) is not None:
            place[PERCENTAGE] = 100
    content["extenders"] = [*(content.get("extenders") or ()), extender]
    make_profiles(content, release)  # read back: what we write is what the scheduler would take
    assumed = choices.config is None and choices.kubeconfig is None
    if choices.config is None or choices.kubeconfig is not None:
        kubeconfig = choices.kubeconfig or KUBECONFIG
        content["clientConnection"] = {**(content.get("clientConnection") or {}), "kubeconfig": kubeconfig}
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    if assumed:
        text = text.replace(f"kubeconfig: {KUBECONFIG}\n", f"kubeconfig: {KUBECONFIG}  {FILL_IN}\n")
    notes = [f"the extender is asked at {choices.url}: run stowplan serve there"]
    host = urlsplit(choices.url).hostname or ""
    if host != "localhost" and not is_address(host):
        notes.append(
            f"{host} is a name: a scheduler on the host network does not ask the cluster's DNS and cannot resolve the "
            "name of a Service; give an address, such as the Service's clusterIP"
        )
    if assumed:
        notes.append(f"clientConnection.kubeconfig is kubeadm's, {KUBECONFIG}; --kubeconfig names another")
    if "tlsConfig" in extender:
        notes.append(
            f"the scheduler trusts what {extender['tlsConfig']['caFile']} has signed; put the certificate there"
        )
    return Emission([File("scheduler.yaml", text)], notes)


def total_weight(profile: Profile) -> int:
    """Return the weights of all that may score in a profile, its extenders included.

    Plugins that score upstream and not here count too. An extender's 10 points are stretched to 100, so its weight
    counts like that of a plugin.
    """
    scoring = set(profile.at("score"))
    plugins = sum(use.weight or int(use.plugin.name in scoring) for use in profile.uses)
    return plugins + sum(extender.weight for extender in profile.extenders)


def _base(plan: Plan, choices: EmitOptions, release: Release) -> dict[str, Any]:
    if choices.config is not None:
        content = read_configuration(choices.config)
        if not isinstance(content, dict):
            raise InputError("must be a KubeSchedulerConfiguration", file=choices.config, field="kind")
        return content
    content = {"apiVersion": GROUP + release.config_versions[-1], "kind": "KubeSchedulerConfiguration"}
    if plan.settings.scheduler != DEFAULT_SCHEDULER:
        content["profiles"] = [{"schedulerName": plan.settings.scheduler}]
    return content


def _refuse_twice(content: dict[str, Any], url: str) -> None:
    for i, other in enumerate(content.get("extenders") or ()):
        if other["urlPrefix"].rstrip("/") == url.rstrip("/"):
            raise InputError(f"is {url} already", field=f"extenders[{i}].urlPrefix")
