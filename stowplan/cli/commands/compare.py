"""``stowplan compare``: today, kube-scheduler and the best placement, side by side."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.bundling import Bundling
from stowplan.cli.exit_codes import CHANGES
from stowplan.cli.groups import but, completed, grouped
from stowplan.cli.live import OptionalPaths, Source, load_source
from stowplan.cli.options import OUTPUT, Format
from stowplan.models.command_line import PROBLEM
from stowplan.models.objective import PRESETS, PRICED_PRESETS
from stowplan.models.options import LOCAL, Options
from stowplan.models.settings import CHOICE, Settings

if TYPE_CHECKING:
    from rich.console import Console

    from stowplan.answers.compare import Comparison
    from stowplan.models.snapshot import Snapshot


Ideal = Annotated[
    bool,
    typer.Option(
        "--ideal",
        help="Also show the best placement if every pod could move, and what each protection of pods costs.",
        rich_help_panel=PROBLEM,
    ),
]

Objectives = Annotated[
    list[str] | None,
    typer.Option(
        "--objective",
        "-O",
        help=f"{', '.join((*PRESETS, *PRICED_PRESETS))}, or an objective file; repeatable. Default: balance.",
        show_default=False,
        rich_help_panel=PROBLEM,
        autocompletion=completed((*PRESETS, *PRICED_PRESETS)),
    ),
]
Releases = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        help=f"kube-scheduler release: {CHOICE}; repeatable. Default: by the nodes' kubelets.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
Configs = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        help="A KubeSchedulerConfiguration file; repeatable.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]

Drawing = Annotated[
    str | None,
    typer.Option(
        "--svg",
        metavar="FILE",
        help="Also draw the utilization of every node, placement by placement, to this file.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]

NodeMap = Annotated[
    bool,
    typer.Option("--map", help="Also print a bar for each node, today and in the answer.", rich_help_panel=OUTPUT),
]

Named = list[tuple[tuple[str, str], Settings]]
"""Settings, with what their scheduler and their objective are called."""


@grouped
def compare(
    paths: OptionalPaths = None,
    *,
    settings: Annotated[Settings, but("objective", "release", "config")],
    objectives: Objectives = None,
    releases: Releases = None,
    configs: Configs = None,
    source: Source,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    options: Annotated[Options, but(time_limit=15.0)],
    ideal: Ideal = False,
    drawing: Drawing = None,
    node_map: NodeMap = False,
    report: opt.Report = None,
    bundling: Bundling,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
    detailed_exitcode: opt.DetailedExit = False,
) -> None:
    """Show today, kube-scheduler, and the best placement side by side."""
    from stowplan.models.errors import InputError

    bundling.check()
    snapshot = load_source(paths, source, skip_unknown_nodes, configs=configs or [])
    named = _variants(settings, objectives or [], releases or [], configs or [])
    if len(named) > 1:
        if ideal:
            raise InputError("excludes several profiles, configurations, or objectives", field="--ideal")
        for field, asked in (("--report", report), ("--bundle", bundling.bundle), ("--map", node_map or None)):
            if asked is not None:
                raise InputError("excludes several profiles, configurations, or objectives", field=field)
        changes = _compared_variants(snapshot, named, options, output, quiet, drawing)
    else:
        ((_, settings),) = named
        changes = compared(
            snapshot,
            settings,
            options,
            output,
            quiet,
            ideal=ideal,
            drawing=drawing,
            report=report,
            bundling=bundling,
            node_map=node_map,
        )
    if detailed_exitcode and changes:
        raise typer.Exit(CHANGES)


def compared(
    snapshot: Snapshot,
    settings: Settings,
    options: Options,
    output: Format,
    quiet: bool,
    *,
    ideal: bool = False,
    drawing: str | None = None,
    report: str | None = None,
    bundling: Bundling | None = None,
    node_map: bool = False,
) -> bool:
    """Print a comparison; return whether its answer differs from today."""
    from stowplan.answers.compare import compare
    from stowplan.answers.protections import protections
    from stowplan.cli.progress import ready, reported
    from stowplan.cli.session import emit, steps_for, stoppable, warn_of_idle_freezes
    from stowplan.documents.comparison import comparison_document
    from stowplan.report.machines import machines_chart
    from stowplan.report.rows import comparison_rows
    from stowplan.report.svg import write_drawing
    from stowplan.settings.problem import make_ideal, make_problem

    steps = steps_for(report)
    warn_of_idle_freezes(settings.freeze, snapshot)
    compiled = make_problem(snapshot, settings)
    with stoppable() as stop:
        options = ready(compiled.problem, options, quiet, stop)
        with reported(compiled.problem.tiers, quiet, steps, options=options) as progress:
            everyone = make_ideal(snapshot, settings) if ideal else None
            comparison = compare(compiled, options, ideal=everyone, stop=stop, progress=progress)
            if ideal:
                found = tuple(protections(snapshot, settings, comparison.solution.assessment, options, stop=stop))
                comparison = replace(comparison, protections=found)
    if drawing is not None:
        write_drawing(machines_chart([(column.name, column.measures) for column in comparison.columns]), drawing)
    if report is not None:
        from stowplan.html_report.answers import comparison_page
        from stowplan.html_report.render import write_page

        write_page(comparison_page(comparison, settings, options, steps or ()), report)
    if bundling is not None and bundling.bundle is not None:
        from stowplan.bundles.answer import of_solution
        from stowplan.bundles.making import Question

        bundling.keep(Question("compare", snapshot, settings, options), compiled, of_solution(comparison.solution))
    emit(
        output,
        lambda console: _show(console, comparison, wide=output is Format.WIDE, node_map=node_map),
        lambda: comparison_document(comparison, settings),
        lambda: comparison_rows(comparison),
    )
    return bool(comparison.solution.moves)


def _show(console: Console, comparison: Comparison, *, wide: bool, node_map: bool) -> None:
    """Print a comparison, and the map of its nodes if it is wanted."""
    from stowplan.report.node_map import show_node_map
    from stowplan.report.text import show_comparison

    show_comparison(console, comparison, wide=wide)
    if node_map:
        best = comparison.best
        show_node_map(console, comparison.columns[0].measures, best.measures, best.name, wide=wide)


def _variants(settings: Settings, objectives: list[str], releases: list[str], configs: list[str]) -> Named:
    """Return the settings of each scheduler with each objective.

    A release and a configuration together are one scheduler; of several, each is a scheduler of its own.

    Raises
    ------
    InputError
        If a release is not known.
    """
    from stowplan.plugins_compat.profiles import choose_release

    for release in releases:
        choose_release(release)
    if len(releases) <= 1 and len(configs) <= 1:
        one, file = next(iter(releases), None), next(iter(configs), None)
        schedulers = [(_called(configs)[file] if file else one or "default", {"release": one, "config": file})]
    else:
        schedulers = [(release, {"release": release, "config": None}) for release in dict.fromkeys(releases)]
        schedulers += [(name, {"release": None, "config": config}) for config, name in _called(configs).items()]
    return [
        ((scheduler, name), settings.model_copy(update={**update, "objective": objective}))
        for scheduler, update in schedulers
        for objective, name in _called(objectives or ["balance"]).items()
    ]


def _called(paths: list[str]) -> dict[str, str]:
    """Return what files are called in tables: without their folders, unless two are called alike."""
    short = Counter(os.path.basename(path) for path in dict.fromkeys(paths))
    return {path: name if short[name := os.path.basename(path)] == 1 else path for path in paths}


def _compared_variants(
    snapshot: Snapshot, named: Named, options: Options, output: Format, quiet: bool, drawing: str | None
) -> bool:
    """Print several comparisons in one table; return whether an answer differs from today."""
    from stowplan.answers.compare import compare
    from stowplan.answers.variants import compare_in_cluster, compare_variants
    from stowplan.cli.progress import ready, reported
    from stowplan.cli.session import emit, stoppable, warn, warn_of_idle_freezes
    from stowplan.documents.variants import variants_document
    from stowplan.models.errors import InputError
    from stowplan.report.machines import machines_chart
    from stowplan.report.svg import write_drawing
    from stowplan.report.variants import show_variants, variant_rows
    from stowplan.settings.problem import make_problem

    warn_of_idle_freezes(named[0][1].freeze, snapshot)
    problems = [make_problem(snapshot, settings) for _, settings in named]
    with stoppable() as stop:
        if options.backend == LOCAL:

            def one(i: int) -> Comparison:
                prepared = ready(problems[i].problem, options, quiet, stop)
                with reported(problems[i].problem.tiers, quiet, options=prepared) as progress:
                    return compare(problems[i], prepared, stop=stop, progress=progress)

            found = compare_variants([names for names, _ in named], one)
        else:
            made = compare_in_cluster(problems, options, stop)
            for ((scheduler, objective), _), result in zip(named, made, strict=True):
                if isinstance(result, str):
                    warn(f"no comparison for {scheduler} and {objective}: {result}")
            done = [(one, result) for one, result in zip(named, made, strict=True) if not isinstance(result, str)]
            if not done:
                raise InputError("none of the comparisons was made", field="--backend")
            named = [one for one, _ in done]
            found = compare_variants([names for names, _ in named], lambda i: done[i][1])
    if drawing is not None:
        write_drawing(machines_chart(found.measures), drawing)
    emit(
        output,
        lambda console: show_variants(console, found),
        lambda: variants_document(found, [settings for _, settings in named]),
        lambda: variant_rows(found),
    )
    return any(variant.comparison.solution.moves for variant in found.variants)
