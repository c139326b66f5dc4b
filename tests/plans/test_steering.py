"""Tokens in a replay are handed out as the server hands them out."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from stowplan.models.kubernetes import Pod
from stowplan.models.plan import TokenDocument
from stowplan.plans.replay.steering import CordonExtender, TokenExtender
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36, Release
from stowplan.serving.ledger import Asker, TokenLedger
from tests.plans.test_replay import owned
from tests.support.clusters import node, pod, snapshot
from tests.support.plans import move, plan, uid

NAMES = [f"n{i}" for i in range(4)]
CLUSTER = snapshot(nodes=[node(name) for name in NAMES])
FRAMEWORK = populated(CLUSTER, default_profile(K36), {})


def random_token(rng: random.Random) -> TokenDocument:
    owner = rng.choice(["web", "db"])
    return TokenDocument(
        wave=rng.randint(1, 2),
        namespace="default",
        owner_uid=uid(owner),
        template_hash=rng.choice(["h1", "h1", "h2"]),
        pod=f"{owner}-{rng.randint(0, 7)}" if rng.random() < 0.3 else None,
        target=rng.choice(NAMES),
        count=rng.randint(1, 2),
    )


def random_pod(rng: random.Random, i: int) -> Pod:
    owner = rng.choice(["web", "db"])
    manifest = owned(f"{owner}-{i}", labels={"pod-template-hash": rng.choice(["h1", "h2"])})
    manifest["metadata"]["uid"] = f"pod-{i}"
    return snapshot(pods=[manifest]).pods[0]


@pytest.mark.parametrize("seed", range(30))
def test_the_server_says_the_same(seed: int) -> None:
    rng = random.Random(seed)
    tokens = tuple(random_token(rng) for _ in range(5))
    extender = TokenExtender(plan([move("web-a", "n0", "n1")]).model_copy(update={"tokens": tokens}), FRAMEWORK)
    ledger = TokenLedger(tokens, expires=1e9)
    extender.wave = 2
    ledger.open_wave(2, 0)
    pods = [random_pod(rng, i) for i in range(8)]
    for _ in range(20):
        asked = rng.choice(pods)
        feasible = rng.sample(CLUSTER.nodes, rng.randint(1, 4))
        scores = extender.prioritize(asked, feasible)
        controller = asked.metadata.controller
        asker = Asker(
            asked.metadata.uid,
            asked.namespace,
            asked.name,
            controller.uid if controller else "",
            frozenset({asked.template_hash}),
        )
        wanted, _ = ledger.ask(asker, [n.name for n in feasible], 0)
        assert {name for name, score in scores.items() if score} == ({wanted} & {n.name for n in feasible})
        assert set(scores.values()) <= {0, 10}


@pytest.mark.parametrize("release", [K36, K24])
def test_the_weight_outdoes_all_plugins(release: Release) -> None:
    framework = populated(CLUSTER, default_profile(release), {})
    extender = TokenExtender(plan([move("web-a", "n0", "n1")]), framework)
    most = sum(w for _, w in framework.scores) * 100
    assert extender.config.weight * 10 * 10 > most


def test_tokens_of_waves_to_come_are_kept() -> None:
    document = plan([move("web-a", "n0", "n1")], [move("web-b", "n0", "n2")])
    extender = TokenExtender(document, FRAMEWORK)
    first, second = (snapshot(pods=[owned(f"web-{c}")]).pods[0] for c in "xy")
    extender.wave = 1
    assert extender.prioritize(first, CLUSTER.nodes)["n1"] == 10
    assert not any(extender.prioritize(second, CLUSTER.nodes).values())
    extender.wave = 2
    assert extender.prioritize(second, CLUSTER.nodes)["n2"] == 10


def test_a_name_that_comes_again_has_another_token() -> None:
    moves = [move("db-0", "n0", "n1", same_name=True)], [move("db-0", "n1", "n2", id="m2", same_name=True)]
    extender = TokenExtender(plan(*moves), FRAMEWORK)
    again = snapshot(pods=[owned("db-0", kind="StatefulSet")]).pods[0]
    extender.wave = 1
    assert extender.prioritize(again, CLUSTER.nodes)["n1"] == 10
    extender.wave = 2
    later = replace(again, metadata=replace(again.metadata, uid="later"))
    assert extender.prioritize(later, CLUSTER.nodes)["n2"] == 10


def test_a_cordon_lets_pass_who_tolerates_it() -> None:
    cordons = CordonExtender()
    cordons.nodes = frozenset({"n1"})
    plain, tolerant = snapshot(pods=[pod("a"), pod("b", tolerations=[{"operator": "Exists"}])]).pods
    assert cordons.is_interested(plain)
    assert not cordons.is_interested(tolerant)
    assert list(cordons.filter(plain, CLUSTER.nodes).passed) == ["n0", "n2", "n3"]
