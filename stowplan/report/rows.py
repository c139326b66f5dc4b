"""Reports as rows, for CSV. Figures are not rounded."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stowplan.models.words import printable

if TYPE_CHECKING:
    from stowplan.answers.compare import Comparison
    from stowplan.answers.solve import Solution
    from stowplan.answers.validate import Validation
    from stowplan.answers.verify_solution import Verification
    from stowplan.models.plan import Plan
    from stowplan.plugins_compat.simulate import Simulation

Row = Sequence[Any]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a spreadsheet computes begins like this."""
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*([eE][-+]?[0-9]+)?")


def write_csv(rows: Iterator[Row]) -> str:
    """Write rows as CSV; the first is the header."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(_harmless, row) for row in rows)
    return out.getvalue()


def _harmless(cell: Any) -> Any:
    """Return a cell that a spreadsheet takes for text: one that would begin a formula begins with an apostrophe."""
    if not isinstance(cell, str):
        return cell
    return printable(f"'{cell}" if cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell) else cell)


def comparison_rows(comparison: Comparison) -> Iterator[Row]:
    """Yield one row for each figure, with one column for each placement.

    Figures of the placements come first, then those of each node, and then the node of each pod that moves, in the
    order in which their moves bring most.
    """
    yield ["figure", "unit", *(column.name for column in comparison.columns), "bound"]
    for figure in (*comparison.figures, *comparison.node_figures):
        cells = [figure.value(column.measures) for column in comparison.columns]
        yield [figure.name, figure.unit, *("" if cell is None else cell for cell in (*cells, figure.bound))]
    for one in comparison.moves:
        nodes = [column.assignment.get(one.move.pod.key, "") for column in comparison.columns]
        yield [f"pods.{one.move.pod.key}", "node", *nodes, ""]


def solution_rows(solution: Solution) -> Iterator[Row]:
    """Yield one row for every pod that is free to move."""
    yield ["namespace", "name", "uid", "source", "node", "loses"]
    for pod in solution.compiled.pods:
        lost = "; ".join(solution.losses.get(pod.key, ()))
        yield [pod.namespace, pod.name, pod.metadata.uid, pod.node_name, solution.assignment.get(pod.key, ""), lost]


def simulation_rows(simulation: Simulation, nodes: Sequence[str]) -> Iterator[Row]:
    """Yield one row for every decision; a pod that was preempted and came back to the queue has more than one."""
    yield ["namespace", "name", "node", "message", "preempts", "preempted by", "tied"]
    for d in simulation.decisions:
        node = nodes[d.node] if d.node is not None else ""
        preempts = " ".join(victim.key for victim in d.victims)
        tied = " ".join(nodes[other] for other in d.tied)
        by = d.preempted_by.key if d.preempted_by else ""
        yield [d.pod.namespace, d.pod.name, node, d.message, preempts, by, tied]


def verification_rows(verification: Verification) -> Iterator[Row]:
    """Yield one row for every problem."""
    yield from problem_rows(verification.problems)


def problem_rows(problems: Sequence[str]) -> Iterator[Row]:
    """Yield one row for every problem."""
    yield ["problem"]
    for problem in problems:
        yield [problem]


def validation_rows(validation: Validation) -> Iterator[Row]:
    """Yield one row for every difference that the validation describes."""
    yield ["source", "case", "pod", "stage", "plugin", "node", "recorded", "ours"]
    for found in validation.findings:
        d = found.difference
        yield [found.source, found.case, found.pod, d.stage, d.plugin, d.node, d.recorded, d.ours]


def plan_rows(plan: Plan) -> Iterator[Row]:
    """Yield one row for every move, in order."""
    yield ["wave", "id", "kind", "namespace", "name", "uid", "source", "target", "follows", "why", "loses"]
    for wave in plan.waves:
        for move in wave.moves:
            pod = move.pod
            nodes = [move.source or "", move.target or ""]
            yield [
                wave.number,
                move.id,
                move.kind,
                pod.namespace,
                pod.name,
                pod.uid,
                *nodes,
                move.follows or "",
                move.why,
                "; ".join(move.loses),
            ]
