"""Answers as pandas frames: the rows that ``-o csv`` prints, with names for columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stowplan.answers.compare import Comparison
from stowplan.answers.frontier import Frontier
from stowplan.answers.measures import Measures
from stowplan.answers.solve import Solution
from stowplan.answers.validate import Validation
from stowplan.models.errors import InputError
from stowplan.models.plan import Plan
from stowplan.planning.plan import Planned
from stowplan.planning.replay import Replay
from stowplan.report.frontier import frontier_rows
from stowplan.report.replay import replay_rows
from stowplan.report.rows import Row, comparison_rows, plan_rows, solution_rows, validation_rows

if TYPE_CHECKING:
    import pandas

Framed = Comparison | Solution | Planned | Plan | Frontier | Replay | Validation | Measures


def frame(answer: Framed) -> pandas.DataFrame:
    """Return an answer as a table of pandas.

    Parameters
    ----------
    answer
        A comparison: a row for each figure, and a column for each placement. A solution: a row for each pod that is
        free to move. A plan or a replay: a row for each move. A frontier: a row for each limit on moves. A validation:
        a row for each difference. Measures of a placement, such as ``comparison.best.measures``: a row for each node,
        with amounts in scheduler units and shares as fractions.

    Raises
    ------
    InputError
        If pandas is not installed, or the answer is none of these.
    """
    try:
        import pandas
    except ImportError:
        raise InputError("needs pandas; pip install pandas", field="frame") from None
    header, *rows = _rows(answer)
    return pandas.DataFrame([list(row) for row in rows], columns=list(header))


def _rows(answer: Framed) -> Iterator[Row]:
    match answer:
        case Comparison():
            return comparison_rows(answer)
        case Solution():
            return solution_rows(answer)
        case Planned():
            return plan_rows(answer.plan)
        case Plan():
            return plan_rows(answer)
        case Frontier():
            return frontier_rows(answer)
        case Replay():
            return replay_rows(answer)
        case Validation():
            return validation_rows(answer)
        case Measures():
            return _node_rows(answer)
    wanted = "an answer, or measures of a placement"
    raise InputError(f"is of type {type(answer).__name__}; must be {wanted}", field="answer")


def _node_rows(measures: Measures) -> Iterator[Row]:
    """Yield one row for every node."""
    resources = [usage.resource for usage in measures.usage]
    parts = [f"{name} {part}" for name in resources for part in ("requested", "allocatable", "share")]
    yield ["node", "pods", *parts]
    for node in measures.nodes:
        amounts = [(node.requested[name], node.allocatable[name], node.share(name)) for name in resources]
        yield [node.name, node.pods, *(value for amount in amounts for value in amount)]
