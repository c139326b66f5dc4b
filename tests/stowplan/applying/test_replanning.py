"""Where the rest of a plan does not fit the cluster any more, it is made anew, within the same limits on moves."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stowplan.applying.apply import Applied
from stowplan.applying.dry_run import profile_of
from stowplan.applying.journal import read_journal
from stowplan.applying.lease import holder_of
from stowplan.applying.records import ReplanRecord
from stowplan.applying.replanning import Replanning, apply_and_replan
from stowplan.cli import run as command
from stowplan.documents.plan import read_plan
from stowplan.instances.documents import Document
from stowplan.instances.manifests import read_snapshot
from stowplan.models.errors import InputError
from stowplan.models.objective import PRESETS
from stowplan.models.options import Options
from stowplan.models.plan import Plan
from stowplan.models.settings import SettingsDocument
from stowplan.models.snapshot import Snapshot
from stowplan.planning.replan import MadeEviction, remaining_settings, replan
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.api_server.errors import Object
from tests.support.api_server.framework import ByFramework
from tests.support.api_server.manifests import deployment, namespace, node
from tests.support.api_server.resources import PODS
from tests.support.applying import FAST, Scene, scene
from tests.support.kubectl import needs_kubectl
from tests.support.moving import Moving
from tests.support.plans import plan

pytestmark = needs_kubectl
SEARCH = Options(time_limit=2, kernels=False)


def drain_settings(**more: Any) -> SettingsDocument:
    """Return settings of a drain of n1."""
    content: dict[str, Any] = {"objective": PRESETS["balance"], "release": "1.36", "scheduler": "default-scheduler"}
    return SettingsDocument(**content | {"drain": ("n1",)} | more)


def manifests() -> list[Object]:
    """Return three nodes; two servers are on the first, and fit on either of the others."""
    return [
        namespace("kube-system"),
        namespace("shop"),
        *(node(name) for name in ("n1", "n2", "n3")),
        *deployment("shop", "web", ["n1", "n1"]),
    ]


def draining(objects: list[Object], **more: Any) -> Plan:
    """Return a plan that empties n1, one server after the other, both to n2."""
    m = Moving(objects)
    first, second = m.move("shop/web-5d5b-aaaab", "n2"), m.move("shop/web-5d5b-aaaac", "n2")
    return plan([first], [second], settings=drain_settings(**more), cordon=("n1",))


def run(shop: Scene, *, accepted: bool) -> Applied:
    """Carry the plan out, and make its rest anew."""
    profile = profile_of(shop.plan, None)
    replanning = Replanning(accepted, SEARCH)
    return apply_and_replan(shop.plan, shop.kubectl, shop.journal, profile, FAST, replanning, tell=shop.lines.append)


def seen(objects: list[Object]) -> Snapshot:
    """Return manifests as a snapshot."""
    data = json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}).encode()
    return read_snapshot(iter([Document("cluster", data)]))


def on(shop: Scene, name: str) -> int:
    return sum(pod["spec"].get("nodeName") == name for pod in shop.server.store.all(PODS))


def cordon(shop: Scene, name: str) -> None:
    shop.kubectl.cordon(name, True)


class Test_a_target_that_was_cordoned_meanwhile:
    def test_stops_a_plan(self, home: Path) -> None:
        with scene(home, manifests(), draining) as shop:
            cordon(shop, "n2")
            result = shop.run()
            assert result.stopped == "the cluster has changed before wave 1: node n2 is cordoned"
            assert result.obsolete

    def test_the_rest_is_shown_and_nothing_is_evicted(self, home: Path) -> None:
        with scene(home, manifests(), draining) as shop:
            cordon(shop, "n2")
            result = run(shop, accepted=False)
            assert not shop.server.evictions
            assert "; its rest, made anew, is " in result.stopped
            (file,) = (path for path in home.glob("*.json") if path.name != "plan.json")
            new = read_plan(str(file))
            assert {move.target for move in new.moves} == {"n3"}
            assert len(new.moves) == new.settings.max_moves == 2
            assert (new.expires_at, new.cordon, new.steered) == (shop.plan.expires_at, ("n1",), False)
            assert any(line.endswith("shop/web-5d5b-aaaab: n1 → n3") for line in shop.lines)

    def test_the_rest_is_carried_out_if_that_is_accepted(self, home: Path) -> None:
        kube_scheduler = ByFramework(default_profile(K36, "first"))
        with scene(home, manifests(), draining, lambda plan: kube_scheduler) as shop:
            cordon(shop, "n2")
            result = run(shop, accepted=True)
            assert result.stopped == ""
            assert (on(shop, "n1"), on(shop, "n3")) == (0, 2)
            assert set(shop.accepted().values()) == {1}
            again = run(shop, accepted=True)  # as after a kill: the old journal leads to the new plan
            assert again.ledger.plan.id == result.ledger.plan.id
            assert again.ledger.done
            assert len(shop.server.evictions) == 2
            anew = again.ledger.plan.id
            assert shop.run().stopped == f"the rest of this plan was made anew as {anew}; apply {anew}.json instead"

    def test_nothing_is_made_anew_unless_that_is_asked_for(self, home: Path) -> None:
        with scene(home, manifests(), draining) as shop:
            cordon(shop, "n2")
            stopped = shop.command("apply", "plan.json", "--yes", "--unsteered", "--poll", "0.1")
            assert stopped.returncode == 1
            assert "has to be made anew from a new snapshot, as --replan does" in " ".join(stopped.stdout.split())
            assert "made anew," not in stopped.stderr
            assert [path.name for path in home.glob("*.json")] == ["plan.json"]
            assert not shop.server.evictions

    def test_another_plan_than_the_accepted_one_is_not_carried_out(self, home: Path) -> None:
        kube_scheduler = ByFramework(default_profile(K36, "first"))
        with scene(home, manifests(), draining, lambda plan: kube_scheduler) as shop:
            cordon(shop, "n2")
            run(shop, accepted=True)
            (record,) = (r for r in read_journal(shop.journal) if isinstance(r, ReplanRecord))
            file = home / record.file
            file.write_text(file.read_text().replace('"n3"', '"n2"'))
            with pytest.raises(InputError, match=r"is not the plan .* that was accepted"):
                run(shop, accepted=True)


@pytest.mark.parametrize("accepted", [True, False])
def test_the_lease_is_kept_while_the_rest_is_made_anew(home: Path, accepted: bool) -> None:
    """Nobody gets it between the plans; it says which one is carried out, and is given back at the end."""
    kube_scheduler = ByFramework(default_profile(K36, "first"))
    with scene(home, manifests(), draining, lambda plan: kube_scheduler) as shop:
        cordon(shop, "n2")

        def written() -> list[Object]:
            requests = [r for r in shop.server.requests if r.wish in {"create", "update"} and "lease" in r.path]
            return [request.body for request in requests if request.body is not None]

        def plans() -> list[str]:
            return [body["metadata"]["annotations"]["stowplan.io/plan"] for body in written()]

        def told(line: str) -> None:
            """Wait for two renewals before the rest is made anew, and for one with the new plan, on any machine."""
            until = time.monotonic() + 60
            between, after = "has changed before wave" in line, line.endswith("is over")
            while ((between and len(plans()) < 3) or (after and len(set(plans())) < 2)) and time.monotonic() < until:
                time.sleep(0.05)

        # Short enough not to wait for long, and long enough for a busy machine to renew it in time.
        options = replace(FAST, lease=True, lease_seconds=6.0)
        profile, replanning = profile_of(shop.plan, None), Replanning(accepted, SEARCH)
        result = apply_and_replan(shop.plan, shop.kubectl, shop.journal, profile, options, replanning, tell=told)
        assert (result.stopped == "") == accepted
        bodies = written()
        holders = [body["spec"]["holderIdentity"] for body in bodies]
        assert holders == [holder_of(shop.journal)] * (len(holders) - 1) + [""]
        assert len({body["spec"]["acquireTime"] for body in bodies[:-1]}) == 1
        assert len(bodies) > 3
        assert set(plans()[:-1]) == ({shop.plan.id, result.ledger.plan.id} if accepted else {shop.plan.id})


def test_a_new_plan_goes_on_after_a_kill(home: Path) -> None:
    """The process is killed with SIGKILL before the first eviction of the new plan is answered, and run again."""
    arguments = ("apply", "plan.json", "--yes", "--unsteered", "--replan", "auto", "--poll", "0.1")
    kube_scheduler = ByFramework(default_profile(K36, "first"))
    with scene(home, manifests(), draining, lambda plan: kube_scheduler) as shop:
        cordon(shop, "n2")
        process = shop.start(*arguments)
        shop.server.faults.on("evict", lambda request: process.kill(), after=True)
        _, said = process.communicate(timeout=120)
        assert "going on with plan" in said
        assert process.returncode == -signal.SIGKILL
        shop.server.faults.clear()
        done = shop.command(*arguments)
        assert done.returncode == 0, done.stderr
        assert "made anew" not in done.stderr
        shop.server.cluster.settle()
        assert (on(shop, "n1"), on(shop, "n3")) == (0, 2)
        assert len(shop.terminated()) == len(set(shop.terminated())) == 2


def test_a_limit_that_is_used_up_leaves_nothing_to_plan(home: Path) -> None:
    with scene(home, manifests(), lambda objects: draining(objects, max_moves=0)) as shop:
        cordon(shop, "n2")
        result = run(shop, accepted=True)
        assert result.stopped.endswith("made anew: no better placement is found with 0 more moves")
        assert not shop.server.evictions


def test_pods_elsewhere_are_awaited_before_the_rest_is_made_anew(home: Path) -> None:
    """Both servers are evicted at once and come up on n3; that violates nothing, but n3 was to be left empty."""

    def packing(objects: list[Object]) -> Plan:
        m = Moving(objects)
        moves = [m.move("shop/web-5d5b-aaaab", "n2"), m.move("shop/web-5d5b-aaaac", "n2")]
        return plan(moves, settings=drain_settings(drain=(), objective=PRESETS["pack"]))

    objects = [*manifests(), *deployment("shop", "db", ["n2"])]
    profile = default_profile(K36, "first")
    with scene(home, objects, packing, lambda plan: ByFramework(profile)) as shop:
        result = run(shop, accepted=False)
        assert "came up on another node than planned" in result.stopped
        assert set(shop.accepted().values()) == {1}
        assert all(pod["status"]["phase"] == "Running" for pod in shop.server.store.all(PODS))


def test_evictions_count_against_every_limit() -> None:
    objects = manifests()
    made = draining(objects, max_moves=5, max_moves_of=("ns=shop:3", "app=web:2", "app=db:4"), admit=("shop/gone",))
    first, second = made.moves
    snapshot = seen(objects)
    known = MadeEviction(first, "shop/web-5d5b-aaaac")
    left = remaining_settings(made, snapshot, [known])
    assert (left.max_moves, left.max_moves_of) == (4, ("ns=shop:2", "app=web:1", "app=db:4"))
    assert (left.executor, left.admit) == ("eviction-api", ())
    left = remaining_settings(made, snapshot, [known, MadeEviction(second)])
    assert (left.max_moves, left.max_moves_of) == (3, ("ns=shop:1", "app=web:0", "app=db:3"))
    assert remaining_settings(draining(objects), snapshot, [known]).max_moves == 1


def test_a_pod_whose_eviction_was_refused_stays() -> None:
    objects = manifests()
    snapshot = seen(objects)
    new = replan(draining(objects), snapshot, [], SEARCH, refused={"shop/web-5d5b-aaaab": "refused for good"})
    assert [move.pod.name for move in new.moves] == ["web-5d5b-aaaac"]


def test_nothing_is_made_anew_of_an_expired_plan() -> None:
    objects = manifests()
    late = draining(objects).model_copy(update={"expires_at": "2026-11-21T12:00:00Z"})
    with pytest.raises(InputError, match="expired at 2026-11-21T12:00:00Z"):
        replan(late, seen(objects), [], SEARCH)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--replan", "show"], "--replan: needs --yes"),
        (["--yes", "--replan", "auto", "--serve", "http://127.0.0.1:1/v1"], "--replan: auto excludes --serve"),
        (["--yes", "--replan", "auto", "--stop-after-wave", "1"], "--replan: auto excludes --stop-after-wave"),
    ],
)
def test_combinations_that_could_surprise_are_refused(
    home: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / "plan.json"
    file.write_text(draining(manifests()).model_dump_json(by_alias=True))
    assert command(["apply", str(file), *arguments]) == 1
    assert message in capsys.readouterr().err
