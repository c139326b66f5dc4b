"""The page that says what is exact, surrogate or refused is what the plugins say of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from stowplan.plugins_compat.coverage import page
from stowplan.plugins_compat.framework.plugin import Plugin, implements
from stowplan.plugins_compat.registry import plugins_of
from stowplan.plugins_compat.release import RELEASES

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "plugins.md"


def test_the_page_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == "\n".join(page()) + "\n"


EVERY = {plugin for release in RELEASES.values() for plugin in plugins_of(release).values()}


@pytest.mark.parametrize("plugin", sorted(EVERY, key=lambda plugin: plugin.name), ids=lambda plugin: plugin.name)
def test_what_a_plugin_says_of_itself_fits_its_faces(plugin: type[Plugin]) -> None:
    assert bool(plugin.refusal) == implements(plugin, "refuses")
    assert not plugin.surrogate or implements(plugin, "terms")
    assert not plugin.deviation or implements(plugin, "rules")
