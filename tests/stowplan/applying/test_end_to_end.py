"""From a live cluster to a better one: snapshot, plan, apply, verify, and nothing left to plan."""

from __future__ import annotations

import json
from pathlib import Path

from stowplan.documents.plan import read_plan
from stowplan.models.plan import Plan
from tests.support.api_server import ApiServer, ByTokens, Cluster, emptiest
from tests.support.api_server.errors import Object
from tests.support.api_server.manifests import budget, deployment, namespace, node, stateful_set
from tests.support.api_server.store import Store
from tests.support.applying import Scene
from tests.support.kubectl import needs_kubectl
from tests.support.plans import plan

SEARCH = ("-t", "0.2", "--deterministic", "-q")


@needs_kubectl
def test_from_snapshot_to_nothing_to_do(home: Path) -> None:
    manifests = [
        namespace("kube-system"),
        *(node(name) for name in ("n1", "n2", "n3")),
        *deployment("shop", "web", ["n1", "n1", "n1"]),
        *stateful_set("shop", "db", ["n1", "n2"]),
        budget("shop", "web", "web", maxUnavailable=1),
    ]
    steering = [emptiest]

    def schedule(store: Store, pod: Object) -> str | None:
        return steering[0](store, pod)

    with ApiServer(Cluster(manifests, scheduler=schedule)) as server:
        shop = Scene(server, plan(), home)
        assert shop.command("snapshot", "-o", "dump.json.gz").returncode == 0
        made = shop.command("plan", "dump.json.gz", *SEARCH, "-o", "json")
        (home / "plan.json").write_text(made.stdout)
        document: Plan = read_plan(str(home / "plan.json"))
        assert document.moves
        steering[0] = ByTokens(document.tokens)
        done = shop.command("apply", "plan.json", "--yes", "--unsteered", "-q", "--poll", "0.1", "-o", "json")
        assert done.returncode == 0, done.stderr
        assert {move["stage"] for move in json.loads(done.stdout)["moves"]} == {"landed"}
        assert shop.command("snapshot", "-o", "dump.json.gz").returncode == 0
        verified = shop.command("verify", "plan.json", "dump.json.gz")
        assert "nothing is left" in verified.stdout, verified.stderr
        again = shop.command("plan", "dump.json.gz", *SEARCH, "-o", "json")
        assert json.loads(again.stdout)["waves"] == []
