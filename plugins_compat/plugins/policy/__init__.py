"""Predicates and priority functions of Kubernetes 1.5, by the names that its ``Policy`` files use.

They are not the plugins of later releases under old names: arithmetic, labels and limits are those of 1.5. Predicates
filter, priorities score from 0 to 10. `POLICY` also holds what takes the place of the queue and of the node list.
"""

from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.plugins.default_binder import DefaultBinder
from stowplan.plugins_compat.plugins.policy.arrival_order import ArrivalOrder
from stowplan.plugins_compat.plugins.policy.balanced_resource_allocation import BalancedResourceAllocation
from stowplan.plugins_compat.plugins.policy.equal_priority import EqualPriority
from stowplan.plugins_compat.plugins.policy.host_name import HostName
from stowplan.plugins_compat.plugins.policy.image_locality_priority import ImageLocalityPriority
from stowplan.plugins_compat.plugins.policy.least_requested_priority import LeastRequestedPriority
from stowplan.plugins_compat.plugins.policy.listed_nodes import ListedNodes
from stowplan.plugins_compat.plugins.policy.match_node_selector import MatchNodeSelector
from stowplan.plugins_compat.plugins.policy.max_ebs_volume_count import MaxEBSVolumeCount
from stowplan.plugins_compat.plugins.policy.max_gce_pd_volume_count import MaxGCEPDVolumeCount
from stowplan.plugins_compat.plugins.policy.most_requested_priority import MostRequestedPriority
from stowplan.plugins_compat.plugins.policy.no_disk_conflict import NoDiskConflict
from stowplan.plugins_compat.plugins.policy.no_volume_zone_conflict import NoVolumeZoneConflict
from stowplan.plugins_compat.plugins.policy.node_affinity_priority import NodeAffinityPriority
from stowplan.plugins_compat.plugins.policy.node_label import NodeLabel
from stowplan.plugins_compat.plugins.policy.pod_fits_host_ports import PodFitsHostPorts
from stowplan.plugins_compat.plugins.policy.pod_fits_resources import PodFitsResources
from stowplan.plugins_compat.plugins.policy.selector_spread_priority import SelectorSpreadPriority
from stowplan.plugins_compat.plugins.policy.service_anti_affinity import ServiceAntiAffinity

ALWAYS: tuple[type[Plugin], ...] = (ArrivalOrder, ListedNodes, DefaultBinder)
"""Part of every policy, whatever it says."""

PREDICATES: tuple[type[Plugin], ...] = (
    NoVolumeZoneConflict,
    MaxEBSVolumeCount,
    MaxGCEPDVolumeCount,
    NoDiskConflict,
    PodFitsResources,
    HostName,
    PodFitsHostPorts,
    MatchNodeSelector,
)

PRIORITIES: tuple[type[Plugin], ...] = (
    SelectorSpreadPriority,
    LeastRequestedPriority,
    MostRequestedPriority,
    BalancedResourceAllocation,
    NodeAffinityPriority,
    ImageLocalityPriority,
    EqualPriority,
)

WITH_ARGUMENT: dict[str, type[Plugin]] = {"serviceAntiAffinity": ServiceAntiAffinity, "labelPreference": NodeLabel}
"""Priorities that a policy makes under names of its own, by the field of ``argument`` that says how."""

POLICY: tuple[type[Plugin], ...] = (*ALWAYS, *PREDICATES, *PRIORITIES, *WITH_ARGUMENT.values())
