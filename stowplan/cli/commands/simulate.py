"""``stowplan simulate``: decisions of kube-scheduler."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.groups import but, grouped, only
from stowplan.cli.options import Format
from stowplan.models.command_line import PROBLEM
from stowplan.models.options import Options
from stowplan.models.settings import Settings, concerns_scheduler

if TYPE_CHECKING:
    from stowplan.plugins_compat.compiler.compile import Compiled

Everything = Annotated[
    bool, typer.Option("--all", help="Place every free pod anew; only fixed pods stay.", rich_help_panel=PROBLEM)
]

CacheEvents = Annotated[
    str | None,
    typer.Option(
        "--cache-events",
        metavar="FILE",
        help="Place no pods; run these events on the scheduler's cache and print what each changes.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]


@grouped
def simulate(
    paths: opt.Paths,
    *,
    everything: Everything = False,
    settings: Annotated[Settings, but(suits=concerns_scheduler, objective="repair")],
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    options: Annotated[Options, only("seed")],
    record: opt.Record = None,
    cache_events: CacheEvents = None,
    output: opt.Output = Format.TABLE,
) -> None:
    """Let kube-scheduler place the pending pods, or with --all every free pod."""
    from stowplan.answers.solve import fixed, today
    from stowplan.answers.validate import record_simulation
    from stowplan.cli.session import emit, load_snapshot, warn, warn_of_idle_freezes
    from stowplan.documents.simulation import simulation_document
    from stowplan.models.errors import InputError
    from stowplan.plugins_compat.simulate import simulate
    from stowplan.report.rows import simulation_rows
    from stowplan.report.text import show_simulation
    from stowplan.settings.problem import make_problem

    snapshot = load_snapshot(paths, skip_unknown_nodes, configs=[settings.config])
    warn_of_idle_freezes(settings.freeze, snapshot)
    compiled = make_problem(snapshot, settings)
    if cache_events is not None:
        if record is not None or everything:
            raise InputError("excludes --record and --all, since no pod is placed", field="--cache-events")
        _run_cache_events(compiled, cache_events, output)
        return
    queue = [pod for pod in compiled.pods if everything or not pod.node_name] + compiled.participants.only_refused()
    start = fixed(compiled) if everything else today(compiled)
    for note in compiled.snapshot.notes:
        warn(note)
    profile = compiled.profile
    if record is not None:
        if settings.sample_nodes:
            raise InputError("excludes --sample-nodes, since a trace contains all nodes", field="--record")
        if any(pod.spec.scheduler_name != profile.scheduler_name for pod in queue):
            problem = f"a trace is of one profile, and there are pods of others than {profile.scheduler_name}"
            raise InputError(problem, field="--record")
        # Records break ties by the first node and know no preemption, so what is printed does not either.
        profile = replace(profile, tie_break="first")
        record_simulation(record, compiled, profile, queue, start, settings.config)
    simulation = simulate(
        compiled.snapshot,
        profile,
        queue,
        start,
        signatures=compiled.signatures,
        seed=options.seed,
        preempts=record is None,
    )
    names = [node.name for node in snapshot.nodes]
    emit(
        output,
        lambda console: show_simulation(console, compiled.participants, simulation, names, wide=output is Format.WIDE),
        lambda: simulation_document(compiled, simulation, everything),
        lambda: simulation_rows(simulation, names),
    )


def _run_cache_events(compiled: Compiled, path: str, output: Format) -> None:
    """Run a script of events on the scheduler's cache, and print it step by step."""
    from stowplan.cli.session import emit
    from stowplan.documents.cache import cache_document
    from stowplan.models.errors import InputError
    from stowplan.plugins_compat.framework.cache_script import read_script, run_script
    from stowplan.report.cache import cache_rows, show_cache

    release = compiled.profile.release
    script = read_script(path)
    try:
        steps = run_script(compiled.snapshot, release, script)
    except InputError as error:
        raise error.in_file(path) from None
    emit(
        output,
        lambda console: show_cache(console, steps),
        lambda: cache_document(release.name, steps),
        lambda: cache_rows(steps),
    )
