"""An annotation with the target on each pod, for an operator that reads them."""

from __future__ import annotations

import shlex

from stowplan.emitters.emission import PREFIX, Emission, EmitOptions, File
from stowplan.emitters.words import require_plain, require_uids
from stowplan.models.plan import Plan


def emit_annotations(plan: Plan, choices: EmitOptions) -> Emission:
    """Return a script of kubectl commands."""
    require_plain(plan)
    require_uids(plan)
    lines = ["#!/bin/sh", "set -eu"]
    for move in plan.moves:
        if move.follows is None and move.target is not None:
            words = ["kubectl", "annotate", "pod", "-n", move.pod.namespace, move.pod.name]
            lines.append(shlex.join([*words, f"{PREFIX}target={move.target}"]))
    return Emission([File("annotate.sh", "\n".join([*lines, ""]), executable=True)])
