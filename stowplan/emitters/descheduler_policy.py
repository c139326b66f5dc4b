"""The descheduler's policy, ``descheduler/v1alpha2``: as strict as its own reader should be.

The descheduler refuses unknown arguments of plugins and ignores unknown fields everywhere else, so that a misspelled
limit is no limit. Here nothing unknown passes. The models have the fields that we write and those beside them, as of
release 0.31.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

Count = Annotated[int, Field(ge=0)]
LabelValue = Annotated[str, Field(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")]

STATES = Literal["Running", "Pending", "Succeeded", "Failed", "Unknown"]


class _Strict(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid", strict=True
    )


class MatchLabels(_Strict):
    """A label selector; of its two halves we use the simple one."""

    match_labels: Annotated[dict[str, LabelValue], Field(min_length=1)]


class Namespaces(_Strict):
    """Which namespaces; one of the two."""

    include: list[str] | None = None
    exclude: list[str] | None = None

    @model_validator(mode="after")
    def _one(self) -> Namespaces:
        if (self.include is None) == (self.exclude is None):
            raise ValueError("must have include or exclude, not both")
        return self


class DefaultEvictorArgs(_Strict):
    """Arguments of DefaultEvictor."""

    node_fit: bool = False
    label_selector: MatchLabels | None = None


class PodLifeTimeArgs(_Strict):
    """Arguments of PodLifeTime; before 0.36 the seconds are mandatory, and so they are here."""

    max_pod_life_time_seconds: Count
    states: Annotated[list[STATES], Field(min_length=1)] | None = None
    namespaces: Namespaces | None = None
    label_selector: MatchLabels | None = None


ARGUMENTS: dict[str, type[_Strict]] = {"DefaultEvictor": DefaultEvictorArgs, "PodLifeTime": PodLifeTimeArgs}


class PluginConfig(_Strict):
    """A plugin's arguments."""

    name: str
    args: dict[str, Any]

    @model_validator(mode="after")
    def _arguments(self) -> PluginConfig:
        if self.name not in ARGUMENTS:
            raise ValueError(f"plugin {self.name!r} is not one that we use")
        ARGUMENTS[self.name].model_validate(self.args)
        return self


class PluginSet(_Strict):
    """Plugins by name; a list of strings, whatever the README writes."""

    enabled: list[str] | None = None
    disabled: list[str] | None = None


class Plugins(_Strict):
    """Extension points; two of them are in lower case, and ignored otherwise."""

    presort: PluginSet | None = None
    sort: PluginSet | None = None
    deschedule: PluginSet | None = None
    balance: PluginSet | None = None
    filter: PluginSet | None = None
    preevictionfilter: PluginSet | None = None

    @property
    def enabled(self) -> list[str]:
        """All that is switched on."""
        sets = (self.presort, self.sort, self.deschedule, self.balance, self.filter, self.preevictionfilter)
        return [name for chosen in sets if chosen for name in chosen.enabled or ()]


class Profile(_Strict):
    """A profile."""

    name: Annotated[str, Field(min_length=1)]
    plugin_config: list[PluginConfig]
    plugins: Plugins

    @model_validator(mode="after")
    def _configured(self) -> Profile:
        missing = sorted(set(self.plugins.enabled) - {config.name for config in self.plugin_config})
        if missing:
            raise ValueError(f"plugin {missing[0]!r} is enabled and has no pluginConfig")
        return self


class DeschedulerPolicy(_Strict):
    """A policy."""

    api_version: Literal["descheduler/v1alpha2"] = "descheduler/v1alpha2"
    kind: Literal["DeschedulerPolicy"] = "DeschedulerPolicy"
    node_selector: str | None = None
    max_no_of_pods_to_evict_per_node: Count | None = None
    max_no_of_pods_to_evict_per_namespace: Count | None = None
    max_no_of_pods_to_evict_total: Annotated[int, Field(ge=1)] | None = None
    profiles: Annotated[list[Profile], Field(min_length=1)]


def exact_list(
    name: str, labels: dict[str, str], evictor_labels: dict[str, str], namespaces: list[str], most: int
) -> DeschedulerPolicy:
    """Return the policy that evicts the running pods with some labels, and no other pod.

    ``nodeFit`` is off: it asks about each pod alone and today, and refuses swaps and chains. The total is a fuse; what
    selects is the labels, which are on the pods and not on their templates, so that replacements do not have them.

    Parameters
    ----------
    evictor_labels
        What every pod must have that anything of this policy evicts.
    most
        How many pods have the labels.
    """
    evictor = DefaultEvictorArgs(label_selector=MatchLabels(match_labels=evictor_labels))
    life = PodLifeTimeArgs(
        max_pod_life_time_seconds=0,
        states=["Running"],
        namespaces=Namespaces(include=namespaces),
        label_selector=MatchLabels(match_labels=labels),
    )
    return DeschedulerPolicy(
        max_no_of_pods_to_evict_total=most,
        profiles=[
            Profile(
                name=name,
                plugin_config=[
                    PluginConfig(name="DefaultEvictor", args=written(evictor)),
                    PluginConfig(name="PodLifeTime", args=written(life)),
                ],
                plugins=Plugins(deschedule=PluginSet(enabled=["PodLifeTime"])),
            )
        ],
    )


def written(model: BaseModel) -> dict[str, Any]:
    """Return a model as the file has it, without what is not set."""
    content: dict[str, Any] = model.model_dump(by_alias=True, exclude_none=True, mode="json")
    return content
