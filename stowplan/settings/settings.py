"""Settings as a user gives them: objectives, profiles, who is frozen."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import get_args

import yaml
from pydantic import ValidationError

from stowplan.models.errors import InputError
from stowplan.models.kubernetes import LabelSelector, LabelSelectorRequirement, Pod
from stowplan.models.objective import PRESETS, Objective
from stowplan.models.plan import Executor, LimitsDocument
from stowplan.models.quantity import parse_quantity
from stowplan.models.settings import SettingsDocument
from stowplan.models.snapshot import Snapshot
from stowplan.models.validation import refusal
from stowplan.plans.cordons import cordon
from stowplan.plans.movability.causes import WAIVABLE, Cause
from stowplan.plans.movability.costs import has_costs, move_weight
from stowplan.plans.movability.movable import Movability
from stowplan.plugins_compat.compiler.compile import Compiled, compile_problem
from stowplan.plugins_compat.compiler.goals import Request
from stowplan.plugins_compat.framework.profile import DEFAULT_SCHEDULER, Profile
from stowplan.plugins_compat.plugins.gpu_share import GpuShare
from stowplan.plugins_compat.profiles import choose_release, default_profile, read_profiles
from stowplan.settings.devices import asks_for_devices, with_device_note
from stowplan.settings.metrics import with_metrics

LATEST = "1.36"

_SET_BASED = re.compile(r"^(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)$")
_EQUALITY = re.compile(r"^(?P<key>[^\s=!()]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^\s=!()]*)$")
_EXISTS = re.compile(r"^(?P<not>!?)\s*(?P<key>[^\s=!()]+)$")

_DURATION_PART = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_DURATION = re.compile(r"(\d{1,9}[smhd])+", re.ASCII)
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST = timedelta(days=365)
"""The longest time that a plan can be good for."""

LEAST_MEMORY = 256 * 2**20
"""Bytes below which not even the solver fits."""


@dataclass(frozen=True)
class Settings:
    """Everything that decides what the problem is, beside the snapshot.

    Parameters
    ----------
    objective
        Name of a preset, or path of a file.
    release
        Which kube-scheduler.
    config
        Path of a ``KubeSchedulerConfiguration``, if not the release's default.
    scheduler
        Which of its profiles; by default the first.
    freeze
        Namespaces and label selectors of pods that stay where they are.
    freeze_bare
        Pods without a controller stay where they are.
    max_moves
        At most so many pods leave their node.
    preemption
        Overrides the objective's own word on whether a pod may lose its node.
    sample_nodes
        The scheduler looks for as many feasible nodes as ``percentageOfNodesToScore`` says, not for all.
    metrics
        Measured load, for load-aware plugins: a file, or the address of a load-watcher or Prometheus server.
    executor
        Who evicts; pods that it cannot move stay where they are. Without one, whoever is not tied to its node may move.
    may_move
        Kinds of reasons for staying that shall not count.
    move_costs
        Annotations decide what a pod's move costs, beside the moves of others.
    drain
        Nodes to cordon, and to get pods off before all else.
    admit
        Keys of waiting pods that are to get a node before all else.
    """

    objective: str = "balance"
    release: str = LATEST
    config: str | None = None
    scheduler: str | None = None
    freeze: Sequence[str] = field(default_factory=tuple)
    freeze_bare: bool = False
    max_moves: int | None = None
    preemption: str | None = None
    sample_nodes: bool = False
    metrics: str | None = None
    executor: str | None = None
    may_move: Sequence[str] = field(default_factory=tuple)
    move_costs: bool = True
    drain: Sequence[str] = field(default_factory=tuple)
    admit: Sequence[str] = field(default_factory=tuple)


def make_problem(snapshot: Snapshot, settings: Settings, frozen: Callable[[Pod], str | None] | None = None) -> Compiled:
    """Compile a snapshot as the settings say.

    Parameters
    ----------
    frozen
        Returns why a pod is to stay that the settings would let go, or ``None``.

    Raises
    ------
    InputError
        With the setting that cannot be used.
    """
    objective = read_objective(settings.objective)
    if settings.preemption is not None:
        objective = objective.model_copy(update={"preemption": settings.preemption})
    stays = _either(who_stays(snapshot, settings), frozen)
    weigh = move_weight if settings.move_costs and has_costs(snapshot) else None
    profile = make_profile(settings, snapshot)
    snapshot = with_metrics(snapshot, profile, settings.metrics)
    snapshot = cordon(with_device_note(snapshot, profile, settings.config), settings.drain)
    try:
        return compile_problem(
            snapshot,
            profile,
            objective,
            freeze=stays,
            max_moves=settings.max_moves,
            weigh=weigh,
            request=Request(frozenset(settings.drain), frozenset(settings.admit)),
        )
    except InputError as error:
        raise error.in_file(settings.objective) if error.obj == "objective" else error from None


def same_problem(
    snapshot: Snapshot,
    settings: SettingsDocument,
    profile: Profile,
    *,
    freeze: Callable[[Pod], str | None] | None = None,
    limited: bool = True,
) -> Compiled:
    """Compile a snapshot as it was compiled for a document.

    Parameters
    ----------
    freeze
        Returns why a pod stays; by default it is worked out anew.
    limited
        Whether the limit on moves counts.
    """
    return compile_problem(
        cordon(snapshot, settings.drain),
        profile,
        settings.objective,
        freeze=freeze or who_stays(snapshot, settings),
        max_moves=settings.max_moves if limited else None,
        weigh=move_weight if settings.move_costs else None,
        request=Request(frozenset(settings.drain), frozenset(settings.admit)),
    )


def _either(
    first: Callable[[Pod], str | None], second: Callable[[Pod], str | None] | None
) -> Callable[[Pod], str | None]:
    return first if second is None else lambda pod: first(pod) or second(pod)


def make_profile(settings: Settings, snapshot: Snapshot | None = None) -> Profile:
    """Return the scheduler profile that the settings name.

    Parameters
    ----------
    snapshot
        Where its pods ask for devices and no configuration is given, the profile has the plugin that knows devices.
    """
    return replace(_named_profile(settings, snapshot), samples=settings.sample_nodes)


def _named_profile(settings: Settings, snapshot: Snapshot | None) -> Profile:
    release = choose_release(settings.release)
    if settings.config is None:
        if settings.scheduler not in (None, DEFAULT_SCHEDULER):
            raise InputError(f"{settings.scheduler!r} needs a --config that has its profile", field="--scheduler")
        more = (GpuShare.name,) if snapshot is not None and asks_for_devices(snapshot, release) else ()
        return default_profile(release, more=more)
    profiles = read_profiles(settings.config, release)
    if settings.scheduler is None:
        return next(iter(profiles.values()))
    if settings.scheduler not in profiles:
        known = ", ".join(profiles)
        raise InputError(
            f"has no profile {settings.scheduler!r}; it has {known}", settings.config, None, "schedulerName"
        )
    return profiles[settings.scheduler]


def read_objective(name: str) -> Objective:
    """Return a preset by name, or read an objective from a file.

    Raises
    ------
    InputError
        If it is neither, with the field of the file that cannot be used.
    """
    if name in PRESETS:
        return PRESETS[name]
    if not Path(name).is_file():
        raise InputError(f"{name!r} is neither a preset ({', '.join(PRESETS)}) nor a file", field="--objective")
    try:
        content = yaml.safe_load(Path(name).read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise InputError("must be a mapping with tiers", file=name)
        return Objective.model_validate(content)
    except yaml.YAMLError as error:
        raise InputError(f"is not YAML: {getattr(error, 'problem', error)}", file=name) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=name) from None
    except ValidationError as error:
        raise refusal(error, name) from None


def who_stays(
    snapshot: Snapshot, settings: Settings | SettingsDocument, *, detailed: bool = False
) -> Callable[[Pod], str | None]:
    """Return what says why a bound pod stays where it is: the user, or the executor.

    Parameters
    ----------
    detailed
        Name what is particular about the pod too, instead of the words that pods of one cause share.

    Raises
    ------
    InputError
        If a freeze, or a kind of reason to waive, is none.
    """
    frozen = Freeze(settings.freeze, settings.freeze_bare)
    if settings.executor is None:
        if settings.may_move:
            raise InputError("waives a rule of an executor, so it needs --executor", field="--may-move")
        return frozen
    movability = Movability(
        snapshot, parse_executor(settings.executor), waived=[parse_cause(word) for word in settings.may_move]
    )

    def stays(pod: Pod) -> str | None:
        if reason := frozen(pod):
            return reason
        bond = movability.bond(pod)
        return None if bond is None else str(bond) if detailed else bond.phrase

    return stays


def parse_executor(word: str) -> Executor:
    """Return an executor by name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    names: tuple[Executor, ...] = get_args(Executor)
    for name in names:
        if name == word:
            return name
    raise InputError(f"{word!r} is none of {', '.join(names)}", field="--executor")


def parse_cause(word: str) -> Cause:
    """Return a kind of reason that can be waived, by name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if word not in WAIVABLE:
        names = ", ".join(cause.value for cause in Cause if cause in WAIVABLE)
        raise InputError(f"{word!r} is no reason that can be waived; those are {names}", field="--may-move")
    return Cause(word)


class Freeze:
    """Decides which pods stay where they are, by namespace or by label selector.

    Parameters
    ----------
    words
        Each a namespace, or a label selector as kubectl takes it: ``app=db,tier in (a, b),!canary``.
    bare
        Also pods that no controller would make again.
    """

    def __init__(self, words: Sequence[str], bare: bool = False) -> None:
        if "" in words:
            raise InputError("must name a namespace or a label selector", field="--freeze")
        self.bare = bare
        self.namespaces = {word for word in words if not _is_selector(word)}
        self.selectors = [(word, parse_selector(word)) for word in words if _is_selector(word)]

    def __call__(self, pod: Pod) -> str | None:
        """Return why a pod is to stay, or ``None``."""
        if pod.namespace in self.namespaces:
            return f"frozen namespace {pod.namespace}"
        for word, selector in self.selectors:
            if selector.matches(pod.metadata.labels):
                return f"frozen by {word}"
        return "frozen: no controller" if self.bare and pod.metadata.controller is None else None

    def unmatched(self, snapshot: Snapshot) -> list[str]:
        """Return the words that freeze nobody, which is rarely meant."""
        namespaces = {pod.namespace for pod in snapshot.pods}
        idle = sorted(self.namespaces - namespaces)
        return idle + [w for w, s in self.selectors if not any(s.matches(pod.metadata.labels) for pod in snapshot.pods)]


def read_limits(
    per_owner: str = "any", per_node: int | None = None, per_namespace: int | None = None, total: int | None = None
) -> LimitsDocument:
    """Return how many evictions a wave may hold.

    Parameters
    ----------
    per_owner
        A number, a percentage such as ``25%``, or ``any``.

    Raises
    ------
    InputError
        If it is none of these.
    """
    word: int | str | None = None if per_owner == "any" else int(per_owner) if per_owner.isdecimal() else per_owner
    try:
        return LimitsDocument(per_owner=word, per_node=per_node, per_namespace=per_namespace, total=total)
    except ValidationError:
        raise InputError(
            f"{per_owner!r} is neither a number from 1 on, nor a percentage such as 25%, nor any",
            field="--max-per-owner",
        ) from None


def read_duration(word: str, option: str) -> timedelta:
    """Return a length of time such as ``90s``, ``30m``, ``2h``, ``1d`` or ``1h30m``.

    Raises
    ------
    InputError
        If it is none, or nothing.
    """
    parts = _DURATION_PART.findall(word)
    length = sum((timedelta(seconds=int(number) * SECONDS[unit]) for number, unit in parts), timedelta())
    if not _DURATION.fullmatch(word) or not timedelta() < length <= LONGEST:
        raise InputError(f"{word!r} is not a length of time such as 30m, 2h or 1d", field=option)
    return length


def memory_limit(word: str | None) -> int | None:
    """Return the bytes of a quantity such as ``2Gi``.

    Raises
    ------
    InputError
        If it is no quantity, or nothing is left to work in.
    """
    if word is None:
        return None
    try:
        amount = parse_quantity(word) // parse_quantity("1")
    except ValueError:
        amount = 0
    if amount < LEAST_MEMORY:
        raise InputError(f"--memory {word}: must be a quantity of at least 256Mi, such as 2Gi")
    return amount


def _is_selector(word: str) -> bool:
    return any(sign in word for sign in "=!(,")


def parse_selector(text: str) -> LabelSelector:
    """Read a label selector as kubectl's ``-l`` takes it.

    Raises
    ------
    InputError
        If it is not one.
    """
    requirements = []
    for part in re.split(r",(?![^(]*\))", text):
        requirement = _requirement(part.strip())
        if requirement is None:
            raise InputError(
                f"{part.strip()!r} is not a label selector, such as key=value, key in (a,b), key notin (a,b), !key",
                field="--freeze",
            )
        requirements.append(requirement)
    return LabelSelector(match_expressions=tuple(requirements))


def _requirement(part: str) -> LabelSelectorRequirement | None:
    if match := _SET_BASED.match(part):
        values = tuple(value.strip() for value in match["values"].split(","))
        return LabelSelectorRequirement(match["key"], "In" if match["operator"] == "in" else "NotIn", values)
    if match := _EQUALITY.match(part):
        return LabelSelectorRequirement(match["key"], "NotIn" if match["operator"] == "!=" else "In", (match["value"],))
    if match := _EXISTS.match(part):
        return LabelSelectorRequirement(match["key"], "DoesNotExist" if match["not"] else "Exists")
    return None
