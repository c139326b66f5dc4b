"""One function a command. Imports are inside, so that help costs nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from stowplan.cli import options as opt
from stowplan.cli.options import Format

if TYPE_CHECKING:
    from models.snapshot import Snapshot
    from optimizer.portfolio import Options
    from stowplan.inputs import Settings

INTERRUPTED = 130
CHANGES = 2
"""Exit code for an answer that differs from today, where it was asked for."""


def compare(
    paths: opt.Paths,
    objective: opt.Objective = "balance",
    profile: opt.Release = "1.36",
    config: opt.Config = None,
    scheduler: opt.Scheduler = None,
    metrics: opt.Metrics = None,
    freeze: opt.Freeze = None,
    freeze_bare: opt.FreezeBare = False,
    max_moves: opt.MaxMoves = None,
    preemption: opt.PreemptionOption = None,
    sample_nodes: opt.SampleNodes = False,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    time_limit: opt.TimeLimit = 15.0,
    deterministic: opt.Deterministic = False,
    seed: opt.Seed = 0,
    workers: opt.Workers = None,
    memory: opt.Memory = None,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
    detailed_exitcode: opt.DetailedExit = False,
) -> None:
    """Show today, kube-scheduler and the best placement side by side."""
    from stowplan.cli.session import load_snapshot

    settings = _settings(
        objective, profile, config, scheduler, freeze, freeze_bare, max_moves, preemption, metrics, sample_nodes
    )
    snapshot = load_snapshot(paths, skip_unknown_nodes)
    changed = _compare(snapshot, settings, _options(time_limit, deterministic, seed, workers, memory), output, quiet)
    if detailed_exitcode and changed:
        raise typer.Exit(CHANGES)


def _compare(snapshot: Snapshot, settings: Settings, options: Options, output: Format, quiet: bool) -> bool:
    from stowplan.cli.progress import reported
    from stowplan.cli.session import emit, stoppable, warn_of_idle_freezes
    from stowplan.comparison import compare
    from stowplan.documents.comparison import comparison_document
    from stowplan.inputs import make_problem
    from stowplan.report.rows import comparison_rows
    from stowplan.report.text import show_comparison

    warn_of_idle_freezes(settings.freeze, snapshot)
    compiled = make_problem(snapshot, settings)
    with stoppable() as stop, reported(compiled.problem.tiers, quiet) as progress:
        comparison = compare(compiled, options, stop=stop, progress=progress)
    emit(
        output,
        lambda console: show_comparison(console, comparison, wide=output is Format.WIDE),
        lambda: comparison_document(comparison, settings),
        lambda: comparison_rows(comparison),
    )
    return bool(comparison.solution.moves)


def solve(
    paths: opt.Paths,
    objective: opt.Objective = "balance",
    profile: opt.Release = "1.36",
    config: opt.Config = None,
    scheduler: opt.Scheduler = None,
    metrics: opt.Metrics = None,
    freeze: opt.Freeze = None,
    freeze_bare: opt.FreezeBare = False,
    max_moves: opt.MaxMoves = None,
    preemption: opt.PreemptionOption = None,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    time_limit: opt.TimeLimit = 20.0,
    deterministic: opt.Deterministic = False,
    seed: opt.Seed = 0,
    workers: opt.Workers = None,
    memory: opt.Memory = None,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
    detailed_exitcode: opt.DetailedExit = False,
) -> None:
    """Find the best placement, with a proof or a gap; -o json is what verify reads."""
    from optimizer.evaluate import Judge
    from stowplan.cli.progress import reported
    from stowplan.cli.session import emit, load_snapshot, stoppable, warn_of_idle_freezes
    from stowplan.documents.solution import solution_document
    from stowplan.inputs import make_problem
    from stowplan.report.rows import solution_rows
    from stowplan.report.text import show_solution
    from stowplan.solution import solve_snapshot

    settings = _settings(objective, profile, config, scheduler, freeze, freeze_bare, max_moves, preemption, metrics)
    options = _options(time_limit, deterministic, seed, workers, memory)
    snapshot = load_snapshot(paths, skip_unknown_nodes)
    warn_of_idle_freezes(settings.freeze, snapshot)
    compiled = make_problem(snapshot, settings)
    with stoppable() as stop, reported(compiled.problem.tiers, quiet) as progress:
        solution = solve_snapshot(compiled, options, stop=stop, progress=progress)
    before = Judge(compiled.problem).evaluate(compiled.problem.start).values
    emit(
        output,
        lambda console: show_solution(console, solution, before, wide=output is Format.WIDE),
        lambda: solution_document(solution, settings),
        lambda: solution_rows(solution),
    )
    if detailed_exitcode and solution.moves:
        raise typer.Exit(CHANGES)


def simulate(
    paths: opt.Paths,
    everything: opt.Everything = False,
    profile: opt.Release = "1.36",
    config: opt.Config = None,
    scheduler: opt.Scheduler = None,
    metrics: opt.Metrics = None,
    freeze: opt.Freeze = None,
    freeze_bare: opt.FreezeBare = False,
    sample_nodes: opt.SampleNodes = False,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    seed: opt.Seed = 0,
    record: opt.Record = None,
    output: opt.Output = Format.TABLE,
) -> None:
    """Let kube-scheduler place the pending pods, or with --all every pod that is free to move."""
    from models.errors import InputError
    from plugins_compat.simulate import simulate
    from stowplan.cli.session import emit, load_snapshot, warn, warn_of_idle_freezes
    from stowplan.documents.simulation import simulation_document
    from stowplan.inputs import make_problem
    from stowplan.report.rows import simulation_rows
    from stowplan.report.text import show_simulation
    from stowplan.solution import fixed, today
    from stowplan.validation import record_simulation

    settings = _settings("repair", profile, config, scheduler, freeze, freeze_bare, None, None, metrics, sample_nodes)
    snapshot = load_snapshot(paths, skip_unknown_nodes)
    warn_of_idle_freezes(settings.freeze, snapshot)
    compiled = make_problem(snapshot, settings)
    queue = [pod for pod in compiled.pods if everything or not pod.node_name] + compiled.roll.only_refused()
    standing = fixed(compiled) if everything else today(compiled)
    for note in compiled.snapshot.notes:
        warn(note)
    played = compiled.profile
    if record is not None:
        if sample_nodes:
            raise InputError("a record holds all nodes; leave out --sample-nodes", field="--record")
        # Records break ties by the first node and know no preemption, so what is printed does not either.
        played = replace(played, tie_break="first")
        record_simulation(record, compiled, played, queue, standing, config)
    simulation = simulate(
        compiled.snapshot, played, queue, standing, shapes=compiled.shapes, seed=seed, preempts=record is None
    )
    names = [node.name for node in snapshot.nodes]
    emit(
        output,
        lambda console: show_simulation(console, compiled.roll, simulation, names, wide=output is Format.WIDE),
        lambda: simulation_document(compiled, simulation, everything),
        lambda: simulation_rows(simulation, names),
    )


def verify(
    solution: opt.SolutionPath,
    paths: opt.Paths,
    config: opt.Config = None,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    output: opt.Output = Format.TABLE,
) -> None:
    """Check a solution against a snapshot, the same or a newer one: rules, filters, claimed values."""
    from models.errors import InputError
    from stowplan.cli.session import emit, load_snapshot
    from stowplan.documents.solution import read_solution
    from stowplan.inputs import Settings, make_profile
    from stowplan.report.rows import verification_rows
    from stowplan.report.text import show_verification
    from stowplan.verification import verification_document, verify

    document = read_solution(solution)
    snapshot = load_snapshot(paths, skip_unknown_nodes)
    made_with = document.settings
    if made_with.config is not None and config is None:
        raise InputError(f"was made with {made_with.config}; give it with --config", solution, None, "settings.config")
    settings = Settings(release=made_with.release, config=config, scheduler=made_with.scheduler)
    verification = verify(snapshot, document, make_profile(settings, snapshot))
    emit(
        output,
        lambda console: show_verification(console, verification),
        lambda: verification_document(verification),
        lambda: verification_rows(verification),
    )
    if not verification.holds:
        raise typer.Exit(1)


def validate(
    traces: opt.Traces,
    profile: opt.OtherRelease = None,
    config: opt.OtherConfig = None,
    scheduler: opt.Scheduler = None,
    record: opt.Record = None,
    show: opt.Show = 20,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Run recorded scheduler decisions through the framework; exit 1 if any comes out differently."""
    from pathlib import Path

    from instances.traces import TraceWriter, trace_files
    from models.errors import InputError
    from stowplan.cli.session import emit, stoppable
    from stowplan.documents.validation import validation_document
    from stowplan.inputs import LATEST, Settings, make_profile
    from stowplan.report.rows import validation_rows
    from stowplan.report.text import show_validation
    from stowplan.validation import FileTally, validate

    def tell(tally: FileTally) -> None:
        if not quiet:
            print(f"stowplan: {tally.file}: {tally.pods} decisions, {tally.different} different", file=sys.stderr)

    files = trace_files(traces)
    other = None
    if profile is not None or config is not None or scheduler is not None:
        settings = Settings(release=profile or LATEST, config=config, scheduler=scheduler)
        other = replace(make_profile(settings), tie_break="first")
    writer = TraceWriter(Path(record)) if record is not None else None
    with stoppable("with what was compared so far") as stop:
        validation = validate(files, profile=other, record=writer, keep=show, stop=stop, progress=tell)
    if writer is not None and validation.complete:
        writer.close()
    if not validation.pods:
        raise InputError("the traces hold no decision", field="TRACE")
    emit(
        output,
        lambda console: show_validation(console, validation),
        lambda: validation_document(validation),
        lambda: validation_rows(validation),
    )
    if not validation.complete:
        raise typer.Exit(INTERRUPTED)
    if not validation.holds:
        raise typer.Exit(1)


def bench(
    suite: opt.SuiteName,
    time_limit: opt.TimeLimit = 10.0,
    instances: opt.Instances = None,
    first: opt.First = None,
    solutions: opt.Solutions = None,
    jobs: opt.Jobs = 1,
    count: opt.Count = 10,
    deterministic: opt.Deterministic = False,
    seed: opt.Seed = 0,
    workers: opt.Workers = None,
    memory: opt.Memory = None,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Solve a public benchmark and have every written solution judged; exit 1 if one is refused."""
    from pathlib import Path

    from instances.suites.opening import open_suite
    from stowplan.bench.bench import choose, run
    from stowplan.bench.jobs import shared
    from stowplan.bench.row import Row
    from stowplan.cli.session import emit, stoppable
    from stowplan.documents.bench import bench_document
    from stowplan.report.bench import bench_rows, row_line, show_bench

    opened = open_suite(suite, count=count, seed=seed)
    chosen = choose(opened, instances or (), first)
    options = shared(_options(time_limit, deterministic, seed, workers, memory), jobs, workers)

    def tell(number: int, row: Row) -> None:
        if not quiet:
            print(f"stowplan: {row_line(number, len(chosen), row)}", file=sys.stderr, flush=True)

    with stoppable("with what was answered so far") as stop:
        result = run(
            opened,
            chosen,
            options,
            place=Path(suite) if Path(suite).exists() else None,
            solutions=None if solutions is None else Path(solutions),
            jobs=jobs,
            stop=stop,
            progress=tell,
        )
    emit(
        output,
        lambda console: show_bench(console, result, wide=output is Format.WIDE),
        lambda: bench_document(result),
        lambda: bench_rows(result),
    )
    if not result.accepted:
        raise typer.Exit(1)
    if not result.complete:
        raise typer.Exit(INTERRUPTED)


def demo(
    time_limit: opt.TimeLimit = 15.0,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Compare placements of a bundled cluster."""
    from instances.catalog import demo_path
    from stowplan.cli.session import load_snapshot
    from stowplan.inputs import Settings

    if not quiet:
        print(f"stowplan: stowplan compare {demo_path()}", file=sys.stderr)
    _compare(load_snapshot([str(demo_path())]), Settings(), _options(time_limit, False, 0, None), output, quiet)


def generate(
    nodes: opt.Nodes = 100,
    pods: opt.Pods = 1000,
    seed: opt.Seed = 0,
    fill: opt.Fill = 0.65,
) -> None:
    """Print a synthetic cluster as kubectl would print a real one."""
    import json

    from instances.synthetic import generate

    print(json.dumps(generate(nodes, pods, seed, fill=fill)))


def _settings(
    objective: str,
    profile: str,
    config: str | None,
    scheduler: str | None,
    freeze: list[str] | None,
    freeze_bare: bool,
    max_moves: int | None,
    preemption: opt.Preemption | None,
    metrics: str | None,
    sample_nodes: bool = False,
) -> Settings:
    from stowplan.inputs import Settings

    return Settings(
        objective=objective,
        release=profile,
        config=config,
        scheduler=scheduler,
        freeze=tuple(freeze or ()),
        freeze_bare=freeze_bare,
        max_moves=max_moves,
        preemption=preemption and preemption.value,
        sample_nodes=sample_nodes,
        metrics=metrics,
    )


def _options(
    time_limit: float, deterministic: bool, seed: int, workers: int | None = None, memory: str | None = None
) -> Options:
    from optimizer.portfolio import Options
    from stowplan.inputs import memory_limit

    made = Options(time_limit=time_limit, deterministic=deterministic, seed=seed, memory=memory_limit(memory))
    return made if workers is None else replace(made, workers=workers)
