"""Text that scripts and manifests may contain: names that Kubernetes itself would accept, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stowplan.models.errors import InputError
from stowplan.models.moments import require_time
from stowplan.models.plan import MoveDocument, Plan

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_MOVE = re.compile(r"[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?")
_UID = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._:/]{0,127}")
_HASH = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def require_plain(plan: Plan) -> None:
    """Refuse names that no cluster has: they could be more than names to a shell.

    Raises
    ------
    InputError
        With the field.
    """
    for name in (*plan.cordon, *(name for wave in plan.waves for name in wave.cordon)):
        if not _NAME.fullmatch(name):
            raise InputError(f"{name!r} is not the name of a node", field="cordon")
    for i, wave in enumerate(plan.waves):
        for j, move in enumerate(wave.moves):
            for field, text, form, what in _words(move):
                if not form.fullmatch(text):
                    raise InputError(f"{text!r} is not {what}", field=f"waves[{i}].moves[{j}].{field}")
    for i, token in enumerate(plan.tokens):
        for field, text, form, what in (
            ("namespace", token.namespace, _LABEL, "a namespace"),
            ("ownerUid", token.owner_uid or "0", _UID, "a uid"),
            ("templateHash", token.template_hash, _HASH, "the value of a label"),
            ("pod", token.pod or "0", _NAME, "the name of a pod"),
            ("target", token.target, _NAME, "the name of a node"),
        ):
            if not form.fullmatch(text):
                raise InputError(f"{text!r} is not {what}", field=f"tokens[{i}].{field}")


def _words(move: MoveDocument) -> Iterator[tuple[str, str, re.Pattern[str], str]]:
    yield "id", move.id, _MOVE, "the name of a move, such as m0001"
    yield "pod.namespace", move.pod.namespace, _LABEL, "a namespace"
    yield "pod.name", move.pod.name, _NAME, "the name of a pod"
    if move.pod.uid:
        yield "pod.uid", move.pod.uid, _UID, "a uid"
    if move.source is not None:
        yield "source", move.source, _NAME, "the name of a node"
    if move.target is not None:
        yield "target", move.target, _NAME, "the name of a node"
    yield "templateHash", move.template_hash, _HASH, "the value of a label"
    if move.owner is not None:
        yield "owner.name", move.owner.name, _NAME, "the name of a controller"
        if move.owner.uid:
            yield "owner.uid", move.owner.uid, _UID, "a uid"


def require_uids(plan: Plan) -> None:
    """Refuse evictions that could hit another pod of the same name, or whose replacement could not be recognized.

    Raises
    ------
    InputError
        With the move.
    """
    for move in plan.moves:
        if move.kind != "place" and not move.pod.uid:
            raise InputError(
                "has no uid, so another pod of the same name could be evicted; make the plan from a dump of a "
                "cluster, where pods have uids",
                obj=f"move {move.id}",
                field="pod.uid",
            )
        if move.kind == "evict" and (move.owner is None or not move.owner.uid):
            raise InputError("has no owner with a uid, so no controller would replace it", obj=f"move {move.id}")


def expiry(plan: Plan) -> str:
    """When the plan expires, as fourteen digits in UTC, which compare as numbers."""
    return require_time(plan.expires_at, "expiresAt").strftime("%Y%m%d%H%M%S")


def one_line(text: str) -> str:
    """Return text without anything that ends a line or that a terminal would obey."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
