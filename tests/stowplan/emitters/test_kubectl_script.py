"""The kubectl script: clean to shellcheck, quoted, and carried out by a real shell and a real kubectl."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from stowplan.emitters.emission import EmitOptions
from stowplan.emitters.kubectl import emit_kubectl
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Node, Pod
from stowplan.models.plan import Plan, PodReference
from stowplan.plugins_compat.extenders.client import HTTPExtender
from tests.support import carrying
from tests.support.api_server import ApiServer, ByMap, Pace, Request, cut, hang, refuse
from tests.support.api_server.errors import ApiError
from tests.support.api_server.manifests import bare_pod, budget, deployment, namespace, node
from tests.support.api_server.resources import NODES, PODS
from tests.support.api_server.scheduling import feasible
from tests.support.api_server.store import Store
from tests.support.carrying import Manifest, Runner, cluster, of, two_waves, where
from tests.support.extender import needs_curl, serving
from tests.support.kubectl import needs_kubectl
from tests.support.plans import move, plan, shop

SHELLCHECK = shutil.which("shellcheck") or str(Path(sys.executable).with_name("shellcheck"))
SHELLS = [name for name in ("sh", "bash", "busybox") if shutil.which(name)]


@contextmanager
def served(manifests: list[Manifest], made: Plan, folder: Path, **more: Any) -> Iterator[tuple[ApiServer, Runner]]:
    """Serve a cluster, and yield what runs the plan's script against it."""
    (file,) = emit_kubectl(made, EmitOptions()).files
    with carrying.served(manifests, made, file, folder, **more) as both:
        yield both


BEFORE = [("db", "n2"), ("web-5d5b", "n1"), ("web-5d5b", "n1"), ("web-5d5b", "n1")]
AFTER = [("db", "n1"), ("web-5d5b", "n1"), ("web-5d5b", "n2"), ("web-5d5b", "n3")]


@pytest.mark.skipif(not Path(SHELLCHECK).exists(), reason="shellcheck is not installed")
def test_shellcheck_has_nothing_to_say(tmp_path: Path) -> None:
    (file,) = emit_kubectl(shop(), EmitOptions()).files
    (tmp_path / "plan.sh").write_text(file.content)
    done = subprocess.run([SHELLCHECK, str(tmp_path / "plan.sh")], capture_output=True, text=True)
    assert done.stdout == ""
    assert done.returncode == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_whatever_a_reason_says_is_no_command(tmp_path: Path, shell: str) -> None:
    """Every word of a move reaches the shell as the one word it was."""
    evil = 'it\'s "so" $(touch hacked) `touch hacked`; touch hacked\ntouch hacked | * \\ é ~'
    made = plan([move("shop/web-a", "n1", "n2", id="m0001", why=evil)])
    (file,) = emit_kubectl(made, EmitOptions()).files
    lines = [line for line in file.content.splitlines() if line.startswith("move m0001")]
    script = 'move() { printf "%s\\n" "$@"; }\n' + "\n".join(lines)
    words = ["busybox", "sh"] if shell == "busybox" else [shell]
    done = subprocess.run([*words, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        *["m0001", "evict", "shop", "web-a", "uid-web-a", "n1", "n2", "uid-web", "h1", "no", "-"],
        'it\'s "so" $(touch hacked) `touch hacked`; touch hacked touch hacked / * \\ é ~',
    ]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": "shop/web-$(x)-a"}, "waves[0].moves[0].pod.name"),
        ({"name": "a b/web-a"}, "waves[0].moves[0].pod.namespace"),
        ({"uid": "u u"}, "waves[0].moves[0].pod.uid"),
        ({"target": "n2;ls"}, "waves[0].moves[0].target"),
        ({"id": "m 1"}, "waves[0].moves[0].id"),
        ({"hash": "a|b"}, "waves[0].moves[0].templateHash"),
    ],
)
def test_a_name_that_no_cluster_has_is_refused(changed: dict[str, str], field: str) -> None:
    words = {"name": "shop/web-a", "source": "n1", "target": "n2", "id": "m0001", **changed}
    made = plan([move(words.pop("name"), words.pop("source"), words.pop("target"), **words)])
    with pytest.raises(InputError) as caught:
        emit_kubectl(made, EmitOptions())
    assert caught.value.field == field


def test_a_move_without_a_uid_is_refused() -> None:
    with pytest.raises(InputError, match="another pod of the same name could be evicted"):
        emit_kubectl(plan([move("shop/web-a", "n1", "n2", uid="")]), EmitOptions())
    with pytest.raises(InputError, match="another pod of the same name could be evicted"):
        emit_kubectl(plan([move("shop/web-a", "n1", None, uid="")]), EmitOptions())
    with pytest.raises(InputError, match="no controller would replace it"):
        emit_kubectl(plan([move("alone", "n1", "n2", owner="")]), EmitOptions())


@needs_kubectl
def test_without_yes_nothing_is_changed(tmp_path: Path) -> None:
    manifests = cluster()
    with served(manifests, two_waves(manifests), tmp_path) as (server, run):
        done = run()
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[:3] == [
            "wave 1:",
            "  m0001: would evict shop/web-5d5b-aaaab from n1, for n2: for balance",
            "  m0002: would evict shop/db-0 from n2, for n3: for balance",
        ]
        assert not server.evictions
        assert {request.wish for request in server.requests} <= {"get", "list", "discover"}
        assert where(server) == BEFORE
    assert not list(tmp_path.glob("*.state"))


@needs_kubectl
@pytest.mark.parametrize("shell", ["sh", *(name for name in SHELLS if name == "busybox")])
def test_a_plan_is_carried_out_wave_by_wave(tmp_path: Path, shell: str) -> None:
    manifests = cluster()
    made = two_waves(manifests)
    with served(manifests, made, tmp_path) as (server, run):
        done = run("--yes", shell=shell)
        assert done.returncode == 0, done.stderr
        assert where(server) == AFTER
        assert [eviction.code for eviction in server.evictions] == [201] * 5
        assert len({eviction.uid for eviction in server.evictions}) == 5
        planned = [m.pod.uid for m in made.moves if m.follows is None]
        assert {e.uid for e in server.evictions[:2]} == set(planned[:2])
        about = [request.body["metadata"] for request in server.requests if request.wish == "evict" and request.body]
        assert {m["annotations"]["stowplan.io/plan"] for m in about} == {made.id}
        names = {m.id: m.pod.name for m in made.moves if m.kind != "place"}
        assert {m["annotations"]["stowplan.io/move"] for m in about} == set(names)
        assert all(m["name"] == names[m["annotations"]["stowplan.io/move"]] for m in about[:2])
        again = run("--yes", shell=shell)
        assert again.returncode == 0, again.stderr
        assert again.stdout.splitlines() == ["wave 1: done before", "wave 2: done before"]
        assert len(server.evictions) == 5


@needs_kubectl
def test_a_parked_pod_is_not_taken_for_one_with_a_move_of_its_own(tmp_path: Path) -> None:
    """Both stand on one node and are of one owner; the one with its own move leaves a wave later."""
    manifests = [namespace("shop"), *(node(f"n{i}") for i in (1, 2, 3)), *deployment("shop", "web", ["n1", "n2"])]
    parked, named = (m["metadata"]["name"] for m in manifests if m["kind"] == "Pod")
    made = plan(
        [of(manifests, parked, "n2", "m0001")],
        [of(manifests, parked, "n3", "m0002", source="n2", follows="m0001")],
        [of(manifests, named, "n1", "m0003")],
    )
    with served(manifests, made, tmp_path) as (server, run):
        done = run("--yes")
        assert done.returncode == 0, done.stderr
        assert where(server) == [("web-5d5b", "n1"), ("web-5d5b", "n3")]
        assert server.evictions[2].uid == made.waves[2].moves[0].pod.uid


@needs_kubectl
def test_a_pod_that_was_replaced_is_drift(tmp_path: Path) -> None:
    manifests = cluster()
    made = two_waves(manifests)
    stale = made.model_copy(
        update={
            "waves": (
                made.waves[0].model_copy(
                    update={
                        "moves": (
                            made.waves[0].moves[0],
                            made.waves[0]
                            .moves[1]
                            .model_copy(update={"pod": PodReference(namespace="shop", name="db-0", uid="of-old")}),
                        )
                    }
                ),
            )
        }
    )
    with served(manifests, stale, tmp_path) as (server, run):
        done = run("--yes")
        assert done.returncode == 1
        assert "stopped: m0002: shop/db-0 is another pod now: uid" in done.stderr
        assert not server.evictions


@needs_kubectl
def test_a_budget_is_waited_for(tmp_path: Path) -> None:
    """Two of a wave, one at a time: the second is refused with 429 until the first one's replacement is ready."""
    manifests = [*cluster(), budget("shop", "web", "web", maxUnavailable=1)]
    web = [m["metadata"]["name"] for m in manifests if m["kind"] == "Pod"]
    made = plan([of(manifests, web[0], "n2", "m0001"), of(manifests, web[1], "n3", "m0002")])
    with served(manifests, made, tmp_path, pace=Pace(ready=1.5)) as (server, run):
        done = run("--yes")
        assert done.returncode == 0, done.stderr
        assert server.evictions[0].code == 201
        assert 429 in {e.code for e in server.evictions}
        assert where(server) == [("db", "n2"), ("web-5d5b", "n1"), ("web-5d5b", "n2"), ("web-5d5b", "n3")]


@needs_kubectl
def test_a_budget_that_never_gives_way_ends_it(tmp_path: Path) -> None:
    manifests = [*cluster(), budget("shop", "web", "web", maxUnavailable=0)]
    made = plan([of(manifests, "web-5d5b-aaaab", "n2", "m0001")], timeout=1)
    with served(manifests, made, tmp_path) as (server, run):
        done = run("--yes")
        assert done.returncode == 1
        assert "m0001: shop/web-5d5b-aaaab is held by its disruption budget" in done.stderr
        assert where(server) == BEFORE


@needs_kubectl
def test_a_replacement_elsewhere_ends_it_unless_that_is_accepted(tmp_path: Path) -> None:
    manifests = cluster()
    made = plan([of(manifests, "web-5d5b-aaaab", "n2", "m0001")])
    with served(manifests, made, tmp_path, scheduler=ByMap({"web-5d5b": ["n3"]})) as (server, run):
        done = run("--yes")
        assert done.returncode == 1
        assert "m0001: 0 of 1 replacements of shop/web-5d5b-aaaab and its like stand on n2" in done.stderr
        again = run("--yes", "--elsewhere")
        assert again.returncode == 0, again.stderr
        assert [e.code for e in server.evictions] == [201]


@needs_kubectl
def test_a_replacement_that_never_gets_ready_ends_it(tmp_path: Path) -> None:
    manifests = cluster()
    made = plan([of(manifests, "db-0", "n3", "m0001")], [of(manifests, "web-5d5b-aaaab", "n2", "m0002")], timeout=4)
    with served(manifests, made, tmp_path, never_ready={"db"}) as (server, run):
        done = run("--yes")
        assert done.returncode == 1
        assert "0 of 1 replacements of shop/db-0 and its like are ready" in done.stderr
        assert len(server.evictions) == 1


@needs_kubectl
def test_a_pod_that_waits_for_its_room_and_one_that_goes(tmp_path: Path) -> None:
    manifests = [*cluster(), bare_pod("shop", "new", None, cpu="3")]
    made = plan(
        [of(manifests, "web-5d5b-aaaab", "n3", "m0001"), of(manifests, "web-5d5b-aaaac", "n3", "m0002")],
        [of(manifests, "new", "n1", "m0003")],
    )
    with served(manifests, made, tmp_path) as (server, run):
        done = run("--yes")
        assert done.returncode == 0, done.stderr
        assert len(server.evictions) == 2


@needs_kubectl
def test_a_pod_that_has_no_uid_yet_is_waited_for(tmp_path: Path) -> None:
    """A plan of ``fit`` is made before its pods are in the cluster."""
    manifests = [*cluster(), bare_pod("shop", "new", None)]
    placed = of(manifests, "new", "n3", "m0001", pod=PodReference(namespace="shop", name="new"))
    with served(manifests, plan([placed]), tmp_path) as (server, run):
        done = run("--yes")
        assert done.returncode == 0, done.stderr
        assert "done" in done.stdout
        assert not server.evictions


@needs_kubectl
def test_what_was_done_is_known_from_wherever_the_script_is_run(tmp_path: Path) -> None:
    manifests = cluster()
    with served(manifests, plan([of(manifests, "db-0", "n3", "m0001")]), tmp_path) as (_, run):
        assert run("--yes").returncode == 0
        (tmp_path / "elsewhere").mkdir()
        again = subprocess.run(
            ["sh", "../plan-7f3a-kubectl.sh", "--yes"],
            cwd=tmp_path / "elsewhere",
            env={**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "kubeconfig")},
            capture_output=True,
            text=True,
        )
        assert (again.returncode, again.stdout) == (0, "wave 1: done before\n"), again.stderr


@needs_kubectl
@pytest.mark.parametrize("fault", ["errors", "cuts"])
def test_a_fault_in_between_evicts_nobody_twice(tmp_path: Path, fault: str) -> None:
    manifests = cluster()
    made = two_waves(manifests)
    with served(manifests, made, tmp_path) as (server, run):
        if fault == "errors":
            server.faults.on("evict", refuse(ApiError(500, "InternalError", "out of luck")), times=2)
            server.faults.on("get", hang(0.2))
        else:
            server.faults.on("evict", cut())
            server.faults.on("evict", cut(), skip=1, after=True, times=2)
            server.faults.on("list", cut(0.5), after=True)
        done = run("--yes")
        assert done.returncode == 0, done.stderr
        assert where(server) == AFTER
        accepted = [e.uid for e in server.evictions if e.code == 201]
        assert len(accepted) == len(set(accepted)) == 5


@needs_kubectl
@pytest.mark.parametrize(("wish", "number"), [("evict", 0), ("evict", 3), ("list", 2)])
def test_a_run_that_was_killed_is_taken_up(tmp_path: Path, wish: str, number: int) -> None:
    """Killed while the answer to a request is on its way: the cluster has done it, and the script does not know."""
    manifests = cluster()
    made = two_waves(manifests)
    struck, over = threading.Event(), threading.Event()

    def strike(request: Request) -> None:
        struck.set()
        over.wait(30)

    with served(manifests, made, tmp_path) as (server, run):
        server.faults.on(wish, strike, matching="/pods", skip=number, after=True)
        process = subprocess.Popen(
            ["sh", str(tmp_path / "plan-7f3a-kubectl.sh"), "--yes"],
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "kubeconfig")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        assert struck.wait(30)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        over.set()
        done = run("--yes")
        assert done.returncode == 0, done.stderr
        assert where(server) == AFTER
        accepted = [e.uid for e in server.evictions if e.code == 201]
        assert len(accepted) == len(set(accepted)) == 5


class ByExtender:
    """Schedules where the extender scores best, among the nodes that have room; else wherever has the most room."""

    def __init__(self) -> None:
        self.client: HTTPExtender | None = None

    def __call__(self, store: Store, pod: Manifest) -> str | None:
        assert self.client is not None
        asked = TypeAdapter(Pod).validate_python(pod)
        nodes = [TypeAdapter(Node).validate_python(node(name)) for name in feasible(store, pod)]
        passed = set(self.client.filter(asked, nodes).passed)
        left = [found for found in nodes if found.name in passed]
        scores = self.client.prioritize(asked, left) if len(left) > 1 else {}
        return max((found.name for found in left), key=lambda name: scores.get(name, 0), default=None)


@needs_kubectl
@needs_curl
def test_script_and_extender_together(tmp_path: Path) -> None:
    """Nothing but the two: the script evicts, the extender steers, and is told of each wave."""
    manifests = cluster()
    made = two_waves(manifests)
    # A token that nobody takes would hold the second wave back.
    idle = made.tokens[0].model_copy(update={"owner_uid": "scaled-away", "pod": None})
    made = made.model_copy(update={"tokens": (*made.tokens, idle)})
    scheduler = ByExtender()
    with (
        serving(made, tmp_path) as extender,
        served(manifests, made, tmp_path, scheduler=scheduler) as (server, run),
    ):
        scheduler.client = extender.client()
        done = run("--yes", "--serve", extender.url)
        assert done.returncode == 0, done.stderr
        assert where(server) == AFTER
        scheduler.client.close()


@needs_kubectl
@needs_curl
def test_without_the_extender_nobody_is_evicted(tmp_path: Path) -> None:
    manifests = cluster()
    with served(manifests, two_waves(manifests), tmp_path) as (server, run):
        done = run("--yes", "--serve", "http://127.0.0.1:9/v1")
        assert done.returncode == 1
        assert "stopped: http://127.0.0.1:9/v1 does not answer" in done.stderr
        assert not server.evictions


@needs_kubectl
@needs_curl
def test_with_the_extender_of_another_plan_nobody_is_evicted(tmp_path: Path) -> None:
    manifests = cluster()
    made = two_waves(manifests)
    other = made.model_copy(update={"created_at": "2026-11-20T10:00:00+00:00"})
    with serving(other, tmp_path) as extender, served(manifests, made, tmp_path) as (server, run):
        done = run("--yes", "--serve", extender.url)
        assert done.returncode == 1
        assert (
            f"{extender.url} does not open wave 1: plan plan-7f3a of 2026-11-20T10:00:00+00:00 is served" in done.stderr
        )
        assert done.stderr.rstrip().endswith("HTTP 409")
        assert not server.evictions


def closed_nodes(server: ApiServer) -> list[str]:
    """Return the names of the cordoned nodes."""
    return [n["metadata"]["name"] for n in server.store.all(NODES) if n["spec"].get("unschedulable")]


@needs_kubectl
@pytest.mark.parametrize("fails", [False, True])
def test_nodes_are_cordoned_while_a_wave_lasts(tmp_path: Path, fails: bool) -> None:
    """The first node for good, the second for the first wave; the third one was cordoned by somebody else."""
    manifests = [*cluster(), node("n0"), node("n4"), {**node("n5"), "spec": {"unschedulable": True}}]
    made = two_waves(manifests, cordon=("n0",))
    first, second = made.waves
    made = made.model_copy(update={"waves": (first.model_copy(update={"cordon": ("n4", "n5")}), second)})
    seen: list[list[str]] = []
    with served(manifests, made, tmp_path) as (server, run):
        shown = run()
        assert shown.stdout.startswith("would cordon n0, and leave that so\nwave 1:\n  would cordon n4 n5 while")
        assert closed_nodes(server) == ["n5"]
        server.faults.on("evict", lambda request: seen.append(closed_nodes(server)), times=9)
        if fails:
            server.faults.on("evict", refuse(ApiError(404, "NotFound", "gone")))
        done = run("--yes")
        assert done.returncode == int(fails), done.stderr
        assert closed_nodes(server) == ["n0", "n5"]
        if fails:
            assert run("--yes").returncode == 0
            assert closed_nodes(server) == ["n0", "n5"]
        waves = [["n0", "n4", "n5"]] * (3 if fails else 2) + [["n0", "n5"]] * 3
        assert seen == waves


@needs_kubectl
@pytest.mark.parametrize("why", ["expired", "drift"])
def test_what_a_killed_run_has_cordoned_is_opened_by_one_that_does_not_begin(tmp_path: Path, why: str) -> None:
    manifests = [*cluster(), node("n0"), node("n4")]
    made = two_waves(manifests, cordon=("n0",))
    first, second = made.waves
    made = made.model_copy(update={"waves": (first.model_copy(update={"cordon": ("n4",)}), second)})
    with served(manifests, made, tmp_path) as (server, run):
        for name, wave in (("n0", 0), ("n4", 1)):
            server.store.update(NODES, "", name, lambda node: node["spec"].update(unschedulable=True))
            with (tmp_path / "plan-7f3a-kubectl.state").open("a") as state:
                state.write(f"cordoned {wave} {name}\n" + "closed\n" * (wave == 0))
        if why == "expired":
            script = tmp_path / "plan-7f3a-kubectl.sh"
            script.write_text(script.read_text().replace("EXPIRES=2126", "EXPIRES=2026", 1).replace("1121", "0121", 1))
        else:
            server.store.delete(PODS, "shop", "db-0", {})
            server.cluster.settle()
        done = run("--yes")
        assert done.returncode == 1
        assert "stopped: " in done.stderr
        assert closed_nodes(server) == ["n0"]
        assert not server.evictions


@needs_kubectl
def test_a_node_that_cannot_be_cordoned_stops_the_script(tmp_path: Path) -> None:
    """Kubectl's own cordon would say nothing of it in its exit code."""
    manifests = [*cluster(), node("n0")]
    with served(manifests, two_waves(manifests, cordon=("n0",)), tmp_path) as (server, run):
        server.faults.on("patch", refuse(ApiError(403, "Forbidden", "no")), times=9)
        done = run("--yes")
        assert done.returncode == 1
        assert "node n0 cannot be cordoned" in done.stderr
        assert not server.evictions


@needs_kubectl
def test_a_plan_that_has_expired_is_not_begun(tmp_path: Path) -> None:
    manifests = cluster()
    made = two_waves(manifests, expires_at="2026-01-01T00:00:00Z")
    with served(manifests, made, tmp_path) as (server, run):
        done = run("--yes")
        assert done.returncode == 1
        assert "stopped: the plan has expired" in done.stderr
        assert not server.requests


def test_a_word_that_is_no_option_is_told(tmp_path: Path) -> None:
    (file,) = emit_kubectl(shop(), EmitOptions()).files
    (tmp_path / "plan.sh").write_text(file.content)
    done = subprocess.run(["sh", "plan.sh", "--now"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")
