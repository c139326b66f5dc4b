"""All plugins by name: those of this package, and those that installed packages offer."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from stowplan.models.errors import InputError
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.plugins import IN_TREE
from stowplan.plugins_compat.plugins.trimaran import TRIMARAN

ENTRY_POINTS = "stowplan.plugins"


@cache
def registry() -> dict[str, type[Plugin]]:
    """Return every known plugin class by its upstream name.

    A package adds plugins with an entry point in the group ``stowplan.plugins``.

    Raises
    ------
    InputError
        If an entry point does not load a `Plugin`, or takes a name that is taken.
    """
    known = {plugin.name: plugin for plugin in (*IN_TREE, *TRIMARAN)}
    for entry in entry_points(group=ENTRY_POINTS):
        plugin = entry.load()
        if not (isinstance(plugin, type) and issubclass(plugin, Plugin)):
            raise InputError("is not a subclass of Plugin", obj=f"entry point {entry.name}", field=entry.value)
        if plugin.name in known:
            raise InputError(f"uses the name {plugin.name}, which is in use already", obj=f"entry point {entry.name}")
        known[plugin.name] = plugin
    return known
