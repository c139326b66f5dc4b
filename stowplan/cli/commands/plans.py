"""Commands that make plans: plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli import trial_options as trial
from stowplan.cli.choices import CHANGES, ProblemChoice, SearchChoice, WaveChoice, given
from stowplan.cli.groups import but, grouped
from stowplan.cli.options import Format

if TYPE_CHECKING:
    from stowplan.models.snapshot import Snapshot
    from stowplan.optimizer.portfolio import Options
    from stowplan.planning.plan import Planned, Terms
    from stowplan.settings.settings import Settings


OF_THE_SOLUTION = (
    "objective",
    "profile",
    "scheduler",
    "metrics",
    "freeze",
    "freeze_bare",
    "max_moves",
    "preemption",
    "equal_moves",
)
"""What decides what the problem is; a solution was found for one, and its plan is measured by the same."""


@grouped
def plan(
    context: typer.Context,
    paths: opt.Paths,
    *,
    solution: opt.SolutionFile = None,
    problem: Annotated[ProblemChoice, but("sample_nodes")],
    waves: WaveChoice,
    steer: trial.SteerPlan = trial.SteeringMode.EXTENDER,
    no_cordons: trial.NoCordons = False,
    search: SearchChoice,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
    detailed_exitcode: opt.DetailedExit = False,
) -> None:
    """Find the best placement that can be reached, and the way there, wave by wave; -o json is for executors."""
    from stowplan.cli.session import emit, found, load_snapshot, warn_of_idle_freezes
    from stowplan.models.errors import InputError
    from stowplan.planning.plan import make_plan
    from stowplan.report.plan import show_plan
    from stowplan.report.rows import plan_rows

    if solution is not None and (idle := given(context, OF_THE_SOLUTION)):
        raise InputError("is the solution's own; leave it out with --solution", field=idle[0])
    if no_cordons and steer is not trial.SteeringMode.NONE:
        raise InputError("changes nothing without --steer none; give both or neither", field="--no-cordons")
    terms = waves.terms()
    settings = problem.settings(opt.ExecutorName.EVICTION_API)
    options = search.options()
    snapshot = load_snapshot(paths, problem.skip_unknown_nodes)
    warn_of_idle_freezes(settings.freeze, snapshot)
    if solution is not None:
        planned = _sequenced(snapshot, solution, settings, terms)
    else:
        planned = found(make_plan, snapshot, settings, options, terms, quiet)
    if steer is trial.SteeringMode.NONE:
        planned = _left_alone(planned, options, not no_cordons)
    document = planned.plan
    emit(
        output,
        lambda console: show_plan(
            console, document, planned.compiled.participants, planned.unresolved, wide=output is Format.WIDE
        ),
        lambda: document,
        lambda: plan_rows(document),
    )
    if detailed_exitcode and document.waves:
        raise typer.Exit(CHANGES)


def _sequenced(snapshot: Snapshot, path: str, settings: Settings, terms: Terms) -> Planned:
    from stowplan.documents.solution import read_solution
    from stowplan.planning.from_solution import sequence_document

    return sequence_document(snapshot, read_solution(path), path, settings, terms)


def _left_alone(planned: Planned, options: Options, may_cordon: bool) -> Planned:
    from stowplan.cli.session import stoppable
    from stowplan.planning.unassisted import arrange_unassisted, planned_alone

    with stoppable("with what is known to land well") as stop:
        return planned_alone(planned, arrange_unassisted(planned, options, may_cordon=may_cordon, stop=stop))
