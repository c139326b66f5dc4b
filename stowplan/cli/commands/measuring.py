"""Commands of the laboratory: public benchmarks, synthetic clusters."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from stowplan.cli import options as opt
from stowplan.cli.choices import INTERRUPTED, SearchChoice
from stowplan.cli.options import Format

if TYPE_CHECKING:
    from stowplan.bench.row import Row


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

    from stowplan.bench.bench import choose, run
    from stowplan.bench.jobs import shared
    from stowplan.cli.progress import compile_kernels
    from stowplan.cli.session import emit, stoppable
    from stowplan.documents.bench import bench_document
    from stowplan.instances.suites.opening import open_suite
    from stowplan.report.bench import bench_rows, row_line, show_bench

    opened = open_suite(suite, count=count, seed=seed)
    chosen = choose(opened, instances or (), first)
    search = SearchChoice(time_limit, deterministic, seed, workers, memory)
    options = shared(search.options(), jobs, workers)

    def tell(number: int, row: Row) -> None:
        if not quiet:
            print(f"stowplan: {row_line(number, len(chosen), row)}", file=sys.stderr, flush=True)

    with stoppable("with what was answered so far") as stop:
        compile_kernels(quiet, stop)
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


def generate(
    nodes: opt.Nodes = 100,
    pods: opt.Pods = 1000,
    seed: opt.Seed = 0,
    fill: opt.Fill = 0.65,
) -> None:
    """Print a synthetic cluster as kubectl would print a real one."""
    import json

    from stowplan.instances.synthetic import generate

    print(json.dumps(generate(nodes, pods, seed, fill=fill)))
