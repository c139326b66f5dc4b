"""All plugins by name: those of this package, and those that installed packages offer."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from stowplan.models.errors import InputError
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.plugins import IN_TREE
from stowplan.plugins_compat.plugins.trimaran import TRIMARAN

ENTRY_POINTS = "stowplan.plugins"


_broken: dict[str, str] = {}


def broken_packages() -> dict[str, str]:
    """Return why plugins of installed packages are missing, by the name of the entry point."""
    registry()
    return dict(_broken)


@cache
def registry() -> dict[str, type[Plugin]]:
    """Return every known plugin class by its upstream name.

    A package adds plugins with an entry point in the group ``stowplan.plugins``. One that cannot be imported adds
    nothing, and `broken_packages` says why: no plugin takes part unless a profile names it.

    Raises
    ------
    InputError
        If an entry point does not load a `Plugin`, or takes a name that is taken.
    """
    known = {plugin.name: plugin for plugin in (*IN_TREE, *TRIMARAN)}
    _broken.clear()
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            plugin = entry.load()
        except Exception as error:  # whatever the code of others raises while it is imported
            _broken[entry.name] = f"{entry.value} cannot be imported: {type(error).__name__}: {error}"
            continue
        if not (isinstance(plugin, type) and issubclass(plugin, Plugin)):
            raise InputError("is not a subclass of Plugin", obj=f"entry point {entry.name}", field=entry.value)
        if plugin.name in known:
            raise InputError(f"uses the name {plugin.name}, which is in use already", obj=f"entry point {entry.name}")
        known[plugin.name] = plugin
    return known
