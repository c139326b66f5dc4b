"""Which emitters there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from models.plan import Plan
from stowplan.emitters.emission import Choices, Emission
from stowplan.emitters.extender import emit_extender
from stowplan.emitters.kubectl import emit_kubectl

Emitter = Callable[[Plan, Choices], Emission]

EMITTERS: Mapping[str, Emitter] = {
    "kubectl": emit_kubectl,
    "extender": emit_extender,
}
