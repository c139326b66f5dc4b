"""The functions of the Python interface about clusters that could be."""

from __future__ import annotations

import os
from collections.abc import Callable

from stowplan.answers.solve import solve_snapshot
from stowplan.answers.what_if import WhatIf, weigh
from stowplan.api import checked_arguments
from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.run import Progress, silent
from stowplan.planning.domain_loss import Loss, losing_of
from stowplan.planning.survive import Survival
from stowplan.planning.survive import survive as survive_losses
from stowplan.scenarios.apply import apply_scenario
from stowplan.scenarios.reading import read_scenario
from stowplan.scenarios.scenario import Scenario
from stowplan.settings.problem import make_problem


def what_if(
    snapshot: Snapshot,
    scenario: Scenario | str | os.PathLike[str],
    settings: Settings | None = None,
    options: Options | None = None,
    *,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> WhatIf:
    """Find the best placement without a scenario and with it, and compare them.

    Parameters
    ----------
    snapshot
        The cluster.
    scenario
        What is different: a `Scenario`, or the path of a scenario file.
    options
        Each of the two searches has their time limit.
    settings, stop, progress, backend
        As `stowplan.solve` takes them.

    Raises
    ------
    InputError
        With the argument or the setting that cannot be used, or the change that cannot be made.
    """
    settings, options = checked_arguments(snapshot, settings, options, backend)
    if isinstance(scenario, str | os.PathLike):
        scenario = read_scenario(os.fspath(scenario))
    if not isinstance(scenario, Scenario) or scenario.is_empty:
        raise InputError("must be a Scenario with a change, or the path of a scenario file", field="scenario")
    changed = apply_scenario(scenario, snapshot, settings)
    problems = make_problem(snapshot, settings), make_problem(changed.snapshot, changed.settings)
    before, after = (
        solve_snapshot(compiled, options, stop=stop, progress=progress, backend=backend) for compiled in problems
    )
    return weigh(scenario, changed, settings, before, after)


def survive(
    snapshot: Snapshot,
    topology: str = "zone",
    settings: Settings | None = None,
    options: Options | None = None,
    *,
    stop: Stop | None = None,
    tell: Callable[[Loss], None] = lambda loss: None,
    backend: Backend | None = None,
) -> Survival:
    """Find the pods that are pending once each failure domain is lost, and the fewest moves after which none would be.

    Parameters
    ----------
    snapshot
        The cluster.
    topology
        The label of nodes whose values are the domains, or ``zone``, ``region``, or ``node``.
    settings
        Their objective and limits on moves do not count.
    options
        The time limit is for all searches together.
    tell
        Called with each loss when it is known.
    stop, backend
        As `stowplan.solve` takes them.

    Raises
    ------
    InputError
        With the argument or the setting that cannot be used, or if there are no domains.
    """
    settings, options = checked_arguments(snapshot, settings, options, backend)
    return survive_losses(snapshot, topology, losing_of(snapshot, settings, options, stop, backend), tell)
