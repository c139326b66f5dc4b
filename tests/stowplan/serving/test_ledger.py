"""Who holds which token: by hand, and at random against what must always hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest

from stowplan.models.plan import TokenDocument
from stowplan.serving.ledger import Asker, LedgerRecord, TokenLedger, replayed
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn

NODES = ("n1", "n2", "n3", "n4")


def token(target: str, count: int = 1, wave: int = 1, owner: str = "web", pod: str | None = None) -> TokenDocument:
    return TokenDocument(
        wave=wave, namespace="shop", owner_uid=owner, template_hash="h", pod=pod, target=target, count=count
    )


def asker(uid: str, owner: str = "web", name: str = "", hashes: tuple[str, ...] = ("h",)) -> Asker:
    return Asker(uid, "shop", name or uid, owner, frozenset(hashes))


def ledger(*tokens: TokenDocument, lease: float = 100.0, patience: float | None = None) -> TokenLedger:
    if patience is None:
        return TokenLedger(tokens, expires=1e6, lease=lease, timeouts={1: 600.0, 2: 600.0})
    return TokenLedger(tokens, expires=1e6, lease=lease, firm=range(len(tokens)), patience=patience)


def test_as_many_pods_get_a_node_as_there_are_tokens() -> None:
    books = ledger(token("n1", 2), token("n2", 1))
    given = [books.ask(asker(uid), NODES, 0.0)[0] for uid in "abcd"]
    assert given == ["n1", "n1", "n2", None]


@pytest.mark.parametrize(
    "stranger",
    [
        asker("x", owner="other"),
        asker("x", owner=""),
        asker("x", hashes=("h2",)),
        asker("x", hashes=()),
        Asker("x", "pay", "x", "web", frozenset({"h"})),
    ],
)
def test_a_pod_of_another_owner_template_or_namespace_gets_none(stranger: Asker) -> None:
    assert ledger(token("n1")).ask(stranger, NODES, 0.0) == (None, [])


def test_a_token_with_a_name_is_for_that_pod_alone() -> None:
    books = ledger(token("n1", owner="db", pod="db-0"), token("n2", owner="", pod="alone"))
    assert books.ask(asker("x", owner="db", name="db-1"), NODES, 0.0)[0] is None
    assert books.ask(asker("y", owner="db", name="db-0"), NODES, 0.0)[0] == "n1"
    assert books.ask(asker("z", owner="", name="alone"), NODES, 0.0)[0] == "n2"


def test_pods_that_wait_take_the_places_of_pods_that_wait() -> None:
    books = TokenLedger([token("n1"), token("n2")], 1e6, pending={"p"}, placing={1})
    assert books.ask(asker("p"), NODES, 0.0)[0] == "n2"
    assert books.ask(asker("x"), NODES, 0.0)[0] == "n1"
    books = TokenLedger([token("n1"), token("n2")], 1e6, pending={"p"}, placing={0})
    assert books.ask(asker("x"), NODES, 0.0)[0] == "n2"
    assert books.ask(asker("p"), NODES, 0.0)[0] == "n1"


def test_a_pod_that_waits_is_held_until_its_wave() -> None:
    books = TokenLedger([token("n1"), token("n2", wave=2)], 1e6, patience=60.0, pending={"p", "q"}, placing={1})
    books.open_wave(1, 0.0)
    assert books.ask(asker("p"), NODES, 1.0)[0] is None
    assert books.turn(asker("p"), 1.0) == 2
    assert books.turn(asker("x"), 1.0) is None  # it may go anywhere
    books.open_wave(2, 2.0)
    assert books.turn(asker("p"), 2.0) is None
    assert books.ask(asker("p"), NODES, 2.0)[0] == "n2"
    assert books.turn(asker("q"), 2.0) is None  # no place is left


def test_a_pod_that_waits_is_not_held_for_ever() -> None:
    books = TokenLedger([token("n1"), token("n2", wave=2)], 100.0, patience=60.0, pending={"p"}, placing={1})
    books.open_wave(1, 0.0)
    assert [books.turn(asker("p"), now) for now in (1.0, 61.0, 61.5)] == [2, 2, None]
    books = TokenLedger([token("n2", wave=2)], 10.0, pending={"p"}, placing={0})
    assert books.turn(asker("p"), 10.0) is None  # the plan has expired


def test_a_pod_that_the_plan_leaves_waiting_leaves_the_room_to_others() -> None:
    """It is tried again when a pod is evicted for somebody else, and might be the first."""
    books = TokenLedger([token("n1"), token("n2", wave=2)], 1000.0, lease=50.0, patience=60.0, planned=100.0)
    left = replace(asker("b", owner="other"), created=99.0)
    assert books.ask(left, NODES, 101.0) == (None, [])
    assert books.kept_from(left, 101.0) == {"n1", "n2"}
    assert not books.kept_from(replace(left, created=101.0), 101.0)  # newer than the plan
    assert not books.kept_from(asker("c", owner="other"), 101.0)  # nobody knows
    books.ask(asker("x"), NODES, 102.0)
    assert books.kept_from(left, 110.0) == {"n1", "n2"}  # x may not have landed yet
    assert books.kept_from(left, 153.0) == {"n2"}
    assert not books.kept_from(left, 162.0)  # its patience is over
    books.open_wave(2, 170.0)
    assert books.kept_from(left, 171.0) == {"n2"}
    assert not books.kept_from(left, 1000.0)  # the plan has expired


def test_the_same_pod_gets_the_same_answer_and_writes_nothing_more() -> None:
    books = ledger(token("n1"), token("n2"))
    target, records = books.ask(asker("a"), NODES, 0.0)
    assert [record.change for record in records] == ["grant"]
    for now in (1.0, 50.0, 5000.0):
        assert books.ask(asker("a"), NODES, now) == (target, [])


def test_a_node_in_sight_comes_first() -> None:
    books = ledger(token("n1"), token("n2"))
    assert books.ask(asker("a"), ("n2", "n3"), 0.0)[0] == "n2"
    assert books.ask(asker("b"), ("n2", "n3"), 0.0)[0] == "n1"  # out of sight, but its own


def test_a_wave_is_opened_when_the_one_before_is_handed_out_or_by_hand() -> None:
    tokens = (token("n1", 2), token("n2", 1, wave=2), token("n3", 1, wave=3))
    books = ledger(*tokens)
    given = [books.ask(asker(uid), NODES, 0.0)[0] for uid in "abcd"]
    assert given == ["n1", "n1", "n2", "n3"]
    books = ledger(*tokens)
    assert books.ask(asker("a"), ("n2", "n3"), 0.0)[0] == "n1"  # not a later wave's, though that is in sight
    assert books.open == 1
    assert [(record.change, record.wave) for record in books.open_wave(2, 0.0)] == [("conduct", 0), ("wave", 2)]
    assert books.ask(asker("b"), ("n2", "n3"), 0.0)[0] == "n2"
    assert books.open_wave(1, 0.0) == []
    assert books.open == 2


def test_waves_without_tokens_hold_nobody_back() -> None:
    books = ledger(token("n2", wave=2), token("n3", wave=4))
    assert [books.ask(asker(uid), NODES, 0.0)[0] for uid in "abc"] == ["n2", "n3", None]


def test_a_token_comes_back_from_a_pod_that_could_not_have_its_node() -> None:
    books = ledger(token("n1"), lease=100.0)
    assert books.ask(asker("a"), ("n2",), 0.0)[0] == "n1"
    assert books.ask(asker("b"), NODES, 99.0)[0] is None
    target, records = books.ask(asker("b"), NODES, 101.0)
    assert target == "n1"
    assert [(record.change, record.uid) for record in records] == [("release", "a"), ("grant", "b")]
    assert books.ask(asker("a"), NODES, 102.0)[0] is None


def test_a_pod_that_goes_on_asking_keeps_its_token() -> None:
    books = ledger(token("n1"), lease=100.0)
    for now in range(0, 1000, 90):
        assert books.ask(asker("a"), ("n2",), float(now))[0] == "n1"
        assert books.sweep(float(now)) == []
    assert books.ask(asker("b"), NODES, 991.0)[0] is None
    (record,) = books.sweep(2000.0)
    assert (record.change, record.uid, record.why) == ("release", "a", "not asked about")


def test_a_token_that_was_used_never_comes_back() -> None:
    books = ledger(token("n1"), lease=100.0)
    books.ask(asker("a"), NODES, 0.0)
    assert books.sweep(1e5) == []
    assert books.ask(asker("b"), NODES, 1e5)[0] is None
    assert books.counts(50.0) == {(1, "free"): 0, (1, "leased"): 1}
    assert books.counts(1e5) == {(1, "free"): 0, (1, "landed"): 1}


def test_a_pod_of_the_same_name_takes_over() -> None:
    """A name is given to one pod at a time: the former one is gone."""
    books = ledger(token("n1", owner="db", pod="db-0"), token("n2", owner="db", pod="db-0", wave=2))
    assert books.ask(asker("a", "db", "db-0"), NODES, 0.0)[0] == "n1"
    assert books.ask(asker("b", "db", "db-0"), NODES, 1.0)[0] == "n2"  # evicted by the second wave
    assert books.ask(asker("c", "db", "db-0"), NODES, 2.0)[0] == "n2"  # where it belongs in the end
    assert len(books.leases) == 2


def test_patience_ends_for_a_pod_without_its_node() -> None:
    books = ledger(token("n1"), patience=30.0)
    assert books.ask(asker("a"), ("n2",), 0.0)[0] == "n1"
    assert books.ask(asker("a"), ("n2",), 29.0)[0] == "n1"
    assert books.ask(asker("a"), ("n2",), 31.0)[0] is None
    assert books.ask(asker("a"), NODES, 32.0)[0] is None  # and never again
    assert books.ask(asker("b"), NODES, 33.0)[0] == "n1"


def test_nothing_is_handed_out_when_the_plan_has_expired() -> None:
    books = ledger(token("n1"))
    assert books.ask(asker("a"), NODES, 999_999.0)[0] == "n1"
    assert books.ask(asker("a"), NODES, 1e6) == (None, [])


def test_a_wave_that_is_under_way_when_the_plan_expires_is_steered_to_its_end() -> None:
    """Its pods have been evicted; the wave may take 600 seconds from when it was opened, also after a restart."""
    books = ledger(token("n1", wave=1), token("n2", wave=2))
    records = books.open_wave(1, 999_900.0)
    for served in (books, replayed(ledger(token("n1", wave=1), token("n2", wave=2)), records)):
        assert served.ask(asker("a"), NODES, 1e6 + 10)[0] == "n1"
        assert served.ask(asker("b"), NODES, 1e6 + 20)[0] is None  # the next wave is not begun
        assert served.ask(asker("a"), NODES, 999_900.0 + 600)[0] is None


class Ask(NamedTuple):
    """One question: after how many seconds, by which pod, for which nodes; and what is done before."""

    seconds: float
    number: int
    new: bool
    owner: str
    hashes: tuple[str, ...]
    nodes: list[str]
    open_wave: int
    sweep: bool


@dataclass(frozen=True)
class Queue:
    """Tokens of a plan, and the questions of many pods in turn."""

    tokens: list[TokenDocument]
    asks: list[Ask]


def random_ask(choices: Choices) -> Ask:
    return Ask(
        choices.one([0.0, 1.0, 5.0, 60.0]),
        choices.integer(0, 59),
        choices.chance(0.3),
        choices.one(["web", "api", "db", "none"]),
        () if choices.chance(0.1) else ("h",),
        choices.some(NODES, choices.integer(1, 4)),
        choices.integer(1, 3) if choices.chance(0.02) else 0,
        choices.chance(0.05),
    )


def random_queue(choices: Choices) -> Queue:
    tokens = [
        token(choices.one(NODES), choices.integer(1, 2), choices.integer(1, 3), choices.one(["web", "api"]))
        for _ in range(choices.integer(1, 6))
    ]
    named = token(choices.one(NODES), wave=choices.integer(1, 3), owner="db", pod="db-0")
    return Queue([*tokens, named], [random_ask(choices) for _ in range(choices.integer(1, 100))])


@pytest.mark.parametrize("patience", [None, 40.0])
@cases(60, at_least={"granted": 150, "granted again": 150, "refused": 300}, queue=drawn(random_queue))
def test_no_token_is_held_twice_and_the_journal_says_all(queue: Queue, patience: float | None) -> None:
    """Equal pods get equal answers, and what was written down says all of it."""
    tokens = queue.tokens
    books = ledger(*tokens, lease=50.0, patience=patience)
    written: list[LedgerRecord] = []
    now, alive = 0.0, list[Asker]()
    for step, ask in enumerate(queue.asks):
        now += ask.seconds
        if not alive or ask.new:
            alive.append(asker(f"pod-{step}", ask.owner, "db-0" if ask.owner == "db" else "", ask.hashes))
        if ask.open_wave:
            written += books.open_wave(ask.open_wave, now)
        if ask.sweep:
            written += books.sweep(now)
        one = alive[ask.number % len(alive)]
        held = books.leases.get(one.uid)
        target, records = books.ask(one, ask.nodes, now)
        written += records
        if target is not None:
            lease = books.leases[one.uid]
            given = books.tokens[lease.token]
            assert given.target == target
            assert given.owner_uid == one.owner
            assert given.wave <= books.open
            assert given.pod in (None, one.name)
            assert "h" in one.hashes
        if held is not None and target is not None:
            assert target == books.tokens[held.token].target
        holders = Counter(lease.token for lease in books.leases.values())
        assert all(holders[i] <= t.count for i, t in enumerate(tokens))
        assert sum(books.counts(now).values()) == sum(t.count for t in tokens)
        count("refused" if target is None else "granted" if held is None else "granted again")
    again = replayed(ledger(*tokens, lease=50.0, patience=patience), written)
    assert again.open == books.open
    assert {u: (x.token, x.offered) for u, x in again.leases.items()} == {
        u: (x.token, x.offered) for u, x in books.leases.items()
    }
    assert again.counts(0.0).keys() >= {(t.wave, "free") for t in tokens}


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([LedgerRecord("release", 0.0, "a", "shop/a", 0)], "has no token"),
        ([LedgerRecord("grant", 0.0, "a", "shop/a", 7)], "token 7 is not in the plan"),
        ([LedgerRecord("grant", 0.0, "a", "shop/a", 0)] * 2, "has a token already"),
        ([LedgerRecord("grant", 0.0, u, f"shop/{u}", 0) for u in "ab"], "more often than the plan has it"),
    ],
)
def test_records_that_cannot_be(records: list[LedgerRecord], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replayed(ledger(token("n1")), records)


def test_who_opens_a_wave_by_request_opens_the_next_ones_too() -> None:
    """Pods that wait take the tokens of the first wave; the second begins when its room is free, which apply knows."""
    books = ledger(token("n1", 2), token("n2", 1, wave=2))
    opened = books.open_wave(1, 0.0)
    assert [books.ask(asker(uid), NODES, 1.0)[0] for uid in "abc"] == ["n1", "n1", None]
    again = replayed(ledger(token("n1", 2), token("n2", 1, wave=2)), opened)
    assert [again.ask(asker(uid), NODES, 1.0)[0] for uid in "abc"] == ["n1", "n1", None]
    books.open_wave(2, 2.0)
    assert books.ask(asker("c"), NODES, 3.0)[0] == "n2"
