"""``Policy`` files, with which Kubernetes 1.5 is configured: predicates, and priorities with weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from stowplan.models.errors import InputError
from stowplan.models.validation import refusal, without_nulls
from stowplan.plugins_compat.extenders.config import ExtenderConfig
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.profile import Profile, Use
from stowplan.plugins_compat.plugins.policy import ALWAYS, PREDICATES, PRIORITIES, WITH_ARGUMENT
from stowplan.plugins_compat.release import Release, TieBreak

KIND, VERSION = "Policy", "v1"

GROUPS = {
    "GeneralPredicates": ("PodFitsResources", "HostName", "PodFitsHostPorts", "MatchNodeSelector"),
    "PodFitsPorts": ("PodFitsHostPorts",),
}
"""Predicates that are other names for others."""

NOT_BUILT = frozenset(
    {
        "PodToleratesNodeTaints",
        "CheckNodeMemoryPressure",
        "CheckNodeDiskPressure",
        "MatchInterPodAffinity",
        "InterPodAffinityPriority",
        "TaintTolerationPriority",
        "NodePreferAvoidPodsPriority",
        "ServiceSpreadingPriority",
    }
)
"""Names that release 1.5 knows and that are not implemented; a policy that uses one is refused."""


class _Config(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        return without_nulls(data)


class PredicatePolicy(_Config):
    """A predicate by name."""

    name: str
    argument: dict[str, Any] | None = None


class PriorityPolicy(_Config):
    """A priority by name; with an argument, a priority that the policy gives the name."""

    name: str
    weight: int = 0
    argument: dict[str, Any] | None = None


class Policy(_Config):
    """A ``Policy`` file."""

    kind: str
    api_version: str
    predicates: tuple[PredicatePolicy, ...] = ()
    priorities: tuple[PriorityPolicy, ...] = ()
    extenders: tuple[ExtenderConfig, ...] = ()
    hard_pod_affinity_symmetric_weight: Annotated[int, Field(ge=0, le=100)] = 1


def policy_profile(content: object, release: Release, tie_break: TieBreak | None = None) -> Profile:
    """Return the profile of a parsed ``Policy`` file.

    Every predicate that fails is reported. Lists that are left out are empty: without predicates every listed node is
    feasible, without priorities all are as good.

    Raises
    ------
    InputError
        With the entry that is unknown, not implemented, repeated, or of no weight.
    """
    try:
        policy = Policy.model_validate(without_nulls(content))
    except ValidationError as error:
        raise refusal(error) from None
    if policy.api_version != VERSION:
        raise InputError(f"is {policy.api_version!r}, must be {VERSION!r}", field="apiVersion")
    arguments: dict[str, Args] = {}
    uses = [Use(plugin, 0, _points(plugin)) for plugin in ALWAYS]
    taken: dict[str, str] = {}
    for i, predicate in enumerate(policy.predicates):
        _take(predicate.name, f"predicates[{i}].name", taken)
    filters = _predicates(policy.predicates)
    uses += [Use(plugin, 0, frozenset({"filter"})) for plugin in PREDICATES if plugin.name in filters]
    for i, priority in enumerate(policy.priorities):
        field = f"priorities[{i}]"
        _take(priority.name, f"{field}.name", taken)
        if priority.weight <= 0:
            raise InputError(f"is {priority.weight}, must be positive", field=f"{field}.weight")
        plugin = _priority(priority, field)
        if priority.argument is not None:
            arguments[priority.name] = _argument(plugin, priority.argument, field)
        uses.append(Use(plugin, priority.weight, frozenset({"score"})))
    return Profile(
        release, tuple(uses), arguments=arguments, tie_break=tie_break or release.tie_break, extenders=policy.extenders
    )


def default_policy(release: Release) -> dict[str, Any]:
    """Return the policy that a release runs without a file: its predicates, and its priorities with their weights."""
    filters = {plugin.name for plugin in PREDICATES}
    scores = {plugin.name for plugin in PRIORITIES}
    return {
        "kind": KIND,
        "apiVersion": VERSION,
        "predicates": [{"name": name} for name, _ in release.plugins if name in filters],
        "priorities": [{"name": name, "weight": weight} for name, weight in release.plugins if name in scores],
    }


def _points(plugin: type[Plugin]) -> frozenset[str]:
    return frozenset(
        point for point in ("queue_key", "filter", "bind") if getattr(plugin, point) is not getattr(Plugin, point)
    )


def _take(name: str, field: str, taken: dict[str, str]) -> None:
    if name in taken:
        raise InputError(f"{name!r} is also the name of {taken[name]}", field=field)
    taken[name] = field.removesuffix(".name")


def _predicates(entries: Sequence[PredicatePolicy]) -> set[str]:
    """Return the names of the predicates that a policy asks for."""
    known = {plugin.name for plugin in PREDICATES}
    found: set[str] = set()
    for i, entry in enumerate(entries):
        field = f"predicates[{i}]"
        if entry.argument is not None:
            raise InputError("predicates with arguments are not implemented", field=f"{field}.argument")
        names = GROUPS.get(entry.name, (entry.name,))
        if not known.issuperset(names):
            raise _unknown("predicate", entry.name, (*known, *GROUPS), f"{field}.name")
        found.update(names)
    return found


def _priority(entry: PriorityPolicy, field: str) -> type[Plugin]:
    """Return the plugin of a priority; one with an argument is a class of its own, with the name that it is given."""
    if entry.argument is None:
        known = {plugin.name: plugin for plugin in PRIORITIES}
        if entry.name not in known:
            raise _unknown("priority", entry.name, known, f"{field}.name")
        return known[entry.name]
    if len(entry.argument) != 1 or next(iter(entry.argument)) not in WITH_ARGUMENT:
        raise InputError(f"must hold exactly one of {', '.join(WITH_ARGUMENT)}", field=f"{field}.argument")
    base = WITH_ARGUMENT[next(iter(entry.argument))]
    return type(base.__name__, (base,), {"name": entry.name, "__doc__": base.__doc__})


def _argument(plugin: type[Plugin], argument: dict[str, Any], field: str) -> Args:
    kind, values = next(iter(argument.items()))
    try:
        return plugin.Args.model_validate(values)
    except ValidationError as error:
        raise refusal(error, under=(field, "argument", kind)) from None


def _unknown(what: str, name: str, known: Iterable[str], field: str) -> InputError:
    if name in NOT_BUILT:
        return InputError(f"{what} {name!r} of release 1.5 is not implemented", field=field)
    return InputError(f"{what} {name!r} is unknown; must be one of {', '.join(sorted(known))}", field=field)
