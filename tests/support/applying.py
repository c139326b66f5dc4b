"""A cluster, a plan for it, and someone who carries the plan out; then a judge who reads what really happened."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from stowplan.applying.apply import Applied, apply
from stowplan.applying.dry_run import profile_of
from stowplan.applying.options import ApplyOptions
from stowplan.cluster.kubectl import Kubectl
from stowplan.models.plan import Plan
from stowplan.models.stop import Stop
from tests.support.api_server import ApiServer, ByTokens, Cluster, Pace
from tests.support.api_server.errors import Object
from tests.support.api_server.manifests import bare_pod, budget, deployment, namespace, node, stateful_set
from tests.support.api_server.resources import PODS, RESOURCES
from tests.support.api_server.scheduling import Scheduler
from tests.support.direct import DirectKubectl
from tests.support.moving import Moving
from tests.support.plans import plan

USED = {"Node", "Pod", "Namespace", "ReplicaSet", "StatefulSet", "DaemonSet", "Deployment", "PodDisruptionBudget"}
USED |= {"Lease", "Event"}
UNUSED = tuple(resource.plural for resource in RESOURCES if resource.kind not in USED)
ROOT = Path(__file__).parent.parent.parent
FAST = ApplyOptions(timeout=20, pending=5, poll=0.25, pause_scale=0.05, lease=False, events=False)
"""Options of tests that are not about leases and Events: each costs some calls of kubectl."""


def shop() -> list[Object]:
    """Return a small shop: three nodes, three web servers under a budget, two databases, a pod that waits."""
    return [
        namespace("kube-system"),
        namespace("shop"),
        *(node(name) for name in ("n1", "n2", "n3")),
        *deployment("shop", "web", ["n1", "n1", "n2"]),
        *stateful_set("shop", "db", ["n1", "n2"]),
        bare_pod("shop", "new", None),
        budget("shop", "web", "web", maxUnavailable=1),
    ]


def shop_plan(manifests: list[Object], **more: Any) -> Plan:
    """Return a plan for the shop: a database is parked and moved on, two web servers leave, a pod gets its room."""
    m = Moving(manifests)
    return plan(
        [m.move("shop/web-5d5b-aaaab", "n3", budgets=("web",)), m.move("shop/db-0", "n3")],
        [
            m.move("shop/web-5d5b-aaaac", "n2", budgets=("web",)),
            m.move("shop/db-0", "n2", source="n3", follows="m0002"),
            m.move("shop/new", "n1"),
        ],
        **more,
    )


@dataclass
class Scene:
    """A plan in front of a living cluster."""

    server: ApiServer
    plan: Plan
    home: Path
    kubeconfig: Path = field(init=False)
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kubeconfig = self.server.kubeconfig(self.home)
        self.before = self.standing()
        (self.home / "plan.json").write_text(self.plan.model_dump_json(by_alias=True))

    @property
    def journal(self) -> Path:
        """Where the journal is."""
        return self.home / f"{self.plan.id}.journal"

    @cached_property
    def kubectl(self) -> Kubectl:
        """The real client. Runs of `run` that are not about it do without: half of their time would be its start."""
        return Kubectl(kubeconfig=str(self.kubeconfig), timeout=5)

    @cached_property
    def direct(self) -> Kubectl:
        """One that speaks the same HTTP itself."""
        return DirectKubectl(timeout=5, server=self.server)

    def run(self, options: ApplyOptions = FAST, stop: Stop | None = None, **changes: Any) -> Applied:
        """Carry the plan out in this process."""
        kubectl = changes.pop("kubectl", self.direct)
        chosen = replace(options, **changes)
        profile = profile_of(self.plan, None)
        return apply(self.plan, kubectl, self.journal, profile, chosen, stop=stop, tell=self.lines.append)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the command in a process of its own."""
        code = "from stowplan.cli import main; main()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            cwd=self.home,
            env={**os.environ, "HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=300)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def standing(self) -> Counter[tuple[str, str]]:
        """Count pods by owner, or name if nobody owns them, and node."""
        found: Counter[tuple[str, str]] = Counter()
        for pod in self.server.store.all(PODS):
            owners = pod["metadata"].get("ownerReferences") or [{"name": pod["metadata"]["name"]}]
            named = owners[0].get("kind") == "StatefulSet"
            name = pod["metadata"]["name"] if named else owners[0]["name"]
            found[(name, pod["spec"].get("nodeName", ""))] += 1
        return found

    def wanted(self) -> Counter[tuple[str, str]]:
        """Count them as they should stand when the plan is done."""
        found = Counter(self.before)
        for move in self.plan.moves:
            named = move.owner is None or move.same_name
            name = move.pod.name if named or move.owner is None else move.owner.name
            found[(name, move.source or "")] -= 1
            found[(name, move.target or "")] += 1
        return +found

    def terminated(self) -> list[str]:
        """Return the uids of pods that were deleted, in order; one that was deleted twice would be there twice."""
        found: list[str] = []
        before: dict[str, bool] = {}
        for _, kind, resource, pod in self.server.store.events:
            if resource != PODS.name:
                continue
            uid, leaving = pod["metadata"]["uid"], "deletionTimestamp" in pod["metadata"]
            if (leaving or kind == "DELETED") and not before.get(uid, False):
                found.append(uid)
            before[uid] = leaving or kind == "DELETED"
        return found

    def accepted(self) -> Counter[str]:
        """Count the evictions that the server accepted, by uid."""
        return Counter(e.uid for e in self.server.evictions if e.code == 201 and not e.dry_run)

    def check_done(self) -> None:
        """Check that the plan was carried out: each pod evicted once, none lost, all where they should be."""
        self.server.cluster.settle()
        evicted = sum(move.kind != "place" for move in self.plan.moves)
        assert self.standing() == self.wanted()
        assert len(self.terminated()) == len(set(self.terminated())) == evicted
        assert set(self.accepted().values()) <= {1}


@contextmanager
def scene(
    home: Path,
    manifests: list[Object] | None = None,
    make: Callable[[list[Object]], Plan] = shop_plan,
    scheduler: Callable[[Plan], Scheduler] = lambda plan: ByTokens(plan.tokens),
    **server: Any,
) -> Iterator[Scene]:
    """Set a scene: a cluster of these manifests, and the plan that ``make`` makes for it.

    The server knows only the kinds that matter here, which saves every look at the cluster a dozen requests.
    """
    objects = shop() if manifests is None else manifests
    made = make(objects)
    pace = server.pop("pace", Pace())
    running = ApiServer(Cluster(objects, scheduler=scheduler(made), pace=pace), **{"without": UNUSED, **server})
    found = Scene(running, made, home)  # what stands where is counted before the cluster comes to life
    with running:
        yield found
