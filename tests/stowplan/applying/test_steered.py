"""All parts together: a plan is applied while ``stowplan serve`` steers a scheduler that decides as kube-scheduler."""

from __future__ import annotations

from pathlib import Path

import yaml

from stowplan.emitters.emission import EmitOptions
from stowplan.emitters.extender import emit_extender
from stowplan.models.plan import Plan
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K36
from tests.support.api_server.errors import Object
from tests.support.api_server.framework import ByFramework
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


def test_unsteered_pods_come_up_elsewhere_and_stop_the_plan(home: Path) -> None:
    with scene(home, MANIFESTS, make, lambda plan: ByFramework(default_profile(K36, "first"))) as shop:
        assert shop.run().stopped == "1 replacement came up on another node than planned, none may: m0001"


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
