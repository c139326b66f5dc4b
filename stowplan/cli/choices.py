"""What a user chose on the command line, as settings, terms and options; exit codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stowplan.cli import options as opt

if TYPE_CHECKING:
    from collections.abc import Iterable

    import typer

    from stowplan.optimizer.portfolio import Options
    from stowplan.planning.plan import Terms
    from stowplan.settings.settings import Settings

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


@dataclass(frozen=True, slots=True)
class ProblemChoice:
    """What decides what the problem is, and what is read of the snapshot."""

    objective: opt.Objective = "balance"
    profile: opt.Release = "1.36"
    config: opt.Config = None
    scheduler: opt.Scheduler = None
    metrics: opt.Metrics = None
    freeze: opt.Freeze = None
    freeze_bare: opt.FreezeBare = False
    max_moves: opt.MaxMoves = None
    preemption: opt.PreemptionOption = None
    executor: opt.Executor = None
    may_move: opt.MayMove = None
    equal_moves: opt.EqualMoves = False
    sample_nodes: opt.SampleNodes = False
    skip_unknown_nodes: opt.SkipUnknownNodes = False

    def settings(self, executor: opt.ExecutorName | None = None) -> Settings:
        """Return settings; pods are evicted by ``executor`` where nobody is named."""
        from stowplan.settings.settings import Settings

        evicting = self.executor or executor
        return Settings(
            objective=self.objective,
            release=self.profile,
            config=self.config,
            scheduler=self.scheduler,
            freeze=tuple(self.freeze or ()),
            freeze_bare=self.freeze_bare,
            max_moves=self.max_moves,
            preemption=self.preemption and self.preemption.value,
            sample_nodes=self.sample_nodes,
            metrics=self.metrics,
            executor=evicting and evicting.value,
            may_move=tuple(self.may_move or ()),
            move_costs=not self.equal_moves,
        )


@dataclass(frozen=True, slots=True)
class WaveChoice:
    """On what terms a plan is made."""

    max_per_owner: opt.MaxPerOwner = "25%"
    max_per_node: opt.MaxPerNode = None
    max_per_namespace: opt.MaxPerNamespace = None
    max_per_wave: opt.MaxPerWave = None
    expires_in: opt.ExpiresIn = "2h"
    wave_timeout: opt.WaveTimeout = "10m"

    def terms(self) -> Terms:
        """Return the terms.

        Raises
        ------
        InputError
            With the option that is no number, or no length of time.
        """
        from stowplan.planning.plan import Terms
        from stowplan.settings.settings import read_duration, read_limits

        return Terms(
            limits=read_limits(self.max_per_owner, self.max_per_node, self.max_per_namespace, self.max_per_wave),
            expires_in=read_duration(self.expires_in, "--expires-in"),
            wave_timeout=read_duration(self.wave_timeout, "--wave-timeout"),
        )


@dataclass(frozen=True, slots=True)
class SearchChoice:
    """What decides how a problem is solved."""

    time_limit: opt.TimeLimit = 20.0
    deterministic: opt.Deterministic = False
    seed: opt.Seed = 0
    workers: opt.Workers = None
    memory: opt.Memory = None
    gap: opt.Gap = 0.0

    def options(self) -> Options:
        """Return options.

        Raises
        ------
        InputError
            If the memory is no quantity, or nothing is left to work in.
        """
        from stowplan.optimizer.portfolio import Options
        from stowplan.settings.settings import memory_limit

        made = Options(
            time_limit=self.time_limit,
            deterministic=self.deterministic,
            seed=self.seed,
            memory=memory_limit(self.memory),
            gap=self.gap,
        )
        return made if self.workers is None else replace(made, workers=self.workers)
