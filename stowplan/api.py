"""The Python interface: what the commands do, as functions of a snapshot and settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stowplan.answers.compare import Comparison
from stowplan.answers.compare import compare as compare_problem
from stowplan.answers.frontier import Frontier, Point, climb
from stowplan.answers.solve import Solution, solve_snapshot
from stowplan.models.assignment import Assignment
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.run import Progress, silent
from stowplan.planning import drain as draining
from stowplan.planning import fit as fitting
from stowplan.planning.plan import Planned, make_plan
from stowplan.settings.problem import make_problem
from stowplan.settings.terms import Terms


def solve(
    snapshot: Snapshot,
    settings: Settings | None = None,
    options: Options | None = None,
    *,
    candidates: Sequence[Assignment] = (),
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> Solution:
    """Find the best placement, with a proof or a gap.

    Parameters
    ----------
    settings, options
        What the problem is, and how it is solved; by default those of the command line.
    candidates
        Further assignments to start from.
    stop
        Set it from anywhere to get the best answer so far.
    progress
        Called whenever a value or a bound has improved.
    backend
        Who works on sub-problems; processes of its own if not given.

    Raises
    ------
    InputError
        With the setting that cannot be used.
    """
    compiled = make_problem(snapshot, settings)
    return solve_snapshot(
        compiled, options or Options(), candidates=candidates, stop=stop, progress=progress, backend=backend
    )


def compare(
    snapshot: Snapshot,
    settings: Settings | None = None,
    options: Options | None = None,
    *,
    scores: bool = True,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> Comparison:
    """Compare where pods stand today, where kube-scheduler would put them, and the best placement.

    Parameters
    ----------
    scores
        Also compare final-state plugin scores.
    settings, options, stop, progress, backend
        As `solve` takes them.

    Raises
    ------
    InputError
        With the setting that cannot be used.
    """
    compiled = make_problem(snapshot, settings)
    return compare_problem(compiled, options or Options(), scores=scores, stop=stop, progress=progress, backend=backend)


def frontier(
    snapshot: Snapshot,
    settings: Settings | None = None,
    options: Options | None = None,
    *,
    limits: Sequence[int] | None = None,
    stop: Stop | None = None,
    tell: Callable[[Point], None] = lambda point: None,
    backend: Backend | None = None,
) -> Frontier:
    """Find the best placement for each limit on moves, and for any number of them.

    Parameters
    ----------
    limits
        Limits to try beside none; by default 0, 1, 2, 5, 10 and so on.
    tell
        Called with every point as it is found.
    settings, options, stop, backend
        As `solve` takes them; the time limit is for all points.

    Raises
    ------
    InputError
        With the setting that cannot be used, or the limit that is negative.
    """
    settings = (settings or Settings()).model_copy(update={"max_moves": None})
    compiled = make_problem(snapshot, settings)
    return climb(compiled, options or Options(), limits=limits, stop=stop, tell=tell, backend=backend)


def plan(
    snapshot: Snapshot,
    settings: Settings | None = None,
    options: Options | None = None,
    terms: Terms | None = None,
    *,
    candidates: Sequence[Assignment] = (),
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> Planned:
    """Find the best placement that can be reached, and the way there, wave by wave.

    Parameters
    ----------
    settings
        Its executor decides who can be moved at all; without one, evictions go through the Eviction API.
    terms
        On what terms the plan is made; by default those of the command line.
    options, candidates, stop, progress, backend
        As `solve` takes them.

    Raises
    ------
    InputError
        With the setting that cannot be used.
    """
    return make_plan(
        snapshot,
        settings or Settings(),
        options or Options(),
        terms,
        candidates=candidates,
        stop=stop,
        progress=progress,
        backend=backend,
    )


def drain(
    snapshot: Snapshot,
    nodes: Sequence[str],
    settings: Settings | None = None,
    options: Options | None = None,
    terms: Terms | None = None,
    *,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> draining.Drained:
    """Plan the cheapest way to empty nodes.

    Parameters
    ----------
    settings, options, terms, stop, progress, backend
        As `plan` takes them.

    Raises
    ------
    InputError
        With the node or the setting that cannot be used.
    """
    return draining.drain(
        snapshot,
        nodes,
        settings or Settings(),
        options or Options(),
        terms,
        stop=stop,
        progress=progress,
        backend=backend,
    )


def fit(
    snapshot: Snapshot,
    pods: Sequence[str],
    settings: Settings | None = None,
    options: Options | None = None,
    terms: Terms | None = None,
    *,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> fitting.Fitted:
    """Plan the cheapest way to get waiting pods in.

    Parameters
    ----------
    pods
        As ``namespace/name``.
    settings, options, terms, stop, progress, backend
        As `plan` takes them.

    Raises
    ------
    InputError
        With the pod or the setting that cannot be used.
    """
    return fitting.fit(
        snapshot,
        fitting.admitting(settings or Settings(), snapshot, pods),
        options or Options(),
        terms,
        stop=stop,
        progress=progress,
        backend=backend,
    )
