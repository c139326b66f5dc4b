"""What is known while one pod is being scheduled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.framework.signatures import Signature


@dataclass(slots=True, eq=False)
class CycleState:
    """The state of one pod's scheduling cycle.

    Attributes
    ----------
    data
        Each plugin's own notes, by plugin name, from PreFilter or PreScore on.
    skipped
        Plugins whose PreFilter said that there is nothing to filter.
    """

    pod: Pod
    signature: Signature
    data: dict[str, Any] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
