"""All emitters by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stowplan.emitters.descheduler import emit_descheduler, remove_descheduler
from stowplan.emitters.emission import Emission, EmitOptions
from stowplan.emitters.extender import emit_extender
from stowplan.emitters.koordinator import emit_koordinator
from stowplan.emitters.kubectl import emit_kubectl
from stowplan.emitters.pin import emit_pin, remove_pin
from stowplan.emitters.target import Target
from stowplan.models.plan import Plan

Emitter = Callable[[Plan, EmitOptions], Emission]

EMITTERS: Mapping[Target, Emitter] = {
    Target.KUBECTL: emit_kubectl,
    Target.DESCHEDULER: emit_descheduler,
    Target.KOORDINATOR: emit_koordinator,
    Target.EXTENDER: emit_extender,
    Target.PIN: emit_pin,
}

REMOVERS: Mapping[Target, Emitter] = {Target.DESCHEDULER: remove_descheduler, Target.PIN: remove_pin}
"""What takes off what an emission has put into a cluster, where deleting its files would not be enough."""
