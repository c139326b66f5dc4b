"""What columns and rows of placements mean, for a reader who has not seen stowplan before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stowplan.answers.compare import BEST, IDEAL, TODAY, greedy_names
from stowplan.answers.figures import Figure
from stowplan.plugins_compat.compiler.compile import Compiled

COLUMNS = {
    TODAY: "the cluster as it was read",
    BEST: "the best placement that was found",
    IDEAL: "the best one if every pod could move",
}
ROWS = {
    ("refused",): "pods that {scheduler} would not admit to the node that they are on, were they created anew",
    ("violations",): "nodes, zones, and other domains on which a rule of the model does not hold",
    (
        "tiers",
        "constraint violations",
    ): "by how much they do not hold: 1 is a pod in a wrong place, or a whole node too much",
    ("tiers", "pending (size-weighted)"): "the pods without a node, by what they request, in nodes",
    (
        "usage",
        "cpu",
        "deviation",
    ): "how unevenly nodes are full, weighted by what they offer; unweighted, each counts the same",
    ("scores", "total"): "the mean of the weighted scores that {scheduler} gives, of the pods scored; higher is better",
}
"""By the key of the figure; `scheduler` is the name of the one that is compared with."""


def meanings(compiled: Compiled, columns: Iterable[str], found: Sequence[Figure]) -> list[str]:
    """Return a line for each column and row that does not explain itself."""
    pending_only, scheduler = greedy_names(compiled)
    told = {
        **COLUMNS,
        pending_only: f"{scheduler} places the pods that are pending; all others stay, unless it preempts them",
        scheduler: f"{scheduler} places every pod that may move anew, one after the other",
    }
    titles = {one.key: one.title.strip() for one in found}
    return [
        *(f"{name}: {told[name]}" for name in columns if name in told),
        *(f"{titles[key]}: {meaning.format(scheduler=scheduler)}" for key, meaning in ROWS.items() if key in titles),
    ]
