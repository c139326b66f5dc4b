"""Inputs that cannot be used, and the line that each gets. ``python -m tests.support.malformed`` prints the table."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stowplan.cli import run
from tests.support.clusters import Manifest, node, pod
from tests.support.plans import shop

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "bad-input.md"


ANNOUNCED = "; --offline forbids it"
"""How lines end that name a host before it is asked."""


@dataclass(frozen=True)
class Malformed:
    """One input: files to write, and the command to run in their folder."""

    what: str
    arguments: str
    files: dict[str, Any] = field(default_factory=dict)

    def line(self) -> tuple[int, str]:
        """Run the command; return its exit code and all that it printed, but for hosts that it says it will ask."""
        before = os.getcwd()
        out, err = io.StringIO(), io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(err), contextlib.redirect_stdout(out):
            os.chdir(folder)
            try:
                for name, content in self.files.items():
                    Path(name).parent.mkdir(parents=True, exist_ok=True)
                    Path(name).write_bytes(_bytes(content))
                code = run(self.arguments.split())
            finally:
                os.chdir(before)
        told = [line for line in err.getvalue().splitlines() if not line.endswith(ANNOUNCED)]
        return code, "\n".join(told).strip() + out.getvalue()


def _bytes(content: Any) -> bytes:
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode()


def listed(*items: Manifest, kinds: str = "") -> Manifest:
    """Make a List of node and pod manifests."""
    made = []
    for item in items:
        kind = item.get("kind") or ("Pod" if "containers" in item.get("spec", {}) else "Node")
        made.append({"apiVersion": "v1", "kind": kind, **item})
    return {"apiVersion": "v1", "kind": "List", "items": made}


def changed(manifest: Manifest, path: str, value: Any) -> Manifest:
    """Set a field, deep inside a manifest; ``...`` as value removes it."""
    copy = json.loads(json.dumps(manifest))
    place: Any = copy
    *way, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    for step in way:
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return copy


N, P = node("n1"), pod("web-1", "n1")
GOOD = listed(N, P)
HUGE = [node(f"n{i}", memory="8192Ti") for i in range(600)]
TERM = {
    "topologyKey": "zone",
    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Equals", "values": ["x"]}]},
}
TRACE: Manifest = {"kubernetes": "1.36", "case": {"id": "a"}, "expect": []}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
REQUESTS = "spec/containers/0/resources/requests"
ANTI = "spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution"
NODES = "spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"


def config(**content: Any) -> Manifest:
    """Make a scheduler configuration."""
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **content}


def one(what: str, manifest: Manifest) -> Malformed:
    """Make a case of a snapshot with one bad pod or node."""
    others = [N] if "containers" in manifest.get("spec", {}) else []
    return Malformed(what, "solve dump.json", {"dump.json": listed(*others, manifest)})


def with_objective(what: str, text: str) -> Malformed:
    """Make a case of a bad objective file."""
    return Malformed(what, "solve dump.json -O goal.yaml", {"dump.json": GOOD, "goal.yaml": text})


def with_config(what: str, content: Any, options: str = "") -> Malformed:
    """Make a case of a bad scheduler configuration."""
    return Malformed(what, f"simulate dump.json --config c.yaml {options}", {"dump.json": GOOD, "c.yaml": content})


def with_metrics(what: str, metrics: str, content: Any = None, **args: Any) -> Malformed:
    """Make a case of metrics that cannot be used, or of bad arguments of a plugin that reads them."""
    name = "TargetLoadPacking"
    profile = {"plugins": {"score": {"enabled": [{"name": name}]}}, "pluginConfig": [{"name": name, "args": args}]}
    files = {"dump.json": GOOD, "c.yaml": config(profiles=[profile])}
    options = f" --metrics {metrics}" if metrics else ""
    return Malformed(
        what, f"simulate dump.json --config c.yaml{options}", files | ({metrics: content} if content else {})
    )


def planned(what: str, content: Any, to: str = "kubectl") -> Malformed:
    """Make a case of a plan that cannot be written as asked."""
    return Malformed(what, f"emit p.json --to {to}", {"p.json": content})


PLAN: Manifest = shop().model_dump(by_alias=True, mode="json")
OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\nnode-0,64000,262144,2,P100\n"
OPENB_PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\npod-0,1000,1024,1,500,,LS\n"

STUB = {"apiVersion": "stowplan/v1", "kind": "Plan", "id": "plan-1"}

CASES = [
    one("a quantity with two points", changed(P, f"{REQUESTS}/cpu", "1.5.2")),
    one("a quantity with a blank", changed(P, f"{REQUESTS}/memory", "1 Gi")),
    one("a quantity that overflows", changed(P, f"{REQUESTS}/memory", "12E")),
    one("a quantity that is a list", changed(P, f"{REQUESTS}/cpu", ["1"])),
    one("a quantity below zero", changed(P, f"{REQUESTS}/cpu", "-1")),
    one("a quantity that is too large", changed(P, f"{REQUESTS}/cpu", "10P")),
    one("allocatable that is not a quantity", changed(N, "status/allocatable/cpu", "four")),
    one("a pod on an unknown node", pod("web-1", "gone")),
    one("a selector with a bad operator", changed(P, ANTI, [TERM])),
    one(
        "a node selector with a bad operator",
        changed(P, NODES, [{"matchExpressions": [{"key": "k", "operator": "Within"}]}]),
    ),
    one("a toleration with a bad effect", changed(P, "spec/tolerations", [{"key": "k", "effect": "NoRun"}])),
    one("a taint without an effect", changed(N, "spec/taints", [{"key": "k"}])),
    one(
        "a spread constraint without maxSkew",
        changed(P, "spec/topologySpreadConstraints", [{**SPREAD, "maxSkew": None}]),
    ),
    one(
        "a spread constraint with an unknown whenUnsatisfiable",
        changed(P, "spec/topologySpreadConstraints", [{**SPREAD, "whenUnsatisfiable": "Maybe"}]),
    ),
    one("a host port that is a word", changed(P, "spec/containers/0/ports", [{"hostPort": "http"}])),
    one("labels that are numbers", changed(P, "metadata/labels", {"version": 1})),
    one("a pod without a name", changed(P, "metadata/name", ...)),
    one("containers that are a map", changed(P, "spec/containers", {"main": {}})),
    one("priority that is text", changed(P, "spec/priority", "high")),
    Malformed("two pods with one name", "solve dump.json", {"dump.json": listed(N, P, P)}),
    Malformed("two nodes with one name", "solve dump.json", {"dump.json": listed(N, N)}),
    Malformed("one pod in two files", "solve a.json b.json", {"a.json": GOOD, "b.json": listed(P)}),
    Malformed("no nodes", "solve dump.json", {"dump.json": listed(pod("web-1"))}),
    Malformed("a missing file", "solve dump.json"),
    Malformed("a directory without manifests", "solve dumps", {"dumps/readme.txt": "nothing"}),
    Malformed("truncated JSON", "solve dump.json", {"dump.json": json.dumps(GOOD, indent=1)[:200]}),
    Malformed(
        "a stream with a truncated second document",
        "solve dump.json",
        {"dump.json": json.dumps(GOOD, indent=1) + '\n{\n "kind": "Po'},
    ),
    Malformed("invalid YAML", "solve dump.yaml", {"dump.yaml": "kind: Pod\n  metadata: {"}),
    Malformed("JSON that is not a Kubernetes object", "solve dump.json", {"dump.json": {"pods": []}}),
    Malformed("text", "solve dump.txt", {"dump.txt": "NAME  READY  STATUS"}),
    Malformed("an empty file", "solve dump.json", {"dump.json": ""}),
    Malformed("a damaged gzip file", "solve dump.json.gz", {"dump.json.gz": gzip.compress(_bytes(GOOD))[:60]}),
    Malformed("an unknown objective", "solve dump.json -O blance", {"dump.json": GOOD}),
    with_objective("an objective with an unknown field", "tiers: [{name: a, varianc: {cpu: 1}}]"),
    with_objective("an objective without a weight", "tiers: [{name: a, moves: 0}]"),
    with_objective("an objective with a negative weight", "tiers: [{name: a, moves: -1}]"),
    with_objective("an objective for an unknown resource", "tiers: [{name: a, variance: {cpus: 1}}]"),
    with_objective("an objective that is a list", "- balance"),
    Malformed("too much memory in total", "compare dump.json", {"dump.json": listed(*HUGE)}),
    with_config("a configuration of another kind", {"apiVersion": "v1", "kind": "Pod"}),
    with_config("a configuration for another release", config(), "--profile 1.24"),
    with_config(
        "a configuration with an unknown plugin",
        config(profiles=[{"plugins": {"filter": {"enabled": [{"name": "NodeFit"}]}}}]),
    ),
    with_config(
        "a configuration with a bad argument",
        config(profiles=[{"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}]}]),
    ),
    with_config("a configuration with an unknown field", config(profiles=[{"plugin": {}}])),
    with_config(
        "an extender that scores without weight",
        config(extenders=[{"urlPrefix": "http://localhost", "prioritizeVerb": "score"}]),
    ),
    with_config("a missing profile", config(), "--scheduler mine"),
    with_metrics("missing metrics", "load.yaml"),
    with_metrics("metrics in an unknown format", "load.json", {"items": []}),
    with_metrics("metrics in invalid YAML", "load.yaml", "nodes: {n1: [}"),
    with_metrics("metrics below zero", "load.yaml", {"nodes": {"n1": {"cpu": {"average": -1}}}}),
    with_metrics("metrics of an unknown resource", "load.yaml", {"nodes": {"n1": {"gpu": 40}}}),
    with_metrics("metrics of other nodes", "load.yaml", {"nodes": {"m1": {"cpu": 40}, "m2": {"cpu": 50}}}),
    with_metrics("a load-watcher document without nodes", "load.json", {"window": {"end": 0}, "data": {"n1": {}}}),
    with_metrics("an unreachable metrics server", "http://127.0.0.1:1/watcher"),
    with_metrics("an invalid metrics URL", "http://[::1"),
    with_metrics("an invalid Prometheus window", "http://127.0.0.1:1?window=15"),
    with_metrics("an unreachable load-watcher of the profile", "", watcherAddress="http://127.0.0.1:1"),
    with_metrics("a target above 100", "", targetUtilization=140),
    with_metrics("a multiplier that is a word", "", defaultRequestsMultiplier="twice"),
    Malformed("an unknown release", "solve dump.json --profile 1.30", {"dump.json": GOOD}),
    Malformed("a bad label selector", "solve dump.json --freeze app==a==b", {"dump.json": GOOD}),
    Malformed(
        "a move limit of some pods without a number", "solve dump.json --max-moves ns=payments", {"dump.json": GOOD}
    ),
    Malformed("two limits on all moves", "solve dump.json --max-moves 5 --max-moves 9", {"dump.json": GOOD}),
    Malformed("a move limit below zero", "solve dump.json --max-moves -1", {"dump.json": GOOD}),
    Malformed("a time limit that is a word", "solve dump.json -t soon", {"dump.json": GOOD}),
    Malformed("an unknown option", "solve dump.json --objectiv pack", {"dump.json": GOOD}),
    Malformed("an unknown command", "slove dump.json"),
    Malformed("no input", "solve"),
    Malformed("a solution of another kind", "verify dump.json dump.json", {"dump.json": GOOD}),
    Malformed(
        "a solution that lacks a field", "verify s.json dump.json", {"s.json": {"kind": "Solution"}, "dump.json": GOOD}
    ),
    planned("a plan of another kind", {"kind": "Solution"}),
    planned("a plan of a newer version", {**PLAN, "apiVersion": "stowplan/v2"}),
    planned("a plan that lacks a field", {k: v for k, v in PLAN.items() if k != "tokens"}),
    planned("a plan with an invalid expiresAt", {**PLAN, "expiresAt": "soon"}),
    planned("a plan with an invalid name", changed(PLAN, "waves/0/moves/0/pod/name", "web-$(reboot)-a")),
    planned("a plan of pods without uids", changed(PLAN, "waves/0/moves/0/pod/uid", "")),
    planned("a move that follows an unknown move", changed(PLAN, "waves/0/moves/0/follows", "m9")),
    planned("a plan with parking, for koordinator", PLAN, "koordinator"),
    planned("several files and no folder", PLAN, "descheduler"),
    planned("an unknown target", PLAN, "helm"),
    Malformed("an invalid address for serve", "serve p.json --bind 8888", {"p.json": PLAN}),
    Malformed("a state file without leases", "serve p.json --state p.json", {"p.json": PLAN}),
    Malformed("a certificate without its key", "serve p.json --tls-cert c.pem", {"p.json": PLAN}),
    Malformed("an invalid duration", "plan dump.json --expires-in soon", {"dump.json": GOOD}),
    Malformed("a limit above 100%", "plan dump.json --max-per-owner 110%", {"dump.json": GOOD}),
    Malformed("a plan for an invalid solution", "plan dump.json --solution dump.json", {"dump.json": GOOD}),
    Malformed("a plan without its waves", "verify p.json dump.json", {"p.json": STUB, "dump.json": GOOD}),
    Malformed(
        "a reason that cannot be waived", "solve dump.json --executor descheduler --may-move bare", {"dump.json": GOOD}
    ),
    Malformed("a drain of an unknown node", "drain n9 --from dump.json", {"dump.json": GOOD}),
    Malformed("a fit without pods", "fit dump.json", {"dump.json": GOOD}),
    Malformed("a fit of a bound pod", "fit dump.json --pod default/web-1", {"dump.json": GOOD}),
    Malformed("a fit of a file without pods", "fit dump.json -f n.json", {"dump.json": GOOD, "n.json": listed(N)}),
    Malformed("a replay of something else", "replay dump.json dump.json", {"dump.json": GOOD}),
    Malformed("a limit on moves below zero", "frontier dump.json --moves -1", {"dump.json": GOOD}),
    Malformed("a dump compressed with xz", "solve dump.json", {"dump.json": b"\xfd7zXZ\x00"}),
    Malformed("a missing trace", "validate nothing.jsonl"),
    Malformed("a trace with a line that is not JSON", "validate t.jsonl -q", {"t.jsonl": "{"}),
    Malformed("a trace without a case", "validate t.jsonl -q", {"t.jsonl": {"kubernetes": "1.36"}}),
    Malformed("a trace of an unknown release", "validate t.jsonl -q", {"t.jsonl": {**TRACE, "kubernetes": "1.2"}}),
    Malformed(
        "a trace with an unknown mode", "validate t.jsonl -q", {"t.jsonl": {**TRACE, "case": {"mode": "at once"}}}
    ),
    Malformed(
        "a trace with a bad pod",
        "validate t.jsonl -q",
        {"t.jsonl": {**TRACE, "case": {"pending": [changed(P, f"{REQUESTS}/cpu", "one")]}}},
    ),
    Malformed(
        "a trace with an unknown field",
        "validate t.jsonl -q",
        {"t.jsonl": {**TRACE, "expect": [{"pod": "a", "node": 1}]}},
    ),
    Malformed("an openb trace without pods", "solve nodes.csv", {"nodes.csv": OPENB_NODES}),
    Malformed(
        "an openb trace with a bad number",
        "solve nodes.csv pods.csv",
        {"nodes.csv": OPENB_NODES, "pods.csv": OPENB_PODS.replace("1024", "1Gi")},
    ),
    Malformed(
        "an openb folder with several pod lists",
        "solve openb",
        {"openb/nodes.csv": OPENB_NODES, "openb/pods_a.csv": OPENB_PODS, "openb/pods_b.csv": OPENB_PODS},
    ),
    one("a share of more than a GPU", changed(P, "metadata/annotations", {"alibabacloud.com/gpu-milli": "1500"})),
]


def table() -> Iterator[str]:
    """Yield the lines of the documentation page."""
    yield "# Error messages"
    yield ""
    yield "Invalid input causes one line on stderr, with the file, the object, the field, the error, and often what would be"
    yield "valid; exit code 1; and nothing on stdout. `python -m tests.support.malformed` prints this page, and a test checks it."
    yield ""
    yield "| input | command | line |"
    yield "| --- | --- | --- |"
    for case in CASES:
        _, line = case.line()
        escaped = line.replace("|", "\\|")
        yield f"| {case.what} | `stowplan {case.arguments.strip()}` | `{escaped}` |"


if __name__ == "__main__":
    print("\n".join(table()))
