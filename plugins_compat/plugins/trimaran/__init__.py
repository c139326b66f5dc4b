"""Trimaran: score plugins of ``sigs.k8s.io/scheduler-plugins`` (release for Kubernetes 1.35) that read measured load.

No default profile has them; a ``KubeSchedulerConfiguration`` enables them. Upstream advises against more than one at
a time. What they compute, and what they read, is written out in ``docs/load-aware.md``.
"""

from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.plugins.trimaran.load_variation_risk_balancing import LoadVariationRiskBalancing
from stowplan.plugins_compat.plugins.trimaran.low_risk_over_commitment import LowRiskOverCommitment
from stowplan.plugins_compat.plugins.trimaran.target_load_packing import TargetLoadPacking

TRIMARAN: tuple[type[Plugin], ...] = (TargetLoadPacking, LoadVariationRiskBalancing, LowRiskOverCommitment)
