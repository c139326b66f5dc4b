"""Where profiles come from: a release's own default, a ``KubeSchedulerConfiguration`` file, or a ``Policy``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from stowplan.models.errors import InputError
from stowplan.models.problem import POINTS
from stowplan.models.settings import known_release
from stowplan.models.validation import refusal, without_nulls
from stowplan.models.yaml_input import read_yaml
from stowplan.plugins_compat.extenders.config import ExtenderConfig
from stowplan.plugins_compat.framework.plugin import Args, Plugin, implements
from stowplan.plugins_compat.framework.profile import DEFAULT_SCHEDULER, Profile, Use
from stowplan.plugins_compat.platform_scores import PLATFORM_KIND, platform_profile
from stowplan.plugins_compat.plugins.isolated_cpus import IsolatedCPUs
from stowplan.plugins_compat.policy import KIND, default_policy, policy_profile
from stowplan.plugins_compat.registry import broken_packages, plugins_of, registry
from stowplan.plugins_compat.release import PLATFORM, RELEASES, Release, TieBreak

GROUP = "kubescheduler.config.k8s.io/"
EVERY = "*"
PERCENTAGE = "percentageOfNodesToScore"

STRICT = ("queue_key", "filter", "post_filter", "score", "bind")
"""Extension points where naming a plugin that lacks it is an error; our plugins share the others out differently."""
FIT = "NodeResourcesFit"

LARGEST_TOTAL = 2**63 - 1
"""What the sum of weighted scores may come to, as upstream checks."""

# Extension points as the configuration names them, and the methods that implement them. PreScore comes with Score.
EXTENSION_POINTS = {
    "queueSort": "queue_key",
    "preEnqueue": "pre_enqueue",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "preScore": "pre_score",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "preBind": "pre_bind",
    "bind": "bind",
    "postBind": "post_bind",
}

NOT_BUILT = frozenset(
    {"NodeLabel", "RequestedToCapacityRatio", "ServiceAffinity", "NodeResourceLimits", "NodeResourceLimitsPriority"}
)
"""Known to upstream in some release, but not implemented: a configuration that names one is refused."""

OLD_WEIGHTS = {"PodTopologySpread": 2}
"""Score weights of v1beta2 other than 1."""

OLD_UNSCORED = frozenset({"VolumeBinding"})
"""Plugins that score by default from v1beta3 on, and in v1beta2 only where the configuration says so."""


Percentage = Annotated[int, Field(ge=0, le=100)] | None


class _Config(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        return without_nulls(data)


class PluginEntry(_Config):
    """A plugin by name, with a weight where it scores."""

    name: str
    weight: Annotated[int, Field(ge=0)] = 0


class PluginSet(_Config):
    """Plugins switched on and off at one extension point; ``*`` switches all defaults off."""

    enabled: tuple[PluginEntry, ...] | None = None
    disabled: tuple[PluginEntry, ...] | None = None

    @property
    def on(self) -> tuple[PluginEntry, ...]:
        """Plugins switched on."""
        return self.enabled or ()

    @property
    def off(self) -> frozenset[str]:
        """Names switched off."""
        return frozenset(entry.name for entry in self.disabled or ())


class Plugins(_Config):
    """Plugin sets by extension point."""

    multi_point: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()


class PluginConfig(_Config):
    """Arguments of one plugin, checked by the plugin itself."""

    name: str
    args: dict[str, Any] = {}


class ProfileConfig(_Config):
    """One profile of a configuration."""

    scheduler_name: str = DEFAULT_SCHEDULER
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()
    percentage_of_nodes_to_score: Percentage = None


class SchedulerConfig(BaseModel):
    """The part of a ``KubeSchedulerConfiguration`` that decides placement; the rest of the file passes."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)

    api_version: str
    kind: str
    profiles: Annotated[tuple[ProfileConfig, ...], Field(min_length=1)] = (ProfileConfig(),)
    percentage_of_nodes_to_score: Percentage = None
    extenders: tuple[ExtenderConfig, ...] | None = None


def default_profile(release: Release, tie_break: TieBreak | None = None, more: Sequence[str] = ()) -> Profile:
    """Return the profile that a release runs without configuration.

    Parameters
    ----------
    more
        Names of further plugins that take part.
    """
    if release.policy:
        profile = policy_profile(default_policy(release), release, tie_break)
        added = tuple(Use(registry()[name], 0, frozenset({"filter"})) for name in more)
        return replace(profile, uses=(*profile.uses, *added))
    if release.real_scores:
        return platform_profile({}, release, tie_break)
    plugins = dict(release.plugins) | dict.fromkeys(more, 0)
    return _build(release, ProfileConfig(), plugins, tie_break or release.tie_break)


def read_profiles(path: str, release: Release, tie_break: TieBreak | None = None) -> dict[str, Profile]:
    """Read the profiles of a ``KubeSchedulerConfiguration`` or ``Policy`` file by scheduler name.

    Raises
    ------
    InputError
        With the field that cannot be used.
    """
    try:
        return make_profiles(read_configuration(path), release, tie_break)
    except InputError as error:
        raise error.in_file(path) from None


def read_configuration(path: str) -> Any:
    """Parse a ``KubeSchedulerConfiguration`` file, without looking into it."""
    return read_yaml(path)


def annotations_read(path: str) -> tuple[str, ...]:
    """Return the keys of annotations that a configuration asks for; whether it can be used is checked elsewhere."""
    content = read_configuration(path)
    profiles = content.get("profiles") if isinstance(content, dict) else None
    keys: list[str] = []
    for profile in profiles if isinstance(profiles, list) else ():
        entries = profile.get("pluginConfig") if isinstance(profile, dict) else None
        for entry in entries if isinstance(entries, list) else ():
            if (
                isinstance(entry, dict)
                and entry.get("name") == IsolatedCPUs.name
                and isinstance(entry.get("args"), dict)
            ):
                keys += [entry["args"].get(name) for name in ("podAnnotation", "nodeAnnotation")]
    return tuple(key for key in keys if isinstance(key, str))


def readers(path: str) -> tuple[str, ...]:
    """Return the releases that read the version of a configuration file, in rising order; see `read_profiles`."""
    content = read_configuration(path)
    if isinstance(content, dict) and content.get("kind") == KIND:
        return tuple(name for name, release in RELEASES.items() if release.policy)
    if isinstance(content, dict) and content.get("kind") == PLATFORM_KIND:
        return (PLATFORM.name,)
    version = str(content.get("apiVersion", "")).removeprefix(GROUP) if isinstance(content, dict) else ""
    return tuple(name for name, release in RELEASES.items() if version in release.config_versions)


def led_by(content: Any, scheduler: str) -> Any:
    """Return a parsed configuration with one profile first: a record of decisions is read by its first profile."""
    profiles = content.get("profiles") if isinstance(content, dict) else None
    if not isinstance(profiles, list):
        return content
    first = sorted(profiles, key=lambda profile: (profile or {}).get("schedulerName", DEFAULT_SCHEDULER) != scheduler)
    return {**content, "profiles": first}


def make_profiles(content: object, release: Release, tie_break: TieBreak | None = None) -> dict[str, Profile]:
    """Return the profiles of a parsed ``KubeSchedulerConfiguration`` by scheduler name; see `read_profiles`."""
    if isinstance(content, dict) and content.get("kind") == KIND:
        if not release.policy:
            known = " or ".join(GROUP + version for version in release.config_versions)
            raise InputError(f"is {KIND}; release {release.name} reads {known}", field="kind")
        return {DEFAULT_SCHEDULER: policy_profile(content, release, tie_break)}
    if release.real_scores:
        return {DEFAULT_SCHEDULER: platform_profile(content, release, tie_break)}
    if release.policy:
        raise InputError(f"must be {KIND}, which release {release.name} reads", field="kind")
    if not isinstance(content, dict) or content.get("kind") != "KubeSchedulerConfiguration":
        raise InputError("must be a KubeSchedulerConfiguration", field="kind")
    version = str(content.get("apiVersion", "")).removeprefix(GROUP)
    if version not in release.config_versions:
        known = " or ".join(GROUP + v for v in release.config_versions)
        raise InputError(f"is {content.get('apiVersion')!r}; release {release.name} reads {known}", field="apiVersion")
    try:
        config = SchedulerConfig.model_validate(without_nulls(content))
    except ValidationError as error:
        raise refusal(error) from None
    weights = dict(release.plugins)
    unscored: frozenset[str] = frozenset()
    if version == "v1beta2":
        unscored = OLD_UNSCORED
        weights = {name: OLD_WEIGHTS.get(name, min(weight, 1)) for name, weight in weights.items()}
    profiles: dict[str, Profile] = {}
    for i, profile in enumerate(config.profiles):
        if profile.scheduler_name in profiles:
            raise InputError(f"{profile.scheduler_name!r} appears twice", field=f"profiles[{i}].schedulerName")
        try:
            built = _build(release, profile, weights, tie_break or release.tie_break, unscored)
            if profile.percentage_of_nodes_to_score is not None and not release.percentage_per_profile:
                raise InputError("is unknown to this release; set it for all profiles", field=PERCENTAGE)
        except InputError as error:
            raise InputError(error.problem, error.file, error.obj, f"profiles[{i}].{error.field}") from None
        percentage = config.percentage_of_nodes_to_score or 0
        if profile.percentage_of_nodes_to_score is not None:
            percentage = profile.percentage_of_nodes_to_score
        extenders = config.extenders or ()
        built = replace(built, percentage_of_nodes_to_score=percentage, extenders=extenders)
        profiles[profile.scheduler_name] = _leaving_to_extenders(built)
        _same_for_all(profiles, f"profiles[{i}]")
    return {
        name: replace(profile, siblings=tuple(other for other in profiles.values() if other is not profile))
        for name, profile in profiles.items()
    }


def _same_for_all(profiles: Mapping[str, Profile], field: str) -> None:
    """Refuse a profile that sorts the queue, or accounts for CPUs, otherwise than the first: there is one of each."""
    first, last = (list(profiles.values())[i] for i in (0, -1))
    (one,), (other,) = first.at("queue_key"), last.at("queue_key")
    if one != other:
        problem = f"is {other}, but {one} in the first profile; all must have the same"
        raise InputError(problem, field=f"{field}.plugins.queueSort")
    plugin = plugins_of(first.release)[one]
    if first.args(plugin) != last.args(plugin):
        problem = f"{one} has other arguments than in the first profile; all must have the same"
        raise InputError(problem, field=f"{field}.plugins.queueSort")
    if first.release.isolation != last.release.isolation:
        raise InputError(f"{IsolatedCPUs.name} is not as in the first profile; all must have the same", field=field)


def _leaving_to_extenders(profile: Profile) -> Profile:
    """Let the fit filter ignore the resources that extenders account for alone."""
    ignored = tuple(
        resource.name
        for extender in profile.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    fit = registry()[FIT]
    if not ignored:
        return profile
    args: Any = profile.args(fit)
    args = args.model_copy(update={"ignored_resources": (*args.ignored_resources, *ignored)})
    return replace(profile, arguments={**profile.arguments, FIT: args})


def _build(
    release: Release,
    config: ProfileConfig,
    defaults: Mapping[str, int],
    tie_break: TieBreak,
    unscored: frozenset[str] = frozenset(),
) -> Profile:
    """Build a profile; ``unscored`` names the default plugins that do not score unless the configuration names them."""
    known = plugins_of(release)
    weights: dict[str, int] = {}
    order: dict[str, tuple[str, ...]] = {}
    multi_point = _merge(
        [PluginEntry(name=name, weight=weight) for name, weight in defaults.items()], config.plugins.multi_point
    )
    if not release.multi_point and config.plugins.multi_point != PluginSet():
        raise InputError(f"is unknown to release {release.name}", field="plugins.multiPoint")
    names = _known_names(multi_point, "plugins.multiPoint", known)
    unscored -= {entry.name for entry in config.plugins.multi_point.on}
    for camel, method in EXTENSION_POINTS.items():
        chosen: PluginSet = getattr(config.plugins, _snake(camel))
        explicit = {entry.name: entry for entry in chosen.on}
        _known_names(chosen.on, f"plugins.{camel}", known)
        _check_points(chosen.on, camel, method, known, release)
        from_multi = [
            entry
            for entry in multi_point
            if entry.name in names
            and not (method == "score" and entry.name in unscored)
            and _extends(known[entry.name], method, release)
            and entry.name not in chosen.off
            and EVERY not in chosen.off
        ]
        if method == "score":
            weights |= {entry.name: entry.weight for entry in from_multi}
            weights |= {entry.name: entry.weight for entry in chosen.on}
        overridden = {entry.name for entry in from_multi if entry.name in explicit}
        # Upstream's order: what overrides a default, then the other defaults, then what is new.
        order[method] = tuple(
            name
            for name in (
                *(name for name in explicit if name in overridden),
                *(entry.name for entry in from_multi if entry.name not in overridden),
                *(name for name in explicit if name not in overridden),
            )
            if name in known
        )
    used = list(
        dict.fromkeys([*(e.name for e in multi_point if e.name in known), *(n for o in order.values() for n in o)])
    )
    if len(order["queue_key"]) != 1:
        raise InputError("exactly one queue sort plugin must be enabled", field="plugins.queueSort")
    if not order["bind"]:
        raise InputError("at least one bind plugin must be enabled", field="plugins.bind")
    uses = tuple(
        Use(known[name], weights.get(name, 0), frozenset(point for point, on in order.items() if name in on))
        for name in used
    )
    if sum(max(1, weights[name]) for name in order["score"] if name in weights) * POINTS > LARGEST_TOTAL:
        raise InputError("the total score of all plugins could overflow", field="plugins.score")
    arguments = dict(_arguments(config.plugin_config, known))
    if IsolatedCPUs.name in order["filter"]:
        args: Any = arguments.get(IsolatedCPUs.name) or IsolatedCPUs.Args()
        release = replace(release, isolation=args.isolation)
    return Profile(release, uses, config.scheduler_name, arguments, order, tie_break)


def _merge(defaults: Sequence[PluginEntry], custom: PluginSet) -> list[PluginEntry]:
    """Apply a custom plugin set to the default one: replace in place, drop what is off, append what is new."""
    replaced = {entry.name: entry for entry in custom.on}
    if EVERY in custom.off:
        kept: list[PluginEntry] = []
    else:
        kept = [replaced.get(entry.name, entry) for entry in defaults if entry.name not in custom.off]
    present = {entry.name for entry in kept}
    return kept + [entry for entry in custom.on if entry.name not in present]


def _known_names(entries: Iterable[PluginEntry], field: str, known: Mapping[str, type[Plugin]]) -> set[str]:
    for entry in entries:
        if entry.name in known:
            continue
        if entry.name in NOT_BUILT:
            raise InputError(f"plugin {entry.name!r} is not implemented", field=field)
        missing = "".join(f"; entry point {name}: {why}" for name, why in broken_packages().items())
        problem = f"plugin {entry.name!r} is unknown; must be one of {', '.join(sorted(known))}{missing}"
        raise InputError(problem, field=field)
    return {entry.name for entry in entries}


def _extends(plugin: type[Plugin], method: str, release: Release) -> bool:
    return implements(plugin, method) and not (method == "score" and plugin.name in release.unscored)


def _check_points(
    entries: Iterable[PluginEntry], camel: str, method: str, known: Mapping[str, type[Plugin]], release: Release
) -> None:
    """Check plugins that were named for one extension point: each once, and only if it has that point."""
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            raise InputError(f"plugin {entry.name!r} is enabled twice", field=f"plugins.{camel}")
        seen.add(entry.name)
        if method in STRICT and not _extends(known[entry.name], method, release):
            raise InputError(f"plugin {entry.name!r} does not extend this point", field=f"plugins.{camel}")


def _arguments(entries: Iterable[PluginConfig], known: Mapping[str, type[Plugin]]) -> Iterable[tuple[str, Args]]:
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            raise InputError("has arguments more than once", field=f"pluginConfig[{entry.name}]")
        seen.add(entry.name)
        field = f"pluginConfig[{entry.name}]"
        if entry.name in NOT_BUILT:
            raise InputError(f"plugin {entry.name!r} is not implemented", field=field)
        if entry.name not in known:
            raise InputError(f"plugin {entry.name!r} is unknown", field=field)
        try:
            yield entry.name, known[entry.name].Args.model_validate(entry.args)
        except ValidationError as error:
            raise refusal(error, under=(field, "args")) from None


def _snake(camel: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in camel)


def choose_release(name: str) -> Release:
    """Return a release by name.

    Raises
    ------
    InputError
        If no such release is built in.
    """
    try:
        return RELEASES[known_release(name)]
    except ValueError as error:
        raise InputError(str(error), field="--profile") from None
