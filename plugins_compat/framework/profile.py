"""A scheduling profile: which plugins run where, with which weights and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from stowplan.plugins_compat.extenders.config import ExtenderConfig
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.release import Release, TieBreak

DEFAULT_SCHEDULER = "default-scheduler"


@dataclass(frozen=True)
class Use:
    """A plugin in a profile.

    Parameters
    ----------
    weight
        Weight of the plugin's score; 0 counts as 1, as upstream has it.
    points
        Extension points at which it runs.
    """

    plugin: type[Plugin]
    weight: int
    points: frozenset[str]


@dataclass(frozen=True)
class Profile:
    """An immutable profile of one release.

    Parameters
    ----------
    uses
        Plugins in the order they were enabled.
    order
        For an extension point whose order was configured, the names in that order.
    arguments
        Arguments by plugin name; a plugin without an entry has its defaults.
    tie_break
        How one of several best nodes is picked.
    percentage_of_nodes_to_score
        How many of the feasible nodes are looked for, in percent; 0 adapts to the number of nodes.
    extenders
        Servers that filter and score beside the plugins.
    siblings
        The other profiles of the same configuration: one scheduler runs them all, each for the pods that name it.
    samples
        Whether that percentage applies; otherwise every node is scored.
    """

    release: Release
    uses: tuple[Use, ...]
    scheduler_name: str = DEFAULT_SCHEDULER
    arguments: Mapping[str, Args] = field(default_factory=dict)
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tie_break: TieBreak = "first"
    percentage_of_nodes_to_score: int = 0
    extenders: tuple[ExtenderConfig, ...] = ()
    siblings: tuple[Profile, ...] = ()
    samples: bool = False

    @cached_property
    def _by_name(self) -> dict[str, Use]:
        return {use.plugin.name: use for use in self.uses}

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the schedulers whose pods are scheduled."""
        return frozenset({self.scheduler_name, *(other.scheduler_name for other in self.siblings)})

    @cached_property
    def modeled(self) -> frozenset[str]:
        """Those of them whose pods one model can place: their filters are the same, with the same arguments."""
        alike = (other.scheduler_name for other in self.siblings if other.filters() == self.filters())
        return frozenset({self.scheduler_name, *alike})

    def filters(self) -> dict[str, Args]:
        """Return the filter plugins with their arguments; their order decides nothing but reasons."""
        return {name: self.args(self._by_name[name].plugin) for name in self.at("filter")}

    def at(self, point: str) -> list[str]:
        """Names of the plugins that run at an extension point, in order."""
        if point in self.order:
            return list(self.order[point])
        return [use.plugin.name for use in self.uses if point in use.points]

    def weight(self, name: str) -> int:
        """Weight of a plugin's score."""
        return self._by_name[name].weight or 1

    def args(self, plugin: type[Plugin]) -> Args:
        """Arguments of a plugin."""
        return self.arguments.get(plugin.name) or plugin.Args()
