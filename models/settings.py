"""Settings, which define the problem: argument of the Python interface, options of the command line, part of documents.

A setting is one field here. Its annotation declares its values and its option on the command line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from stowplan.models.arguments import Arguments
from stowplan.models.command_line import PROBLEM, Option
from stowplan.models.document import Document
from stowplan.models.move_limits import MoveLimits, known_groups, read_move_limits
from stowplan.models.objective import PRESETS, PRICED_PRESETS, Objective, Preemption

Executor = Literal["eviction-api", "descheduler", "koordinator"]
"""Tools that evict pods; the executor determines which pods can be moved."""
EXECUTORS: tuple[Executor, ...] = get_args(Executor)

RELEASES = ("platform", "1.5", "1.20", "1.24", "1.36")
"""Releases of kube-scheduler that are built in."""
LATEST = RELEASES[-1]
PLATFORM_RELEASE = "platform"
"""What settings call the scheduler of an operations platform, in place of a release of kube-scheduler."""

PlatformExecutor = Literal["operations-platform"]
"""Who carries out plans without Kubernetes; nothing is evicted there."""
PLATFORM_EXECUTOR: PlatformExecutor = "operations-platform"

CHOICE = f"{', '.join(RELEASES[:-1])} or {LATEST}"


class Concerns(Flag):
    """What a setting affects."""

    SEARCH = auto()
    SCHEDULER = auto()
    BOTH = SEARCH | SCHEDULER


@dataclass(frozen=True, slots=True)
class ProblemOption(Option):
    """An option of a setting.

    Parameters
    ----------
    concerns
        What the setting affects; a command offers the option if it does that.
    of_solution
        Whether a plan for a given solution uses the value that the solution was found with.
    """

    panel: str = PROBLEM
    concerns: Concerns = Concerns.BOTH
    of_solution: bool = True


def concerns_search(option: Option) -> bool:
    """Whether an option can change what the optimizer finds."""
    return not isinstance(option, ProblemOption) or Concerns.SEARCH in option.concerns


def concerns_scheduler(option: Option) -> bool:
    """Whether an option can change what kube-scheduler does."""
    return not isinstance(option, ProblemOption) or Concerns.SCHEDULER in option.concerns


_VERSION = re.compile(r"v?1\.(\d+)")


def nearest_release(version: str, releases: Sequence[str] = RELEASES) -> str | None:
    """Return the release that is nearest to a version of Kubernetes, the newer one of two; ``None`` if it is none.

    Parameters
    ----------
    version
        Such as ``1.30`` or ``v1.30.4+k3s1``.
    releases
        Releases to choose from.
    """
    minor = _minor(version)
    minors = {release: number for release in reversed(releases) if (number := _minor(release)) is not None}
    return None if minor is None else min(minors, key=lambda release: abs(minors[release] - minor))


def _minor(version: str) -> int | None:
    found = _VERSION.match(version)
    return int(found[1]) if found else None


def known_release(release: str) -> str:
    """Return the name of a release that is built in.

    Raises
    ------
    ValueError
        With the nearest one, if it is another version of Kubernetes.
    """
    if release not in RELEASES:
        nearest = nearest_release(release)
        advice = f"; {nearest} is nearest to {release}" if nearest else ""
        raise ValueError(f"is {release!r}; must be {CHOICE}{advice}")
    return release


def _path(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


Release = Annotated[str, AfterValidator(known_release)]
T = TypeVar("T")
Unwritten = Annotated[T, Field(exclude=True), SkipJsonSchema()]
"""A setting that is not part of documents, because they hold what it resulted in."""


class Settings(Arguments):
    """The settings, which with the snapshot define the problem.

    Parameters
    ----------
    objective
        Name of a preset, path of a file, or the objective itself.
    release
        Release of kube-scheduler; by default the one nearest to the version of the nodes' kubelets, or the latest if
        the nodes do not report a version.
    scheduler
        Leading profile of ``config``, by its ``schedulerName``; by default the first.
    config
        Path of a ``KubeSchedulerConfiguration`` or ``Policy``; by default the release's own.
    feature_gates
        Feature gates of kube-scheduler that are not at their default, as ``NAME=true,OTHER=false``.
    metrics
        Measured load, for load-aware plugins: a file, or the address of a load-watcher or Prometheus server.
    prices
        Path of a file that says what nodes cost in an hour, or the price of each node by name; an objective with
        ``price`` needs it.
    freeze
        Namespaces and label selectors of pods that stay where they are.
    freeze_bare
        Keep pods without a controller on their node.
    max_moves
        Maximum number of pods to move. The command line takes limits on some pods here too.
    max_moves_of
        Maximum numbers of some pods to move: ``ns=NAMESPACE:N``, ``workload=NAMESPACE/NAME:N``, or ``SELECTOR:N``.
    preemption
        Overrides ``preemption`` of the objective: whether a pod may lose its node.
    executor
        Tool that evicts; pods that it cannot evict stay on their node. With ``None``, all pods may move except
        DaemonSet and static pods, pods with local data, pods of Jobs, and pods of unknown controllers.
    may_move
        Eviction restrictions to ignore, such as ``local-storage``, and ``owner:KIND`` for pods of unknown controllers.
    move_costs
        Whether annotations of pods change the cost of their moves.
    sample_nodes
        Whether kube-scheduler scores only as many feasible nodes as ``percentageOfNodesToScore`` says, not all.
    drain
        Nodes to cordon and to empty, with priority over the objective.
    admit
        Pending pods to schedule with priority over the objective, as ``namespace/name``.

    Raises
    ------
    InputError
        With the setting that cannot be used.
    """

    objective: Annotated[
        Objective | str,
        ProblemOption(
            f"{', '.join((*PRESETS, *PRICED_PRESETS))}, or an objective file.",
            flags=("--objective", "-O"),
            read=str,
            words=(*PRESETS, *PRICED_PRESETS),
            concerns=Concerns.SEARCH,
        ),
    ] = "balance"
    release: Annotated[
        Release | None,
        ProblemOption(
            f"kube-scheduler release: {CHOICE}. Default: the nearest to the nodes' kubelets.",
            flags=("--profile",),
            words=RELEASES,
        ),
    ] = None
    scheduler: Annotated[
        str | None, ProblemOption("Leading profile of --config, by schedulerName. Default: the first.")
    ] = None
    config: Annotated[
        str | None,
        BeforeValidator(_path),
        ProblemOption(
            "A KubeSchedulerConfiguration file, or a Policy file (1.5).", show_default=False, of_solution=False
        ),
    ] = None
    feature_gates: Annotated[
        str | None,
        ProblemOption("Feature gates of the release, as NAME=true,OTHER=false.", show_default=False),
    ] = None
    metrics: Annotated[
        Unwritten[str | None],
        BeforeValidator(_path),
        ProblemOption(
            "Measured load for load-aware plugins: a file, or the URL of a load-watcher or Prometheus server.",
            show_default=False,
        ),
    ] = None
    prices: Annotated[
        dict[str, Annotated[float, Field(ge=0)]] | str | None,
        ProblemOption(
            "What nodes cost in an hour, for -O cost and savings: a list, OpenCost prices, or Karpenter NodeOverlays.",
            metavar="FILE",
            show_default=False,
            read=str,
            concerns=Concerns.SEARCH,
        ),
    ] = None
    freeze: Annotated[
        tuple[str, ...], ProblemOption("Namespace or label selector of pods to keep on their node; repeatable.")
    ] = ()
    freeze_bare: Annotated[bool, ProblemOption("Keep pods without a controller on their node.")] = False
    max_moves: Annotated[
        int | None,
        Field(ge=0, strict=True),
        ProblemOption(
            "Maximum number of pods to move: N, or of some pods: ns=NAMESPACE:N, workload=NAMESPACE/NAME:N, or "
            "SELECTOR:N; repeatable.",
            metavar="[PODS:]N",
            show_default=False,
            read=read_move_limits,
            several=True,
            concerns=Concerns.SEARCH,
        ),
    ] = None
    max_moves_of: Annotated[tuple[str, ...], AfterValidator(known_groups)] = ()
    preemption: Annotated[
        Unwritten[Preemption | None],
        ProblemOption(
            "Whether a pod may lose its node so that more pods of its own or a higher priority are scheduled.",
            show_default=False,
            concerns=Concerns.SEARCH,
        ),
    ] = None
    executor: Annotated[
        Executor | None,
        ProblemOption(
            "Tool that evicts; pods that it cannot evict stay on their node.",
            of_solution=False,
        ),
    ] = "eviction-api"
    may_move: Annotated[
        tuple[str, ...],
        ProblemOption(
            "Ignore this restriction, such as local-storage, jobs or owner:KIND; repeatable.",
            metavar="REASON",
            of_solution=False,
        ),
    ] = ()
    move_costs: Annotated[
        bool,
        ProblemOption(
            "Ignore annotations that make moves cheaper or more expensive.",
            flags=("--equal-moves",),
            negated=True,
            concerns=Concerns.SEARCH,
        ),
    ] = True
    sample_nodes: Annotated[
        Unwritten[bool],
        ProblemOption(
            "Let kube-scheduler score only as many feasible nodes as percentageOfNodesToScore says, not all.",
            concerns=Concerns.SCHEDULER,
        ),
    ] = False
    drain: tuple[str, ...] = ()
    admit: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _divides_limits(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("max_moves"), MoveLimits):
            limits = data["max_moves"]
            data = {**data, "max_moves": limits.total, "max_moves_of": (*data.get("max_moves_of", ()), *limits.groups)}
        return data

    @field_validator("objective", mode="before")
    @classmethod
    def _is_objective(cls, value: Any) -> Any:
        value = _path(value)
        if not isinstance(value, (str, Objective, dict)):
            raise ValueError(f"is {value!r}; must be the name of a preset, a file, or an Objective")
        return value

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, value.name if isinstance(value, Objective) else value

    def resolved(
        self, objective: Objective, release: str, scheduler: str, prices: Mapping[str, float] | None = None
    ) -> SettingsDocument:
        """Return the settings as documents hold them.

        Parameters
        ----------
        objective, release, scheduler, prices
            What the names in the settings refer to.
        """
        found = {
            "objective": objective,
            "release": release,
            "scheduler": scheduler,
            "prices": dict(prices or {}) or None,
        }
        return SettingsDocument.model_validate({name: getattr(self, name) for name in _written()} | found)

    def of_solution(self, made_with: SettingsDocument) -> Settings:
        """Return settings for a plan that leads to a given solution.

        They are those of the solution, except for settings that every plan needs anew, such as the executor.

        Parameters
        ----------
        made_with
            Settings that the solution was found with.
        """
        anew = {name for name, option in options_of(Settings).items() if not option.of_solution}
        return Settings(**{name: getattr(self if name in anew else made_with, name) for name in Settings.model_fields})


class SettingsDocument(Settings):
    """Settings as part of a document: names are replaced by what they refer to.

    Parameters
    ----------
    objective
        The objective itself, with ``preemption`` applied.
    release
        Release of kube-scheduler.
    scheduler
        Name of the profile.
    prices
        What each node costs in an hour, by name, if that was given.
    executor
        Tool that evicts, if one was given.
    may_move
        Eviction restrictions that were ignored.
    move_costs
        Whether annotations of pods changed the cost of their moves.
    drain
        Nodes that were cordoned and were to be emptied.
    admit
        Pending pods that were to be scheduled with priority, as ``namespace/name``.
    """

    model_config = ConfigDict(loc_by_alias=True)

    objective: Objective
    release: str
    scheduler: str
    prices: dict[str, Annotated[float, Field(ge=0)]] | None = None

    if not TYPE_CHECKING:
        # Readers of documents report the place of a wrong value themselves; see `Arguments.__init__`.
        __init__ = Document.__init__

    @model_validator(mode="before")
    @classmethod
    def _has_no_more(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for name, field in cls.model_fields.items():
                if field.exclude and not {name, field.alias}.isdisjoint(data):
                    raise ValueError(f"has {name}, which documents do not have")
        return data


def options_of(settings: type[Settings]) -> dict[str, ProblemOption]:
    """Return the options that settings are given by, by field."""
    found = {}
    for name, field in settings.model_fields.items():
        for note in field.metadata:
            if isinstance(note, ProblemOption):
                found[name] = note
    return found


def _written() -> list[str]:
    return [name for name, field in SettingsDocument.model_fields.items() if not field.exclude]
