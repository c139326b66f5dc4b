"""What a campaign has shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from tests.support.campaign.outcomes import Outcome


def _reason(stopped: str) -> str:
    """Return a reason without names, so that equal reasons are counted together."""
    return re.sub(r"\b(shop/)?(web|db)\d+[-\w]*|\bn\d\b|\d+(\.\d+)?", "…", stopped)[:110]


def told_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Return what a campaign has shown, one line each."""
    number, moves, finished = len(outcomes), sum(f.moves for f in outcomes), sum(not f.stopped for f in outcomes)
    lines = [
        f"{number} plans, {moves} moves, {sum(f.waves for f in outcomes)} waves, {sum(f.cordons for f in outcomes)} "
        f"cordons; {finished} came to their end, {sum(f.worse for f in outcomes)} ended worse than they began, "
        f"{sum(f.twice for f in outcomes)} pods deleted twice, {sum(f.broken for f in outcomes)} against their budget, "
        f"{sum(f.hopeless for f in outcomes)} stopped although the rest was feasible"
    ]
    measured = [found for found in outcomes if None not in (found.kept, found.low, found.high)]
    if measured:
        inside = sum(found.in_range for found in measured)
        mean = sum(found.kept or 0.0 for found in measured) / len(measured)
        lines.append(f"gain kept: {mean:.1%} on average; in the range of the replays in {inside} of {len(measured)}")
    promised = [found.promised for found in outcomes if found.promised is not None]
    if promised:
        ended = sum(not found.stopped for found in outcomes if found.promised is not None)
        lines.append(f"{ended} of {len(promised)} came to their end; replays said {sum(promised):.0f}")
    events = Counter(re.sub(r" (of|at) \S+", "", event) for found in outcomes for event in found.events)
    lines += [f"{count} times {event}" for event, count in events.most_common()]
    reasons = Counter(_reason(found.stopped) for found in outcomes if found.stopped)
    return lines + [f"{count} stopped: {reason}" for reason, count in reasons.most_common()]
