"""Commands that get something done at the least cost of moves: drain, fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from stowplan.cli import options as opt
from stowplan.cli import trial_options as trial
from stowplan.cli.choices import IMPOSSIBLE, options_of, settings_of
from stowplan.cli.options import Format

if TYPE_CHECKING:
    from models.snapshot import Snapshot
    from optimizer.portfolio import Options
    from stowplan.drain import Drained
    from stowplan.fit import Fitted
    from stowplan.inputs import Settings
    from stowplan.planning import Terms


def drain(
    nodes: trial.DrainedNodes,
    paths: trial.From,
    objective: opt.Objective = "balance",
    profile: opt.Release = "1.36",
    config: opt.Config = None,
    scheduler: opt.Scheduler = None,
    metrics: opt.Metrics = None,
    freeze: opt.Freeze = None,
    max_moves: opt.MaxMoves = None,
    executor: opt.Executor = None,
    may_move: opt.MayMove = None,
    equal_moves: opt.EqualMoves = False,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    max_per_owner: opt.MaxPerOwner = "25%",
    max_per_node: opt.MaxPerNode = None,
    max_per_namespace: opt.MaxPerNamespace = None,
    max_per_wave: opt.MaxPerWave = None,
    expires_in: opt.ExpiresIn = "2h",
    time_limit: opt.TimeLimit = 20.0,
    deterministic: opt.Deterministic = False,
    seed: opt.Seed = 0,
    workers: opt.Workers = None,
    memory: opt.Memory = None,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Plan the cheapest way to empty nodes; exit 3 if something has to stay on them."""
    from stowplan.cli.session import emit, load_snapshot, warn_of_idle_freezes
    from stowplan.documents.errands import drain_document
    from stowplan.drain import draining
    from stowplan.report.errands import show_drain
    from stowplan.report.rows import plan_rows

    settings = settings_of(
        objective,
        profile,
        config,
        scheduler,
        freeze,
        False,
        max_moves,
        None,
        metrics,
        executor=executor or opt.ExecutorName.EVICTION_API,
        may_move=may_move,
        equal_moves=equal_moves,
    )
    terms = _terms(max_per_owner, max_per_node, max_per_namespace, max_per_wave, expires_in)
    snapshot = load_snapshot(paths, skip_unknown_nodes)
    warn_of_idle_freezes(settings.freeze, snapshot)
    options = options_of(time_limit, deterministic, seed, workers, memory)
    drained = _drained(snapshot, nodes, draining(settings, nodes), options, terms, quiet)
    emit(
        output,
        lambda console: show_drain(console, drained, wide=output is Format.WIDE),
        lambda: drain_document(drained),
        lambda: plan_rows(drained.planned.plan),
    )
    if not drained.possible:
        raise typer.Exit(IMPOSSIBLE)


def fit(
    paths: opt.Paths,
    files: trial.PendingFiles = None,
    waiting: trial.WaitingPods = None,
    objective: opt.Objective = "balance",
    profile: opt.Release = "1.36",
    config: opt.Config = None,
    scheduler: opt.Scheduler = None,
    metrics: opt.Metrics = None,
    freeze: opt.Freeze = None,
    freeze_bare: opt.FreezeBare = False,
    max_moves: opt.MaxMoves = None,
    executor: opt.Executor = None,
    may_move: opt.MayMove = None,
    equal_moves: opt.EqualMoves = False,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    max_per_owner: opt.MaxPerOwner = "25%",
    max_per_node: opt.MaxPerNode = None,
    max_per_namespace: opt.MaxPerNamespace = None,
    max_per_wave: opt.MaxPerWave = None,
    expires_in: opt.ExpiresIn = "2h",
    time_limit: opt.TimeLimit = 20.0,
    deterministic: opt.Deterministic = False,
    seed: opt.Seed = 0,
    workers: opt.Workers = None,
    memory: opt.Memory = None,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Plan the cheapest way to get waiting pods in, of a file or of the dump; exit 3 if they do not all fit."""
    from stowplan.cli.session import emit, load_snapshot, warn_of_idle_freezes
    from stowplan.documents.errands import fit_document
    from stowplan.fit import admitting, pods_of
    from stowplan.report.errands import show_fit
    from stowplan.report.rows import plan_rows

    settings = settings_of(
        objective,
        profile,
        config,
        scheduler,
        freeze,
        freeze_bare,
        max_moves,
        None,
        metrics,
        executor=executor or opt.ExecutorName.EVICTION_API,
        may_move=may_move,
        equal_moves=equal_moves,
    )
    terms = _terms(max_per_owner, max_per_node, max_per_namespace, max_per_wave, expires_in)
    files = files or []
    keys = [*(key for file in files for key in pods_of(file)), *(waiting or ())]
    snapshot = load_snapshot([*paths, *files], skip_unknown_nodes)
    warn_of_idle_freezes(settings.freeze, snapshot)
    options = options_of(time_limit, deterministic, seed, workers, memory)
    fitted = _fitted(snapshot, admitting(settings, snapshot, keys), options, terms, quiet)
    emit(
        output,
        lambda console: show_fit(console, fitted, wide=output is Format.WIDE),
        lambda: fit_document(fitted),
        lambda: plan_rows(fitted.planned.plan),
    )
    if not fitted.possible:
        raise typer.Exit(IMPOSSIBLE)


def _terms(
    per_owner: str, per_node: int | None, per_namespace: int | None, total: int | None, expires_in: str
) -> Terms:
    from stowplan.inputs import read_duration, read_limits
    from stowplan.planning import Terms

    limits = read_limits(per_owner, per_node, per_namespace, total)
    return Terms(limits=limits, expires_in=read_duration(expires_in, "--expires-in"))


def _drained(
    snapshot: Snapshot, nodes: list[str], settings: Settings, options: Options, terms: Terms, quiet: bool
) -> Drained:
    from stowplan.cli.progress import reported
    from stowplan.cli.session import stoppable
    from stowplan.drain import drain
    from stowplan.planning import planning_problem

    compiled = planning_problem(snapshot, settings, terms)
    with stoppable() as stop, reported(compiled.problem.tiers, quiet) as progress:
        return drain(snapshot, nodes, settings, options, terms, compiled=compiled, stop=stop, progress=progress)


def _fitted(snapshot: Snapshot, settings: Settings, options: Options, terms: Terms, quiet: bool) -> Fitted:
    from stowplan.cli.progress import reported
    from stowplan.cli.session import stoppable
    from stowplan.fit import fit
    from stowplan.planning import planning_problem

    compiled = planning_problem(snapshot, settings, terms)
    with stoppable() as stop, reported(compiled.problem.tiers, quiet) as progress:
        return fit(snapshot, settings, options, terms, compiled=compiled, stop=stop, progress=progress)
