"""Reads recorded decisions of the real kube-scheduler and compares them with ours."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from models.kubernetes import (
    CSINode,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicationController,
    Service,
    StorageClass,
    Workload,
)
from models.snapshot import Snapshot
from plugins_compat.framework.framework import Framework
from plugins_compat.framework.scheduler import Scored, examine
from plugins_compat.framework.shapes import Shapes
from plugins_compat.framework.state import ClusterState
from plugins_compat.framework.status import Code, PostFilterResult
from plugins_compat.profiles import default_profile, make_profiles
from plugins_compat.release import RELEASES

FOLDER = Path(__file__).parent.parent / "golden"

_KINDS: dict[str, tuple[str, type[Any]]] = {
    "nodes": ("nodes", Node),
    "pods": ("pods", Pod),
    "namespaces": ("namespaces", Namespace),
    "services": ("services", Service),
    "replicaSets": ("replica_sets", Workload),
    "statefulSets": ("stateful_sets", Workload),
    "replicationControllers": ("replication_controllers", ReplicationController),
    "persistentVolumes": ("persistent_volumes", PersistentVolume),
    "persistentVolumeClaims": ("persistent_volume_claims", PersistentVolumeClaim),
    "storageClasses": ("storage_classes", StorageClass),
    "csiNodes": ("csi_nodes", CSINode),
    "podDisruptionBudgets": ("pod_disruption_budgets", PodDisruptionBudget),
}
_ADAPTERS = {key: TypeAdapter(tuple[model, ...]) for key, (_, model) in _KINDS.items()}  # type: ignore[valid-type]


def cases(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the recorded cases of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def differences(recorded: dict[str, Any]) -> list[str]:
    """Run a case through our framework; return one line for everything that differs from the record."""
    case, release = recorded["case"], RELEASES[recorded["kubernetes"]]
    snapshot = Snapshot(
        **{field: _ADAPTERS[key].validate_python(case.get(key) or ()) for key, (field, _) in _KINDS.items()}
    )
    pending = _ADAPTERS["pods"].validate_python(case["pending"])
    config = case.get("config")
    profile = (
        next(iter(make_profiles(config, release, "first").values())) if config else default_profile(release, "first")
    )
    state = ClusterState(snapshot, release, Shapes([*snapshot.pods, *pending]))
    state.order = np.arange(len(snapshot.nodes))  # the recording kept the nodes in the order they were given
    framework = Framework(profile, state)
    state.fill(pod for pod in snapshot.pods if not pod.finished)
    state.nominator.nominate_pending(pending, snapshot.node_index)
    found = []
    for pod, expected in zip(pending, recorded["expect"], strict=False):
        scored = examine(framework, pod, score_single=True)
        found += [f"{case['id']} {pod.key}: {line}" for line in _compare(snapshot, scored, expected)]
        if case["mode"] != "independent" and expected.get("chosen"):
            state.put(pod, snapshot.node_index[expected["chosen"]], new=True)
        if case["mode"] == "preempt" and scored.node is None:
            result = framework.run_post_filters(scored.verdict.cycle, scored.verdict)
            found += [f"{case['id']} {pod.key}: {line}" for line in _compare_preemption(snapshot, result, expected)]
            framework.nominate(pod, result)
    return found


def _compare(snapshot: Snapshot, scored: Scored, expected: dict[str, Any]) -> Iterator[str]:
    verdict, names = scored.verdict, [node.name for node in snapshot.nodes]
    rejected = verdict.rejected and _status(verdict.rejected.plugin, verdict.rejected.code, verdict.rejected.reasons)
    if rejected != _normal(expected.get("preFilter")):
        yield f"PreFilter {expected.get('preFilter')} became {rejected}"
    if rejected:
        return
    statuses = {names[verdict.nodes[i]]: verdict.why(i) for i in np.flatnonzero(verdict.codes != Code.SUCCESS)}
    ours = {name: _status(s.plugin, s.code, s.reasons) for name, s in statuses.items()}
    theirs = {name: _normal(status) for name, status in (expected.get("filter") or {}).items()}
    for name in sorted(ours.keys() | theirs.keys()):
        left_out = {(s or {}).get("plugin") for s in (ours.get(name), theirs.get(name))} == {"PreFilterResult"}
        if ours.get(name) != theirs.get(name) and not left_out:
            yield f"Filter on {name}: {theirs.get(name)} became {ours.get(name)}"
    feasible = [names[n] for n in verdict.feasible]
    if feasible != expected["feasible"]:
        yield f"feasible {expected['feasible']} became {feasible}"
        return
    if not feasible:
        return
    scores = {plugin: dict(zip(feasible, values.tolist(), strict=True)) for plugin, values in scored.scores.items()}
    for plugin in sorted(scores.keys() | expected["scores"].keys()):
        if scores.get(plugin) != expected["scores"].get(plugin):
            yield f"{plugin} {expected['scores'].get(plugin)} became {scores.get(plugin)}"
    if dict(zip(feasible, scored.total.tolist(), strict=True)) != expected["total"]:
        yield f"total {expected['total']} became {scored.total.tolist()}"
    if scored.node is None or names[scored.node] != expected["chosen"]:
        yield f"choice {expected['chosen']} became {scored.node}"


def _compare_preemption(snapshot: Snapshot, result: PostFilterResult, expected: dict[str, Any]) -> Iterator[str]:
    """Compare where a pod is nominated and who has to leave.

    There is no record where repeated runs disagreed, nor where the pod cannot preempt; the two look the same.
    """
    nominated = None if result.nominated is None else snapshot.nodes[result.nominated].name
    victims = sorted(victim.key for victim in result.victims)
    if not expected.get("nominated"):
        return
    if nominated != expected["nominated"]:
        yield f"nominated {expected['nominated']} became {nominated}"
    elif victims != sorted(expected["victims"]):
        yield f"victims {expected['victims']} became {victims}"


def _status(plugin: str, code: Code, reasons: Any) -> dict[str, Any]:
    # Upstream walks scalar resources in the random order of a Go map: the set of reasons is what is defined.
    return {"plugin": plugin, "code": code.upstream, "reasons": sorted(reasons)}


def _normal(status: dict[str, Any] | None) -> dict[str, Any] | None:
    return status and {**status, "reasons": sorted(status.get("reasons") or ())}
