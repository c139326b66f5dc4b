"""``stowplan plan``: the best reachable placement, and the moves to it in waves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.bundling import Bundling
from stowplan.cli.exit_codes import CHANGES
from stowplan.cli.groups import but, given, grouped
from stowplan.cli.live import OptionalPaths, Source, load_source
from stowplan.cli.options import Format, SteeringMode
from stowplan.models.command_line import PROBLEM
from stowplan.models.options import Options
from stowplan.models.settings import Settings, concerns_search, options_of
from stowplan.settings.terms import Terms

if TYPE_CHECKING:
    from stowplan.models.snapshot import Snapshot
    from stowplan.planning.plan import Planned

SolutionFile = Annotated[
    str | None,
    typer.Option(
        "--solution",
        metavar="FILE",
        help="Plan the moves to this solution, the output of solve -o json, instead of solving.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
Steer = Annotated[
    SteeringMode,
    typer.Option(
        "--steer",
        help="none: arrange the plan for a cluster without steering; doubles the time.",
        rich_help_panel=PROBLEM,
    ),
]
ProtectionCosts = Annotated[
    bool,
    typer.Option(
        "--protection-costs/--no-protection-costs",
        help="Search for what the pods cost that stay for a reason of --may-move; a quarter of the time limit more.",
        rich_help_panel=PROBLEM,
    ),
]
NoCordons = Annotated[
    bool, typer.Option("--no-cordons", help="With --steer none: cordon no nodes.", rich_help_panel=PROBLEM)
]
MaxCordons = Annotated[
    int | None,
    typer.Option(
        "--max-cordons",
        min=0,
        help="With --steer none: maximum number of cordons in all waves together. Default: 10.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
MaxWaves = Annotated[
    int | None,
    typer.Option(
        "--max-waves",
        min=1,
        help="With --steer none: maximum number of waves, unless the steered plan has more. Default: 20.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]


@grouped
def plan(
    invocation: typer.Context,
    paths: OptionalPaths = None,
    *,
    solution: SolutionFile = None,
    settings: Annotated[Settings, but(suits=concerns_search)],
    source: Source,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    partial: opt.Partial = False,
    terms: Terms,
    protection_costs: ProtectionCosts = True,
    steer: Steer = SteeringMode.EXTENDER,
    no_cordons: NoCordons = False,
    max_cordons: MaxCordons = None,
    max_waves: MaxWaves = None,
    options: Options,
    report: opt.Report = None,
    metrics_file: opt.MetricsFile = None,
    bundling: Bundling,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
    detailed_exitcode: opt.DetailedExit = False,
) -> None:
    """Find the best reachable placement, and plan its moves in waves; -o json is for executors."""
    from stowplan.cli.session import emit, found, steps_for, warn, warn_of_idle_freezes
    from stowplan.models.errors import InputError
    from stowplan.planning.plan import make_plan, with_note
    from stowplan.report.plan import show_plan
    from stowplan.report.rows import plan_rows
    from stowplan.run_metrics.record import recorded

    if solution is not None:
        _refuse_settings_of_solution(invocation)
    asked = {"--no-cordons": no_cordons, "--max-cordons": max_cordons is not None, "--max-waves": max_waves is not None}
    for field, is_asked in asked.items():
        if is_asked and steer is not SteeringMode.NONE:
            raise InputError("needs --steer none", field=field)
    if no_cordons and max_cordons:
        raise InputError("excludes --no-cordons", field="--max-cordons")
    bundling.check()
    if bundling.bundle is not None and (solution is not None or steer is SteeringMode.NONE):
        raise InputError("excludes --solution and --steer none", field="--bundle")
    with recorded(metrics_file, "plan", warn) as metrics:
        steps = steps_for(report)
        snapshot = load_source(paths, source, skip_unknown_nodes, partial=partial, configs=[settings.config])
        warn_of_idle_freezes(settings.freeze, snapshot)
        if solution is not None:
            planned = _sequenced(snapshot, solution, settings, terms)
        else:
            planned = found(make_plan, snapshot, settings, options, terms, quiet, steps)
            if protection_costs:
                planned = _with_protections(planned, snapshot, settings, options, terms)
        if steer is SteeringMode.NONE:
            planned = _unassisted(planned, options, 0 if no_cordons else max_cordons, max_waves)
        document = planned.plan
        if bundling.bundle is not None:
            from stowplan.bundles.answer import of_plan
            from stowplan.bundles.making import Question

            bundling.keep(Question("plan", snapshot, settings, options, terms), planned.compiled, of_plan(document))
        if report is not None:
            from stowplan.html_report.plan import plan_page
            from stowplan.html_report.provenance import search_words
            from stowplan.html_report.render import write_page

            write_page(plan_page(planned, search_words(options) if solution is None else "", steps or ()), report)
        emit(
            output,
            lambda console: show_plan(
                console,
                document,
                planned.compiled.participants,
                planned.unresolved,
                wide=output is Format.WIDE,
                worth=planned.worth_words,
            ),
            lambda: with_note(document, planned.worth_words),
            lambda: plan_rows(document),
        )
        metrics.planned(document)
    if detailed_exitcode and document.waves:
        raise typer.Exit(CHANGES)


def _refuse_settings_of_solution(context: typer.Context) -> None:
    """Refuse options that define the problem, which a given solution defines already."""
    from stowplan.models.errors import InputError

    of_solution = {name: option for name, option in options_of(Settings).items() if option.of_solution}
    for name in given(context, of_solution):
        field = of_solution[name].flag(name)
        raise InputError("excludes --solution, which decides it", field=field)


def _sequenced(snapshot: Snapshot, path: str, settings: Settings, terms: Terms) -> Planned:
    from stowplan.documents.solution import read_solution
    from stowplan.planning.from_solution import sequence_document

    return sequence_document(snapshot, read_solution(path), path, settings, terms)


def _with_protections(
    planned: Planned, snapshot: Snapshot, settings: Settings, options: Options, terms: Terms
) -> Planned:
    """Say in a plan what each reason costs for which pods stay."""
    from dataclasses import asdict, replace

    from stowplan.answers.protections import protections
    from stowplan.cli.session import stoppable
    from stowplan.models.plan import ProtectionDocument

    answer = planned.assessor.assess(planned.assignment)
    with stoppable("with the plan that was found") as stop:
        costs = protections(
            snapshot, settings, answer, options, frozen=lambda pod: terms.frozen.get(pod.key), stop=stop
        )
        told = tuple(ProtectionDocument(**asdict(one)) for one in costs)
    return replace(planned, plan=planned.plan.model_copy(update={"protections": told}))


def _unassisted(planned: Planned, options: Options, cordons: int | None, waves: int | None) -> Planned:
    from stowplan.cli.session import stoppable
    from stowplan.planning.unassisted import arrange_unassisted, planned_alone
    from stowplan.plans.unassisted import ACCEPTED, UnassistedLimits

    limits = UnassistedLimits(
        ACCEPTED.cordons if cordons is None else cordons, ACCEPTED.waves if waves is None else waves
    )
    with stoppable("with what is known to land well") as stop:
        return planned_alone(planned, arrange_unassisted(planned, options, limits=limits, stop=stop))
