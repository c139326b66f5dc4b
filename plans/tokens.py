"""Tokens of a plan: the number of replacements of each owner to place on each node, computed from the moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from stowplan.models.plan import MoveDocument, TokenDocument, WaveDocument
from stowplan.plans.replacements import group_of_move


class Claim(NamedTuple):
    """Who may take a token, when, and where it leads; ``pod`` is empty where pods of the owner are interchangeable."""

    wave: int
    namespace: str
    owner_uid: str
    template_hash: str
    pod: str
    target: str

    def __str__(self) -> str:
        """Say so in a line."""
        who = f"pod {self.pod}" if self.pod else f"owner {self.owner_uid or 'none'}"
        template = f", template {self.template_hash}" if self.template_hash else ""
        return f"{self.target} in namespace {self.namespace} ({who}{template})"


def needed(waves: Iterable[WaveDocument]) -> Counter[Claim]:
    """Count the tokens that the moves of waves need."""
    return Counter(_claim(wave.number, move, move.target) for wave in waves for move in wave.moves if move.target)


def _claim(wave: int, move: MoveDocument, target: str) -> Claim:
    """Return who may take the token of a move; without the uid of its owner, only the pod itself can be recognized."""
    group = group_of_move(move)
    uid = move.owner.uid if move.owner else ""
    return Claim(wave, group.namespace, uid, group.template_hash, group.pod if uid else move.pod.name, target)


def promised(tokens: Iterable[TokenDocument]) -> Counter[Claim]:
    """Count tokens that a plan has."""
    counts: Counter[Claim] = Counter()
    for token in tokens:
        claim = Claim(token.wave, token.namespace, token.owner_uid, token.template_hash, token.pod or "", token.target)
        counts[claim] += token.count
    return counts


def tokens(waves: Iterable[WaveDocument]) -> tuple[TokenDocument, ...]:
    """Return the tokens of waves, in the order of the moves."""
    return tuple(
        TokenDocument(
            wave=claim.wave,
            namespace=claim.namespace,
            owner_uid=claim.owner_uid,
            template_hash=claim.template_hash,
            pod=claim.pod or None,
            target=claim.target,
            count=count,
        )
        for claim, count in needed(waves).items()
    )
