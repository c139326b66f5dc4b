"""Plugins that newer releases no longer have; `stowplan.plugins_compat.release` says which release has which."""

from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.plugins.retired.node_prefer_avoid_pods import NodePreferAvoidPods
from stowplan.plugins_compat.plugins.retired.node_resources_least_allocated import NodeResourcesLeastAllocated
from stowplan.plugins_compat.plugins.retired.node_resources_most_allocated import NodeResourcesMostAllocated
from stowplan.plugins_compat.plugins.retired.selector_spread import SelectorSpread

RETIRED: tuple[type[Plugin], ...] = (
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    NodePreferAvoidPods,
    SelectorSpread,
)
