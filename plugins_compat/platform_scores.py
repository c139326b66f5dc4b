"""Which scores an operations platform runs, with which weights: its default, or a ``PlatformScores`` file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from stowplan.models.errors import InputError
from stowplan.models.validation import refusal
from stowplan.plugins_compat.framework.plugin import Args, Plugin, implements
from stowplan.plugins_compat.framework.profile import Profile, Use
from stowplan.plugins_compat.registry import plugins_of
from stowplan.plugins_compat.release import Release, TieBreak

PLATFORM_KIND = "PlatformScores"


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class ScoreEntry(_Part):
    """A score with its weight and its arguments."""

    name: str
    weight: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    args: dict[str, Any] = {}


class PlatformScores(_Part):
    """A ``PlatformScores`` file; the filters are always all of the platform's."""

    kind: Literal["PlatformScores"] = "PlatformScores"
    api_version: Literal["stowplan.dev/v1"] = "stowplan.dev/v1"
    scores: tuple[ScoreEntry, ...] = ()


def platform_profile(content: object, release: Release, tie_break: TieBreak | None = None) -> Profile:
    """Return the profile of a parsed ``PlatformScores`` file; of an empty one, the platform's default.

    Raises
    ------
    InputError
        With the score that is unknown, repeated, or has arguments that cannot be used.
    """
    try:
        config = PlatformScores.model_validate(content)
    except ValidationError as error:
        raise refusal(error) from None
    known = plugins_of(release)
    default = [ScoreEntry(name=name, weight=weight) for name, weight in release.plugins if weight]
    chosen = config.scores or default
    weights: dict[str, int] = {}
    arguments: dict[str, Args] = {}
    for i, entry in enumerate(chosen):
        field = f"scores[{i}]"
        if entry.name not in known or not implements(known[entry.name], "score"):
            names = ", ".join(sorted(name for name, plugin in known.items() if implements(plugin, "score")))
            raise InputError(f"{entry.name!r} is unknown; must be one of {names}", field=f"{field}.name")
        if entry.name in weights:
            raise InputError(f"{entry.name!r} appears twice", field=f"{field}.name")
        weights[entry.name] = entry.weight
        try:
            arguments[entry.name] = known[entry.name].Args.model_validate(entry.args)
        except ValidationError as error:
            raise refusal(error, under=(field, "args")) from None
    always = [name for name, weight in release.plugins if not weight]
    uses = tuple(Use(known[name], weights.get(name, 0), _points(known[name], weights)) for name in (*always, *weights))
    return Profile(release, uses, arguments=arguments, tie_break=tie_break or release.tie_break)


def _points(plugin: type[Plugin], weights: Mapping[str, int]) -> frozenset[str]:
    points = ("score",) if plugin.name in weights else ("queue_key", "filter", "bind")
    return frozenset(point for point in points if implements(plugin, point))
