"""All plugins by name: those of this package, and those that installed packages offer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from stowplan.models.errors import InputError
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.plugins import IN_TREE
from stowplan.plugins_compat.plugins.default_binder import DefaultBinder
from stowplan.plugins_compat.plugins.node_ports import NodePorts
from stowplan.plugins_compat.plugins.platform import PLATFORM
from stowplan.plugins_compat.plugins.policy import POLICY
from stowplan.plugins_compat.plugins.priority_sort import PrioritySort
from stowplan.plugins_compat.plugins.retired import RETIRED
from stowplan.plugins_compat.plugins.trimaran import TRIMARAN
from stowplan.plugins_compat.release import Release

ENTRY_POINTS = "stowplan.plugins"


def plugins_of(release: Release) -> Mapping[str, type[Plugin]]:
    """Return the plugins that a profile of a release may have, by name."""
    if release.policy:
        return {plugin.name: plugin for plugin in POLICY}
    if release.real_scores:
        own: tuple[type[Plugin], ...] = (PrioritySort, NodePorts, *PLATFORM, DefaultBinder)
        return {plugin.name: plugin for plugin in own}
    return registry() | {plugin.name: plugin for plugin in RETIRED if plugin.name in release.retired}


_broken: dict[str, str] = {}


def broken_packages() -> dict[str, str]:
    """Return why plugins of installed packages are missing, by the name of the entry point."""
    registry()
    return dict(_broken)


@cache
def registry() -> dict[str, type[Plugin]]:
    """Return every plugin class of the scheduling framework by its upstream name.

    A package adds plugins with an entry point in the group ``stowplan.plugins``. One that cannot be imported adds
    nothing, and `broken_packages` says why: no plugin takes part unless a profile names it.

    Raises
    ------
    InputError
        If an entry point does not load a `Plugin`, or takes a name that is taken.
    """
    known = {plugin.name: plugin for plugin in (*IN_TREE, *TRIMARAN)}
    taken = {plugin.name for plugin in RETIRED}

    _broken.clear()
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            plugin = entry.load()
        except Exception as error:  # whatever the code of others raises while it is imported
            _broken[entry.name] = f"{entry.value} cannot be imported: {type(error).__name__}: {error}"
            continue
        if not (isinstance(plugin, type) and issubclass(plugin, Plugin)):
            raise InputError("is not a subclass of Plugin", obj=f"entry point {entry.name}", field=entry.value)
        if plugin.name in known or plugin.name in taken:
            raise InputError(f"uses the name {plugin.name}, which is in use already", obj=f"entry point {entry.name}")
        known[plugin.name] = plugin
    return known
