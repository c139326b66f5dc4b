"""Input that every reader takes, with as much as possible of what it can say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.support.clusters import node
from tests.support.edits import cluster
from tests.support.extender import waiting
from tests.support.malformed import config
from tests.support.plans import shop

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "cases"

Content = Any
"""What JSON can say."""


def dumps() -> list[Content]:
    """Return dumps with every kind of object that is read."""
    items = [item for group in cluster().values() for item in group] if isinstance(cluster(), dict) else [*cluster()]
    return [{"apiVersion": "v1", "kind": "List", "items": items}, json.loads((GOLDEN / "A-snapshot.json").read_text())]


def traces() -> list[Content]:
    """Return recorded decisions, with pods, volumes, devices, and configurations."""
    return [json.loads(line) for file in sorted(GOLDEN.glob("*.jsonl")) for line in file.read_text().splitlines()]


def configurations() -> list[Content]:
    """Return scheduler configurations with everything that they can say."""
    term = {"key": "zone", "operator": "In", "values": ["a"]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
    arguments = [
        {
            "name": "NodeResourcesFit",
            "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}},
        },
        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}},
        {"name": "NodeAffinity", "args": {"addedAffinity": affinity}},
        {"name": "PodTopologySpread", "args": {"defaultingType": "System"}},
        {"name": "TargetLoadPacking", "args": {"targetUtilization": 50, "defaultRequests": {"cpu": "1"}}},
    ]
    plugins = {
        "score": {"enabled": [{"name": "TargetLoadPacking", "weight": 3}], "disabled": [{"name": "ImageLocality"}]}
    }
    profiles = [{"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": arguments}]
    extender = {"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter", "ignorable": True, "httpTimeout": "100ms"}
    policy = {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": [{"name": "GeneralPredicates"}, {"name": "CheckNodeCondition"}],
        "priorities": [{"name": "LeastRequestedPriority", "weight": 2}],
    }
    return [config(profiles=profiles, percentageOfNodesToScore=50), config(extenders=[extender]), policy]


def loads() -> list[Content]:
    """Return measured load, as load-watcher writes it and in our own short form."""
    metric = {"name": "m", "type": "CPU", "operator": "AVG", "value": 37.5}
    nodes = {name: {"metrics": [metric], "tags": {}, "metadata": {}} for name in ("n1", "n2")}
    window = {"duration": "15m", "start": 1766999100, "end": 1767000000}
    watched = {"timestamp": 1, "window": window, "source": "Prometheus", "data": {"NodeMetricsMap": nodes}}
    return [
        watched,
        {"nodes": {"n1": {"cpu": {"average": 40, "deviation": 3}}, "n2": {"memory": 50}}, "time": 1767000000},
    ]


def plans() -> list[Content]:
    """Return plans."""
    return [shop().model_dump(by_alias=True, mode="json")]


def questions() -> list[Content]:
    """Return what a scheduler asks an extender."""
    names = {"Pod": waiting("web-x", "web"), "NodeNames": ["n1", "n2"]}
    return [names, {"Pod": waiting("web-x", "web"), "Nodes": {"items": [node("n1"), node("n2")]}}]


def leases() -> list[Content]:
    """Return the lines of a journal of leases."""
    made = shop()
    header = {"format": "stowplan/v1 leases", "plan": made.id, "created_at": made.created_at}
    grant = {"change": "grant", "at": 1.0, "uid": "pod-x", "token": 0, "pod": "shop/web-x"}
    return [[header, grant, {**grant, "change": "release", "at": 2.0, "why": "gone"}]]


def records() -> list[Content]:
    """Return the lines of a journal of ``apply``."""
    begun = {"event": "plan", "at": "2026-11-21T10:00:00Z", "version": 1, "plan": "p", "planHash": "0", "cluster": "c"}
    return [
        [
            begun,
            {"event": "start", "at": "2026-11-21T10:00:01Z", "process": 7},
            {"event": "wave", "at": "2026-11-21T10:00:02Z", "wave": 1, "known": {"u": ["a", "b"]}},
        ]
    ]


def objectives() -> list[Content]:
    """Return objectives."""
    tiers = [
        {"name": "a", "variance": {"cpu": 1, "memory": 0.5}, "moves": 10},
        {"name": "b", "nodes": 1},
    ]
    return [{"tiers": tiers}, {"tiers": tiers[:1], "repair": {"cordons": True}}]


def events() -> list[Content]:
    """Return scripts of the scheduler's cache."""
    steps = [{"event": "addNode", "node": "n1"}, {"event": "assume", "pod": "default/web-1", "node": "n1", "at": 1.5}]
    return [{"lifetime": 30, "events": [*steps, {"event": "expire", "at": 99}]}]


def scenarios() -> list[Content]:
    """Return what-if scenarios, for a cluster with the nodes n1 and n2 and a pod of web."""
    return [
        {
            "apiVersion": "stowplan/v1",
            "kind": "Scenario",
            "addNodes": [{"like": "n1", "count": 2, "labels": {"zone": "c"}}],
            "resizeNodes": [{"nodes": "n2", "allocatable": {"cpu": "8"}}],
            "pin": [{"pods": "ns=default", "nodes": "n1"}],
            "weights": {"imbalance.moves": 5},
        },
        {"apiVersion": "stowplan/v1", "kind": "Scenario", "removeNodes": ["n2"]},
    ]


def requests() -> list[Content]:
    """Return recommended requests, as krr and the VerticalPodAutoscaler write them."""
    amounts = {"requests": {"cpu": {"value": 0.25}, "memory": {"value": 2e8}}, "limits": {}}
    scan = {
        "object": {"kind": "Pod", "name": "new", "namespace": "default", "container": "c"},
        "recommended": amounts,
    }
    target = {"cpu": "250m", "memory": "200Mi"}
    recommendation = {"containerRecommendations": [{"containerName": "c", "target": target}]}
    autoscaler = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"targetRef": {"apiVersion": "v1", "kind": "Pod", "name": "new"}},
        "status": {"recommendation": recommendation},
    }
    return [{"scans": [scan]}, {"apiVersion": "v1", "kind": "List", "items": [autoscaler]}]


def prices() -> list[Content]:
    """Return prices of nodes, in each form that is not CSV."""
    overlay = {
        "requirements": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}],
        "priceAdjustment": "+10%",
    }
    return [
        {"prices": [{"price": 0.5, "labels": {}}, {"price": 1, "instanceType": "large"}]},
        {"provider": "custom", "CPU": "0.03", "RAM": "0.004", "GPU": "0.9", "spotCPU": "0.006"},
        {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "spec": overlay},
    ]


def platforms() -> list[Content]:
    """Return machines and instances without Kubernetes."""
    return [yaml.safe_load((ROOT / "examples" / "platform.yaml").read_text())]
