"""A plan as Markdown, for a comment on the change that brings it: a table of what it gains, then one of its moves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from stowplan.emitters.words import one_line
from stowplan.models.plan import MoveDocument, Plan
from stowplan.models.words import plural
from stowplan.report.plan import headline, remarks, subtitle
from stowplan.report.words import figure, gap_lines, known, protection_lines, reason_counts, tier_label

_NAME = re.compile(r"[\w./:=+-]+", re.ASCII)
_MARKUP = re.compile(r"[\\`*_{}\[\]<>~|!$&^]")
_MENTION = re.compile(r"([@#])(?=\w)")
"""What notifies people, or links to an issue, on sites that show Markdown."""

WORD_JOINER = "\u2060"


def review(plan: Plan, digest: str, limit: int, *, expired: bool) -> Iterator[str]:
    """Yield the lines of a page about a plan.

    No name and no text of the plan is taken for Markdown.

    Parameters
    ----------
    digest
        SHA-256 of the plan's file.
    limit
        Maximum number of rows of each list; 0 for all. What is left out is counted.
    expired
        Whether it is too late to carry the plan out.
    """
    yield f"### {_text(headline(plan))}"
    yield ""
    yield from (f"**{_text(line)}**\n" for line in gap_lines(plan.gaps))
    yield f"{_text(subtitle(plan))}{' — **expired**' if expired else ''}."
    snapshot = f"{plural(plan.snapshot.nodes, 'node')}, {plural(plan.snapshot.pods, 'pod')}"
    whole = "a platform" if plan.without_cluster else "a cluster"
    yield f"Made at {_text(plan.created_at)} for {whole} of {snapshot}; snapshot {_name(plan.snapshot.fingerprint)}."
    if plan.steered and plan.tokens and not plan.without_cluster:
        yield "Its replacements have to be steered, by `stowplan serve` or pins."
    use = "" if plan.without_cluster else ", for `stowplan apply --expect-hash`"
    yield f"SHA-256 of the file{use}: `{digest}`"
    yield ""
    yield from _objectives(plan)
    yield from _moves(plan, limit)
    cordons = [f"{_name(node)}, for good" for node in plan.cordon]
    cordons += [f"{_name(node)}, during wave {wave.number}" for wave in plan.waves for node in wave.cordon]
    yield from _listed("Nodes that are cordoned", cordons, limit)
    lost = [f"{_name(move.pod.key)}: {_text(', '.join(move.loses))}" for move in plan.moves if move.loses]
    yield from _listed("Lost for good", lost, limit)
    yield from _listed("Left out, because no order of moves reaches it", [*map(_text, plan.given_up)], limit)
    if plan.immovable:
        words = reason_counts(Counter(entry.reason for entry in plan.immovable), limit or len(plan.immovable))
        yield f"{plan.cannot} {plural(len(plan.immovable), 'pod')}: {_text(words)}."
        yield ""
    notes = [*protection_lines(plan.protections), *plan.notes]
    yield from _listed("Notes", [*map(_text, notes)], limit)


def _objectives(plan: Plan) -> Iterator[str]:
    shown = [tier for tier in plan.tiers if tier.before or tier.after]
    if shown:
        yield "| objective | today | planned | |"
        yield "| --- | ---: | ---: | --- |"
    for tier in shown:
        proof = _text(known(tier.after, tier.bound, tier.bound_by))
        yield f"| {_text(tier_label(tier))} | {figure(tier.before)} | {figure(tier.after)} | {proof} |"
    if shown:
        yield ""


def _moves(plan: Plan, limit: int) -> Iterator[str]:
    rows = [(wave.number, move) for wave in plan.waves for move in wave.moves]
    shown = rows[:limit] if limit else rows
    if not rows:
        return
    yield "| wave | pod | from | to | |"
    yield "| ---: | --- | --- | --- | --- |"
    yield from (_row(number, move) for number, move in shown)
    yield ""
    if rest := rows[len(shown) :]:
        first, last = rest[0][0], rest[-1][0]
        of = f"wave {first}" if first == last else f"waves {first} to {last}"
        yield f"**{plural(len(rest), 'more move')} of {of} left out**; `stowplan show --limit 0` shows all."
        yield ""


def _row(number: int, move: MoveDocument) -> str:
    source = _name(move.source) if move.source else "(pending)"
    target = _name(move.target) if move.target else "(none)"
    return f"| {number} | {_name(move.pod.key)} | {source} | {target} | {_text('; '.join(remarks(move)))} |"


def _listed(title: str, lines: Sequence[str], limit: int) -> Iterator[str]:
    if not lines:
        return
    shown = lines[:limit] if limit else lines
    yield f"{title}:"
    yield ""
    yield from (f"- {line}" for line in shown)
    if len(shown) < len(lines):
        yield f"- … and {len(lines) - len(shown)} more"
    yield ""


def _name(text: str) -> str:
    """Return a name as code, if it looks like one."""
    return f"`{text}`" if _NAME.fullmatch(text) else _text(text)


def _text(text: str) -> str:
    """Return text in which nothing is Markdown, HTML, a mention, or a control character."""
    return _MENTION.sub(rf"\1{WORD_JOINER}", _MARKUP.sub(r"\\\g<0>", one_line(text)))
