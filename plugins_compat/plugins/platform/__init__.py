"""Filters and scores of an operations platform that places instances of Redis on machines without Kubernetes.

Its files are read by `stowplan.instances.platform`. Scores are real numbers.
"""

from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.plugins.platform.balanced_shares import BalancedShares
from stowplan.plugins_compat.plugins.platform.global_variance import GlobalVariance
from stowplan.plugins_compat.plugins.platform.least_memory import LeastMemory
from stowplan.plugins_compat.plugins.platform.least_utilized import LeastUtilized
from stowplan.plugins_compat.plugins.platform.load_risk import LoadRisk
from stowplan.plugins_compat.plugins.platform.masters_apart import MastersApart
from stowplan.plugins_compat.plugins.platform.target_utilization import TargetUtilization
from stowplan.plugins_compat.plugins.platform.thresholds import Thresholds

PLATFORM: tuple[type[Plugin], ...] = (
    Thresholds,
    MastersApart,
    GlobalVariance,
    LeastUtilized,
    BalancedShares,
    TargetUtilization,
    LoadRisk,
    LeastMemory,
)
