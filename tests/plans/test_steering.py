"""Tokens in a replay are handed out as the server hands them out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from stowplan.models.kubernetes import Pod
from stowplan.models.plan import TokenDocument
from stowplan.plans.replay.steering import CordonExtender, TokenExtender
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36, Release
from stowplan.serving.ledger import Asker, TokenLedger
from tests.plans.test_replay import owned
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import node, pod, snapshot
from tests.support.plans import move, plan, uid

NAMES = [f"n{i}" for i in range(4)]
CLUSTER = snapshot(nodes=[node(name) for name in NAMES])
FRAMEWORK = populated(CLUSTER, default_profile(K36), {})


@dataclass(frozen=True)
class Queue:
    """Tokens of a plan, and the pods that ask for nodes one after the other, each with the nodes it fits on."""

    tokens: tuple[TokenDocument, ...]
    asking: list[tuple[Pod, list[str]]]


def random_token(choices: Choices) -> TokenDocument:
    owner = choices.one(["web", "db"])
    return TokenDocument(
        wave=choices.integer(1, 2),
        namespace="default",
        owner_uid=uid(owner),
        template_hash=choices.one(["h1", "h1", "h2"]),
        pod=f"{owner}-{choices.integer(0, 7)}" if choices.chance(0.3) else None,
        target=choices.one(NAMES),
        count=choices.integer(1, 2),
    )


def random_pod(choices: Choices, i: int) -> Pod:
    owner = choices.one(["web", "db"])
    manifest = owned(f"{owner}-{i}", labels={"pod-template-hash": choices.one(["h1", "h2"])})
    manifest["metadata"]["uid"] = f"pod-{i}"
    return snapshot(pods=[manifest]).pods[0]


def random_queue(choices: Choices) -> Queue:
    tokens = tuple(random_token(choices) for _ in range(choices.integer(1, 8)))
    pods = [random_pod(choices, i) for i in range(8)]
    asking = [(choices.one(pods), choices.some(NAMES, choices.integer(1, 4))) for _ in range(choices.integer(1, 30))]
    return Queue(tokens, asking)


@cases(60, at_least={"steered": 150, "free to choose": 150}, queue=drawn(random_queue))
def test_the_server_and_the_replay_give_the_same_tokens(queue: Queue) -> None:
    extender = TokenExtender(plan([move("web-a", "n0", "n1")]).model_copy(update={"tokens": queue.tokens}), FRAMEWORK)
    ledger = TokenLedger(queue.tokens, expires=1e9)
    extender.wave = 2
    ledger.open_wave(2, 0)
    nodes = {n.name: n for n in CLUSTER.nodes}
    for asked, feasible in queue.asking:
        scores = extender.prioritize(asked, [nodes[name] for name in feasible])
        controller = asked.metadata.controller
        asker = Asker(
            asked.metadata.uid,
            asked.namespace,
            asked.name,
            controller.uid if controller else "",
            frozenset({asked.template_hash}),
        )
        wanted, _ = ledger.ask(asker, feasible, 0)
        steered = {name for name, score in scores.items() if score}
        assert steered == ({wanted} & {*feasible})
        assert set(scores.values()) <= {0, 10}
        count("steered" if steered else "free to choose")


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
