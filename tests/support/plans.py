"""Plans by hand: a few words to build one."""

from __future__ import annotations

from typing import Any

from stowplan.models.objective import PRESETS
from stowplan.models.plan import (
    BarrierDocument,
    MoveDocument,
    OwnerDocument,
    Plan,
    PlanSnapshot,
    PlanTier,
    PodReference,
    TokenDocument,
    WaveDocument,
)
from stowplan.models.settings import SettingsDocument


def uid(name: str) -> str:
    """Return a uid that tells whose it is."""
    return f"uid-{name}"


def move(name: str, source: str | None, target: str | None, **more: Any) -> MoveDocument:
    """Build a move of ``[namespace/]name-of-owner-x``; the owner is what stands before the last dash.

    ``kind`` follows from the nodes; ``id``, ``follows``, ``same_name``, ``why``, ``owner`` and ``hash`` go by keyword.
    """
    space, _, pod = name.rpartition("/")
    owned = more.pop("owner", pod.rpartition("-")[0])
    same = more.get("same_name", False)
    kind = "place" if source is None else "remove" if target is None else "evict"
    controller = "StatefulSet" if same else "ReplicaSet"
    owner = OwnerDocument(api_version="apps/v1", kind=controller, name=owned, uid=uid(owned)) if owned else None
    return MoveDocument(
        id=more.pop("id", f"m-{pod}"),
        kind=kind,
        pod=PodReference(namespace=space or "default", name=pod, uid=more.pop("uid", uid(pod))),
        source=source,
        target=target,
        owner=owner,
        template_hash=more.pop("hash", "h1" if owned else ""),
        requests={"cpu": "500m", "memory": "1Gi"},
        why=more.pop("why", "for balance"),
        **more,
    )


def tokens(waves: list[list[MoveDocument]]) -> tuple[TokenDocument, ...]:
    """Return the tokens of moves: counted where pods are interchangeable, named where the name is kept."""
    counts: dict[tuple[Any, ...], int] = {}
    for number, moves in enumerate(waves, 1):
        for m in moves:
            if m.target is not None:
                named = m.pod.name if m.same_name or m.owner is None else None
                owner = m.owner.uid if m.owner else ""
                key = (number, m.pod.namespace, owner, m.template_hash, named, m.target)
                counts[key] = counts.get(key, 0) + 1
    return tuple(
        TokenDocument(
            wave=key[0], namespace=key[1], owner_uid=key[2], template_hash=key[3], pod=key[4], target=key[5], count=n
        )
        for key, n in counts.items()
    )


def plan(*waves: list[MoveDocument], timeout: int = 600, **more: Any) -> Plan:
    """Build a plan of waves of moves."""
    barrier = BarrierDocument(timeout_seconds=timeout)
    content: dict[str, Any] = {
        "id": "plan-7f3a",
        "created_at": "2026-11-21T10:00:00Z",
        "expires_at": "2126-11-21T12:00:00Z",
        "snapshot": PlanSnapshot(fingerprint="abc", nodes=3, pods=4),
        "settings": SettingsDocument(objective=PRESETS["balance"], release="1.36", scheduler="default-scheduler"),
        "executor": "eviction-api",
        "status": "OPTIMAL",
        "tiers": (PlanTier(name="balance", unit="pp²", before=3.0, after=1.0, bound=1.0, bound_by="CP-SAT"),),
        "waves": tuple(WaveDocument(number=n, moves=tuple(m), barrier=barrier) for n, m in enumerate(waves, 1)),
        "least_waves": len(waves),
        "tokens": tokens(list(waves)),
        "immovable": (),
    }
    return Plan(**content | more)


def shop(**more: Any) -> Plan:
    """Build a plan with a bit of everything: two waves, two owners, a parked pod, one that waits, one that goes."""
    return plan(
        [
            move("shop/web-a", "n1", "n2", id="m0001"),
            move("shop/web-b", "n1", "n3", id="m0002"),
            move("shop/db-0", "n2", "n3", id="m0003", same_name=True, why="parked: n1 has no room yet"),
            move("new", None, "n1", id="m0004", owner=""),
        ],
        [
            move("shop/db-0", "n3", "n1", id="m0005", same_name=True, follows="m0003"),
            move("shop/web-b", "n3", "n1", id="m0006", follows="m0002", why='it\'s where "it" $(belongs)'),
            move("shop/old-x", "n2", None, id="m0007"),
        ],
        **more,
    )
