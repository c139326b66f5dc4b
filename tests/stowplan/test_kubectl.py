"""How kubectl is called, and what is made of its answers."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from stowplan.applying.eviction import eviction_version
from stowplan.cluster.kubectl import ClusterError, Kubectl, NoAnswer, Refusal
from tests.support.api_server import ApiServer, Cluster, cut, refuse
from tests.support.api_server.errors import ApiError, expired, too_many_requests
from tests.support.api_server.manifests import bare_pod, budget, node
from tests.support.api_server.resources import PODS
from tests.support.kubectl import needs_kubectl


def script(folder: Path, text: str) -> str:
    """Write a program that plays kubectl."""
    path = folder / "kubectl"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


VERSION = """'{"clientVersion": {"major": "1", "minor": "%s", "gitVersion": "v1.%s.0"}}'"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"echo {VERSION % ('17', '17')}", r"is v1\.17\.0; 1\.20 or newer is needed"),
        ("echo nonsense", "printed no version"),
        ("echo broken >&2; exit 1", "printed no version: broken"),
    ],
)
def test_a_kubectl_that_will_not_do(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ClusterError, match=said):
        Kubectl(binary=script(tmp_path, text)).get(["pods"])


def test_no_kubectl() -> None:
    with pytest.raises(ClusterError, match="no-such-kubectl is not installed or not in PATH"):
        Kubectl(binary="no-such-kubectl").served()


def test_what_is_passed_on(tmp_path: Path) -> None:
    called = tmp_path / "called"
    text = f"""[ "$1" = version ] && echo {VERSION % ("32+", "32")} && exit\necho "$@" > {called}; cat >> {called}"""
    kubectl = Kubectl(context="a b", kubeconfig="/c", timeout=2.5, binary=script(tmp_path, text))
    kubectl.post("/api/v1/x", {"kind": "Y"}, "do")
    assert called.read_text() == (
        "create --raw /api/v1/x -f - -v=8 --request-timeout=2.5s --context=a b --kubeconfig=/c\n" + '{"kind": "Y"}'
    )


def test_a_kubectl_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stowplan.cluster.kubectl.GRACE", 0.3)
    monkeypatch.setattr("stowplan.cluster.kubectl.LOGIN", 0.0)
    text = f"""[ "$1" = version ] && echo {VERSION % ("32", "32")} && exit\nexec sleep 30"""
    with pytest.raises(NoAnswer, match=r"did not end within 0.4 s"):
        Kubectl(timeout=0.1, binary=script(tmp_path, text)).raw("/api")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ApiServer:
    monkeypatch.setenv("HOME", str(tmp_path))
    cluster = Cluster([node("n1"), *(bare_pod("shop", f"p{i}", "n1") for i in range(5)), budget("shop", "b", "x")])
    return ApiServer(cluster, forbids=["nodes"])


@needs_kubectl
class TestAnswers:
    @pytest.fixture(autouse=True)
    def _serve(self, server: ApiServer, tmp_path: Path):
        with server:
            self.server = server
            self.kubectl = Kubectl(kubeconfig=str(server.kubeconfig(tmp_path)), timeout=5)
            yield

    def test_lists_in_chunks_and_what_is_forbidden(self) -> None:
        kinds = ["pods", "nodes", "poddisruptionbudgets.policy"]
        listing = self.kubectl.get(kinds, chunk=2, partial=True)
        assert listing.data.count(b'"kind": "Pod"') == 5
        assert listing.forbidden == (
            'nodes is forbidden: User "tester" cannot list resource "nodes" in API group "" at the cluster scope',
        )

    def test_what_is_forbidden_is_not_taken_for_empty(self) -> None:
        for kinds in (["nodes"], ["pods", "nodes"]):
            with pytest.raises(Refusal, match="nodes is forbidden"):
                self.kubectl.get(kinds)

    def test_a_list_that_expires_is_read_again(self) -> None:
        def expire(request: object) -> None:
            raise expired(self.server.lists.expire(self.server.store, PODS))

        self.server.faults.on("list", expire, matching="pods", skip=1)
        self.server.faults.on("list", expire, matching="pods", skip=3)
        assert self.kubectl.get(["pods"], chunk=2).data.count(b'"kind": "Pod"') == 5

    def test_half_a_list_is_none(self) -> None:
        self.server.faults.on("list", cut(0.5), matching="pods", skip=1, times=100)
        with pytest.raises(NoAnswer, match=r"get pods: .*EOF"):
            self.kubectl.get(["pods"], chunk=2)

    def test_an_error_beside_a_forbidden_kind_is_an_error(self) -> None:
        self.server.faults.on("list", refuse(ApiError(500, "InternalError", "etcd is sad")), matching="pods")
        with pytest.raises(ClusterError):
            self.kubectl.get(["nodes", "pods"], partial=True)

    def test_objects(self) -> None:
        assert b'"p1"' in (self.kubectl.find("pod", "p1", "shop") or b"")
        assert self.kubectl.find("pod", "p9", "shop") is None

    def test_refusals(self) -> None:
        budget_says = {
            "reason": "DisruptionBudget",
            "message": "The disruption budget b needs 2 healthy pods and has 2 currently",
        }
        self.server.faults.on("evict", refuse(too_many_requests("Cannot evict pod.", 7, budget_says)))
        with pytest.raises(Refusal) as refused:
            self.kubectl.post("/api/v1/namespaces/shop/pods/p1/eviction", {}, "evict")
        assert refused.value == Refusal(
            "Cannot evict pod. The disruption budget b needs 2 healthy pods and has 2 currently",
            "evict",
            "TooManyRequests",
            7,
        )

    def test_no_answer(self) -> None:
        self.server.faults.on("evict", cut())
        with pytest.raises(NoAnswer, match="evict: Unable to connect to the server: EOF"):
            self.kubectl.post("/api/v1/namespaces/shop/pods/p1/eviction", {}, "evict")

    def test_nobody_there(self, tmp_path: Path) -> None:
        config = tmp_path / "kubeconfig"
        config.write_text(config.read_text().replace(self.server.address, "http://127.0.0.1:1"))
        with pytest.raises(NoAnswer, match=r"The connection to the server 127.0.0.1:1 was refused"):
            self.kubectl.raw("/api")

    def test_a_context_that_does_not_exist(self) -> None:
        with pytest.raises(NoAnswer, match='context "nope" does not exist'):
            Kubectl(context="nope", kubeconfig=self.kubectl.kubeconfig).raw("/api")

    def test_which_eviction_the_server_takes(self) -> None:
        assert eviction_version(self.kubectl) == "policy/v1"
        self.server.discovery.minor = 21
        assert eviction_version(self.kubectl) == "policy/v1beta1"
