"""``stowplan replay``: carries out a plan in a simulated cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.exit_codes import INTERRUPTED
from stowplan.cli.groups import grouped, only
from stowplan.cli.options import Format, SteeringMode
from stowplan.models.command_line import PROBLEM
from stowplan.models.options import Options
from stowplan.models.settings import Settings

Steer = Annotated[
    SteeringMode,
    typer.Option(
        "--steer",
        help="none: kube-scheduler decides alone. extender: it also asks the extender that prefers the planned nodes.",
        rich_help_panel=PROBLEM,
    ),
]
Runs = Annotated[
    int,
    typer.Option(
        "--runs",
        min=0,
        help="Number of further replays in which ties, sampled nodes, and the order of events are left to chance.",
        rich_help_panel=PROBLEM,
    ),
]


@grouped
def replay(
    path: opt.PlanPath,
    paths: opt.Paths,
    *,
    steer: Steer = SteeringMode.NONE,
    runs: Runs = 20,
    release: opt.OtherRelease = None,
    config: opt.OtherConfig = None,
    settings: Annotated[Settings, only("scheduler", "sample_nodes")],
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    options: Annotated[Options, only("seed")],
    report: opt.Report = None,
    output: opt.Output = Format.TABLE,
) -> None:
    """Carry out a plan on a simulated cluster, and report where its pods land."""
    from stowplan.cli.session import emit, load_snapshot, steps_for, stoppable
    from stowplan.documents.plan import read_plan
    from stowplan.documents.replay import replay_document
    from stowplan.models.errors import InputError
    from stowplan.planning.replay import replay_plan
    from stowplan.plans.replay.outcome import INTERRUPTED as INTERRUPTED_REPLAY
    from stowplan.report.replay import replay_rows, show_replay
    from stowplan.settings.problem import make_profile, require_config

    steps_for(report)
    plan = read_plan(path)
    made_with = plan.settings
    scheduler = settings.scheduler
    if release is None:
        require_config(made_with, config, path)
        scheduler = scheduler or made_with.scheduler
    snapshot = load_snapshot(paths, skip_unknown_nodes, configs=[config])
    settings = settings.model_copy(
        update={"release": release or made_with.release, "config": config, "scheduler": scheduler}
    )
    with stoppable("after the wave under way") as stop:
        try:
            replay = replay_plan(
                plan,
                snapshot,
                make_profile(settings, snapshot),
                steered=steer is SteeringMode.EXTENDER,
                seed=options.seed,
                runs=runs,
                stop=stop,
            )
        except InputError as error:
            raise error.in_file(path) from None
    if report is not None:
        from stowplan.html_report.render import write_page
        from stowplan.html_report.replay import replay_page

        write_page(replay_page(replay), report)
    emit(
        output,
        lambda console: show_replay(console, replay, wide=output is Format.WIDE),
        lambda: replay_document(replay),
        lambda: replay_rows(replay),
    )
    if replay.outcome.halted == INTERRUPTED_REPLAY:
        raise typer.Exit(INTERRUPTED)
