"""Commands about kube-scheduler and about answers: simulate, verify, validate."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.choices import INTERRUPTED, ProblemChoice
from stowplan.cli.groups import but, grouped
from stowplan.cli.options import Format

if TYPE_CHECKING:
    from stowplan.documents.solution import SolutionDocument
    from stowplan.models.plan import Plan
    from stowplan.models.snapshot import Snapshot
    from stowplan.plugins_compat.framework.profile import Profile


OF_THE_SEARCH = ("objective", "max_moves", "preemption", "executor", "may_move", "equal_moves")
"""What decides who may move, and for what; kube-scheduler does not ask."""


@grouped
def simulate(
    paths: opt.Paths,
    *,
    everything: opt.Everything = False,
    problem: Annotated[ProblemChoice, but(*OF_THE_SEARCH, objective="repair")],
    seed: opt.Seed = 0,
    record: opt.Record = None,
    output: opt.Output = Format.TABLE,
) -> None:
    """Let kube-scheduler place the pending pods, or with --all every pod that is free to move."""
    from stowplan.answers.solve import fixed, today
    from stowplan.answers.validate import record_simulation
    from stowplan.cli.session import emit, load_snapshot, warn, warn_of_idle_freezes
    from stowplan.documents.simulation import simulation_document
    from stowplan.models.errors import InputError
    from stowplan.plugins_compat.simulate import simulate
    from stowplan.report.rows import simulation_rows
    from stowplan.report.text import show_simulation
    from stowplan.settings.settings import make_problem

    settings = problem.settings()
    snapshot = load_snapshot(paths, problem.skip_unknown_nodes)
    warn_of_idle_freezes(settings.freeze, snapshot)
    compiled = make_problem(snapshot, settings)
    queue = [pod for pod in compiled.pods if everything or not pod.node_name] + compiled.participants.only_refused()
    standing = fixed(compiled) if everything else today(compiled)
    for note in compiled.snapshot.notes:
        warn(note)
    played = compiled.profile
    if record is not None:
        if problem.sample_nodes:
            raise InputError("a record holds all nodes; leave out --sample-nodes", field="--record")
        # Records break ties by the first node and know no preemption, so what is printed does not either.
        played = replace(played, tie_break="first")
        record_simulation(record, compiled, played, queue, standing, problem.config)
    simulation = simulate(
        compiled.snapshot, played, queue, standing, signatures=compiled.signatures, seed=seed, preempts=record is None
    )
    names = [node.name for node in snapshot.nodes]
    emit(
        output,
        lambda console: show_simulation(console, compiled.participants, simulation, names, wide=output is Format.WIDE),
        lambda: simulation_document(compiled, simulation, everything),
        lambda: simulation_rows(simulation, names),
    )


def verify(
    document: opt.VerifiedPath,
    paths: opt.Paths,
    config: opt.Config = None,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    output: opt.Output = Format.TABLE,
) -> None:
    """Check a solution or a plan against a snapshot, the same or a newer one; exit 1 if it does not hold."""
    from stowplan.cli.session import load_snapshot
    from stowplan.documents.plan import WITH_PLAN, parse_plan
    from stowplan.documents.reading import kind_of, read_content, require_config
    from stowplan.documents.solution import parse_solution
    from stowplan.models.plan import Plan
    from stowplan.settings.settings import Settings, make_profile

    content = read_content(document)
    wanted = "Solution, Comparison, Plan, Drain or Fit"
    if kind_of(content) in WITH_PLAN:
        content = content.get("plan")
        is_plan = True
    else:
        is_plan = kind_of(content) == "Plan"
    read = parse_plan(content, document) if is_plan else parse_solution(content, document, wanted)
    made_with = read.settings
    snapshot = load_snapshot(paths, skip_unknown_nodes)
    require_config(made_with, config, document)
    settings = Settings(release=made_with.release, config=config, scheduler=made_with.scheduler)
    profile = make_profile(settings, snapshot)
    if isinstance(read, Plan):
        holds = _plan_holds(snapshot, read, profile, output)
    else:
        holds = _solution_holds(snapshot, read, profile, output)
    if not holds:
        raise typer.Exit(1)


def _solution_holds(snapshot: Snapshot, document: SolutionDocument, profile: Profile, output: Format) -> bool:
    from stowplan.answers.verify_solution import verification_document, verify
    from stowplan.cli.session import emit
    from stowplan.report.rows import verification_rows
    from stowplan.report.text import show_verification

    verification = verify(snapshot, document, profile)
    emit(
        output,
        lambda console: show_verification(console, verification),
        lambda: verification_document(verification),
        lambda: verification_rows(verification),
    )
    return verification.holds


def _plan_holds(snapshot: Snapshot, plan: Plan, profile: Profile, output: Format) -> bool:
    from stowplan.answers.verify_plan import plan_verification_document, verify_plan
    from stowplan.cli.session import emit
    from stowplan.report.plan import show_plan_verification
    from stowplan.report.rows import problem_rows

    verification = verify_plan(snapshot, plan, profile)
    emit(
        output,
        lambda console: show_plan_verification(console, verification),
        lambda: plan_verification_document(verification),
        lambda: problem_rows(verification.drift.problems),
    )
    return verification.holds


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

    from stowplan.answers.validate import FileTally, validate
    from stowplan.cli.session import emit, stoppable
    from stowplan.documents.validation import validation_document
    from stowplan.instances.traces import TraceWriter, trace_files
    from stowplan.models.errors import InputError
    from stowplan.report.rows import validation_rows
    from stowplan.report.text import show_validation
    from stowplan.settings.settings import LATEST, Settings, make_profile

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
