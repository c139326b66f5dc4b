"""``stowplan bench``: solves a public benchmark and checks the solutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.exit_codes import INTERRUPTED
from stowplan.cli.groups import but, given, grouped
from stowplan.cli.options import OUTPUT, Format
from stowplan.models.command_line import PROBLEM, SEARCH
from stowplan.models.errors import InputError
from stowplan.models.messages import log
from stowplan.models.options import Options

if TYPE_CHECKING:
    from stowplan.bench.baselines.comparison import BaselineRow
    from stowplan.bench.row import Row

SuiteName = Annotated[
    str,
    typer.Argument(
        metavar="SUITE",
        help="A folder, file, or tar.gz of ROADEF/EURO 2012, vector bin packing (.vbp), Priority-Matters (.jsonl), or "
        "openb instances; or generated ones: triplets[:60_3], priority-matters[:nodes4_pods16_prio4_util100]; "
        "or baselines: simple methods on generated clusters.",
        show_default=False,
    ),
]
Instances = Annotated[
    list[str] | None,
    typer.Option(
        "--instances",
        metavar="PATTERN",
        help="Only instances whose name matches, such as 'b_*'; repeatable.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
First = Annotated[
    int | None,
    typer.Option(
        "--first", min=1, help="Maximum number of instances of each group.", show_default=False, rich_help_panel=PROBLEM
    ),
]
Count = Annotated[
    int, typer.Option("--count", min=1, max=100_000, help="Number of instances to generate.", rich_help_panel=PROBLEM)
]
Jobs = Annotated[
    int,
    typer.Option("--jobs", "-j", min=1, max=64, help="Number of instances to solve at once.", rich_help_panel=SEARCH),
]
Solutions = Annotated[
    str | None,
    typer.Option(
        "--solutions",
        metavar="FOLDER",
        help="Folder to keep the solutions in, in the format of the benchmark.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]

Clusters = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster",
        metavar="NODESxPODS[:seedS][:fillF]",
        help="baselines: a cluster to generate; repeatable. Default: three of 20 to 100 nodes.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
Presets = Annotated[
    list[str] | None,
    typer.Option(
        "--preset",
        help="baselines: a preset to ask about; repeatable. Default: balance, pack, spread, kube, global.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--moves",
        help="baselines: a limit on moves, or 'any'; repeatable. Default: 1, 5, 20, 50, 200, any.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]

ParametersFile = Annotated[
    Path | None,
    typer.Option(
        "--parameters",
        metavar="FILE",
        help="TOML file with other parameters of the algorithms, for experiments.",
        show_default=False,
        rich_help_panel=SEARCH,
    ),
]


BASELINES = "baselines"
"""The suite of generated clusters on which simple methods compete."""
_OF_BASELINES = ("clusters", "presets", "limits")
_OF_SUITES = ("instances", "first", "count", "jobs", "solutions", "report")
_FLAGS = {"clusters": "--cluster", "presets": "--preset", "limits": "--moves"}


@grouped
def bench(
    context: typer.Context,
    suite: SuiteName,
    *,
    instances: Instances = None,
    first: First = None,
    clusters: Clusters = None,
    presets: Presets = None,
    limits: Limits = None,
    solutions: Solutions = None,
    jobs: Jobs = 1,
    count: Count = 10,
    options: Annotated[Options, but("gap", "checkpoint", time_limit=10.0)],
    parameters: ParametersFile = None,
    report: opt.Report = None,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Solve a public benchmark and verify every written solution; exit 1 if one is rejected.

    The suite 'baselines' compares with simple methods on generated clusters instead; exit 1 if one of them is ahead.
    """
    from stowplan.bench.bench import choose, run
    from stowplan.bench.jobs import shared
    from stowplan.cli.progress import compile_kernels
    from stowplan.cli.session import emit, steps_for, stoppable
    from stowplan.documents.bench import bench_document
    from stowplan.instances.suites.opening import open_suite
    from stowplan.optimizer.parameters import Parameters
    from stowplan.report.bench import bench_rows, row_line, show_bench

    if parameters is not None:
        options = replace(options, parameters=Parameters.from_toml(parameters))
    wrong = given(context, _OF_SUITES if suite == BASELINES else _OF_BASELINES)
    if wrong:
        of = "public benchmarks" if suite == BASELINES else f"the suite {BASELINES}"
        raise InputError(f"is an option of {of} alone", field=_FLAGS.get(wrong[0], f"--{wrong[0]}"))
    if suite == BASELINES:
        _baselines(clusters or (), presets or (), limits or (), options, output, quiet)
        return
    steps_for(report)
    opened = open_suite(suite, count=count, seed=options.seed)
    chosen = choose(opened, instances or (), first)
    workers = options.workers if given(context, ["workers"]) else None

    def tell(number: int, row: Row) -> None:
        if not quiet:
            log(row_line(number, len(chosen), row))

    with stoppable("with what was answered so far") as stop:
        compile_kernels(quiet, stop)
        result = run(
            opened,
            chosen,
            shared(options, jobs, workers),
            place=Path(suite) if Path(suite).exists() else None,
            solutions=None if solutions is None else Path(solutions),
            jobs=jobs,
            stop=stop,
            progress=tell,
        )
    if report is not None:
        from stowplan.html_report.bench import bench_page
        from stowplan.html_report.render import write_page

        write_page(bench_page(result), report)
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


def _baselines(
    clusters: Sequence[str],
    presets: Sequence[str],
    limits: Sequence[str],
    options: Options,
    output: Format,
    quiet: bool,
) -> None:
    """Compare with simple methods; exit 1 if one of them is ahead."""
    from stowplan.bench.baselines.clusters import clusters_of, limits_of, objectives_of
    from stowplan.bench.baselines.comparison import run_baselines
    from stowplan.cli.progress import compile_kernels
    from stowplan.cli.session import emit, stoppable
    from stowplan.documents.baselines import baselines_document
    from stowplan.report.baselines import baseline_line, baseline_rows, show_baselines

    asked = clusters_of(clusters), objectives_of(presets), limits_of(limits)

    def tell(number: int, of: int, row: BaselineRow) -> None:
        if not quiet:
            log(baseline_line(number, of, row))

    with stoppable("with what was answered so far") as stop:
        compile_kernels(quiet, stop)
        found = run_baselines(*asked, options, stop=stop, progress=tell)
    emit(
        output,
        lambda console: show_baselines(console, found),
        lambda: baselines_document(found),
        lambda: baseline_rows(found),
    )
    if found.behind:
        raise typer.Exit(1)
    if not found.complete:
        raise typer.Exit(INTERRUPTED)
