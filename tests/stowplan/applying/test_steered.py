"""All parts together: a plan is applied while ``stowplan serve`` steers a scheduler that decides as kube-scheduler."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from stowplan.emitters.emission import EmitOptions
from stowplan.emitters.extender import emit_extender
from stowplan.models.objective import PRESETS
from stowplan.models.plan import Plan
from stowplan.models.settings import SettingsDocument
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K36
from tests.support.api_server import ByMap
from tests.support.api_server.errors import Object
from tests.support.api_server.framework import ByFramework
from tests.support.api_server.manifests import node as make_node
from tests.support.applying import scene
from tests.support.applying import shop as shop_manifests
from tests.support.extender import serving
from tests.support.kubectl import needs_kubectl
from tests.support.moving import Moving
from tests.support.plans import plan

pytestmark = needs_kubectl
MANIFESTS = [manifest for manifest in shop_manifests() if manifest["metadata"]["name"] != "new"]


def make(objects: list[Object]) -> Plan:
    """Return a plan that kube-scheduler would not follow: it prefers the empty node."""
    m = Moving(objects)
    return plan([m.move("shop/web-5d5b-aaaab", "n2")], [m.move("shop/db-0", "n2"), m.move("shop/web-5d5b-aaaac", "n3")])


def steered(made: Plan, url: str) -> Profile:
    """Return the profile that ``emit --to extender`` writes for a plan."""
    (file,) = emit_extender(made, EmitOptions(url=url)).files
    return make_profiles(yaml.safe_load(file.content), K36, "first")["default-scheduler"]


PACK = SettingsDocument(objective=PRESETS["pack"], release="1.36", scheduler="default-scheduler")


def packing(objects: list[Object]) -> Plan:
    """Return a plan that leaves the third node empty, which kube-scheduler prefers."""
    m = Moving(objects)
    return plan([m.move("shop/web-5d5b-aaaab", "n2")], [m.move("shop/db-0", "n2")], settings=PACK)


def test_pods_elsewhere_stop_the_plan_where_the_rest_is_worse_for_it(home: Path) -> None:
    with scene(home, MANIFESTS, packing, lambda plan: ByFramework(default_profile(K36, "first"))) as shop:
        stopped = shop.run().stopped
        found = re.fullmatch(
            r"1 pod came up on another node than planned, none may, and the rest of the plan is worse for it: "
            r"shop/web-5d5b-\w+ of ReplicaSet web-5d5b is on n3, planned for n2",
            stopped,
        )
        assert found, stopped
        assert shop.run(elsewhere=1, stop_after=1).stopped == ""


def test_pods_elsewhere_are_accepted_where_the_rest_is_as_good(home: Path) -> None:
    """n3 is as empty as n4; the plan balances, so either will do, and a restarted run thinks so too."""

    def make(objects: list[Object]) -> Plan:
        m = Moving(objects)
        return plan([m.move("shop/web-5d5b-aaaab", "n4")], [m.move("shop/db-0", "n4")])

    manifests = [*MANIFESTS, make_node("n4")]
    chosen = {"web-5d5b": ["n3"], "db-0": ["n4"]}
    with scene(home, manifests, make, lambda plan: ByMap(chosen)) as shop:
        assert shop.run(stop_after=1).stopped == ""
        assert any("is on n3, planned for n4; the rest of the plan is as good" in line for line in shop.lines)
        result = shop.run()
        assert result.stopped == ""
        assert [p.stage for p in result.ledger.progress.values()] == ["elsewhere", "landed"]
        assert set(shop.accepted().values()) == {1}


def test_steered_pods_land_as_planned(home: Path) -> None:
    with (
        serving(make(MANIFESTS), home) as extender,
        scene(home, MANIFESTS, make, lambda plan: ByFramework(steered(plan, extender.url))) as shop,
    ):
        assert shop.run(serve=extender.url).stopped == ""
        shop.check_done()


def test_nothing_is_begun_with_the_extender_of_another_plan(home: Path) -> None:
    other = make(MANIFESTS).model_copy(update={"created_at": "2026-11-20T10:00:00+00:00"})
    with serving(other, home) as extender, scene(home, MANIFESTS, make) as shop:
        stopped = shop.run(serve=extender.url).stopped
        assert stopped.startswith(
            f"{extender.url} does not open wave 1: HTTP 409 plan plan-7f3a of 2026-11-20T10:00:00+0"
        )
        assert not shop.server.evictions


def test_nothing_is_begun_without_the_extender(home: Path) -> None:
    with scene(home, MANIFESTS, make) as shop:
        stopped = shop.run(serve="http://127.0.0.1:1/v1").stopped
        assert stopped.startswith("http://127.0.0.1:1/v1 does not answer, so nothing steers the replacements: ")
        assert not shop.server.evictions
