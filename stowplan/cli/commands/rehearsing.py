"""Commands that try things out: replay, frontier."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli import trial_options as trial
from stowplan.cli.choices import INTERRUPTED, ProblemChoice, SearchChoice
from stowplan.cli.groups import but, grouped
from stowplan.cli.options import Format


def replay(
    plan: opt.PlanPath,
    paths: opt.Paths,
    steer: trial.SteerReplay = trial.SteeringMode.NONE,
    profile: opt.OtherRelease = None,
    config: opt.OtherConfig = None,
    scheduler: opt.Scheduler = None,
    sample_nodes: opt.SampleNodes = False,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    seed: opt.Seed = 0,
    output: opt.Output = Format.TABLE,
) -> None:
    """Carry a plan out on a simulated cluster: where do its pods land, with kube-scheduler left alone, or steered?"""
    from stowplan.cli.session import emit, load_snapshot, stoppable
    from stowplan.documents.plan import read_plan
    from stowplan.documents.reading import require_config
    from stowplan.documents.replay import replay_document
    from stowplan.models.errors import InputError
    from stowplan.planning.replay import replay_plan
    from stowplan.plans.replay.outcome import INTERRUPTED as INTERRUPTED_REPLAY
    from stowplan.report.replay import replay_rows, show_replay
    from stowplan.settings.settings import Settings, make_profile

    document = read_plan(plan)
    made_with = document.settings
    if profile is None:
        require_config(made_with, config, plan)
    snapshot = load_snapshot(paths, skip_unknown_nodes)
    settings = Settings(
        release=profile or made_with.release,
        config=config,
        scheduler=scheduler or (made_with.scheduler if profile is None else None),
        sample_nodes=sample_nodes,
    )
    with stoppable("after the wave under way") as stop:
        try:
            replay = replay_plan(
                document,
                snapshot,
                make_profile(settings, snapshot),
                steered=steer is trial.SteeringMode.EXTENDER,
                seed=seed,
                stop=stop,
            )
        except InputError as error:
            raise error.in_file(plan) from None
    emit(
        output,
        lambda console: show_replay(console, replay, wide=output is Format.WIDE),
        lambda: replay_document(replay),
        lambda: replay_rows(replay),
    )
    if replay.outcome.halted == INTERRUPTED_REPLAY:
        raise typer.Exit(INTERRUPTED)


@grouped
def frontier(
    paths: opt.Paths,
    *,
    limits: trial.Limits = None,
    problem: Annotated[ProblemChoice, but("max_moves", "sample_nodes")],
    search: Annotated[SearchChoice, but(time_limit=60.0)],
    drawing: trial.Drawing = None,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Show what each further move brings: the best placement for 0, 1, 2, 5, 10, … moves, and for any number."""
    from stowplan.answers.frontier import Point, climb
    from stowplan.cli.progress import compile_kernels
    from stowplan.cli.session import emit, load_snapshot, stoppable, warn_of_idle_freezes
    from stowplan.documents.frontier import frontier_document
    from stowplan.report.frontier import draw, frontier_rows, point_line, show_frontier
    from stowplan.settings.settings import make_problem

    settings = problem.settings()
    options = search.options()
    snapshot = load_snapshot(paths, problem.skip_unknown_nodes)
    warn_of_idle_freezes(settings.freeze, snapshot)
    compiled = make_problem(snapshot, settings)

    def tell(point: Point) -> None:
        if not quiet:
            print(f"stowplan: {point_line(point)}", file=sys.stderr, flush=True)

    with stoppable("with the points found so far") as stop:
        compile_kernels(quiet, stop)
        found = climb(compiled, options, limits=limits, stop=stop, tell=tell)
    if drawing is not None:
        draw(found, drawing)
    emit(
        output,
        lambda console: show_frontier(console, found),
        lambda: frontier_document(found, settings),
        lambda: frontier_rows(found),
    )
