"""Reads recorded scores of the real Trimaran plugins and compares them with ours."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import TypeAdapter

from instances.metrics.load_watcher import parse_load_watcher
from models.kubernetes import Node, Pod
from models.snapshot import Snapshot
from plugins_compat.framework.framework import Framework
from plugins_compat.framework.shapes import Shapes
from plugins_compat.framework.state import ClusterState
from plugins_compat.profiles import make_profiles
from plugins_compat.release import K36

_NODES, _PODS = TypeAdapter(tuple[Node, ...]), TypeAdapter(tuple[Pod, ...])

BOUND_AT = "2026-01-01T00:00:00Z"
"""After the windows of recordings whose pods are recently bound, which end in 1970; before the others, of 2100."""


def profile_of(plugin: str, args: dict[str, Any]) -> Any:
    """Return a profile that scores with one plugin only."""
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"score": {"enabled": [{"name": plugin}], "disabled": [{"name": "*"}]}},
                "pluginConfig": [{"name": plugin, "args": args}],
            }
        ],
    }
    return next(iter(make_profiles(content, K36, "first").values()))


def recorded_args(args: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as a configuration spells them; recordings shorten two."""
    spelled = dict(args)
    if "defaultRequestsMilliCPU" in spelled:
        spelled["defaultRequests"] = {"cpu": f"{spelled.pop('defaultRequestsMilliCPU')}m"}
    if "riskLimitWeightCPU" in spelled:
        spelled["riskLimitWeights"] = {"cpu": spelled.pop("riskLimitWeightCPU")}
    return spelled


def differences(recorded: dict[str, Any]) -> list[str]:
    """Score a case with our plugin; return one line for every score that differs from the record."""
    case, plugin = recorded["case"], recorded["plugin"]
    bound = [{**pod, "status": {"phase": "Running", "startTime": BOUND_AT}} for pod in case["pods"]]
    snapshot = Snapshot(
        nodes=_NODES.validate_python(case["nodes"]),
        pods=_PODS.validate_python(bound),
        metrics=parse_load_watcher(case["metrics"], "recorded"),
    )
    pending = _PODS.validate_python(case["pending"])
    state = ClusterState(snapshot, K36, Shapes([*snapshot.pods, *pending]))
    framework = Framework(profile_of(plugin, recorded_args(case["args"])), state)
    state.fill(snapshot.pods)
    names = [node.name for node in snapshot.nodes]
    found = []
    for pod, expected in zip(pending, recorded["expect"], strict=True):
        scores = framework.run_scores(framework.cycle(pod), np.arange(len(names)))[plugin]
        ours = dict(zip(names, scores.tolist(), strict=True))
        found += [
            f"{case['id']} {pod.key} on {name}: {expected['scores'][name]} became {ours[name]}"
            for name in names
            if ours[name] != expected["scores"][name]
        ]
    return found
