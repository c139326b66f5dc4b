"""Commands that make plans: plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from stowplan.cli import options as opt
from stowplan.cli import trial_options as trial
from stowplan.cli.choices import CHANGES, given, options_of, settings_of
from stowplan.cli.options import Format

if TYPE_CHECKING:
    from models.snapshot import Snapshot
    from optimizer.portfolio import Options
    from stowplan.inputs import Settings
    from stowplan.planning import Planned, Terms


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


def plan(
    context: typer.Context,
    paths: opt.Paths,
    solution: opt.SolutionFile = None,
    objective: opt.Objective = "balance",
    profile: opt.Release = "1.36",
    config: opt.Config = None,
    scheduler: opt.Scheduler = None,
    metrics: opt.Metrics = None,
    freeze: opt.Freeze = None,
    freeze_bare: opt.FreezeBare = False,
    max_moves: opt.MaxMoves = None,
    preemption: opt.PreemptionOption = None,
    executor: opt.Executor = None,
    may_move: opt.MayMove = None,
    equal_moves: opt.EqualMoves = False,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    max_per_owner: opt.MaxPerOwner = "25%",
    max_per_node: opt.MaxPerNode = None,
    max_per_namespace: opt.MaxPerNamespace = None,
    max_per_wave: opt.MaxPerWave = None,
    expires_in: opt.ExpiresIn = "2h",
    wave_timeout: opt.WaveTimeout = "10m",
    steer: trial.SteerPlan = trial.Hand.EXTENDER,
    no_cordons: trial.NoCordons = False,
    time_limit: opt.TimeLimit = 20.0,
    deterministic: opt.Deterministic = False,
    seed: opt.Seed = 0,
    workers: opt.Workers = None,
    memory: opt.Memory = None,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
    detailed_exitcode: opt.DetailedExit = False,
) -> None:
    """Find the best placement that can be reached, and the way there, wave by wave; -o json is for executors."""
    from models.errors import InputError
    from stowplan.cli.session import emit, load_snapshot, warn_of_idle_freezes
    from stowplan.inputs import read_duration, read_limits
    from stowplan.planning import Terms
    from stowplan.report.plan import show_plan
    from stowplan.report.rows import plan_rows

    if solution is not None and (idle := given(context, OF_THE_SOLUTION)):
        raise InputError("is the solution's own; leave it out with --solution", field=idle[0])
    if no_cordons and steer is not trial.Hand.NONE:
        raise InputError("changes nothing without --steer none; give both or neither", field="--no-cordons")
    limits = read_limits(max_per_owner, max_per_node, max_per_namespace, max_per_wave)
    terms = Terms(
        limits=limits,
        expires_in=read_duration(expires_in, "--expires-in"),
        wave_timeout=read_duration(wave_timeout, "--wave-timeout"),
    )
    settings = settings_of(
        objective,
        profile,
        config,
        scheduler,
        freeze,
        freeze_bare,
        max_moves,
        preemption,
        metrics,
        executor=executor or opt.ExecutorName.EVICTION_API,
        may_move=may_move,
        equal_moves=equal_moves,
    )
    options = options_of(time_limit, deterministic, seed, workers, memory)
    snapshot = load_snapshot(paths, skip_unknown_nodes)
    warn_of_idle_freezes(settings.freeze, snapshot)
    if solution is not None:
        planned = _sequenced(snapshot, solution, settings, terms)
    else:
        planned = _solved(snapshot, settings, options, terms, quiet)
    if steer is trial.Hand.NONE:
        planned = _left_alone(planned, options, not no_cordons)
    document = planned.plan
    emit(
        output,
        lambda console: show_plan(
            console, document, planned.compiled.roll, planned.troubles, wide=output is Format.WIDE
        ),
        lambda: document,
        lambda: plan_rows(document),
    )
    if detailed_exitcode and document.waves:
        raise typer.Exit(CHANGES)


def _solved(snapshot: Snapshot, settings: Settings, options: Options, terms: Terms, quiet: bool) -> Planned:
    from stowplan.cli.progress import reported
    from stowplan.cli.session import stoppable
    from stowplan.planning import make_plan, planning_problem

    compiled = planning_problem(snapshot, settings, terms)
    with stoppable() as stop, reported(compiled.problem.tiers, quiet) as progress:
        return make_plan(snapshot, settings, options, terms, compiled=compiled, stop=stop, progress=progress)


def _sequenced(snapshot: Snapshot, path: str, settings: Settings, terms: Terms) -> Planned:
    from stowplan.documents.solution import read_solution
    from stowplan.reaching import sequence_document

    return sequence_document(snapshot, read_solution(path), path, settings, terms)


def _left_alone(planned: Planned, options: Options, may_cordon: bool) -> Planned:
    from stowplan.cli.session import stoppable
    from stowplan.unsteered import leave_alone, planned_alone

    with stoppable("with what is known to land well") as stop:
        return planned_alone(planned, leave_alone(planned, options, may_cordon=may_cordon, stop=stop))
