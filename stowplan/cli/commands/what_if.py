"""``stowplan what-if``: what would be different if the cluster were."""

from __future__ import annotations

from typing import Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.bundling import Bundling
from stowplan.cli.groups import but, grouped
from stowplan.cli.live import OptionalPaths, Source, load_source
from stowplan.cli.options import OUTPUT, Format
from stowplan.models.options import Options
from stowplan.models.settings import Settings, concerns_search
from stowplan.scenarios.scenario import SCENARIO, Scenario, flag_of

ScenarioFile = Annotated[
    str | None,
    typer.Option(
        "--scenario",
        "-f",
        metavar="FILE",
        help="A scenario file; what options say comes on top.",
        show_default=False,
        rich_help_panel=SCENARIO,
    ),
]
WriteSnapshot = Annotated[
    str | None,
    typer.Option(
        "--write-snapshot",
        metavar="FILE",
        help="Also write the changed cluster to this file, which every command reads.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]


@grouped
def what_if(
    paths: OptionalPaths = None,
    *,
    file: ScenarioFile = None,
    scenario: Annotated[Scenario, but("name")],
    settings: Annotated[Settings, but(suits=concerns_search)],
    source: Source,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    options: Options,
    write_snapshot: WriteSnapshot = None,
    report: opt.Report = None,
    bundling: Bundling,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Solve with and without changes of nodes, rules, requests, or weights, and report what is different."""
    from dataclasses import replace
    from pathlib import Path

    from stowplan.answers.solve import Solution, solve_snapshot
    from stowplan.answers.what_if import weigh
    from stowplan.cli.progress import ready, reported
    from stowplan.cli.session import emit, steps_for, stoppable, warn_of_idle_freezes
    from stowplan.cluster.snapshot import save
    from stowplan.documents.what_if import what_if_document
    from stowplan.instances.manifest_list import manifest_list, written
    from stowplan.models.errors import InputError
    from stowplan.models.stop import Stop
    from stowplan.optimizer.run import Step
    from stowplan.plugins_compat.compiler.compile import Compiled
    from stowplan.report.what_if import show_what_if, what_if_rows
    from stowplan.scenarios.apply import apply_scenario
    from stowplan.scenarios.reading import joined, read_scenario
    from stowplan.settings.problem import make_problem

    bundling.check()
    steps = steps_for(report), steps_for(report)
    if file is not None:
        scenario = joined(read_scenario(file), scenario)
    if scenario.is_empty:
        raise InputError("says no change; give one, such as --remove-nodes zone=a, or a file with --scenario")
    snapshot = load_source(paths, source, skip_unknown_nodes, configs=[settings.config])
    warn_of_idle_freezes(settings.freeze, snapshot)
    try:
        changed = apply_scenario(scenario, snapshot, settings)
    except InputError as error:
        raise replace(error, field=error.field if file else flag_of(error.field)) from None
    problems = make_problem(snapshot, settings), make_problem(changed.snapshot, changed.settings)
    if write_snapshot is not None:
        save(written(manifest_list(changed.snapshot)), Path(write_snapshot))

    def solved(compiled: Compiled, kept: list[Step] | None, stop: Stop) -> Solution:
        prepared = ready(compiled.problem, options, quiet, stop)
        with reported(compiled.problem.tiers, quiet, kept, options=prepared) as progress:
            return solve_snapshot(compiled, prepared, stop=stop, progress=progress)

    with stoppable() as stop:
        before, after = (solved(compiled, kept, stop) for compiled, kept in zip(problems, steps, strict=True))
    found = weigh(scenario, changed, settings, before, after)
    if report is not None:
        from stowplan.html_report.render import write_page
        from stowplan.html_report.what_if import what_if_page

        write_page(what_if_page(found, settings, options, (steps[0] or (), steps[1] or ())), report)
    if bundling.bundle is not None:
        from stowplan.bundles.answer import of_what_if
        from stowplan.bundles.making import Question

        question = Question("what-if", snapshot, settings, options, changed=(changed.snapshot, changed.settings))
        bundling.keep(question, problems[0], of_what_if(before, after), problems[1])
    emit(
        output,
        lambda console: show_what_if(console, found, wide=output is Format.WIDE),
        lambda: what_if_document(found, settings),
        lambda: what_if_rows(found),
    )
