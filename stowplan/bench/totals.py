"""What a suite comes to: the figures by which its literature compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from stowplan.bench.row import Row
from stowplan.instances.suites.openb.instance import ALLOCATED
from stowplan.instances.suites.priority_matters.instance import cell
from stowplan.instances.suites.published import FINAL_RUN, GREEDY, OPENB_BOUNDS, plain, published_proofs
from stowplan.instances.suites.suite import Kind

Figure = float | int | str | None
ALL = "all"


@dataclass(frozen=True, slots=True)
class Total:
    """Figures of a part of a suite, by name; ``None`` where nothing is known."""

    group: str
    figures: Mapping[str, Figure]


def totals(kind: Kind, rows: Sequence[Row], teams: Mapping[str, Mapping[str, int]]) -> list[Total]:
    """Sum up, group by group, and altogether where there are several.

    Parameters
    ----------
    teams
        Costs by team and instance of the final run of the ROADEF/EURO challenge, if at hand.
    """
    groups = {row.group: [r for r in rows if r.group == row.group] for row in rows}
    if len(groups) > 1 and kind is not Kind.DEVICES:
        groups[ALL] = list(rows)
    return [
        Total(group, {**_common(members), **_special(kind, group, members, teams)}) for group, members in groups.items()
    ]


def _common(rows: Sequence[Row]) -> dict[str, Figure]:
    gaps = [row.gap for row in rows if row.gap is not None]
    return {
        "instances": len(rows),
        "accepted": sum(row.accepted for row in rows),
        "proved": sum(row.proved for row in rows),
        "mean gap, %": 100 * fmean(gaps) if gaps else None,
        "seconds": sum(row.seconds for row in rows),
    }


def _special(kind: Kind, group: str, rows: Sequence[Row], teams: Mapping[str, Mapping[str, int]]) -> dict[str, Figure]:
    accepted = [row for row in rows if row.accepted]
    match kind:
        case Kind.REASSIGNMENT:
            return _reassignment(accepted, teams)
        case Kind.PACKING:
            return _packing(accepted)
        case Kind.PRIORITIES:
            return _priorities(group, accepted)
        case Kind.DEVICES:
            return _devices(group, accepted)


def _reassignment(rows: Sequence[Row], teams: Mapping[str, Mapping[str, int]]) -> dict[str, Figure]:
    scores = [row.score for row in rows if row.score is not None]
    final = {plain(row.instance): row for row in rows if FINAL_RUN in row.reference.others}
    figures: dict[str, Figure] = {
        "sum of scores": sum(scores) if scores else None,
        "at the best known": sum(row.excess is not None and row.excess <= 0 for row in rows),
    }
    if final:
        best = {name: row.reference.others[FINAL_RUN] for name, row in final.items()}
        ours = sum(row.score_against(best[name]) or 0.0 for name, row in final.items())
        figures["sum of scores, final run"] = ours
        theirs = [
            sum(100 * (costs[name] - best[name]) / row.start[0] for name, row in final.items())
            for costs in teams.values()
            if final.keys() <= costs.keys()
        ]
        if theirs:
            figures["place in the final run"] = f"{1 + sum(score < ours for score in theirs)} of {1 + len(theirs)}"
    return figures


def _packing(rows: Sequence[Row]) -> dict[str, Figure]:
    known = [row for row in rows if row.reference.best is not None and row.reference.best == row.reference.bound]
    greedy = [(row, row.reference.others[GREEDY]) for row in rows if GREEDY in row.reference.others]
    return {
        "optimum known": len(known),
        "optimum reached": sum(row.excess == 0 for row in known),
        "mean excess, %": 100 * fmean(row.excess or 0.0 for row in known) if known else None,
        "greedy's, %": _greedy_excess([(row, bins) for row, bins in greedy if row in known]),
        "better than greedy": sum(row.values[0] < bins for row, bins in greedy) if greedy else None,
        "as greedy": sum(row.values[0] == bins for row, bins in greedy) if greedy else None,
        "worse": sum(row.values[0] > bins for row, bins in greedy) if greedy else None,
        "better than any known": sum(row.excess is not None and row.excess < 0 for row in rows),
    }


def _greedy_excess(pairs: Sequence[tuple[Row, int]]) -> float | None:
    return (
        100 * fmean((bins - (row.reference.best or 0)) / max(1, row.reference.best or 0) for row, bins in pairs)
        if pairs
        else None
    )


def _priorities(group: str, rows: Sequence[Row]) -> dict[str, Figure]:
    numbers = cell(group)
    both = [(row.values, row.greedy) for row in rows if row.greedy is not None]
    return {
        "proved, %": 100 * sum(row.proved for row in rows) / len(rows) if rows else None,
        "published, %": published_proofs(**numbers) if numbers else None,
        "pods unscheduled": sum(sum(values) for values, _ in both),
        "greedy's": sum(sum(greedy) for _, greedy in both),
        "better than greedy": sum(values < greedy for values, greedy in both),
        "as greedy": sum(values == greedy for values, greedy in both),
        "worse": sum(values > greedy for values, greedy in both),
    }


def _devices(group: str, rows: Sequence[Row]) -> dict[str, Figure]:
    first = rows[0] if rows else None
    return {
        ALLOCATED: first.measures.get(ALLOCATED) if first else None,
        "bound, %": first.bound_measures.get(ALLOCATED) if first else None,
        "published bound, %": OPENB_BOUNDS.get(group),
        "pods unscheduled": first.values[1] if first else None,
    }
