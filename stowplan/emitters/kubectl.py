"""A shell script that carries out a plan with kubectl alone."""

from __future__ import annotations

from stowplan.emitters.emission import Emission, EmitOptions
from stowplan.emitters.script import plan_lines, script
from stowplan.emitters.words import require_plain, require_uids
from stowplan.models.plan import MOVE_ANNOTATION, PLAN_ANNOTATION, Plan


def emit_kubectl(plan: Plan, choices: EmitOptions) -> Emission:
    """Return the script.

    It posts Evictions with the uid as a precondition, and with plan and move as annotations, as ``apply`` does, one
    wave after the other. Parked pods are found when their turn
    comes: they are those of the same owner and template on the node that they were parked on.

    Raises
    ------
    InputError
        If a pod has no uid, or a name is none.
    """
    require_plain(plan)
    require_uids(plan)
    about = {"PLAN_ANNOTATION": PLAN_ANNOTATION, "MOVE_ANNOTATION": MOVE_ANNOTATION}
    notes = []
    if plan.moves and plan.steered:
        notes.append(
            "replacements go where the scheduler puts them; run stowplan serve beside it, or pin them (emit --to pin)"
        )
    return Emission([script(plan, ("pods", "waves", "kubectl"), plan_lines(plan), **about)], notes)
