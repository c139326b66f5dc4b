"""Which plugin is exact, surrogate, refused, absent; ``python -m stowplan.plugins_compat.coverage`` prints the page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from stowplan.plugins_compat.framework.plugin import Plugin, implements
from stowplan.plugins_compat.registry import plugins_of
from stowplan.plugins_compat.release import RELEASES, Release

FRAMEWORK = {
    "filter": "Filter",
    "score": "Score",
    "post_filter": "PostFilter",
    "queue_key": "QueueSort",
    "pre_enqueue": "PreEnqueue",
    "bind": "Bind",
}


def page() -> Iterator[str]:
    """Yield the lines of ``docs/plugins.md``."""
    yield "# Plugins"
    yield ""
    yield "Printed by `python -m stowplan.plugins_compat.coverage` from the plugins themselves, and checked by a test."
    yield ""
    yield "In the framework every extension point that is named follows upstream exactly; recorded decisions of the"
    yield "real scheduler check all that they exercise. In the model, rules are what a filter becomes, terms what a"
    yield "score becomes."
    yield "What else differs, and why: [compatibility](compatibility.md)."
    everything = {name: plugin for release in RELEASES.values() for name, plugin in plugins_of(release).items()}
    for name, plugin in sorted(everything.items()):
        if plugin.not_upstream:
            yield ""
            yield from textwrap.wrap(f"Upstream has no {name}: {plugin.not_upstream}", 120)
    for release in RELEASES.values():
        yield ""
        yield f"## {release.name}"
        yield ""
        yield "| plugin | default | in the framework | rules | terms | refused |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for name, plugin in sorted(plugins_of(release).items()):
            yield _row(name, plugin, release)


def _row(name: str, plugin: type[Plugin], release: Release) -> str:
    weights = dict(release.plugins)
    default = "" if name not in weights else f"weight {weights[name]}" if weights[name] else "yes"
    points = ", ".join(title for point, title in FRAMEWORK.items() if implements(plugin, point))
    rules = _fidelity(plugin, "filter", "rules", plugin.deviation)
    terms = _fidelity(plugin, "score", "terms", plugin.surrogate)
    return f"| {name} | {default} | {points} | {rules} | {terms} | {plugin.refusal} |"


def _fidelity(plugin: type[Plugin], point: str, face: str, difference: str) -> str:
    if not implements(plugin, point):
        return ""
    if not implements(plugin, face):
        return "none"
    if not difference:
        return "exact"
    return f"surrogate: {difference}" if face == "terms" else f"exact, but {difference}"


if __name__ == "__main__":
    print("\n".join(page()))
