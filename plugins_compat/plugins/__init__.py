"""One file for each upstream plugin, named as upstream, and what shared GPUs need; the list of what is built in."""

from plugins_compat.framework.plugin import Plugin
from plugins_compat.plugins.azure_disk_limits import AzureDiskLimits
from plugins_compat.plugins.cinder_limits import CinderLimits
from plugins_compat.plugins.default_binder import DefaultBinder
from plugins_compat.plugins.default_preemption import DefaultPreemption
from plugins_compat.plugins.dynamic_resources import DynamicResources
from plugins_compat.plugins.ebs_limits import EBSLimits
from plugins_compat.plugins.gce_pd_limits import GCEPDLimits
from plugins_compat.plugins.gpu_share import GpuShare
from plugins_compat.plugins.image_locality import ImageLocality
from plugins_compat.plugins.inter_pod_affinity import InterPodAffinity
from plugins_compat.plugins.node_affinity import NodeAffinity
from plugins_compat.plugins.node_name import NodeName
from plugins_compat.plugins.node_ports import NodePorts
from plugins_compat.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from plugins_compat.plugins.node_resources_fit import NodeResourcesFit
from plugins_compat.plugins.node_unschedulable import NodeUnschedulable
from plugins_compat.plugins.node_volume_limits import NodeVolumeLimits
from plugins_compat.plugins.pod_topology_spread import PodTopologySpread
from plugins_compat.plugins.priority_sort import PrioritySort
from plugins_compat.plugins.scheduling_gates import SchedulingGates
from plugins_compat.plugins.taint_toleration import TaintToleration
from plugins_compat.plugins.volume_binding import VolumeBinding
from plugins_compat.plugins.volume_restrictions import VolumeRestrictions
from plugins_compat.plugins.volume_zone import VolumeZone

IN_TREE: tuple[type[Plugin], ...] = (
    PrioritySort,
    SchedulingGates,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    GpuShare,
    VolumeRestrictions,
    EBSLimits,
    GCEPDLimits,
    NodeVolumeLimits,
    AzureDiskLimits,
    CinderLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
)
