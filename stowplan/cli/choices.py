"""What a user chose on the command line, as settings and options; exit codes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stowplan.cli import options as opt

if TYPE_CHECKING:
    from collections.abc import Iterable

    import typer

    from optimizer.portfolio import Options
    from stowplan.inputs import Settings

INTERRUPTED = 130
CHANGES = 2
"""Exit code for an answer that differs from today, where it was asked for."""
IMPOSSIBLE = 3
"""Exit code for what was asked for and cannot be had, or was not found."""


def given(context: typer.Context, names: Iterable[str]) -> list[str]:
    """Return those of some parameters that were given on the command line, as options."""
    said = []
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            said.append("--" + name.replace("_", "-"))
    return said


def settings_of(
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
    executor: opt.ExecutorName | None = None,
    may_move: list[str] | None = None,
    equal_moves: bool = False,
) -> Settings:
    """Return what decides what the problem is."""
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
        executor=executor and executor.value,
        may_move=tuple(may_move or ()),
        move_costs=not equal_moves,
    )


def options_of(
    time_limit: float, deterministic: bool, seed: int, workers: int | None = None, memory: str | None = None
) -> Options:
    """Return what decides how it is solved."""
    from optimizer.portfolio import Options
    from stowplan.inputs import memory_limit

    made = Options(time_limit=time_limit, deterministic=deterministic, seed=seed, memory=memory_limit(memory))
    return made if workers is None else replace(made, workers=workers)
