"""Recorded scores of load-aware plugins: a line names the plugin, its arguments and the measured load.

Such a line becomes a case of its own kind of profile, one in which nothing filters and only that plugin scores.
"""

from __future__ import annotations

from typing import Any

RELEASE = "1.36"

BOUND_AT = "2026-01-01T00:00:00Z"
"""When recorded pods were bound: after the windows of recordings that call them recently bound, which end in 1970,
and before those of the others, of 2100."""


def is_load_aware(content: dict[str, Any]) -> bool:
    """Whether a line holds the scores of one load-aware plugin."""
    return "plugin" in content and "kubernetes" not in content


def spelled_out(content: dict[str, Any]) -> dict[str, Any]:
    """Return the line as an ordinary recorded case."""
    case, plugin = content["case"], str(content["plugin"])
    ordinary = {
        "id": case.get("id", ""),
        "mode": "independent",
        "config": _only(plugin, case.get("args") or {}),
        "nodes": case.get("nodes") or [],
        "pods": [{**pod, "status": {"phase": "Running", "startTime": BOUND_AT}} for pod in case.get("pods") or ()],
        "pending": case.get("pending") or [],
        "metrics": case.get("metrics") or {},
    }
    expect = [_decision(plugin, entry) for entry in content.get("expect") or ()]
    return {"kubernetes": RELEASE, "case": ordinary, "expect": expect}


def _only(plugin: str, args: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a profile that filters nothing and scores with one plugin."""
    spelled = dict(args)
    # Recordings shorten two arguments.
    if "defaultRequestsMilliCPU" in spelled:
        spelled["defaultRequests"] = {"cpu": f"{spelled.pop('defaultRequestsMilliCPU')}m"}
    if "riskLimitWeightCPU" in spelled:
        spelled["riskLimitWeights"] = {"cpu": spelled.pop("riskLimitWeightCPU")}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {
                    "multiPoint": {"disabled": [{"name": "*"}]},
                    "queueSort": {"enabled": [{"name": "PrioritySort"}]},
                    "bind": {"enabled": [{"name": "DefaultBinder"}]},
                    "score": {"enabled": [{"name": plugin}]},
                },
                "pluginConfig": [{"name": plugin, "args": spelled}],
            }
        ],
    }


def _decision(plugin: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return recorded scores as a decision: nothing was filtered, and the total is the score itself."""
    scores: dict[str, int] = entry.get("scores") or {}
    return {
        "pod": entry.get("pod", ""),
        "feasible": tuple(scores),
        "scores": {plugin: scores},
        "total": scores,
        "chosen": max(scores, key=lambda node: scores[node], default=None),
    }
